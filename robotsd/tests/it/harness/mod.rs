//! Common parts of all tests: robotsd as a process, a config, a folder with a site, a client and an
//! upstream. Reports and log lines are JSON values. Also re-exports common types of `std`.

#[path = "../../../../src/source/evidence/tests/certificate.rs"]
mod certificate;
mod client;
mod config;
mod expect;
mod folder;
mod load;
mod origin;
mod process;

pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::fs;
pub(crate) use std::io::{BufRead, BufReader, Read, Write};
pub(crate) use std::net::{SocketAddr, TcpListener, TcpStream};
pub(crate) use std::os::unix::fs::PermissionsExt;
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::process::{Command, Stdio};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::thread;
pub(crate) use std::time::{Duration, Instant, SystemTime};

pub(crate) use serde_json::{Value, json};

pub(crate) use self::certificate::{Authority, certificate_for, server_config};
pub(crate) use self::client::connect_from;
pub(crate) use self::client::{
    Answer, Kept, PATIENCE, admin_answer, admin_answer_with, connect, exchange, head, offer, rest, sent,
};
pub(crate) use self::config::Config;
pub(crate) use self::expect::{assert_has, assert_lacks, assert_part, row, unfolded};
pub(crate) use self::folder::{Folder, folder, serving};
pub(crate) use self::load::{Client, StopAtEnd, while_asking};
pub(crate) use self::origin::{Asked, Origin, Reply, free, gzip, redirect, response};
pub(crate) use self::process::{
    Ended, FIREFOX, GOOGLEBOT, GPTBOT, KillOnDrop, Running, ended, is_long, message, project, replace_file, robotsd,
    run, run_with, wait_for, wait_until,
};
pub(crate) use self::process::{is_alive, signal, stop};
