use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::disk::Disk;
use super::state_dir::StateDir;
use super::writer::StateWriter;
use crate::check;
use crate::live::{Candidate, Cause, Enforcement, LiveRobots, WhenMissing};

const PATIENCE: Duration = Duration::from_secs(60);

/// A file system that hangs on some operations.
#[derive(Default)]
struct Hanging {
    is_hanging: AtomicBool,
    waiting: AtomicUsize,
}

impl Hanging {
    fn disk(self: &Arc<Self>, is_affected: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Disk {
        let hanging = self.clone();
        let before = move |_, path: &Path| {
            if is_affected(path) && hanging.is_hanging.load(Ordering::SeqCst) {
                hanging.waiting.fetch_add(1, Ordering::SeqCst);
                while hanging.is_hanging.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(())
        };
        Disk { before: Some(Arc::new(before)), ..Disk::default() }
    }

    #[track_caller]
    fn wait_for(&self, waiting: usize) {
        let start = Instant::now();
        while self.waiting.load(Ordering::SeqCst) < waiting {
            assert!(start.elapsed() < PATIENCE, "{waiting} operations hang");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Runs a function on another thread, and panics if the function waits for the disk.
#[track_caller]
fn without_waiting<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(run()));
    receiver.recv_timeout(PATIENCE).expect("it waits for no disk")
}

#[test]
fn a_listener_is_notified_when_a_problem_begins_and_when_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = StateDir::open(folder.path()).expect("no other has it open");
    let (notify, notified) = mpsc::channel();
    state.on_event(move |event| notify.send(event.to_string()).expect("it is read"));
    // The file cannot be created, because there is a folder with its name.
    let switch = folder.path().join("enforcement");
    std::fs::remove_file(&switch).expect("removed");
    std::fs::create_dir(&switch).expect("a folder");
    assert!(state.set_enforcement(Enforcement::Off).is_err());
    let problem = notified.recv_timeout(PATIENCE).expect("an event");
    assert!(
        problem.contains("enforcement: the file cannot be written, so a restart forgets the kill switch"),
        "{problem}"
    );
    std::fs::remove_dir(&switch).expect("removed");
    state.set_enforcement(Enforcement::On).expect("written");
    assert_eq!(notified.recv_timeout(PATIENCE).as_deref(), Ok("the kill switch is now saved in the state directory"));
}

#[test]
fn a_state_directory_that_is_handed_over_is_written_by_one_handle_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let (directory, file) = (folder.path().join("state"), folder.path().join("robots.txt"));
    std::fs::write(&file, "User-agent: *\nDisallow: /a\n").expect("written");
    let open = || StateDir::open_on(Disk::default(), StateWriter::default(), directory.clone());
    let state = open().expect("no other has it open");
    let live = LiveRobots::file(&file).state(&state, "shop").open().expect("a robots.txt");
    state.set_enforcement(Enforcement::Off).expect("written");
    assert!(state.hand_over(PATIENCE));
    {
        // Another process finds the complete state, and the first process writes nothing.
        let other = open().expect("it was handed over");
        assert_eq!(other.enforcement(), Enforcement::Off);
        assert!(state.set_enforcement(Enforcement::On).is_err());
        assert!(live.set_enforcement(Enforcement::Off).is_err());
        assert!(state.flush_within(PATIENCE), "nothing can be written");
        assert_eq!(other.enforcement_of("shop"), Enforcement::On);
        assert!(std::fs::read_to_string(directory.join("enforcement")).expect("a file").starts_with("off"));
        assert!(state.take_back().is_err(), "the other has it open");
    }
    // The changes that were made while the directory was handed over are written.
    state.take_back().expect("no other has it open");
    assert!(state.flush());
    assert!(open().is_err());
    assert!(std::fs::read_to_string(directory.join("enforcement")).expect("a file").starts_with("on"));
    assert_eq!(state.enforcement_of("shop"), Enforcement::Off);
    state.take_back().expect("it was never handed over again");
}

#[test]
fn a_hanging_disk_delays_neither_the_status_nor_the_effect_of_switches_nor_other_sites() {
    let folder = tempfile::tempdir().expect("a folder");
    let hanging = Arc::new(Hanging::default());
    let disk =
        hanging.disk(|path| path.components().any(|part| part.as_os_str() == "shop") || path.ends_with("enforcement"));
    let state =
        StateDir::open_on(disk, StateWriter::default(), folder.path().join("state")).expect("no other has it open");
    let path = folder.path().join("robots.txt");
    std::fs::write(&path, "User-agent: *\nDisallow: /a\n").expect("written");
    let shop = LiveRobots::text("User-agent: *\nDisallow: /b\n").state(&state, "shop").open().expect("a robots.txt");
    let other = LiveRobots::file(&path).state(&state, "other").open().expect("a robots.txt");
    assert!(state.flush());
    hanging.is_hanging.store(true, Ordering::SeqCst);
    let site_switch = thread::spawn({
        let shop = shop.clone();
        move || shop.set_enforcement(Enforcement::Off).is_ok()
    });
    hanging.wait_for(1);
    let global_switch = thread::spawn({
        let state = state.clone();
        move || state.set_enforcement(Enforcement::Off).is_ok()
    });
    hanging.wait_for(2);
    without_waiting({
        let (shop, other, state) = (shop.clone(), other.clone(), state.clone());
        move || {
            assert_eq!((state.enforcement(), state.problems()), (Enforcement::Off, vec![]));
            assert_eq!((shop.status().switch, shop.status().enforcement), (Enforcement::Off, Enforcement::Off));
            assert_eq!((shop.history().len(), shop.snapshot().enforcement()), (1, Enforcement::Off));
            shop.set_check(check::Options::default().exempt_paths(["/b"]).expect("a pattern"));
            assert!(shop.rollback().is_err());
            // The other site can still be reloaded, and a third site can still be opened.
            std::fs::write(&path, "User-agent: *\nDisallow: /c\n").expect("written");
            let reload = other.reload_blocking();
            assert_eq!((reload.outcome.hash(), other.status().enforcement), (other.status().live, Enforcement::Off));
            let text = "User-agent: *\nDisallow: /d\n";
            let third = LiveRobots::text(text).when_missing(WhenMissing::Fail).open().expect("a robots.txt");
            assert!(third.status().live.is_some());
        }
    });
    hanging.is_hanging.store(false, Ordering::SeqCst);
    assert!(site_switch.join().expect("no panic") && global_switch.join().expect("no panic"));
    assert!(state.flush());
    assert_eq!(shop.history().len(), 3, "both turns are in the history");
}

#[test]
fn opening_a_site_on_a_hanging_disk_does_not_delay_opening_another_site() {
    let folder = tempfile::tempdir().expect("a folder");
    let hanging = Arc::new(Hanging::default());
    let disk = hanging.disk(|path| path.components().any(|part| part.as_os_str() == "shop"));
    let state =
        StateDir::open_on(disk, StateWriter::default(), folder.path().join("state")).expect("no other has it open");
    hanging.is_hanging.store(true, Ordering::SeqCst);
    let open = |site: &'static str| {
        let state = state.clone();
        move || LiveRobots::text("User-agent: *\nDisallow: /\n").state(&state, site).open().is_ok()
    };
    let hung = thread::spawn(open("shop"));
    hanging.wait_for(1);
    assert!(without_waiting(open("other")));
    hanging.is_hanging.store(false, Ordering::SeqCst);
    assert!(hung.join().expect("no panic"));
}

#[test]
fn a_removal_is_read_from_the_record_if_the_state_file_could_not_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let is_full = Arc::new(AtomicBool::new(false));
    let fails = is_full.clone();
    let before = move |_, path: &Path| match fails.load(Ordering::SeqCst) && path.ends_with("state.json") {
        true => Err(std::io::ErrorKind::StorageFull.into()),
        false => Ok(()),
    };
    let disk = Disk { before: Some(Arc::new(before)), ..Disk::default() };
    let open = |disk| StateDir::open_on(disk, StateWriter::default(), folder.path().join("state"));
    let state = open(disk).expect("no other has it open");
    let live = LiveRobots::text("User-agent: *\nDisallow: /a\n").state(&state, "shop").open().expect("a robots.txt");
    assert!(state.flush());
    is_full.store(true, Ordering::SeqCst);
    live.site.offer(Cause::Poll, Candidate::Absent { status: 404 });
    assert!(!state.flush());
    drop((live, state));
    let state = open(Disk::default()).expect("no other has it open");
    let remembered = state.site("shop").load(SystemTime::now());
    assert_eq!((remembered.versions.iter().count(), remembered.live()), (1, None));
    assert!(remembered.versions.is_absent);
}

#[test]
fn the_bytes_of_a_version_are_written_once_and_again_if_a_rollback_must_sync_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = Arc::new(AtomicUsize::new(0));
    let reached = files.clone();
    let before = move |_, path: &Path| {
        reached.fetch_add(usize::from(path.extension().is_some_and(|ending| ending == "txt")), Ordering::SeqCst);
        Ok(())
    };
    let disk = Disk { before: Some(Arc::new(before)), ..Disk::default() };
    let state =
        StateDir::open_on(disk, StateWriter::default(), folder.path().join("state")).expect("no other has it open");
    let live = LiveRobots::text("User-agent: *\nDisallow: /a\n").state(&state, "shop").open().expect("a robots.txt");
    assert!(state.flush());
    let written = || files.swap(0, Ordering::SeqCst);
    assert_eq!(written(), 1, "the first version");
    live.publish_blocking("User-agent: *\nDisallow: /b\n").expect("a robots.txt");
    assert!(state.flush());
    assert_eq!(written(), 1, "the second one only");
    live.rollback().expect("a version before");
    assert_eq!(written(), 2, "what an operator decided is synced, with both versions");
}
