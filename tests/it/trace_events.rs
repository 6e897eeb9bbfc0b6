//! The events of the feature `tracing`: their targets and levels are documented, so filters can rely on them.

use std::fmt;
use std::sync::{Arc, Mutex};

use http::Request;
use tower_robots::layer::{Original, RobotsLayer};
use tower_robots::live::LiveRobots;
use tower_robots::source::Directory;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Level, target and message of an event.
type Emitted = (Level, &'static str, String);

/// Keeps the events of the library.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Emitted>>>);

struct Message<'m>(&'m mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            *self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tower_robots")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = String::new();
        event.record(&mut Message(&mut message));
        self.0.lock().unwrap().push((*event.metadata().level(), event.metadata().target(), message));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What `work` emits on this thread.
fn events(work: impl FnOnce()) -> Vec<Emitted> {
    let events = Events::default();
    tracing::subscriber::with_default(events.clone(), work);
    let events = events.0.lock().unwrap();
    events.clone()
}

#[test]
fn a_reload_has_a_target_of_its_own_and_a_rejection_is_a_warning() {
    let events = events(|| {
        let live = LiveRobots::inline("User-agent: *\nDisallow: /cart\n").open().unwrap();
        live.publish("<html>").unwrap_err();
    });
    let [(Level::INFO, "tower_robots::reload", live), (Level::WARN, "tower_robots::reload", rejected)] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert!(live.ends_with("is live") && rejected.contains("HTML"), "{events:?}");
}

/// What no crawler reads as it is meant is a warning at the start, with the lines, and so is an override for no crawler.
#[test]
fn errors_of_a_file_and_names_of_no_crawler_are_warnings() {
    use tower_robots::policy::{Mode, Override, Policy};

    let policy = Policy::builder().with_override(Override::agent("Googelbot", Mode::Off).unwrap()).build();
    let file = "User-agent: *\nDisalow: /a\nDisallow: private/\nDisallow /x\n";
    let events = events(|| drop(LiveRobots::inline(file).policy(policy).open().unwrap()));
    let [(Level::WARN, "tower_robots::reload", live), (Level::WARN, "tower_robots::reload", name)] = &events[..] else {
        panic!("{events:?}");
    };
    for want in ["is live; 1 error and ", "3:11: error: ", "2:1: warning: "] {
        assert!(live.contains(want), "{want}: {live}");
    }
    assert!(
        name.contains("the override for \"googelbot\" has no effect") && name.ends_with("did you mean \"Googlebot\"?"),
        "{name}"
    );
}

/// A policy against impostors under a layer that checks no claim.
#[test]
fn claims_that_nothing_checks_are_warned_of_once_where_impostors_are_refused() {
    use tower_robots::policy::{Impostors, Mode, Policy};

    for (impostors, warned) in [(Impostors::Observe, 0), (Impostors::Refuse, 2)] {
        let policy = Policy::builder().mode(Mode::Refuse).impostors(impostors).build();
        let live = LiveRobots::inline("User-agent: *\nDisallow: /b\n").policy(policy).open().unwrap();
        let layer = RobotsLayer::new(live.clone());
        let events = events(|| {
            for agent in [
                "Googlebot/2.1",
                "Googlebot/2.1",
                "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0",
            ] {
                let request = Request::get("/a").header("user-agent", agent).body(()).unwrap();
                let _ = layer.answer(&Original::of(&request));
            }
        });
        assert_eq!(live.status().unchecked_claims, warned);
        let said: Vec<_> = events
            .iter()
            .filter(|(level, _, text)| *level == Level::WARN && text.contains("give the layer a Verifier"))
            .collect();
        assert_eq!(said.len(), usize::from(warned > 0), "{events:?}");
    }
}

#[test]
fn a_disallowed_request_and_one_that_comes_too_soon_have_messages_of_their_own() {
    use tower_robots::policy::{Mode, Policy, RateMode};

    let file = "User-agent: GPTBot\nCrawl-delay: 60\nDisallow: /cart\n";
    let policy = Policy::builder().mode(Mode::Refuse).rate(RateMode::Refuse).build();
    let layer = RobotsLayer::new(LiveRobots::inline(file).policy(policy).open().unwrap());
    let request = |path: &str| {
        let request = Request::get(path).header("user-agent", "GPTBot/1.2").body(()).unwrap();
        let _ = layer.answer(&Original::of(&request));
    };
    let events = events(|| {
        request("/cart");
        (0..100).for_each(|_| request("/"));
    });
    assert!(
        events.iter().all(|(level, target, _)| (*level, *target) == (Level::INFO, "tower_robots::layer")),
        "{events:?}"
    );
    assert_eq!(events[0].2, "robots.txt disallows the request");
    assert_eq!(events.last().unwrap().2, "the request comes sooner than the delay of its group");
}

#[test]
fn a_directory_reports_its_hosts_and_what_it_passes_over() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.example.txt"), "User-agent: *\nDisallow: /cart\n").unwrap();
    std::fs::write(folder.path().join("no host.txt"), "User-agent: *\n").unwrap();
    let events = events(|| drop(Directory::new(folder.path()).open().unwrap()));
    let of_directory: Vec<_> = events.iter().filter(|(_, target, _)| *target == "tower_robots::directory").collect();
    let said =
        |text: &str| of_directory.iter().any(|(level, _, message)| *level == Level::INFO && message.contains(text));
    assert!(said("shop.example") && said("no host.txt"), "{events:?}");
}
