//! TLS on real sockets, with certificates made for it.
