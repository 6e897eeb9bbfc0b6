//! The binary, as an operator runs it: real processes, real sockets on loopback, real files.

#[cfg(unix)]
mod daemon;
mod origin;
mod process;

mod admin;
mod agents;
#[cfg(unix)]
mod beside;
mod churn;
mod config;
mod decision;
mod diff;
mod expect;
mod explain;
#[cfg(target_os = "linux")]
mod full_disk;
mod gate;
mod lifecycle;
mod live;
mod operate;
mod reconfigure;
mod replay;
mod serve;
mod sources;
#[cfg(unix)]
mod spellings;
mod start;
mod tls;
mod trusted;
mod upstreams;
