//! Tests a file that is edited, replaced, damaged and removed while it is live. The tests use real
//! files, and wait for conditions, not for fixed times.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tower_robots::internals::FileSource;
use tower_robots::live::{Cause, LiveRobots, Rejection, RejectionKind, ReloadOutcome, WhenMissing};
use tower_robots::source::LiveBuilder;

use crate::waiting::{PATIENCE, WrittenInPlace, replace, replace_dated, wait_or_explain};

/// A partial file that is read twice with this pause in between is accepted, unless an event
/// reported a write in the meantime. On a busy machine the event may be late. So only a test that
/// never pauses this long can assert that no partial file is live.
const SETTLE: Duration = Duration::from_millis(15);

struct Site {
    folder: TempDir,
    live: LiveRobots,
    reported: Arc<Mutex<Vec<String>>>,
}

fn version(name: &str) -> Vec<u8> {
    let rules: String = (0..500).map(|number| format!("Disallow: /{name}/{number}/\n")).collect();
    format!("# version {name}\nUser-agent: *\n{rules}# end {name}\n").into_bytes()
}

impl Site {
    fn new() -> Self {
        Self::at(|folder| folder.join("robots.txt"))
    }

    /// Creates a site with a file inside its folder. The file is polled so rarely that only events
    /// report changes.
    fn at(place: impl FnOnce(&Path) -> PathBuf) -> Self {
        Self::polled(place, PATIENCE * 10)
    }

    fn with(more: impl FnOnce(LiveBuilder<FileSource>) -> LiveBuilder<FileSource>) -> Self {
        Self::built(|folder| folder.join("robots.txt"), |builder| more(builder.poll_every(PATIENCE * 10)))
    }

    fn polled(place: impl FnOnce(&Path) -> PathBuf, every: Duration) -> Self {
        Self::built(place, |builder| builder.poll_every(every))
    }

    fn built(
        place: impl FnOnce(&Path) -> PathBuf,
        more: impl FnOnce(LiveBuilder<FileSource>) -> LiveBuilder<FileSource>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = place(folder.path());
        if !path.exists() {
            fs::write(&path, version("old")).unwrap();
        }
        let reported = Arc::new(Mutex::new(Vec::new()));
        let reports = reported.clone();
        let live = more(LiveRobots::file(&path))
            .on_reload(move |reload, _| reports.lock().unwrap().push(reload.to_string()))
            .open()
            .unwrap();
        assert_eq!(live.status().watch_problem, None);
        Self { folder, live, reported }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("robots.txt")
    }

    fn body(&self) -> Vec<u8> {
        self.live.snapshot().content.as_ref().unwrap().body().to_vec()
    }

    /// Waits for a condition, and asserts that only whole versions are live in the meantime.
    fn wait_for(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let holds = || {
            assert!(self.is_whole(), "half a file is live");
            condition(self)
        };
        wait_or_explain(holds, || format!("{what}; {:?}", self.reported.lock().unwrap()));
    }

    fn is_whole(&self) -> bool {
        let body = self.body();
        body.starts_with(b"# version ") && body.contains_end()
    }

    /// Fails if a partial file is live although the writer did not pause.
    fn expect_whole(&self, written: &WrittenInPlace) {
        assert!(self.is_whole() || written.longest_pause() >= SETTLE, "half a file is live");
    }

    /// Waits for the version that is written last, whatever is live until then.
    fn wait_for_last_version(&self, name: &str) {
        let want = version(name);
        wait_or_explain(|| self.body() == want, || format!("{name}; {:?}", self.reported.lock().unwrap()));
    }

    fn wait_for_version(&self, name: &str) {
        let want = version(name);
        self.wait_for(name, |site| site.body() == want);
    }

    fn wait_for_rejection(&self, kind: RejectionKind) {
        self.wait_for(kind.as_str(), |site| {
            matches!(&site.live.status().last_reload.outcome, ReloadOutcome::Kept { rejection, live: Some(_), .. } if rejection.kind == kind)
        });
        assert_eq!(self.body(), version("old"), "the last good version stays");
        // Listeners are called shortly after the status has changed.
        self.wait_for("the report", |site| {
            let reported = site.reported.lock().unwrap();
            reported.last().is_some_and(|last| *last == site.live.status().last_reload.to_string())
        });
        let reported = self.reported.lock().unwrap();
        let last = reported.last().unwrap();
        assert!(last.contains("robots.txt: ") && last.ends_with("stays live"), "{last}");
    }

    fn recover(&self) {
        replace(&self.path(), version("good"));
        self.wait_for_version("good");
    }
}

trait ContainsEnd {
    fn contains_end(&self) -> bool;
}

impl ContainsEnd for Vec<u8> {
    fn contains_end(&self) -> bool {
        self.windows(6).any(|window| window == b"# end ")
    }
}

#[test]
fn a_file_replaced_by_a_rename_goes_live_through_an_event() {
    let site = Site::new();
    replace(&site.path(), version("new"));
    site.wait_for_version("new");
    // The history is updated shortly after the version.
    site.wait_for("an event, not a poll", |site| {
        site.live.history().last().map(|entry| entry.cause) == Some(Cause::Event)
    });
}

#[test]
fn a_file_rewritten_in_place_is_live_when_it_is_closed() {
    let site = Site::new();
    fs::write(site.path(), version("new")).unwrap();
    site.wait_for_version("new");
    let mut file = OpenOptions::new().write(true).open(site.path()).unwrap();
    file.write_all(&version("two")).unwrap();
    drop(file);
    site.wait_for_version("two");
}

#[test]
fn a_file_that_stays_open_goes_live_after_a_pause_in_writing() {
    let site = Site::new();
    let file = WrittenInPlace::new(OpenOptions::new().write(true).open(site.path()).unwrap());
    let new = version("new");
    let (first, second) = new.split_at(new.len() / 2);
    file.write(|file| file.set_len(0).unwrap());
    file.write(|mut file| file.write_all(first).unwrap());
    file.write(|mut file| file.write_all(second).unwrap());
    // The file is still open.
    let is_whole = || {
        let body = site.body();
        assert!(body.contains_end() || file.longest_pause() >= SETTLE, "half a file is live");
        body == new
    };
    wait_or_explain(is_whole, || "the new version".to_owned());
    drop(file);
}

#[test]
fn a_half_written_file_is_never_live() {
    let site = Site::new();
    for round in 0..20 {
        // Each round writes another version.
        let new = version(&round.to_string());
        let file = WrittenInPlace::new(File::create(site.path()).unwrap());
        for part in new.chunks(new.len() / 8) {
            file.write(|mut file| file.write_all(part).unwrap());
            site.expect_whole(&file);
        }
        let has_paused = file.longest_pause() >= SETTLE;
        drop(file);
        if has_paused {
            site.wait_for_last_version(&round.to_string());
        }
    }
    site.wait_for_last_version("19");
}

#[test]
fn an_implausible_file_keeps_the_last_good_version() {
    for (kind, damage) in [
        (RejectionKind::Empty, (|path| drop(File::create(path).unwrap())) as fn(&Path)),
        (RejectionKind::Missing, |path| fs::remove_file(path).unwrap()),
        (RejectionKind::Html, |path| replace(path, b"<!doctype html><title>404</title>")),
        (RejectionKind::Binary, |path| replace(path, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff")),
        (RejectionKind::TooLarge, |path| {
            let aside = path.with_extension("sparse");
            File::create(&aside).unwrap().set_len(2 << 30).unwrap();
            fs::rename(aside, path).unwrap();
        }),
    ] {
        let site = Site::new();
        damage(&site.path());
        site.wait_for_rejection(kind);
        site.recover();
    }
}

/// `mv robots.txt old; mv new robots.txt`, with a reload requested in between.
#[tokio::test]
async fn a_reload_between_two_renames_waits_for_the_second() {
    let site = Site::new();
    let (new, old) = (site.folder.path().join("new"), site.folder.path().join("old"));
    fs::write(&new, version("new")).unwrap();
    fs::rename(site.path(), old).unwrap();
    // The folder's date is in the future, so that its change counts as recent even on a slow
    // machine.
    let soon = SystemTime::now() + Duration::from_millis(1500);
    File::open(site.folder.path()).unwrap().set_modified(soon).unwrap();
    let reloading = site.live.reload();
    fs::rename(new, site.path()).unwrap();
    let reload = reloading.await;
    assert!(!matches!(reload.outcome, ReloadOutcome::Kept { .. }), "{reload}");
    site.wait_for_version("new");
    assert!(!site.reported.lock().unwrap().iter().any(|said| said.contains("the file does not exist")));
}

#[test]
fn a_folder_in_place_of_the_file_keeps_the_last_good_version() {
    let site = Site::new();
    fs::remove_file(site.path()).unwrap();
    fs::create_dir(site.path()).unwrap();
    site.wait_for_rejection(RejectionKind::NotAFile);
    fs::remove_dir(site.path()).unwrap();
    site.recover();
}

#[cfg(unix)]
#[test]
fn a_fifo_or_a_loop_of_links_keeps_the_last_good_version() {
    let site = Site::new();
    fs::remove_file(site.path()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(site.path()).status().unwrap();
    assert!(made.success());
    site.wait_for_rejection(RejectionKind::NotAFile);
    fs::remove_file(site.path()).unwrap();
    std::os::unix::fs::symlink("robots.txt", site.path()).unwrap();
    site.wait_for_rejection(RejectionKind::Unreadable);
    site.recover();
}

#[cfg(unix)]
#[test]
fn a_swapped_kubernetes_config_map_goes_live() {
    use std::os::unix::fs::symlink;
    let site = Site::at(|folder| {
        for name in ["old", "new"] {
            fs::create_dir(folder.join(format!("..{name}"))).unwrap();
            fs::write(folder.join(format!("..{name}/robots.txt")), version(name)).unwrap();
        }
        symlink("..old", folder.join("..data")).unwrap();
        symlink("..data/robots.txt", folder.join("robots.txt")).unwrap();
        folder.join("robots.txt")
    });
    let folder = site.folder.path();
    symlink("..new", folder.join("..tmp")).unwrap();
    fs::rename(folder.join("..tmp"), folder.join("..data")).unwrap();
    fs::remove_dir_all(folder.join("..old")).unwrap();
    site.wait_for_version("new");
    // The watch must have moved to the new target.
    fs::write(folder.join("..new/robots.txt"), version("two")).unwrap();
    site.wait_for_version("two");
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_is_watched_at_its_target() {
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("real.txt");
    let site = Site::at(|folder| {
        fs::write(&target, version("old")).unwrap();
        std::os::unix::fs::symlink(&target, folder.join("robots.txt")).unwrap();
        folder.join("robots.txt")
    });
    replace(&target, version("new"));
    site.wait_for_version("new");
}

#[test]
fn a_folder_that_was_moved_and_recreated_is_found_by_polling() {
    let site = Site::polled(
        |folder| {
            fs::create_dir(folder.join("inner")).unwrap();
            folder.join("inner/robots.txt")
        },
        Duration::from_millis(100),
    );
    let inner = site.folder.path().join("inner");
    fs::rename(&inner, site.folder.path().join("moved")).unwrap();
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("robots.txt"), version("new")).unwrap();
    site.wait_for_version("new");
    // Events work again, too. A poll would need two readings, the event of a rename only one.
    replace(&inner.join("robots.txt"), version("two"));
    site.wait_for_version("two");
}

#[test]
fn the_last_version_is_live_after_many_renames() {
    let site = Site::new();
    for round in 0..1000 {
        replace(&site.path(), version(if round % 2 == 0 { "new" } else { "old" }));
    }
    replace(&site.path(), version("end"));
    site.wait_for_version("end");
}

#[test]
fn reload_returns_its_outcome() {
    let site = Site::new();
    assert!(matches!(site.live.reload_blocking().outcome, ReloadOutcome::Unchanged { .. }));
    let good = site.live.status().live;
    replace(&site.path(), version("new"));
    // The watcher may have reloaded the file first.
    assert!(!matches!(site.live.reload_blocking().outcome, ReloadOutcome::Kept { .. }));
    assert_ne!(site.live.status().live, good);
    fs::remove_file(site.path()).unwrap();
    let reload = site.live.reload_blocking();
    let ReloadOutcome::Kept { rejection, live: Some(_), .. } = &reload.outcome else { panic!("{reload}") };
    assert_eq!(rejection.kind, RejectionKind::Missing);
    assert!(reload.to_string().contains("the file does not exist; version "), "{reload}");
}

#[test]
fn a_requested_reload_does_not_accept_a_half_written_file() {
    let site = Site::new();
    let new = version("new");
    let file = WrittenInPlace::new(OpenOptions::new().write(true).open(site.path()).unwrap());
    file.write(|file| file.set_len(0).unwrap());
    file.write(|mut file| file.write_all(&new[..new.len() / 2]).unwrap());
    std::thread::scope(|scope| {
        let requested = scope.spawn(|| site.live.reload_blocking());
        // The reload is requested in the middle of a write. Whichever ends first, no partial file
        // goes live.
        while !requested.is_finished() {
            site.expect_whole(&file);
            file.write(|mut file| file.write_all(b"#").unwrap());
        }
        let is_kept = matches!(requested.join().unwrap().outcome, ReloadOutcome::Kept { .. });
        assert!(is_kept || file.longest_pause() >= SETTLE);
    });
    // Closing the file would mark it as complete, so it is replaced first.
    replace(&site.path(), version("two"));
    drop(file);
    site.wait_for_last_version("two");
}

#[test]
fn overlapping_in_place_rewrites_never_make_half_a_file_live() {
    let site = Site::new();
    let path = site.path();
    // The file that is being written, and whether any file had a long pause.
    let writing = Mutex::new((None::<WrittenInPlace>, false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..30 {
                let new = version(&round.to_string());
                let file = WrittenInPlace::new(File::create(&path).unwrap());
                let mut writing_now = writing.lock().unwrap();
                writing_now.1 |= writing_now.0.replace(file).is_some_and(|last| last.longest_pause() >= SETTLE);
                drop(writing_now);
                for part in new.chunks(new.len() / 4) {
                    let writing = writing.lock().unwrap();
                    writing.0.as_ref().unwrap().write(|mut file| file.write_all(part).unwrap());
                    drop(writing);
                    // A pause inside the write, as on a slow disk; its length is not asserted.
                    std::thread::sleep(Duration::from_millis(3));
                }
            }
        });
        while !writer.is_finished() {
            let is_whole = site.is_whole();
            let writing = writing.lock().unwrap();
            let has_paused = writing.1 || writing.0.as_ref().is_none_or(|file| file.longest_pause() >= SETTLE);
            assert!(is_whole || has_paused, "half a file is live");
        }
        writer.join().unwrap();
    });
    site.wait_for_last_version("29");
}

#[test]
fn a_listener_may_read_the_status_and_set_the_policy() {
    let live = Arc::new(std::sync::OnceLock::<LiveRobots>::new());
    let seen = Arc::new(Mutex::new(None));
    let (own, reported) = (live.clone(), seen.clone());
    let site = Site::with(|builder| {
        builder.on_reload(move |_, _| {
            if let Some(live) = own.get() {
                live.set_policy(tower_robots::policy::Policy::default());
                *reported.lock().unwrap() = live.status().live;
            }
        })
    });
    live.set(site.live.clone()).unwrap();
    replace(&site.path(), version("new"));
    site.wait_for("the status", |site| {
        *seen.lock().unwrap() == site.live.status().live && site.body() == version("new")
    });
}

#[test]
fn a_restored_older_file_counts_as_the_newest_version() {
    let site = Site::new();
    let modified = |site: &Site| site.live.snapshot().content.as_ref().unwrap().modified.unwrap();
    let before = modified(&site);
    replace_dated(&site.path(), version("back"), SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    site.wait_for_version("back");
    assert!(modified(&site) >= before, "a crawler that sends If-Modified-Since has to see the change");
}

#[test]
fn reloads_continue_after_a_listener_panics() {
    let site = Site::with(|builder| builder.on_reload(|_, _| panic!("the listener's own fault")));
    assert!(matches!(site.live.reload_blocking().outcome, ReloadOutcome::Unchanged { .. }));
    for name in ["new", "two"] {
        replace(&site.path(), version(name));
        site.wait_for_version(name);
    }
}

#[tokio::test]
async fn reload_can_be_awaited() {
    let live = LiveRobots::text("# x\n").open().unwrap();
    assert!(matches!(live.reload().await.outcome, ReloadOutcome::Unchanged { .. }));
}

#[test]
fn a_site_that_starts_without_a_file_uses_it_once_it_exists() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robots.txt");
    let error: Rejection = LiveRobots::file(&path).open().unwrap_err();
    assert_eq!(error.kind, RejectionKind::Missing);
    assert_eq!(error.to_string(), format!("{}: the file does not exist", path.display()));
    let live = LiveRobots::file(&path).when_missing(WhenMissing::Unavailable).open().unwrap();
    assert!(live.snapshot().content.is_none());
    replace(&path, version("new"));
    wait_or_explain(|| live.snapshot().content.is_some(), || format!("{:?}", live.status()));
}

#[test]
fn a_request_sees_one_version_while_others_are_published() {
    // The file is small, so that there are many versions; their source does not matter to requests.
    let text = |name: &str| format!("# version {name}\nUser-agent: *\nDisallow: /{name}/\n");
    let live = LiveRobots::text(text("old")).open().unwrap();
    let has_seen = [false, false].map(std::sync::atomic::AtomicBool::new);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                live.with(|snapshot| {
                    let content = snapshot.content.as_ref().unwrap();
                    let is_new = content.body().starts_with(b"# version new");
                    let rules = content.rules().document().groups().next().unwrap();
                    let pattern = rules.rules().next().unwrap().pattern().to_vec();
                    assert_eq!(pattern, if is_new { b"/new/" } else { b"/old/" });
                    has_seen[usize::from(is_new)].store(true, std::sync::atomic::Ordering::Relaxed);
                });
            }
        });
        let mut round = 0;
        let publish = || {
            for name in ["new", "old"] {
                live.publish_blocking(text(name)).unwrap();
            }
        };
        let has_seen_both = || has_seen.iter().all(|seen| seen.load(std::sync::atomic::Ordering::Relaxed));
        let start = std::time::Instant::now();
        while (round < 200 || !has_seen_both()) && start.elapsed() < PATIENCE {
            publish();
            round += 1;
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(has_seen_both(), "{has_seen:?} in {round} rounds");
    });
}

#[test]
fn a_file_dated_before_1970_is_live_without_a_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robots.txt");
    fs::write(&path, version("old")).unwrap();
    let before = std::time::UNIX_EPOCH - Duration::from_secs(86_400);
    OpenOptions::new().write(true).open(&path).unwrap().set_modified(before).unwrap();
    let live = LiveRobots::file(&path).open().unwrap();
    let snapshot = live.snapshot();
    let content = snapshot.content.as_ref().unwrap();
    assert_eq!((&content.body()[..], content.modified), (&version("old")[..], None));
}
