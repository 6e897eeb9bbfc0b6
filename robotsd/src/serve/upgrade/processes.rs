//! Represents the two processes of an upgrade: the new process has a [`Predecessor`], and the old
//! process has a [`Successor`].

use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::channel::{UpgradeChannel, UpgradeMessage};
use super::{HandedSockets, SuccessorEvent};

/// Environment variable that tells a new process the ID of the process that it replaces.
const UPGRADE: &str = "ROBOTSD_UPGRADE";

#[derive(Debug)]
pub(in crate::serve) struct Predecessor {
    channel: UpgradeChannel,
    pub(in crate::serve) process: u32,
}

impl Predecessor {
    /// Returns the process that this process replaces, with its listening sockets. Returns `None`
    /// if this process replaces no process. Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if the old process ends before it has handed over all sockets.
    pub(in crate::serve) fn find() -> Result<Option<(Self, HandedSockets)>, String> {
        let named = std::env::var(UPGRADE).ok().and_then(|process| process.parse::<u32>().ok());
        // The variable is ignored unless it contains the ID of the parent process, because other
        // child processes may have inherited it.
        let Some(process) = named.filter(|process| *process == std::os::unix::process::parent_id()) else {
            return Ok(None);
        };
        let receive_error = |why: &str| {
            format!("the sockets of process {process}, which this process replaces, were not received: {why}")
        };
        let end = std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| receive_error(&error.to_string()))?;
        let channel = UpgradeChannel::of(end);
        let mut sockets = Vec::new();
        loop {
            match channel.receive().map_err(|error| receive_error(&error.to_string()))? {
                Some((UpgradeMessage::Socket { place }, Some(socket))) => sockets.push((place, socket)),
                Some((UpgradeMessage::Start, _)) => return Ok(Some((Self { channel, process }, sockets))),
                Some(_) => {}
                None => return Err(receive_error("the new process has ended")),
            }
        }
    }

    /// Asks the old process to release the resources that only one process may have, and waits
    /// until these resources are free. Returns `false` if the old process has ended, which also
    /// frees its resources. Blocks.
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

    pub(in crate::serve) fn report_serving(&self, summary: &str) {
        // Sending fails only if the old process has ended.
        let _ = self.channel.send(&UpgradeMessage::Serves { summary: summary.to_owned() }, None);
    }

    pub(in crate::serve) fn report_failure(&self, why: &str) {
        let _ = self.channel.send(&UpgradeMessage::failed(why), None);
    }
}

/// Maximum time that the new process may continue to run after it has reported a failure or closed
/// the channel.
const END: Duration = Duration::from_millis(500);

/// The new process, which will replace this process. Dropping this value kills the new process,
/// unless it serves.
#[derive(Debug)]
pub(in crate::serve) struct Successor {
    child: Child,
    channel: UpgradeChannel,
    messages: mpsc::UnboundedReceiver<UpgradeMessage>,
    /// Maximum time between two messages of the new process, and the deadline for the next message.
    message_timeout: Duration,
    deadline: Instant,
    /// Reason why the upgrade failed; set while the new process is being ended.
    failure: Option<String>,
    is_serving: bool,
}

impl Successor {
    /// Starts the program with the same path and arguments as this process, and hands over the
    /// sockets.
    pub(in crate::serve) fn start(sockets: HandedSockets, message_timeout: Duration) -> Result<Self, String> {
        if cfg!(not(target_os = "linux")) {
            return Err("upgrades in place are only supported on Linux: restart robotsd instead".to_owned());
        }
        if std::process::id() == 1 {
            return Err(
                "robotsd is the first process of its container, so the container would end with it: replace the \
                 container instead"
                    .to_owned(),
            );
        }
        let mut arguments = std::env::args_os();
        let program = arguments
            .next()
            .ok_or("robotsd cannot find its own program, because it was started without a program name")?;
        let cannot = |error| format!("{}: cannot be started: {error}", program.display());
        let (channel, theirs) = UpgradeChannel::pair().map_err(cannot)?;
        let mut command = Command::new(&program);
        command.args(arguments).env(UPGRADE, std::process::id().to_string()).stdin(Stdio::from(theirs));
        // The service manager set these variables only for this process, so the new process must
        // not inherit them.
        for variable in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"] {
            command.env_remove(variable);
        }
        let child = command.spawn().map_err(cannot)?;
        // The command holds a duplicate of the new process's end of the channel. The command is
        // dropped, so that the channel closes when the new process ends.
        drop(command);
        let (say, messages) = mpsc::unbounded_channel();
        let thread = channel.try_clone().and_then(|channel| {
            // A separate thread uses the channel, because sending blocks if the new process does
            // not read its messages, and the control thread must not block.
            let exchange_messages = move || exchange_messages(&channel, sockets, &say);
            std::thread::Builder::new().name("upgrade".into()).spawn(exchange_messages)
        });
        let deadline = Instant::now() + message_timeout;
        let successor = Self { child, channel, messages, message_timeout, deadline, failure: None, is_serving: false };
        thread.map_err(cannot)?;
        Ok(successor)
    }

    pub(in crate::serve) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(in crate::serve) fn take(&mut self) {
        self.deadline = Instant::now() + self.message_timeout;
        // Sending fails only if the new process has ended, and `next` will report this.
        let _ = self.channel.send(&UpgradeMessage::Take, None);
    }

    /// Makes the new process, which now serves, perform a reload.
    pub(in crate::serve) fn reload(&self) {
        if let Some(process) = Pid::from_raw(self.child.id().cast_signed()) {
            // Sending the signal fails only if the new process has ended.
            let _ = kill_process(process, Signal::HUP);
        }
    }

    pub(in crate::serve) fn stop(&mut self) {
        let _ = self.child.kill();
        // The wait is short, because a process cannot ignore SIGKILL.
        let _ = self.child.wait();
    }

    pub(in crate::serve) async fn next(&mut self) -> SuccessorEvent {
        while self.failure.is_none() {
            let why = match timeout_at(self.deadline, self.messages.recv()).await {
                Ok(Some(UpgradeMessage::Prepared)) => return SuccessorEvent::Prepared,
                Ok(Some(UpgradeMessage::Serves { summary })) => {
                    self.is_serving = true;
                    return SuccessorEvent::Serves(summary);
                }
                Ok(Some(UpgradeMessage::Failed { why })) => why,
                Ok(Some(_)) => continue,
                Ok(None) => "the new process ended before it could serve: see what it printed on stderr".to_owned(),
                Err(_) => {
                    let _ = self.child.kill();
                    format!(
                        "the new process was killed, because it could not serve within {seconds} s",
                        seconds = self.message_timeout.as_secs_f64()
                    )
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

    /// Waits until the new process ends by itself, and kills it if it has not ended after [`END`].
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
        if !self.is_serving {
            self.stop();
        }
    }
}

/// Sends the sockets to the new process, and then forwards its messages until it serves or ends.
fn exchange_messages(channel: &UpgradeChannel, sockets: HandedSockets, say: &mpsc::UnboundedSender<UpgradeMessage>) {
    for (place, socket) in sockets {
        if channel.send(&UpgradeMessage::Socket { place }, Some(socket.as_fd())).is_err() {
            return;
        }
    }
    if channel.send(&UpgradeMessage::Start, None).is_err() {
        return;
    }
    // The loop also ends at a packet that cannot be parsed. Such a packet is not from robotsd, so
    // the channel cannot be trusted any more.
    while let Ok(Some((message, _))) = channel.receive() {
        if say.send(message).is_err() {
            return;
        }
    }
}
