//! Tests new processes that end while the previous process drains.

use super::{ASK, LONG_DRAIN, Upgraded};
use crate::harness::*;

/// Returns a connection that has served a request. The previous process therefore keeps it for half
/// of its drain time.
pub(super) fn held(upgraded: &Upgraded) -> Kept {
    let mut held = Kept::open(upgraded.running.address, "a");
    assert_eq!(held.get("/a.html", GPTBOT).0, 200);
    held
}

pub(super) fn sent(address: SocketAddr) -> TcpStream {
    crate::harness::sent(address, ASK)
}

#[test]
fn the_previous_process_only_drains_even_if_the_new_process_ends() {
    for by in ["TERM", "KILL"] {
        let upgraded = Upgraded::start(LONG_DRAIN);
        let (before, address) = (upgraded.process(), upgraded.running.address);
        let mut held = held(&upgraded);
        upgraded.upgraded();
        let new = upgraded.process();
        assert_ne!(new, before);
        signal(by, new);
        wait_until("the end of the new process", || !is_alive(new));
        // The previous process still runs for its client. The process must no longer accept
        // connections, neither on its port nor on its admin interface.
        wait_until("a closed port", || TcpStream::connect(address).is_err());
        assert!(is_alive(before));
        assert_eq!(upgraded.command(&["status"]).code, Some(2));
        assert_eq!(held.get("/a.html", GPTBOT).0, 200);
        wait_until("the end of the process before", || !is_alive(before));
        // A killed process does not remove the file of its socket.
        assert_eq!(upgraded.path("admin.sock").exists(), by == "KILL");
        assert!(!upgraded.running.has_event("upgrade", |line| line["level"] == "error"));
    }
}
