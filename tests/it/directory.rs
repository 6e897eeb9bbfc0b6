//! A folder with a file per host: real files that appear, change, break and disappear.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use http::Request;
use tempfile::TempDir;
use tower_robots::internals::DirectoryEvent;
use tower_robots::layer::RobotsLayer;
use tower_robots::live::{LiveRobots, RejectionKind, StateDir};
use tower_robots::parts::{OriginalRequest, Outcome};
use tower_robots::policy::{Mode, Policy};
use tower_robots::source::{Directory, DirectoryBuilder, LiveBuilder, Watcher};

use crate::waiting::{PATIENCE, WrittenInPlace, replace, wait_for, wait_or_explain};

struct Folder {
    folder: TempDir,
    directory: Directory,
    reported: Arc<Mutex<Vec<String>>>,
}

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        Self::built(files, |builder| builder.poll_every(PATIENCE * 10))
    }

    fn built(files: &[(&str, &str)], more: impl FnOnce(DirectoryBuilder) -> DirectoryBuilder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let reported = Arc::new(Mutex::new(Vec::new()));
        let reports = reported.clone();
        let directory = more(Directory::new(folder.path()))
            .on_event(move |event| reports.lock().unwrap().push(event.to_string()))
            .open()
            .unwrap();
        assert_eq!(directory.watch_problem(), None);
        Self { folder, directory, reported }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn live(&self, host: &str) -> Option<LiveRobots> {
        self.directory.sites().load().get(host).cloned()
    }

    fn body(&self, host: &str) -> Option<String> {
        let snapshot = self.live(host)?.snapshot();
        snapshot.content.as_ref().map(|content| String::from_utf8(content.body().to_vec()).unwrap())
    }

    fn wait_for(&self, what: &str, condition: impl Fn() -> bool) {
        wait_or_explain(condition, || format!("{what}: {:?}", self.reported.lock().unwrap()));
    }

    fn wait_for_body(&self, host: &str, text: &str) {
        self.wait_for(text, || self.body(host).as_deref() == Some(text));
    }
}

#[test]
fn each_file_defines_a_site_and_the_fallback_file_applies_to_all_other_hosts() {
    let folder = Folder::with(&[
        ("example.com.txt", "# a\n"),
        ("example.com_8080.txt", "# b\n"),
        ("_wildcard.example.com.txt", "# c\n"),
        (if cfg!(feature = "idn") { "m\u{fc}nchen.example.txt" } else { "xn--mnchen-3ya.example.txt" }, "# d\n"),
        ("default.txt", "# e\n"),
        ("no host.txt", "# f\n"),
        ("EXAMPLE.COM.txt", "# g\n"),
        ("README", "none of ours"),
        (".hidden.txt", "none of ours"),
    ]);
    for (host, text) in [
        ("example.com:8080", "# b\n"),
        ("a.example.com", "# c\n"),
        ("xn--mnchen-3ya.example", "# d\n"),
        ("other.test", "# e\n"),
        // In byte order, the file name with capital letters is first.
        ("example.com", "# g\n"),
    ] {
        assert_eq!(folder.body(host).as_deref(), Some(text), "{host}");
    }
    let reported = folder.reported.lock().unwrap();
    let ignored: Vec<_> = reported.iter().filter(|line| line.contains("is ignored")).collect();
    assert_eq!(ignored.len(), 2, "{reported:?}");
    assert!(ignored.iter().any(|line| line.starts_with("\"no host.txt\" is ignored: \"no host\" is not a host")));
    assert!(ignored.iter().any(|line| line.contains("\"example.com.txt\"") && line.contains("is listed twice")));
}

#[test]
fn a_new_file_creates_a_site_and_a_removed_files_site_keeps_its_version() {
    let folder = Folder::with(&[("a.test.txt", "# a\n")]);
    assert!(folder.live("b.test").is_none());
    replace(&folder.path("b.test.txt"), "# b\n");
    folder.wait_for_body("b.test", "# b\n");
    assert_eq!(folder.body("a.test").as_deref(), Some("# a\n"));
    // This file is watched like any other.
    replace(&folder.path("b.test.txt"), "# c\n");
    folder.wait_for_body("b.test", "# c\n");
    fs::remove_file(folder.path("b.test.txt")).unwrap();
    folder.wait_for("the loss is reported", || {
        let live = folder.live("b.test").unwrap();
        live.status().last_reload.to_string().contains("the file does not exist")
    });
    assert_eq!(folder.body("b.test").as_deref(), Some("# c\n"));
    replace(&folder.path("b.test.txt"), "# d\n");
    folder.wait_for_body("b.test", "# d\n");
    // After reopening, a host without a file has no site.
    fs::remove_file(folder.path("b.test.txt")).unwrap();
    let again = Directory::new(folder.folder.path()).open().unwrap();
    assert_eq!(again.sites().load().len(), 1);
}

#[test]
fn a_fallback_file_with_another_extension_creates_a_site_when_it_appears() {
    let folder = Folder::built(&[], |builder| builder.fallback("fallback.conf").poll_every(PATIENCE * 10));
    replace(&folder.path("fallback.conf"), "# a\n");
    folder.wait_for_body("other.test", "# a\n");
}

#[test]
fn a_removed_file_is_replaced_by_a_file_with_another_spelling_of_the_same_host() {
    let folder = Folder::with(&[("EXAMPLE.COM.txt", "# removed\n"), ("example.com.txt", "# stays\n")]);
    assert_eq!(folder.body("example.com").as_deref(), Some("# removed\n"));
    fs::remove_file(folder.path("EXAMPLE.COM.txt")).unwrap();
    folder.wait_for_body("example.com", "# stays\n");
    let hosts: Vec<_> = folder.directory.hosts().into_iter().map(|(host, _)| host).collect();
    assert_eq!(hosts, ["example.com"]);
}

/// Nothing except the layer has to be kept alive. Otherwise, a router that a function builds would
/// not follow the folder.
#[test]
fn sites_follow_their_folder_after_the_directory_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |_: &str, builder: LiveBuilder<_>| builder.policy(Policy::builder().mode(Mode::Refuse).build());
    let open = || Directory::new(folder.path()).each(refuse).poll_every(PATIENCE * 10).open().unwrap();
    let layers = [RobotsLayer::new(open()), RobotsLayer::new(open().sites().clone())];
    fs::write(folder.path().join("b.test.txt"), "User-agent: GPTBot\nDisallow: /\n").unwrap();
    let request = Request::get("/x").header("host", "b.test").header("user-agent", "GPTBot/1.2").body(()).unwrap();
    for layer in layers {
        let answer = || layer.decide(&OriginalRequest::of(&request)).respond(None).outcome;
        wait_for("the new host", || matches!(answer(), Outcome::Respond(_)));
    }
}

/// Otherwise, the sites would share saved versions, and serve each other's files after a restart.
#[test]
fn each_host_has_its_own_name_in_the_state_directory() {
    let files = [("a.test.txt", "User-agent: *\nDisallow: /a\n"), ("default.txt", "User-agent: *\nDisallow: /b\n")];
    for (name, want) in [
        ((|_| "shop".to_owned()) as fn(&str) -> String, ["shop/*", "shop/a.test"]),
        (|host| host.to_owned(), ["*", "a.test"]),
        (|host| format!("shop/{host}"), ["shop/*", "shop/a.test"]),
        (|_| "xa.test".to_owned(), ["xa.test/*", "xa.test/a.test"]),
    ] {
        let state_folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(state_folder.path()).unwrap();
        let in_state = state.clone();
        let each = move |host: &str, site: LiveBuilder<_>| site.state(&in_state, name(host));
        let _folder = Folder::built(&files, |builder| builder.each(each));
        assert!(state.flush());
        assert_eq!(state.site_names(), want);
    }
}

/// Opening a site at startup and opening it later have different causes. The history also contains
/// changes of the mode.
#[test]
fn the_history_contains_the_cause_of_opening_a_site_and_its_mode_changes() {
    let folder = Folder::with(&[("a.example.txt", "User-agent: *\nDisallow: /b\n")]);
    replace(&folder.path("b.example.txt"), "User-agent: *\nDisallow: /b\n");
    folder.wait_for("the second host", || folder.live("b.example").is_some());
    let live = folder.live("b.example").unwrap();
    for mode in [Mode::Refuse, Mode::Refuse, Mode::Tag] {
        live.set_policy(Policy::builder().mode(mode).build());
    }
    let entries = |host| {
        let history = folder.live(host).unwrap().history();
        history.iter().map(|entry| (entry.cause.as_str(), entry.outcome.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(entries("a.example"), [("start", "published")]);
    let changed = ("policy", "mode-changed");
    assert_eq!(entries("b.example"), [("new-file", "published"), changed, changed]);
    assert_eq!(live.history()[2].detail, "mode: refuse → tag");
}

#[test]
fn a_half_written_new_file_is_not_accepted() {
    let folder = Folder::with(&[]);
    let file = OpenOptions::new().write(true).create_new(true).open(folder.path("a.test.txt")).unwrap();
    let file = WrittenInPlace::new(file);
    for _ in 0..30 {
        file.write(|mut file| file.write_all(b"Disallow: /\n").unwrap());
        let is_live = folder.live("a.test").is_some_and(|live| live.snapshot().content.is_some());
        // A file counts as complete after 400 ms without a change, or a little earlier, because its
        // date may lag.
        assert!(!is_live || file.longest_pause() > std::time::Duration::from_millis(300));
        // A pause inside the write, as on a slow disk.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    file.write(|mut file| file.write_all(b"# end\n").unwrap());
    drop(file);
    folder.wait_for("the whole file", || folder.body("a.test").is_some_and(|body| body.ends_with("# end\n")));
}

#[test]
fn an_invalid_file_does_not_affect_the_sites_of_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("good.test.txt"), "# good\n").unwrap();
    fs::write(path("html.test.txt"), "<!doctype html><title>404</title>").unwrap();
    fs::write(path("empty.test.txt"), "").unwrap();
    File::create(path("sparse.test.txt")).unwrap().set_len(2 << 30).unwrap();
    fs::write(path("error.test.txt"), "Error: cannot connect to database\n").unwrap();
    fs::create_dir(path("folder.test.txt")).unwrap();
    #[cfg(unix)]
    {
        let made = std::process::Command::new("mkfifo").arg(path("fifo.test.txt")).status().unwrap();
        assert!(made.success());
        std::os::unix::fs::symlink("loop.test.txt", path("loop.test.txt")).unwrap();
    }
    let directory = Directory::new(folder.path()).open().unwrap();
    let sites = directory.sites().load();
    let kind = |host: &str| {
        let live = sites.get(host).unwrap();
        assert!(live.snapshot().content.is_none());
        match &live.status().last_reload.outcome {
            tower_robots::live::ReloadOutcome::Kept { rejection, .. } => rejection.kind,
            other => panic!("{host}: {other:?}"),
        }
    };
    assert!(sites.get("good.test").unwrap().snapshot().content.is_some());
    assert_eq!(kind("html.test"), RejectionKind::Html);
    assert_eq!(kind("empty.test"), RejectionKind::Empty);
    assert_eq!(kind("error.test"), RejectionKind::NoField);
    assert_eq!(kind("sparse.test"), RejectionKind::TooLarge);
    assert_eq!(kind("folder.test"), RejectionKind::NotAFile);
    #[cfg(unix)]
    {
        assert_eq!(kind("fifo.test"), RejectionKind::NotAFile);
        assert_eq!(kind("loop.test"), RejectionKind::Unreadable);
    }
    replace(&path("html.test.txt"), "# better\n");
    wait_for("the better version", || sites.get("html.test").unwrap().snapshot().content.is_some());
}

#[test]
fn an_unlistable_folder_is_an_error_at_the_start_and_changes_no_site_later() {
    let nowhere = tempfile::tempdir().unwrap().path().join("nowhere");
    let error = Directory::new(&nowhere).open().unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(error.to_string(), format!("{}: cannot be listed: {cause}", nowhere.display()));
    let folder = Folder::with(&[("a.test.txt", "# a\n")]);
    fs::rename(folder.folder.path(), folder.folder.path().with_extension("away")).unwrap();
    assert!(folder.directory.rescan().is_err());
    assert_eq!(folder.body("a.test").as_deref(), Some("# a\n"));
    fs::rename(folder.folder.path().with_extension("away"), folder.folder.path()).unwrap();
    folder.directory.rescan().unwrap();
}

#[test]
fn every_site_serves_its_last_version_after_a_burst_of_edits() {
    let watcher = Watcher::new();
    let folder = Folder::built(&[], |builder| builder.watcher(&watcher).poll_every(PATIENCE * 10));
    for round in 0..20 {
        for host in 0..100 {
            replace(&folder.path(&format!("site{host}.test.txt")), format!("# {host} {round}\n"));
        }
    }
    for host in 0..100 {
        folder.wait_for_body(&format!("site{host}.test"), &format!("# {host} 19\n"));
    }
}

#[test]
fn the_watcher_reports_changes_of_any_file_until_the_watch_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, "a = 1\n").unwrap();
    let watcher = Watcher::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (contents, read) = (seen.clone(), path.clone());
    let watched = watcher.file(&path, move || contents.lock().unwrap().push(fs::read_to_string(&read).ok()));
    assert_eq!(watched.problem(), None);
    let wait_for_last = |want: Option<&str>| {
        let is_last = || seen.lock().unwrap().last().is_some_and(|last| last.as_deref() == want);
        wait_or_explain(is_last, || format!("{want:?}: {:?}", seen.lock().unwrap()));
    };
    replace(&path, "a = 2\n");
    wait_for_last(Some("a = 2\n"));
    fs::remove_file(&path).unwrap();
    wait_for_last(None);
    fs::write(&path, "a = 3\n").unwrap();
    wait_for_last(Some("a = 3\n"));
    drop(watched);
    let before = seen.lock().unwrap().len();
    replace(&path, "a = 4\n");
    // Another watch of the same folder sees the change, so the first watch would have seen it, too.
    let calls = Arc::new(Mutex::new(0));
    let called = calls.clone();
    let other = watcher.file(folder.path().join("other"), move || *called.lock().unwrap() += 1);
    fs::write(folder.path().join("other"), "x").unwrap();
    wait_for("the other watch", || *calls.lock().unwrap() > 0);
    drop(other);
    assert_eq!(seen.lock().unwrap().len(), before);
}

#[test]
fn a_callback_that_blocks_or_panics_does_not_delay_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let watcher = Watcher::new();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Mutex::new(blocked);
    let slow = watcher.file(folder.path().join("slow"), move || blocked.lock().unwrap().recv().unwrap_or_default());
    let faulty = watcher.file(folder.path().join("faulty"), || panic!("the callback's own fault"));
    let live_path = folder.path().join("robots.txt");
    fs::write(&live_path, "# a\n").unwrap();
    let live = LiveRobots::file(&live_path).watcher(&watcher).poll_every(PATIENCE * 10).open().unwrap();
    fs::write(folder.path().join("slow"), "x").unwrap();
    fs::write(folder.path().join("faulty"), "x").unwrap();
    replace(&live_path, "# b\n");
    wait_for("the new version", || live.snapshot().content.as_ref().unwrap().body() == &b"# b\n"[..]);
    drop(release);
    drop((slow, faulty));
}

#[test]
fn a_site_whose_invalid_file_is_removed_is_closed_even_if_a_listener_panics() {
    let folder = Folder::built(&[("good.test.txt", "# good\n"), ("bad.test.txt", "<html>")], |builder| {
        builder.poll_every(PATIENCE * 10).on_event(|event| {
            assert!(!matches!(event, DirectoryEvent::Removed { .. }), "as a test");
        })
    });
    assert!(folder.live("bad.test").is_some());
    fs::remove_file(folder.path("bad.test.txt")).unwrap();
    // The panic occurs in the watcher's thread or in this one.
    let _ = catch_unwind(AssertUnwindSafe(|| folder.directory.rescan()));
    folder.directory.rescan().unwrap();
    assert!(folder.live("bad.test").is_none(), "it lost its file");
    assert!(folder.live("good.test").is_some());
}
