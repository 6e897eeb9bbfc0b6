//! Versions that do not go live by themselves, because they were refused or rolled back, and how
//! they are accepted.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tower_robots::agent::Registry;
use tower_robots::check::{Expectations, Guard, Severity};
use tower_robots::internals::FileSource;
use tower_robots::internals::{Appendix, Condition};
use tower_robots::live::{
    Cause, Gate, LiveRobots, NoSuchVersion, ObjectionKind, RejectionKind, ReloadOutcome, ReloadOutcomeKind, StateDir,
    VersionHash, VersionHashPrefix, WhenMissing,
};
use tower_robots::rules::{Access, Fragment, RobotsTxt};
use tower_robots::source::LiveBuilder;

use crate::waiting::{PATIENCE, body, replace_dated, wait_or_explain};

const OPEN: &str = "User-agent: *\nDisallow: /cart\n";
const STAGING: &str = "User-agent: *\nDisallow: /\n";

/// A site with a file and a state directory, opened once per simulated process.
struct Site {
    folder: TempDir,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn new(file: &str) -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap(), notices: Arc::default() };
        site.write(file);
        site
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("robots.txt")
    }

    /// Writes the robots.txt with an old date, so that reloads do not wait for the file to be
    /// complete.
    fn write(&self, file: &str) {
        replace_dated(&self.path(), file, SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000));
    }

    /// Returns a builder for a site that is not polled during a test.
    fn builder(&self) -> LiveBuilder<FileSource> {
        let notices = self.notices.clone();
        LiveRobots::file(self.path())
            .gate(Gate::new())
            .poll_every(PATIENCE * 100)
            .on_reload(move |reload, _| notices.lock().unwrap().push(reload.to_string()))
    }

    fn start(&self) -> LiveRobots {
        self.builder().state(&StateDir::open(self.folder.path().join("state")).unwrap(), "shop").open().unwrap()
    }

    fn notices(&self) -> Vec<String> {
        self.notices.lock().unwrap().clone()
    }
}

fn wait_for(live: &LiveRobots, condition: impl Fn(&LiveRobots) -> bool) {
    wait_or_explain(|| condition(live), || format!("{:?}", live.status()));
}

fn objections(live: &LiveRobots) -> Vec<ObjectionKind> {
    let status = live.status();
    let pending = status.pending.as_ref().map(|pending| pending.objections.iter().map(|objection| objection.kind));
    pending.into_iter().flatten().collect()
}

/// Returns the gate's objections to replacing one file with another.
fn replaced(gate: Gate, old: &str, new: &str) -> Vec<ObjectionKind> {
    let site = Site::new(old);
    let live = site.builder().gate(gate).open().unwrap();
    assert_eq!(body(&live).as_deref(), Some(old));
    site.write(new);
    let reload = live.reload_blocking();
    let kinds = objections(&live);
    let is_gated = matches!(reload.outcome, ReloadOutcome::Gated { .. });
    assert_eq!(is_gated, !kinds.is_empty(), "{reload}");
    assert_eq!(body(&live).as_deref(), Some(if is_gated { old } else { new }));
    kinds
}

#[test]
fn a_staging_file_deployed_with_a_restart_is_held_until_it_is_accepted_by_hash() {
    let site = Site::new(OPEN);
    drop(site.start());
    site.write(STAGING);
    for _ in 0..2 {
        // A second restart does not bypass the gate either.
        let live = site.start();
        assert_eq!(body(&live).as_deref(), Some(OPEN));
        let status = live.status();
        assert_eq!(status.condition(), Condition::Gated);
        let pending = status.pending.as_ref().unwrap();
        assert_eq!(pending.hash(), VersionHash::of(STAGING.as_bytes()));
        assert_eq!(pending.objections[0].to_string(), "everyone is blocked: no crawler may fetch anything");
        assert!(status.last_reload.to_string().contains(&pending.hash().short()));
    }
    let live = site.start();
    let error = live.accept(&VersionHash::of(b"another").into()).unwrap_err();
    let staging = VersionHash::of(STAGING.as_bytes());
    assert!(matches!(error, NoSuchVersion::Waiting { pending: Some(pending), .. } if pending == staging));
    assert!(error.to_string().contains(&VersionHash::of(STAGING.as_bytes()).short()), "{error}");
    let prefix: VersionHashPrefix = VersionHash::of(STAGING.as_bytes()).short().parse().unwrap();
    let reload = live.accept(&prefix).unwrap();
    assert_eq!((reload.cause, reload.outcome.kind()), (Cause::Accept, ReloadOutcomeKind::Published));
    assert_eq!(body(&live).as_deref(), Some(STAGING));
    assert_eq!(live.status().condition(), Condition::Live);
    assert!(live.accept(&prefix).unwrap_err().to_string().ends_with("no version is pending"));
    drop(live);
    let live = site.start();
    assert_eq!((body(&live).as_deref(), live.status().condition()), (Some(STAGING), Condition::Live));
}

#[test]
fn a_pending_version_can_be_accepted_after_its_file_was_removed() {
    let site = Site::new(OPEN);
    let live = site.builder().open().unwrap();
    site.write(STAGING);
    wait_for(&live, |live| live.status().condition() == Condition::Gated);
    let hash = live.status().pending.as_ref().unwrap().hash();
    fs::remove_file(site.path()).unwrap();
    live.accept(&hash.into()).unwrap();
    assert_eq!(body(&live).as_deref(), Some(STAGING));
}

#[test]
fn a_first_start_that_blocks_everyone_is_refused() {
    let site = Site::new(STAGING);
    let rejection = site.builder().open().unwrap_err();
    assert_eq!(rejection.kind, RejectionKind::Gated);
    assert_eq!(rejection.pending.as_ref().map(|pending| pending.hash()), Some(VersionHash::of(STAGING.as_bytes())));
    assert!(rejection.to_string().contains("is held until accepted: everyone is blocked"), "{rejection}");
    let live = site.builder().when_missing(WhenMissing::Unavailable).open().unwrap();
    assert_eq!((body(&live), live.status().condition()), (None, Condition::None));
    live.accept(&VersionHash::of(STAGING.as_bytes()).into()).unwrap();
    assert_eq!(body(&live).as_deref(), Some(STAGING));
    let live = site.builder().gate(Gate::open()).open().unwrap();
    assert_eq!(body(&live).as_deref(), Some(STAGING), "a gate is asked for");
}

#[test]
fn a_version_accepted_in_the_config_passes_the_gate_and_a_later_version_does_not() {
    let accepting = || Gate::new().accept([VersionHash::of(STAGING.as_bytes())]);
    assert_eq!(replaced(accepting(), OPEN, STAGING), []);
    assert_eq!(replaced(accepting(), OPEN, &format!("{STAGING}# later\n")), [ObjectionKind::ShutOut]);
    let site = Site::new(STAGING);
    let live = site.builder().gate(accepting()).open().unwrap();
    assert_eq!(body(&live).as_deref(), Some(STAGING));
    let site = Site::new(OPEN);
    let live = site.builder().open().unwrap();
    site.write(STAGING);
    wait_for(&live, |live| live.status().condition() == Condition::Gated);
    live.set_gate(accepting());
    let reload = live.reload_blocking();
    // The outcome is `Unchanged` if the watcher has examined the file first.
    assert!(matches!(reload.outcome.kind(), ReloadOutcomeKind::Published | ReloadOutcomeKind::Unchanged), "{reload}");
    assert_eq!(body(&live).as_deref(), Some(STAGING), "what waits is examined again");
}

#[test]
fn an_edit_that_blocks_a_search_engine_or_allows_much_more_is_held() {
    let gate = || Gate::new();
    let bing = format!("{OPEN}\nUser-agent: bingbot\nDisallow: /\n");
    assert_eq!(replaced(gate(), OPEN, &bing), [ObjectionKind::ShutOut]);
    assert_eq!(replaced(gate(), &bing, &format!("{bing}Disallow: /x\n")), [], "it was out before");
    assert_eq!(replaced(gate(), OPEN, &format!("{OPEN}\nUser-agent: GPTBot\nDisallow: /\n")), []);
    let rules: String = (0..30).map(|number| format!("Disallow: /part{number}/\n")).collect();
    let closed = format!("{OPEN}{rules}");
    let line_end = |at: usize| closed[..at].rfind('\n').unwrap() + 1;
    assert_eq!(replaced(gate(), &closed, &closed[..line_end(closed.len() / 3)]), [ObjectionKind::Opening]);
    assert_eq!(replaced(gate(), &closed, &closed[..line_end(closed.len() - 60)]), []);
    assert_eq!(replaced(gate(), &closed, "# nothing is restricted\n"), [ObjectionKind::Opening; 2]);
}

#[test]
fn a_file_that_lost_its_own_rules_is_held_even_if_a_list_is_appended() {
    let list = |name: &str| Fragment::parse("ai.txt", format!("User-agent: {name}\nDisallow: /\n")).unwrap();
    let appendix = Appendix::new(["ai.txt"]);
    appendix.set(0, list("GPTBot"), None);
    let live = LiveRobots::text(OPEN).append(&appendix).gate(Gate::new()).open().unwrap();
    for lost in ["User-agent: *\n", "# generated\n", "User-agent: * Disallow: /cart\n"] {
        let rejection = live.publish_blocking(lost).unwrap_err();
        assert_eq!(rejection.kind, RejectionKind::Gated, "{rejection}");
    }
    assert_eq!(live.publish_blocking(format!("{OPEN}Disal")).unwrap_err().kind, RejectionKind::Cut);
    assert_eq!(live.publish_blocking(format!("{OPEN}User-agent:")).unwrap_err().kind, RejectionKind::Cut);
    live.publish_blocking("User-agent: *\nDisallow:\n").unwrap();
    appendix.set(0, list("CCBot"), None);
    assert!(body(&live).is_some_and(|body| body.contains("User-agent: CCBot")), "a list may change alone");
}

/// After a restart, or with a baseline or a new list, only the bytes show which part was appended.
#[test]
fn a_file_that_lost_its_own_rules_is_held_after_a_restart_too() {
    const OWN: &str = "User-agent: *\nDisallow: /cart/\n\nUser-agent: b\nDisallow: /";
    let list = |name: &str| Fragment::parse("ai.txt", format!("User-agent: {name}\nDisallow: /\n")).unwrap();
    let with = |list| {
        let appendix = Appendix::new(["ai.txt"]);
        appendix.set(0, list, None);
        appendix
    };
    let lost = ["User-agent: *\n", "# generated\n", "User-agent: * Disallow: /cart/\n"];
    let cut = [
        "User-agent: *\nDisallow: /ca",
        "User-agent: *\nDisallow:",
        "User-agent: *\nDisallow: /cart/\n\nUser-agent: b",
    ];
    for text in lost.into_iter().chain(cut) {
        for name in ["GPTBot", "CCBot"] {
            let folder = TempDir::new().unwrap();
            let open = |text: &str, gate, name| {
                let state = StateDir::open(folder.path()).unwrap();
                LiveRobots::text(text).append(&with(list(name))).gate(gate).state(&state, "a").open().unwrap()
            };
            let live = open(OWN, Gate::new(), "GPTBot");
            let served = body(&live).unwrap();
            assert_eq!(live.publish_blocking(text).unwrap_err().kind, RejectionKind::Gated, "{text}");
            drop(live);
            let started = open(text, Gate::new(), name);
            assert_eq!(body(&started).unwrap(), served, "{text}");
            let baseline = Gate::new().baseline(RobotsTxt::parse(served.as_bytes()));
            let live = LiveRobots::text(OWN).append(&with(list(name))).gate(baseline).open().unwrap();
            assert_eq!(live.publish_blocking(text).unwrap_err().kind, RejectionKind::Gated, "{text}");
        }
    }
    // The same file with another list, and an edit of the file, go live.
    let folder = TempDir::new().unwrap();
    for (text, name) in [(OWN, "GPTBot"), (OWN, "CCBot"), ("# From ai.txt\nUser-agent: *\nDisallow: /c\n", "CCBot")] {
        let state = StateDir::open(folder.path()).unwrap();
        let builder = LiveRobots::text(text).append(&with(list(name))).gate(Gate::new());
        let live = builder.state(&state, "a").open().unwrap();
        assert!(live.status().pending.is_none(), "{:?}", live.status().pending);
        assert!(body(&live).unwrap().starts_with(text));
    }
}

#[test]
fn the_gate_enforces_required_access_expectations_guards_and_clean_findings() {
    let gate = || Gate::new().must_allow(["Googlebot", "bingbot"], ["/", "/products/1"]);
    let products = format!("{OPEN}Disallow: /products/\n");
    assert_eq!(replaced(gate(), OPEN, &products), [ObjectionKind::MustAllow; 2]);
    assert_eq!(replaced(gate(), OPEN, &format!("{OPEN}Disallow: /checkout\n")), []);
    let site = Site::new(&products);
    let rejection = site.builder().gate(gate()).open().unwrap_err();
    let said = rejection.to_string();
    assert!(said.contains("\"/products/1\" must be allowed for \"Googlebot\" but is disallowed by line 3"), "{said}");

    let expectations = Expectations::new(Registry::builtin().clone()).expect(Access::Disallow, ["*"], ["/cart"]);
    let gate = || Gate::new().expectations(expectations.clone());
    assert_eq!(replaced(gate(), OPEN, "User-agent: *\nDisallow: /checkout\n"), [ObjectionKind::Expectation]);
    let gate = || Gate::new().guard(Guard::parse("Googlebot:/products/").unwrap());
    assert_eq!(replaced(gate(), OPEN, &products), [ObjectionKind::Guard]);
    let broken = format!("{OPEN}Disallow: checkout\n");
    assert_eq!(replaced(Gate::new(), OPEN, &broken), []);
    let strict = || Gate::new().refuse_findings(Severity::Error);
    assert_eq!(replaced(strict(), OPEN, &broken), [ObjectionKind::Finding]);
}

#[test]
fn a_misspelled_name_or_an_empty_list_in_a_gate_is_refused_at_the_start() {
    let gate = |name: &str| Gate::new().must_allow([name], ["/"]);
    assert_eq!(replaced(gate("OurOwnCrawler"), OPEN, &format!("{OPEN}Disallow: /y\n")), []);
    let house = format!("{OPEN}\nUser-agent: Gogglebot\nAllow: /\n");
    assert_eq!(replaced(gate("Gogglebot"), &house, &format!("{house}Disallow: /y\n")), [], "a group has the name");
    let rejection = Site::new(OPEN).builder().gate(gate("Gogglebot")).open().unwrap_err().to_string();
    let right = "must_allow contains the name \"Gogglebot\", but no crawler and no group has this name: did you mean \
                 \"Googlebot\"?";
    assert!(rejection.contains(right), "{rejection}");
    let none = Expectations::new(Registry::builtin().clone());
    for (empty, of) in [
        (Gate::new().must_allow(["Googlebot"], [""; 0]), "must_allow"),
        (Gate::new().must_allow([""; 0], ["/"]), "must_allow"),
        (Gate::new().expectations(none.clone()), "an expectation"),
        (Gate::new().expectations(none.expect(Access::Allow, ["*"], [""; 0])), "an expectation"),
    ] {
        let rejection = Site::new(OPEN).builder().gate(empty).open().unwrap_err().to_string();
        assert!(
            rejection.contains(&format!("{of} has no agents or no paths: pass at least one of each")),
            "{rejection}"
        );
    }
    // The two arguments were swapped.
    let rejection = Site::new(OPEN).builder().gate(Gate::new().must_allow(["/"], ["Googlebot"])).open().unwrap_err();
    assert!(rejection.to_string().contains("must_allow contains the name \"/\""), "{rejection}");
    assert_eq!(replaced(gate("*"), OPEN, &format!("{OPEN}Disallow: /y\n")), []);
}

#[test]
fn a_pending_version_is_reported_once_and_forgotten_when_the_old_file_comes_back() {
    let site = Site::new(OPEN);
    let live = site.builder().poll_every(Duration::from_millis(50)).open().unwrap();
    site.write(STAGING);
    wait_for(&live, |live| live.status().condition() == Condition::Gated);
    wait_for(&live, |_| site.notices().len() > 1);
    // Meanwhile the watcher examines the file repeatedly.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(site.notices().len(), 2, "{:?}", site.notices());
    assert_eq!(live.history().len(), 2);
    site.write(OPEN);
    wait_for(&live, |live| live.status().condition() == Condition::Live);
    assert!(live.status().pending.as_ref().is_none());
    assert_eq!(body(&live).as_deref(), Some(OPEN));
}

#[test]
fn a_first_version_that_the_gate_does_not_list_is_held() {
    let hash = |text: &str| VersionHash::of(text.as_bytes());
    let gate = |known: &str| Gate::new().allow_first_versions([hash(known)], "others serve another");
    // A known version passes, whatever it changes; later versions are compared with it.
    let site = Site::new(STAGING);
    let live = site.builder().gate(gate(STAGING)).open().unwrap();
    assert_eq!(body(&live).as_deref(), Some(STAGING));
    site.write(OPEN);
    assert_eq!(live.reload_blocking().outcome.kind(), ReloadOutcomeKind::Gated);
    assert_eq!(objections(&live), [ObjectionKind::Opening]);
    // Another version is held, however harmless it is, with the gate's reason.
    let site = Site::new(OPEN);
    let live = site.builder().gate(gate(STAGING)).when_missing(WhenMissing::Unavailable).open().unwrap();
    assert_eq!((body(&live), objections(&live)), (None, vec![ObjectionKind::NotAccepted]));
    assert_eq!(live.status().pending.as_ref().unwrap().to_string(), "others serve another");
    live.accept(&hash(OPEN).into()).unwrap();
    assert_eq!(body(&live).as_deref(), Some(OPEN));
    // With a baseline, there is a version to compare with.
    let baseline = RobotsTxt::parse(OPEN.as_bytes());
    let live = Site::new(OPEN).builder().gate(gate(STAGING).baseline(baseline)).open().unwrap();
    assert_eq!(body(&live).as_deref(), Some(OPEN));
}

#[test]
fn a_rollback_lasts_until_the_file_contains_another_version() {
    let second = format!("{OPEN}Disallow: /second\n");
    let third = format!("{OPEN}Disallow: /third\n");
    let site = Site::new(OPEN);
    let live = site.start();
    assert!(live.rollback().is_err(), "nothing was before the first");
    for version in [&second, &third] {
        site.write(version);
        wait_for(&live, |live| body(live).as_ref() == Some(version));
    }
    wait_for(&live, |live| live.status().before == Some(VersionHash::of(second.as_bytes())));
    let reload = live.rollback().unwrap();
    assert_eq!((reload.cause, reload.outcome.hash()), (Cause::Rollback, Some(VersionHash::of(second.as_bytes()))));
    assert_eq!(body(&live).as_ref(), Some(&second));
    assert_eq!(objections(&live), [ObjectionKind::RolledBack]);
    assert_eq!(live.reload_blocking().outcome.kind(), ReloadOutcomeKind::Gated, "nobody accepted it");
    assert_eq!(live.rollback().unwrap().outcome.hash(), Some(VersionHash::of(OPEN.as_bytes())));
    // The file still contains the third version, which is not the one that was rolled back last.
    assert_eq!(live.reload_blocking().outcome.kind(), ReloadOutcomeKind::Gated);
    drop(live);

    let live = site.start();
    assert_eq!((body(&live).as_deref(), live.status().condition()), (Some(OPEN), Condition::Gated));
    assert_eq!(objections(&live), [ObjectionKind::RolledBack]);
    live.accept(&VersionHash::of(third.as_bytes()).into()).unwrap();
    assert_eq!(body(&live).as_ref(), Some(&third));
    live.rollback().unwrap();
    assert_eq!(body(&live).as_deref(), Some(OPEN));

    let fourth = format!("{OPEN}Disallow: /fourth\n");
    for version in [&fourth, &third] {
        // Once the file has contained another version, the rolled-back version is treated like any
        // other.
        site.write(version);
        wait_for(&live, |live| body(live).as_ref() == Some(version));
    }
}

#[test]
fn the_history_contains_rejected_versions_and_the_effect_of_each_version() {
    let site = Site::new(OPEN);
    let live = site.builder().open().unwrap();
    for (entries, file) in [(2, format!("{OPEN}Disallow: /checkout\n")), (3, STAGING.into()), (4, "<html>".into())] {
        site.write(&file);
        wait_for(&live, |live| live.history().len() == entries);
    }
    let history = live.history();
    let last: Vec<_> =
        history.iter().map(|entry| (entry.outcome, entry.effect.as_deref().unwrap_or_default())).collect();
    assert_eq!(last[0], (ReloadOutcomeKind::Published, ""));
    assert!(last[1].1.starts_with("\"/checkout\" is disallowed for \"Googlebot\", \"bingbot\" and "), "{last:?}");
    assert_eq!(last[2].0, ReloadOutcomeKind::Gated);
    assert!(last[2].1.starts_with("\"/\" is disallowed for \"Googlebot\""), "{last:?}");
    assert_eq!(history[2].hash, Some(VersionHash::of(STAGING.as_bytes())));
    assert_eq!(history[2].findings(Severity::Warning), 1, "the whole site is disallowed");
    assert_eq!((last[3].0, history[3].hash), (ReloadOutcomeKind::Kept, None));
    assert!(history[3].detail.contains("HTML"), "{history:?}");
}

/// The tests of `check::directives` in robots-core define which files are not a robots.txt.
#[test]
fn a_file_that_is_not_a_robots_txt_is_rejected_even_without_a_gate() {
    let kept = |live: &LiveRobots| match &live.status().last_reload.outcome {
        ReloadOutcome::Kept { rejection, .. } => rejection.kind,
        other => panic!("{other:?}"),
    };
    for (text, kind) in [("404: Not Found", RejectionKind::NoField), ("<br />\n<b>Warning</b>", RejectionKind::Html)] {
        let rejection = LiveRobots::text(text).open().unwrap_err();
        assert_eq!(rejection.kind, kind, "{text:?}");
        let site = Site::new(text);
        assert_eq!(LiveRobots::file(site.path()).open().unwrap_err().kind, kind, "{text:?}");
        site.write(OPEN);
        // The file is also rejected without a gate.
        let live = LiveRobots::file(site.path()).poll_every(PATIENCE * 100).open().unwrap();
        site.write(text);
        let _ = live.reload_blocking();
        assert_eq!((kept(&live), body(&live).as_deref()), (kind, Some(OPEN)), "{text:?}");
        if kind == RejectionKind::NoField {
            let said = live.status().last_reload.to_string();
            assert!(said.contains("the file is not a robots.txt: it has no field that crawlers know"), "{said}");
            assert!(said.contains("write \"User-agent: *\" with an empty \"Disallow:\""), "{said}");
        }
    }
}

#[test]
fn odd_files_with_a_known_field_are_accepted() {
    for text in
        ["# nothing is restricted\n", "\u{feff}User-agent: *\rDisallow: /cart\r", "user-agent *\ndisallow /cart\n"]
    {
        let site = Site::new(text);
        assert_eq!(body(&site.start()).as_deref(), Some(text), "{text:?}");
    }
}

#[test]
fn a_version_that_removes_all_groups_is_held() {
    let how = "write \"User-agent: *\" with an empty \"Disallow:\"";
    let text = "# nothing is restricted\n";
    let site = Site::new(OPEN);
    let live = site.start();
    site.write(text);
    let _ = live.reload_blocking();
    let status = live.status();
    assert_eq!((status.condition(), body(&live).as_deref()), (Condition::Gated, Some(OPEN)), "{text:?}");
    let objection = status.pending.as_ref().unwrap().objections[0].clone();
    assert_eq!(objection.kind, ObjectionKind::Opening);
    assert!(objection.to_string().contains(how), "{objection}");
    assert!(status.last_reload.to_string().contains(how) && live.history().last().unwrap().detail.contains(how));
    // The version is also held after a restart, until it is accepted.
    drop(live);
    let live = site.start();
    assert_eq!((live.status().condition(), body(&live).as_deref()), (Condition::Gated, Some(OPEN)));
    live.accept(&VersionHash::of(text.as_bytes()).into()).unwrap();
    assert_eq!(body(&live).as_deref(), Some(text));
    drop(live);
    assert_eq!(body(&site.start()).as_deref(), Some(text));
    let site = Site::new(OPEN);
    let live = site.start();
    site.write("User-agent: *\nDisallow:\n");
    let _ = live.reload_blocking();
    assert_eq!(live.status().condition(), Condition::Live, "this is how to restrict nothing");
}
