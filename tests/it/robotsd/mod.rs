//! The binary, as an operator runs it: real processes, real sockets on loopback, real files.

mod origin;
mod process;

mod agents;
mod churn;
mod config;
mod diff;
mod expect;
mod explain;
mod gate;
mod live;
mod replay;
mod serve;
mod start;
mod tls;
mod trusted;
mod upstreams;
