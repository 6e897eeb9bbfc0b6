//! Tests an upgrade while all connection slots are taken and more connections wait, and an upgrade
//! that is requested twice.

use std::os::fd::OwnedFd;

use super::deaths::sent;
use super::{LONG_DRAIN, Upgraded, asked_for_large, download_slowly};
use crate::harness::*;

/// Number of connections that a process may have.
const SLOTS: usize = 4;

/// Number of waiting clients: one per worker, the clients in the kernel's queue, and some that do
/// not fit into the queue. There cannot be more waiting clients: while every slot is taken, a
/// connection that has sent no bytes yet may be closed to make room for another connection.
const WAITING: usize = 8;

/// Returns a socket with a short queue. A supervisor may pass such a socket.
fn with_short_queue() -> TcpListener {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(2).unwrap();
    socket.into()
}

fn passed(socket: &TcpListener, more: &str) -> Upgraded {
    Upgraded::start_by(socket.local_addr().unwrap(), more, |robotsd| {
        let mut command = Command::new("sh");
        let passing = "export LISTEN_PID=$$ LISTEN_FDS=1\nexec 3<&0 0</dev/null\nexec \"$0\" \"$@\"";
        command.arg("-c").arg(passing).arg(robotsd);
        command.stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
        command
    })
}

/// Starts as many downloads as there are slots, and clients that wait for a slot. Some of these
/// clients do not fit into the kernel's queue.
fn saturated(upgraded: &Upgraded, rest: &AtomicBool, check: impl FnOnce(&AtomicUsize)) {
    let address = upgraded.running.address;
    let [answered, tried, closed] = [const { AtomicUsize::new(0) }; 3];
    let is_checking = AtomicBool::new(false);
    thread::scope(|scope| {
        let stops = StopAtEnd(rest);
        for _ in 0..SLOTS {
            let stream = asked_for_large(address);
            // A connection without a request may be closed to make room for another connection.
            assert_eq!(stream.peek(&mut [0]).unwrap(), 1, "the answer has begun");
            scope.spawn(|| download_slowly(stream, rest));
        }
        let open = || upgraded.json(&["status"])["traffic"]["open_connections"].as_u64();
        wait_until("every slot to be taken", || open() == Some(SLOTS as u64));
        for _ in 0..WAITING {
            scope.spawn(|| {
                tried.fetch_add(1, Ordering::Relaxed);
                // A connection that has sent no bytes yet may be closed to make room for another
                // connection. On a busy machine, this can happen before the request is sent.
                let answer = std::iter::repeat_with(|| {
                    let stream = sent(address);
                    let is_early = !is_checking.load(Ordering::Relaxed);
                    let bytes = crate::harness::rest(stream);
                    closed.fetch_add(usize::from(bytes.is_empty() && is_early), Ordering::Relaxed);
                    bytes
                });
                let bytes = answer.into_iter().find(|bytes| !bytes.is_empty()).unwrap();
                assert_eq!(Answer::parse(&bytes).status, 200);
                answered.fetch_add(1, Ordering::Relaxed);
            });
        }
        wait_until("every client", || tried.load(Ordering::Relaxed) == WAITING);
        upgraded.running.wait_for_event("problem", |line| line["reason"] == "full");
        assert_eq!(answered.load(Ordering::Relaxed), 0);
        is_checking.store(true, Ordering::Relaxed);
        check(&answered);
        drop(stops);
    });
    assert_eq!(answered.load(Ordering::Relaxed), WAITING);
    assert!(closed.load(Ordering::Relaxed) <= 2, "{closed:?} connections were closed without an answer");
}

#[test]
fn an_upgrade_under_saturation_answers_all_waiting_clients() {
    let (socket, rest) = (with_short_queue(), AtomicBool::new(false));
    let upgraded = passed(&socket, &format!("{LONG_DRAIN}\nconnections = {SLOTS}"));
    drop(socket);
    saturated(&upgraded, &rest, |answered| {
        let before = upgraded.process();
        upgraded.upgraded();
        assert_ne!(upgraded.process(), before);
        // For each worker, a connection of the old process waits for a slot in the new one.
        wait_until("those in the queue", || answered.load(Ordering::Relaxed) >= WAITING - 2);
    });
}

#[test]
fn a_new_process_that_dies_under_saturation_cuts_off_no_waiting_client() {
    let (socket, rest) = (with_short_queue(), AtomicBool::new(false));
    let upgraded = passed(&socket, &format!("{LONG_DRAIN}\nconnections = {SLOTS}"));
    drop(socket);
    let before = upgraded.process();
    upgraded.replace_program_by_one_that_never_serves();
    saturated(&upgraded, &rest, |answered| {
        upgraded.running.signal("USR2");
        signal("KILL", upgraded.opening());
        upgraded.running.wait_for_event("upgrade", |line| line["level"] == "error");
        assert_eq!((upgraded.process(), answered.load(Ordering::Relaxed)), (before, 0));
    });
    upgraded.restore_program();
    upgraded.upgraded();
}

#[test]
fn only_one_process_remains_after_several_concurrent_upgrade_requests() {
    let upgraded = Upgraded::start("");
    let before = upgraded.process();
    let asked: Vec<_> = thread::scope(|scope| {
        let ask = || upgraded.command(&["upgrade", "--json"]);
        let asking: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    // The process that runs at the time of a request either does the upgrade, or refuses it because
    // another upgrade is in progress. If the process is just ending, the request gets no response,
    // and the command reports this error.
    let (mut made, mut unanswered) = (Vec::new(), 0);
    for output in &asked {
        if output.error.contains("no answer: connection closed") {
            assert_eq!(output.code, Some(2), "{output:?}");
            unanswered += 1;
            continue;
        }
        let said = output.json();
        let message = message(&said);
        match said["state"].as_str().unwrap() {
            "done" => made.push(said["process"].as_u64().unwrap()),
            _ => assert!(message.starts_with("no upgrade: an upgrade to process "), "{said}"),
        }
    }
    assert!(!made.is_empty(), "{asked:?}");
    let left = upgraded.process();
    assert!(left != before && (unanswered > 0 || made.contains(&u64::from(left))), "{left} of {made:?}");
    // All other processes must end.
    let all = upgraded.started().into_iter().chain([before]);
    for process in all.filter(|process| *process != left) {
        wait_until("the end of the others", || !is_alive(process));
    }
    let started = upgraded.started().len();
    assert!((made.len()..=made.len() + unanswered).contains(&started), "{started} processes, {made:?}");
    drop(TcpStream::connect(upgraded.running.address).unwrap());
}
