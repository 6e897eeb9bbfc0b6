//! The process before, as the new one sees it.

use std::os::fd::AsFd;

use super::SocketPlace;
use super::UPGRADE;
use super::channel::{HandedSockets, UpgradeChannel, UpgradeMessage};

/// The process whose place this one takes.
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

    /// This process serves, and listens no more at places where the one before does.
    pub(in crate::serve) fn serves(&self, summary: &str, unused: Vec<SocketPlace>) {
        // Where nobody hears it, nobody has to go.
        let _ = self.channel.send(&UpgradeMessage::serves(summary, unused), None);
    }

    /// This process is about to end, or to be followed by another: the one before is not to serve again.
    pub(in crate::serve) fn leaves(&self) {
        let _ = self.channel.send(&UpgradeMessage::Leaves, None);
    }

    /// This process cannot serve.
    pub(in crate::serve) fn failed(&self, why: &str) {
        let _ = self.channel.send(&UpgradeMessage::failed(why), None);
    }
}
