//! What every test here stands on: robotsd as a process, a folder with a site, a client and an upstream.

mod client;
mod folder;
mod origin;
mod process;

pub(crate) use self::client::{Answer, Kept, PATIENCE, exchange, head, rest, sent};
pub(crate) use self::folder::{ADMIN, ADMIN_SOCKET, Folder, LISTENER, folder, serving};
pub(crate) use self::origin::{Asked, Origin, free, response};
pub(crate) use self::process::{
    Ended, FIREFOX, GOOGLEBOT, GPTBOT, Running, StopAtEnd, ended, is_long, message, project, replace_file, robotsd,
    run, run_with, wait_for, wait_until,
};
