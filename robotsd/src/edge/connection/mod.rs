//! One connection, from its first octet to its end.

pub(crate) mod client_socket;
pub(crate) mod hyper_driver;
pub(crate) mod hyper_socket;
