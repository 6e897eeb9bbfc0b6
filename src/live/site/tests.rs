#[path = "../../../tests/simulation/mod.rs"]
mod simulation;

mod publishing;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;
use crate::live::{LiveRobots, ReloadOutcome};

const PATIENCE: Duration = Duration::from_secs(60);

/// A source without content. The tests pass versions to the site themselves.
#[derive(Debug)]
struct Nothing(Arc<str>);

impl Source for Nothing {
    fn load(&self) -> Loaded {
        Err(Rejection::new(RejectionKind::Missing, &self.0))
    }

    fn reload(&self, _: Arc<Completion>) {}
}

fn site(settings: SiteSettings) -> Arc<Site> {
    let origin: Arc<str> = "it".into();
    let settings = SiteSettings { when_missing: WhenMissing::Unavailable, ..settings };
    let site = Site::new(settings, &origin, |_| Arc::new(Nothing(origin.clone())));
    site.start().expect("a site may start without a file");
    site
}

fn live(site: &Arc<Site>) -> LiveRobots {
    LiveRobots::of(site.clone())
}

fn offer(site: &Site, text: &str) -> Reload {
    offer_for(site, Cause::Poll, text)
}

fn offer_for(site: &Site, cause: Cause, text: &str) -> Reload {
    site.offer(cause, Candidate::Version(Version::new(text.as_bytes(), &"it".into(), None)))
}

/// Runs a function on another thread, and panics if the function does not return in time.
fn within_patience<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(run()));
    receiver.recv_timeout(PATIENCE).expect("it does not wait for ever")
}

#[test]
fn two_threads_that_publish_notify_listeners_of_each_version_once_and_in_order() {
    let notified: Arc<Mutex<Vec<VersionHash>>> = Arc::default();
    let reported = notified.clone();
    let listener = move |reload: &Reload, snapshot: &Snapshot| {
        if let ReloadOutcome::Published { hash, .. } = reload.outcome {
            // The other thread may publish now. It must not notify listeners yet.
            thread::yield_now();
            assert_eq!(snapshot.content.as_ref().map(|content| content.hash()), Some(hash));
            reported.lock().push(hash);
        }
    };
    let site = site(SiteSettings { listeners: vec![Box::new(listener)], ..SiteSettings::default() });
    thread::scope(|scope| {
        for writer in ["a", "b"] {
            let site = &site;
            scope.spawn(move || {
                for number in 0..25 {
                    offer(site, &format!("User-agent: *\nDisallow: /{writer}{number}\n"));
                }
            });
        }
    });
    let history = live(&site).history();
    let published = history.iter().filter(|entry| entry.outcome == ReloadOutcomeKind::Published);
    let published: Vec<_> = published.filter_map(|entry| entry.hash).collect();
    assert_eq!(published.len(), 50);
    // The last call may return before the other thread has notified the listener.
    let start = std::time::Instant::now();
    while notified.lock().len() < 50 && start.elapsed() < PATIENCE {
        thread::yield_now();
    }
    assert_eq!(*notified.lock(), published);
}

#[test]
fn listeners_are_notified_of_a_recovery_and_of_a_requested_reload_that_changes_nothing() {
    let notified: Arc<Mutex<Vec<(Cause, ReloadOutcomeKind)>>> = Arc::default();
    let reported = notified.clone();
    let listener = move |reload: &Reload, _: &Snapshot| {
        let reload = (reload.cause, reload.outcome.kind());
        reported.lock().push(reload);
    };
    let site = site(SiteSettings { listeners: vec![Box::new(listener)], ..SiteSettings::default() });
    notified.lock().clear();
    let good = "User-agent: *\nDisallow: /a\n";
    // Each text is offered twice, as if a second poll found the same content as the first.
    for text in [good, "<html>", good] {
        offer(&site, text);
        offer(&site, text);
    }
    offer_for(&site, Cause::Request, good);
    let want = [
        (Cause::Poll, ReloadOutcomeKind::Published),
        (Cause::Poll, ReloadOutcomeKind::Kept),
        (Cause::Poll, ReloadOutcomeKind::Unchanged),
        (Cause::Request, ReloadOutcomeKind::Unchanged),
    ];
    assert_eq!(*notified.lock(), want);
}

#[test]
fn a_listener_can_call_the_site_that_notifies_it_without_a_deadlock() {
    let (sender, receiver) = mpsc::channel();
    let own: Arc<std::sync::OnceLock<Weak<Site>>> = Arc::default();
    let known = own.clone();
    let listener = move |reload: &Reload, _: &Snapshot| {
        let site = known.get().and_then(Weak::upgrade);
        if let (Some(site), ReloadOutcome::Gated { pending, .. }) = (site, &reload.outcome) {
            let status = live(&site).status();
            live(&site).set_check(check::Options::default());
            live(&site).set_gate(Gate::open());
            let elsewhere = site.clone();
            let reloaded = thread::spawn(move || elsewhere.reload(|_| true)).join().expect("no panic");
            let accepted = live(&site).accept(&pending.hash().into());
            let _ = sender.send((status.pending.as_ref().is_some(), reloaded.outcome.kind(), accepted.is_ok()));
        }
    };
    let settings = SiteSettings { gate: Gate::new(), ..SiteSettings::default() };
    let site = site(SiteSettings { listeners: vec![Box::new(listener)], ..settings });
    assert!(own.set(Arc::downgrade(&site)).is_ok());
    let publishing = site.clone();
    within_patience(move || offer(&publishing, "User-agent: *\nDisallow: /\n"));
    let result = receiver.recv_timeout(PATIENCE).expect("the listener is through");
    assert_eq!(result, (true, ReloadOutcomeKind::Kept, true));
    assert!(site.live().is_some(), "what the listener accepted is live");
}

#[test]
fn a_blocking_listener_does_not_delay_other_publications() {
    let (sender, blocked) = mpsc::channel::<()>();
    let (release, receiver) = mpsc::channel::<()>();
    let receiver = Mutex::new(receiver);
    let listener = move |reload: &Reload, _: &Snapshot| {
        if reload.cause != Cause::Start && sender.send(()).is_ok() {
            let _ = receiver.lock().recv();
        }
    };
    let site = site(SiteSettings { listeners: vec![Box::new(listener)], ..SiteSettings::default() });
    let first = site.clone();
    let publishing = thread::spawn(move || offer(&first, "User-agent: *\nDisallow: /a\n"));
    blocked.recv_timeout(PATIENCE).expect("the listener blocks");
    let second = site.clone();
    let reload = within_patience(move || offer(&second, "User-agent: *\nDisallow: /b\n"));
    assert_eq!((reload.outcome.hash(), live(&site).status().live), (site.live(), site.live()));
    drop(blocked);
    drop(release);
    publishing.join().expect("no panic");
}

#[test]
fn a_finished_reload_keeps_no_reference_to_the_site() {
    let live = LiveRobots::text("User-agent: *\nDisallow: /a\n").open().expect("a robots.txt");
    for _ in 0..50 {
        let _ = live.reload_blocking();
        assert_eq!(Arc::strong_count(&live.site), 1, "the thread that reloaded holds it no longer");
    }
}

#[test]
fn a_clock_set_back_does_not_prolong_the_grace_period_and_restarts_it_at_most_once() {
    let (clock, grace) = (crate::live::TestClock::new(), Duration::from_secs(3 * 86400));
    let site = site(SiteSettings { clock: clock.steady(), grace, ..SiteSettings::default() });
    offer(&site, "User-agent: *\nDisallow: /a\n");
    let end = || live(&site).status().grace_end;
    assert_eq!(end(), Some(clock.now() + grace));
    // The clock was ten years ahead when the version went live, and is corrected now.
    clock.go_back(10 * 365 * Duration::from_secs(86400));
    assert_eq!(end(), Some(clock.now() + grace));
    clock.pass(grace - Duration::from_secs(1));
    assert_eq!(end(), Some(clock.now() + Duration::from_secs(1)));
    clock.pass(Duration::from_secs(1));
    assert_eq!(end(), None);
    // The first `set_check` compiles the version again, which corrects the wrong date and starts
    // the grace period. The second `set_check` does not start it again.
    live(&site).set_check(check::Options::default().exempt_paths(["/a"]).expect("a pattern"));
    clock.pass(grace);
    live(&site).set_check(check::Options::default());
    assert_eq!(end(), None);
}
