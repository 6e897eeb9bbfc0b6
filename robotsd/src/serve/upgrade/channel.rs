//! Defines the messages between the two processes of an upgrade. Each message is one packet of
//! JSON; a `Socket` message also carries a socket.
//!
//! **The processes communicate over a pair of connected sockets. The new process receives its
//! socket as standard input.** The sockets require neither `unsafe` code nor a descriptor number
//! that both processes know, and each process notices when the other process ends.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use super::SocketPlace;

/// Flags for the pair of sockets, so that no other program that this process starts inherits them.
#[cfg(target_os = "linux")]
const CLOSED_ON_EXEC: (SocketFlags, RecvFlags) = (SocketFlags::CLOEXEC, RecvFlags::CMSG_CLOEXEC);

/// Upgrades in place work only on Linux, so other systems need no flags.
#[cfg(not(target_os = "linux"))]
const CLOSED_ON_EXEC: (SocketFlags, RecvFlags) = (SocketFlags::empty(), RecvFlags::empty());

/// Maximum size of a packet, in bytes. A long reason in a message is truncated to fit.
const MAX_PACKET_BYTES: usize = 16 * 1024;

/// A message between the two processes. The processes may have different versions. So a new version
/// may add fields, but must never change the meaning of a field.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub(super) enum UpgradeMessage {
    /// From the old process: one of its listening sockets, which is attached to the message.
    Socket { place: SocketPlace },
    /// From the old process: all sockets have been sent.
    Start,
    /// From the new process: its config is usable. The new process now needs the resources that
    /// only one process may have, such as the state directory.
    Prepared,
    /// From the old process: it has released the resources that only one process may have.
    Take,
    /// From the new process: it serves. `summary` contains the number of sites and the number of
    /// listeners.
    Serves { summary: String },
    /// From the new process: it cannot serve. Contains the reason.
    Failed { why: String },
}

/// One end of the connection between the two processes.
#[derive(Debug)]
pub(super) struct UpgradeChannel(OwnedFd);

impl UpgradeChannel {
    /// Creates both ends of a channel. The second end is for the new process.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, CLOSED_ON_EXEC.0, None)?;
        Ok((Self(ours), theirs))
    }

    pub(super) fn of(end: OwnedFd) -> Self {
        Self(end)
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    pub(super) fn send(&self, message: &UpgradeMessage, socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let mut control_space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut control_space);
        let sockets = socket.map(|socket| [socket]);
        if let Some(sockets) = &sockets {
            control.push(SendAncillaryMessage::ScmRights(sockets));
        }
        // If the other process has ended, `sendmsg` returns an error. SIGPIPE does not kill this
        // process, because Rust programs ignore this signal.
        sendmsg(self.0.as_fd(), &[IoSlice::new(&bytes)], &mut control, SendFlags::empty())?;
        Ok(())
    }

    /// Waits for the next message and returns it, with the socket that is attached to it. Returns
    /// `None` if the other process has ended. Blocks.
    pub(super) fn receive(&self) -> io::Result<Option<(UpgradeMessage, Option<OwnedFd>)>> {
        let mut bytes = vec![0; MAX_PACKET_BYTES];
        let mut control_space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut control_space);
        let received = loop {
            match recvmsg(self.0.as_fd(), &mut [IoSliceMut::new(&mut bytes)], &mut control, CLOSED_ON_EXEC.1) {
                // ECONNRESET means that the other process ended without reading all packets of this
                // process. The messages of the other process can still be received.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                received => break received?,
            }
        };
        let mut socket = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(sockets) = message {
                socket = sockets.last();
            }
        }
        if received.bytes == 0 {
            return Ok(None);
        }
        Ok(Some((serde_json::from_slice(&bytes[..received.bytes])?, socket)))
    }
}

impl UpgradeMessage {
    pub(super) fn failed(why: &str) -> Self {
        let mut end = why.len().min(MAX_PACKET_BYTES / 8);
        while !why.is_char_boundary(end) {
            end -= 1;
        }
        Self::Failed { why: why[..end].to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn messages_arrive_one_by_one_with_their_sockets() {
        let (ours, theirs) = UpgradeChannel::pair().unwrap();
        let theirs = UpgradeChannel::of(theirs);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = SocketPlace::Listener(([127, 0, 0, 1], 0).into());
        ours.send(&UpgradeMessage::Socket { place: place.clone() }, Some(listener.as_fd())).unwrap();
        ours.send(&UpgradeMessage::Start, None).unwrap();
        let (message, socket) = theirs.receive().unwrap().unwrap();
        assert_eq!(message, UpgradeMessage::Socket { place });
        let passed = TcpListener::from(socket.unwrap());
        assert_eq!(passed.local_addr().unwrap(), listener.local_addr().unwrap());
        assert!(matches!(theirs.receive().unwrap().unwrap(), (UpgradeMessage::Start, None)));
        theirs.send(&UpgradeMessage::failed(&"\"é".repeat(MAX_PACKET_BYTES)), None).unwrap();
        assert!(matches!(ours.receive().unwrap().unwrap(), (UpgradeMessage::Failed { .. }, None)));
        // The last message of a process is received even if the process ended without reading our
        // message.
        ours.send(&UpgradeMessage::Take, None).unwrap();
        let serves = || UpgradeMessage::Serves { summary: "1 site".to_owned() };
        theirs.send(&serves(), None).unwrap();
        drop(theirs);
        assert_eq!(ours.receive().unwrap().unwrap().0, serves());
        assert!(ours.receive().unwrap().is_none());
        assert!(ours.send(&UpgradeMessage::Take, None).is_err());
    }
}
