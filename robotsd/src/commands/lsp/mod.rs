//! `robotsd lsp`: a language server for robots.txt files, on standard input and output.
//!
//! The server shows which crawlers obey a rule, which group decides, and what a fix changes. It
//! applies the checks of `robotsd check`, and does not use the network.
//!
//! [`server`] lists the capabilities, and calls the handler of each request.
//!
//! One thread handles all messages ([`Server`]). Other threads only read messages, write messages,
//! or check whether the editor is still running.

mod completion;
mod diagnostics;
mod document;
mod fixes;
mod hover;
mod inbox;
mod outline;
mod protocol;
mod server;
mod text;

use std::io::{self, BufReader};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Args;
use lsp_server::{Connection, Message, Notification};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde_json::Value;

use self::server::Server;
use crate::exit::{complain, exit_code_for};

const PROCESS_TESTS: Duration = Duration::from_secs(5);

/// Check robots.txt files in an editor, as a language server
#[derive(Args, Debug)]
pub(crate) struct LspArgs {
    /// Has no effect, because the server always uses standard input and output; some editors add
    /// this option
    #[arg(long, hide = true)]
    stdio: bool,
}

pub(crate) fn run(_: &LspArgs) -> ExitCode {
    let (server, editor) = Connection::memory();
    let (received, sent) = (editor.sender, editor.receiver);
    let reader = received.clone();
    thread::spawn(move || {
        let mut input = BufReader::new(io::stdin());
        loop {
            let message = Message::read(&mut input).unwrap_or_else(|error| {
                complain(&format_args!("unreadable message: {error}"));
                None
            });
            let is_end = message.is_none();
            if reader.send(message.unwrap_or_else(exit)).is_err() || is_end {
                return;
            }
        }
    });
    let ended = received.clone();
    let writer = thread::spawn(move || {
        let mut out = io::stdout().lock();
        if sent.into_iter().try_for_each(|message| message.write(&mut out)).is_err() {
            let _ = ended.send(exit());
        }
    });
    let is_running = |process| test_kill_process(process) != Err(Errno::SRCH);
    let watch = |editor: Pid| {
        // If the server runs in a container with its own PID namespace, no process has the ID of
        // the editor. The editor can still end the server by closing standard input.
        if !is_running(editor) {
            return;
        }
        let ended = received.clone();
        thread::spawn(move || {
            while is_running(editor) {
                thread::sleep(PROCESS_TESTS);
            }
            let _ = ended.send(exit());
        });
    };
    let is_shut_down = Server::new(&server, &watch).run();
    drop(server);
    let _ = writer.join();
    exit_code_for(is_shut_down)
}

fn exit() -> Message {
    Notification { method: "exit".to_owned(), params: Value::Null }.into()
}
