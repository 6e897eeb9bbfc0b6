//! Tests a worker that stalls, and a worker that panics, while the process serves. To cause this,
//! `strace` delays a system call of one thread, or makes the call fail.

use std::cell::RefCell;

use super::programs::{debian, skip};
use crate::harness::*;

/// Manipulates the system calls with which this thread waits for events; `None` if impossible.
fn tamper(running: &Running, thread: &str, fault: &str) -> Option<KillOnDrop> {
    let mut strace = debian("strace", "strace")?;
    let is_meant =
        |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == thread);
    // A thread sets its name only when it runs.
    let named = || fs::read_dir(format!("/proc/{}/task", running.id())).unwrap().flatten().find(is_meant);
    let task = wait_for(thread, named);
    strace.args(["-o", "/dev/null", "-p"]).arg(task.file_name());
    strace.arg(format!("--inject=?epoll_wait,?epoll_pwait:{fault}"));
    let child = RefCell::new(KillOnDrop(strace.stderr(Stdio::null()).spawn().unwrap()));
    // If `strace` may not attach to the process, for example without root, it fails immediately. If
    // the process has already ended, it succeeds.
    let ended = || child.borrow_mut().0.try_wait().unwrap();
    let is_traced = || {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        !status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim() == "0"))
    };
    wait_until("strace", || is_traced() || ended().is_some());
    if ended().is_some_and(|end| !end.success()) {
        skip("a system where strace may look at another process");
        return None;
    }
    Some(child.into_inner())
}

fn start(stderr: Stdio) -> (Folder, Running) {
    let folder = Config::refusing().keys("workers = 2").admin().files_of("shop").robots("User-agent: *\n").folder();
    let running = Running::spawn(folder.serve().stderr(stderr));
    (folder, running)
}

#[test]
fn a_stalled_worker_is_reported_until_it_runs_again() {
    let (_folder, running) = start(Stdio::inherit());
    let stalled = || {
        let text = running.ask_admin("GET /metrics").body;
        ["robotsd-0", "robotsd-1"]
            .map(|worker| text.contains(&format!("robotsd_worker_stalled{{worker=\"{worker}\"}} 1")))
    };
    assert_eq!((running.ask_admin("GET /livez").status, stalled()), (200, [false, false]));
    let Some(strace) = tamper(&running, "robotsd-1", "delay_enter=600s:when=1") else { return };
    let line = running.event("stalled");
    assert_has(message(&line), &["the thread robotsd-1 has been stalled for 6 s"]);
    assert_eq!(line["level"], "error");
    assert_eq!(stalled(), [false, true]);
    running.ask_admin("GET /livez").comes_with(503, "stalled: robotsd-1\n");
    let status = running.command(&["status"]);
    assert_has(&status.out, &["problem", "robotsd-1 has been stalled"]);
    assert_eq!((status.code, &running.json(&["status"])["stalled"]), (Some(1), &json!(["robotsd-1"])));
    // When `strace` ends, the call continues.
    drop(strace);
    running.wait_for_message("stalled", "the thread robotsd-1 works again, after ");
    assert_eq!((running.ask_admin("GET /livez").status, stalled()), (200, [false, false]));
    assert_eq!(running.command(&["status"]).code, Some(0));
}

#[test]
fn a_worker_panic_ends_the_process_and_the_reason_is_logged() {
    let folder = folder(&[]);
    let said = folder.at("stderr");
    let (_folder, mut running) = start(fs::File::create(&said).unwrap().into());
    let Some(_strace) = tamper(&running, "robotsd-1", "error=EBADF") else { return };
    let end = running.wait_for_end();
    assert_eq!(end.code(), Some(2));
    let why = message(&running.event("panic")).to_owned();
    assert_has(&why, &["the thread robotsd-1 panicked at ", "Bad file descriptor"]);
    assert_has(fs::read_to_string(said).unwrap(), &["robotsd: a worker thread has ended", &why]);
}

#[test]
fn a_process_that_was_stopped_and_continued_reports_no_stalled_thread() {
    let (_folder, running) = start(Stdio::inherit());
    // The process is frozen first for longer than three beats, then for one beat.
    running.freeze();
    thread::sleep(Duration::from_secs(7));
    running.signal("CONT");
    thread::sleep(Duration::from_millis(2500));
    assert_eq!(running.get("/robots.txt", FIREFOX).status, 200);
    assert_eq!(running.events("stalled"), 0);
}
