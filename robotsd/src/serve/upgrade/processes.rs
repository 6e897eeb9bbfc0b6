//! The two processes of an upgrade, each as the other sees it.

use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::channel::{UpgradeChannel, UpgradeMessage};
use super::{HandedSockets, SuccessorEvent};

/// The variable that tells a process of whom it takes the place: the number of that process.
const UPGRADE: &str = "ROBOTSD_UPGRADE";

/// The process before, whose place this one takes.
#[derive(Debug)]
pub(in crate::serve) struct Predecessor {
    channel: UpgradeChannel,
    /// Its number.
    pub(in crate::serve) process: u32,
}

impl Predecessor {
    /// The process that started this one to take its place, and the sockets that it listens on; none where this one was started
    /// otherwise. Blocks.
    ///
    /// # Errors
    ///
    /// If it ends before it has handed over all sockets.
    pub(in crate::serve) fn find() -> Result<Option<(Self, HandedSockets)>, String> {
        let named = std::env::var(UPGRADE).ok().and_then(|process| process.parse::<u32>().ok());
        // Others may have inherited the variable.
        let Some(process) = named.filter(|process| *process == std::os::unix::process::parent_id()) else {
            return Ok(None);
        };
        let cut_off =
            |why: &str| format!("the sockets of process {process}, whose place this one takes, did not come: {why}");
        let end = std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| cut_off(&error.to_string()))?;
        let channel = UpgradeChannel::of(end);
        let mut sockets = Vec::new();
        loop {
            match channel.receive().map_err(|error| cut_off(&error.to_string()))? {
                Some((UpgradeMessage::Socket { place }, Some(socket))) => sockets.push((place, socket)),
                Some((UpgradeMessage::Start, _)) => return Ok(Some((Self { channel, process }, sockets))),
                Some(_) => {}
                None => return Err(cut_off("it has ended")),
            }
        }
    }

    /// Asks for what only one process may have, and waits until it has been given up. Returns whether the process before is still
    /// there; where it is not, nothing has to be given up any more. Blocks.
    pub(in crate::serve) fn take(&self) -> bool {
        if self.channel.send(&UpgradeMessage::Prepared, None).is_err() {
            return false;
        }
        loop {
            match self.channel.receive() {
                Ok(Some((UpgradeMessage::Take, _))) => return true,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return false,
            }
        }
    }

    /// This process serves.
    pub(in crate::serve) fn serves(&self, summary: &str) {
        // If the process before has ended, the message has no reader.
        let _ = self.channel.send(&UpgradeMessage::Serves { summary: summary.to_owned() }, None);
    }

    /// This process cannot serve.
    pub(in crate::serve) fn failed(&self, why: &str) {
        let _ = self.channel.send(&UpgradeMessage::failed(why), None);
    }
}

/// How long a process that has closed its end may take to end.
const END: Duration = Duration::from_millis(500);

/// The new process, which is to take the place of this one. Dropping it ends it, unless it serves.
#[derive(Debug)]
pub(in crate::serve) struct Successor {
    child: Child,
    channel: UpgradeChannel,
    said: mpsc::UnboundedReceiver<UpgradeMessage>,
    /// How long it has for its next word, and until when.
    patience: Duration,
    deadline: Instant,
    /// The failure, while the process is being ended.
    failure: Option<String>,
    serves: bool,
}

impl Successor {
    /// Starts the program again, with the path and the arguments that this process was started with, and hands it the sockets.
    pub(in crate::serve) fn start(sockets: HandedSockets, patience: Duration) -> Result<Self, String> {
        if cfg!(not(target_os = "linux")) {
            return Err("an upgrade in place needs Linux: restart instead".to_owned());
        }
        if std::process::id() == 1 {
            return Err(
                "this is the first process of its container, which ends with it: replace the container".to_owned()
            );
        }
        let mut arguments = std::env::args_os();
        let program = arguments.next().ok_or("the process was started without a name")?;
        let cannot = |error| format!("{}: cannot be started: {error}", program.display());
        let (channel, theirs) = UpgradeChannel::pair().map_err(cannot)?;
        let mut command = Command::new(&program);
        command.args(arguments).env(UPGRADE, std::process::id().to_string()).stdin(Stdio::from(theirs));
        // They name descriptors and the process that a supervisor started.
        for variable in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"] {
            command.env_remove(variable);
        }
        let child = command.spawn().map_err(cannot)?;
        // It has a copy of their end, which would keep the connection open.
        drop(command);
        let (say, said) = mpsc::unbounded_channel();
        let thread = channel.try_clone().and_then(|channel| {
            // On a thread: a program that reads nothing must not hold up this one.
            let converse = move || converse(&channel, sockets, &say);
            std::thread::Builder::new().name("upgrade".into()).spawn(converse)
        });
        let deadline = Instant::now() + patience;
        let successor = Self { child, channel, said, patience, deadline, failure: None, serves: false };
        thread.map_err(cannot)?;
        Ok(successor)
    }

    /// The number of the process.
    pub(in crate::serve) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The resources that only one process may have are free for it.
    pub(in crate::serve) fn take(&mut self) {
        self.deadline = Instant::now() + self.patience;
        // One that has ended is noticed by what it says no more.
        let _ = self.channel.send(&UpgradeMessage::Take, None);
    }

    /// Has it read everything again, now that it serves.
    pub(in crate::serve) fn reload(&self) {
        if let Some(process) = Pid::from_raw(self.child.id().cast_signed()) {
            // One that has ended reads nothing.
            let _ = kill_process(process, Signal::HUP);
        }
    }

    /// Ends it, if it has not ended by itself.
    pub(in crate::serve) fn stop(&mut self) {
        let _ = self.child.kill();
        // It cannot ignore that, so this does not wait for long.
        let _ = self.child.wait();
    }

    /// Waits for the outcome. It may be dropped and called again.
    pub(in crate::serve) async fn next(&mut self) -> SuccessorEvent {
        while self.failure.is_none() {
            let why = match timeout_at(self.deadline, self.said.recv()).await {
                Ok(Some(UpgradeMessage::Prepared)) => return SuccessorEvent::Prepared,
                Ok(Some(UpgradeMessage::Serves { summary })) => {
                    self.serves = true;
                    return SuccessorEvent::Serves(summary);
                }
                Ok(Some(UpgradeMessage::Failed { why })) => why,
                Ok(Some(_)) => continue,
                Ok(None) => "it ended before it served: its standard error says why".to_owned(),
                Err(_) => {
                    let _ = self.child.kill();
                    format!("it did not serve within {} s and was ended", self.patience.as_secs_f64())
                }
            };
            self.failure = Some(why);
        }
        let status = self.end().await;
        let why = self.failure.clone().unwrap_or_default();
        SuccessorEvent::Failed(match status {
            Some(status) if !status.success() => format!("{why} ({status})"),
            _ => why,
        })
    }

    /// Ends the process, unless it does so by itself in a moment.
    async fn end(&mut self) -> Option<ExitStatus> {
        let end = Instant::now() + END;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < end => sleep(Duration::from_millis(5)).await,
                Ok(Some(status)) => return Some(status),
                _ => break,
            }
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if !self.serves {
            self.stop();
        }
    }
}

/// Hands the sockets over, and passes on what the new process says until it serves or has ended.
fn converse(channel: &UpgradeChannel, sockets: HandedSockets, say: &mpsc::UnboundedSender<UpgradeMessage>) {
    for (place, socket) in sockets {
        if channel.send(&UpgradeMessage::Socket { place }, Some(socket.as_fd())).is_err() {
            return;
        }
    }
    if channel.send(&UpgradeMessage::Start, None).is_err() {
        return;
    }
    // A packet that cannot be read is of a program that is not this one.
    while let Ok(Some((message, _))) = channel.receive() {
        if say.send(message).is_err() {
            return;
        }
    }
}
