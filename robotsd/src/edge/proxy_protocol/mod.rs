//! The PROXY protocol, versions 1 and 2: a header before everything else on a connection, in which the proxy in front says who its
//! client is.
//!
//! A listener requires it on every connection or never looks for it: were it optional, any client could write one. So only trusted
//! proxies may connect where it is required. [`header`] reads octets, [`receiver`] takes them from a socket and leaves what follows
//! there, for TLS or for HTTP.
//!
//! Read by hand rather than with a crate, because those want all of a header in one buffer: version 2 may have 64 KiB of extensions,
//! which are skipped here as they come. So are checksums (`PP2_TYPE_CRC32C`): TCP has one already, and the sender is trusted.

pub(crate) mod header;
pub(crate) mod receiver;

#[cfg(test)]
mod tests;
