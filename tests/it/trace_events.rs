//! The events of the feature `tracing`. Targets and levels are documented for filters.

use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
#[cfg(feature = "axum08")]
use http::Uri;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tower::{Layer, ServiceExt, service_fn};
use tower_robots::layer::{FieldRule, RobotsLayer, Signals, UsageField};
use tower_robots::live::{Enforcement, Gate, KillSwitch, LiveRobots};
use tower_robots::parts::OriginalRequest;
use tower_robots::policy::{Crawlers, IdentityNeeded, Impostors, Mode, Override, Policy, PolicyBuilder, RateMode};
use tower_robots::source::{Directory, HostMap};
use tracing::Level;

use crate::events::{Emitted, Fields, events, events_with_fields};

#[test]
fn reload_events_have_their_own_target_and_a_rejection_is_a_warning() {
    let events = events(|| {
        let live = LiveRobots::text("User-agent: *\nDisallow: /cart\n").open().unwrap();
        live.publish_blocking("<html>").unwrap_err();
    });
    let [(Level::INFO, "tower_robots::reload", live), (Level::WARN, "tower_robots::reload", rejected)] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert!(live.ends_with("is live") && rejected.contains("HTML"), "{events:?}");
}

#[test]
fn reload_events_contain_the_mode_and_how_to_accept_a_pending_version() {
    let events = events_with_fields(|| {
        let live = LiveRobots::text("User-agent: *\nDisallow: /cart\n").gate(Gate::new()).open().unwrap();
        live.publish_blocking("User-agent: *\nDisallow: /\n").unwrap_err();
        live.set_policy(Policy::builder().mode(Mode::Refuse).build());
        live.publish_blocking("User-agent: *\nDisallow: /cart\nDisallow: /x\n").unwrap();
    });
    let of = |word: &str| {
        let has_word = |(_, _, Fields(fields)): &&Emitted<Fields>| fields["message"].contains(word);
        let (level, _, Fields(fields)) = events.iter().rfind(has_word).unwrap();
        (*level, fields["message"].clone(), fields.get("mode").cloned())
    };
    let (level, text, mode) = of("is held until accepted");
    assert!(text.ends_with("; if the version is intended, accept it with LiveRobots::accept"), "{text}");
    assert_eq!((level, mode.as_deref()), (Level::WARN, Some("observe")));
    let (level, text, mode) = of("is live");
    assert!(text.ends_with("is live"), "{text}");
    assert_eq!((level, mode.as_deref()), (Level::INFO, Some("refuse")));
}

/// Lines that crawlers misread cause a warning at the start, which contains the line numbers. An
/// override for an unknown crawler also causes a warning, at the start and in a later policy.
#[test]
fn errors_in_a_file_and_unknown_crawlers_cause_warnings() {
    let misspelled = || Policy::builder().with_override(Override::agent("Googelbot", Mode::Off).unwrap());
    let policy = misspelled().build();
    let file = "User-agent: *\nDisalow: /a\nDisallow: private/\nDisallow /x\n";
    let events = events(|| drop(LiveRobots::text(file).policy(policy).open().unwrap()));
    let [(Level::WARN, "tower_robots::reload", live), (Level::WARN, "tower_robots::reload", name)] = &events[..] else {
        panic!("{events:?}");
    };
    for want in ["is live; 1 error and ", "3:11: error: ", "2:1: warning: "] {
        assert!(live.contains(want), "{want}: {live}");
    }
    assert!(name.contains("the override for \"googelbot\" has no effect"), "{name}");
    assert!(name.ends_with("did you mean \"Googlebot\"?"), "{name}");

    let limited = Override::agent("bingbott", RateMode::Refuse).unwrap();
    let of_operator = |name: &str| Override::crawlers(Crawlers::Operator(name.into()), Mode::Off);
    let exempt = ["GPTBott", "Google-Extended", "GPTBot", "Perplexity"];
    let policy = misspelled().with_rate_override(limited).exempt_agents(exempt).unwrap();
    let policy = policy.exempt_networks(["10.0.0.0/8", "::/0"]).unwrap();
    let policy = ["openai", "OpenIA", "Nobody"].into_iter().map(of_operator).fold(policy, PolicyBuilder::with_override);
    let policy = policy.build();
    let live = LiveRobots::text("User-agent: *\nDisallow: /a\n").open().unwrap();
    let events = crate::events::events(|| live.set_policy(policy));
    assert_eq!(events.len(), 8, "{events:?}");
    for want in [
        "the network ::/0 is exempt, so no request from it is judged",
        "the override for operator \"OpenIA\" has no effect, because no crawler in the registry has this operator: did \
         you mean \"OpenAI\"?",
        "the override for operator \"Nobody\" has no effect, because no crawler in the registry has this operator",
        "override for \"googelbot\"",
        "rate override for \"bingbott\"",
        "exemption for \"gptbott\"",
        "exemption for \"perplexity\" only affects requests that contain exactly this name, because it is the name of an \
         operator, not of a crawler: name each of its crawlers, or add an override for the operator",
        "exemption for \"google-extended\" has no effect, because this name never occurs in requests",
    ] {
        let is_warned = |(level, _, text): &Emitted| *level == Level::WARN && text.contains(want);
        assert!(events.iter().any(is_warned), "{want}: {events:?}");
    }
}

/// A path pattern is a prefix, so `/` is not only the home page.
#[test]
fn exempt_patterns_that_match_every_path_cause_a_warning() {
    for (pattern, is_warned) in [
        ("/", true),
        ("*", true),
        ("/*", true),
        ("/*$", true),
        ("/$", false),
        ("*/$", false),
        ("/health", false),
        ("/*.css$", false),
    ] {
        let policy = Policy::builder().exempt_paths([pattern, "/open"]).unwrap().build();
        let events = events(|| drop(LiveRobots::text("User-agent: *\nDisallow: /a\n").policy(policy).open().unwrap()));
        let is_warning = |(level, _, text): &&Emitted| {
            *level == Level::WARN && text.ends_with("to exempt only the home page, write \"/$\"")
        };
        assert_eq!(events.iter().filter(is_warning).count(), usize::from(is_warned), "{pattern}: {events:?}");
    }
}

/// A delay above the first group does not belong to any group.
#[test]
fn a_delay_that_limits_no_request_causes_a_warning() {
    const WITHOUT: &str = "the rate mode \"refuse\" does not limit any request, because no group of the robots.txt has";
    const ABOVE: &str = "the Crawl-delay in line 1 does not limit any request, because it is above the first group";
    let group = "User-agent: *\nDisallow: /a\n";
    let limited = format!("{group}Crawl-delay: 2\n");
    for (file, rate, warning) in [
        (format!("{group}Crawl-delay: soon\n"), RateMode::Refuse, Some(WITHOUT)),
        (format!("Crawl-delay: 2\n{group}"), RateMode::Refuse, Some(ABOVE)),
        (format!("Crawl-delay: 2\n{limited}"), RateMode::Observe, Some(ABOVE)),
        (limited.clone(), RateMode::Refuse, None),
        (format!("Crawl-delay: 2\n{limited}"), RateMode::Off, None),
    ] {
        let live = LiveRobots::text(&limited).policy(Policy::builder().mode(Mode::Refuse).rate(rate)).open().unwrap();
        let events = events(|| drop(live.publish_blocking(&file)));
        let is_warning =
            |(level, _, text): &&Emitted| *level == Level::WARN && text.contains("does not limit any request");
        let warned: Vec<_> = events.iter().filter(is_warning).collect();
        assert_eq!(warned.len(), usize::from(warning.is_some()), "{file}: {events:?}");
        assert!(warned.iter().all(|(.., text)| text.contains(warning.unwrap_or_default())), "{file}: {events:?}");
    }
}

/// The exemption decides, unless it needs evidence that the client lacks.
#[test]
fn an_override_for_an_exempt_crawler_causes_a_warning() {
    let of_googlebot = |needed| {
        let policy = Policy::builder().mode(Mode::Refuse).identity_needed(needed).exempt_agents(["Googlebot"]).unwrap();
        policy.with_override(Override::agent("Googlebot", Mode::Refuse).unwrap())
    };
    for (needed, is_warned) in [(IdentityNeeded::Claimed, true), (IdentityNeeded::Verified, false)] {
        let live = LiveRobots::text("User-agent: *\nDisallow: /a\n").policy(of_googlebot(needed)).open().unwrap();
        let warned = live.snapshot().settings_without_effect();
        let want = "the override for agent \"googlebot\" has no effect, because this crawler is exempt: remove the \
                    exemption or the override, or exempt the crawler only if its identity is verified";
        assert_eq!(warned, if is_warned { vec![want] } else { vec![] });
    }
}

/// A list of methods replaces the default list.
#[test]
fn a_list_of_methods_without_get_causes_a_warning() {
    for (methods, is_warned) in [(&["POST"][..], true), (&["HEAD"], true), (&["get", "post"], false), (&["GET"], false)]
    {
        let policy = Policy::builder().wildcard_methods(methods).unwrap().build();
        let events = events(|| drop(LiveRobots::text("User-agent: *\nDisallow: /a\n").policy(policy).open().unwrap()));
        let is_warning = |(level, _, text): &&Emitted| {
            *level == Level::WARN && text.contains("do not apply to GET, because wildcard_methods leaves it out")
        };
        assert_eq!(events.iter().filter(is_warning).count(), usize::from(is_warned), "{methods:?}: {events:?}");
    }
}

/// An override that has ended causes a warning when the site is opened and when the policy is set,
/// but not at each reload.
#[test]
fn an_override_that_has_ended_causes_a_warning_but_not_at_each_reload() {
    let past = UNIX_EPOCH + Duration::from_secs(784_111_777);
    let rate = Override::agent("bingbot", RateMode::Refuse).unwrap().until(past);
    let later = Override::agent("CCBot", Mode::Off).unwrap().until(SystemTime::now() + Duration::from_secs(3600));
    let policy = Policy::builder().with_override(Override::agent("GPTBot", Mode::Off).unwrap().until(past));
    let policy = policy.with_override(later).with_rate_override(rate).build();
    let open = || LiveRobots::text("User-agent: *\nDisallow: /a\n").policy(policy.clone()).open().unwrap();
    let warned = |work: &dyn Fn()| {
        let is_warned = |(level, _, text): &Emitted| *level == Level::WARN && text.contains("any effect");
        events(work).into_iter().filter(is_warned).map(|(_, _, text)| text).collect::<Vec<_>>()
    };
    let of =
        |over: &str| format!("inline: the {over} ended Sun, 06 Nov 1994 08:49:37 GMT and no longer has any effect");
    let want = [of("override for agent \"gptbot\""), of("rate override for agent \"bingbot\"")];
    assert_eq!(warned(&|| drop(open())), want);
    let live = open();
    assert_eq!(warned(&|| live.set_policy(policy.clone())), want);
    assert_eq!(warned(&|| drop(live.publish_blocking("User-agent: *\nDisallow: /b\n").unwrap())), Vec::<String>::new());
}

/// The policy of a folder applies to all of its files. An override that affects none of the files
/// causes one warning.
#[test]
fn an_override_that_applies_to_some_file_of_a_folder_causes_no_warning() {
    let folder = tempfile::tempdir().unwrap();
    for (name, group) in [("a.test", "*\nDisallow: /drafts"), ("b.test", "Gogglebot\nDisallow: /private")] {
        std::fs::write(folder.path().join(format!("{name}.txt")), format!("User-agent: {group}\n")).unwrap();
    }
    let patterns = ["/drafts", "/nowhere"].map(|pattern| Override::pattern(pattern, Mode::Refuse).unwrap());
    let agents = ["Gogglebot", "Googelbot"].map(|agent| Override::agent(agent, Mode::Off).unwrap());
    let policy = patterns.into_iter().chain(agents).fold(Policy::builder(), |policy, over| policy.with_override(over));
    let policy = policy.build();
    let directory = Directory::new(folder.path()).each(move |_, live| live.policy(policy.clone()));
    let events = events(|| drop(directory.open().unwrap()));
    let of_policy = |(_, target, text): &Emitted| text.contains("has no effect").then(|| (*target, text.clone()));
    let warned: Vec<_> = events.iter().filter_map(of_policy).collect();
    let [(first, name), (second, rule)] = &warned[..] else { panic!("{events:?}") };
    assert_eq!([*first, *second], ["tower_robots::directory"; 2]);
    assert!(name.ends_with("did you mean \"Googlebot\"?") && name.contains("the override for \"googelbot\""), "{name}");
    assert!(rule.contains("the override for pattern \"/nowhere\" has no effect"), "{rule}");
}

/// An override for a path that is not a rule of the file has no effect. If a switch was off before
/// the start, every request passes.
#[test]
fn an_override_without_a_matching_rule_and_a_switch_set_to_off_cause_warnings() {
    let of = |pattern: &str| Policy::builder().with_override(Override::pattern(pattern, Mode::Refuse).unwrap()).build();
    let open = |policy| LiveRobots::text("User-agent: *\nDisallow: /drafts\nAllow: /open\n").policy(policy);
    for pattern in ["/drafts/", "/open"] {
        let events = events(|| drop(open(of(pattern)).open().unwrap()));
        let [_, (Level::WARN, "tower_robots::reload", text)] = &events[..] else { panic!("{events:?}") };
        let want = format!(
            "the override for pattern \"{pattern}\" has no effect, because no Disallow line of the robots.txt has this pattern"
        );
        assert!(text.contains(&want), "{text}");
    }
    assert_eq!(events(|| drop(open(of("/%64rafts")).open().unwrap())).len(), 1);

    let switch = KillSwitch::default();
    switch.set_enforcement(Enforcement::Off);
    let events = events(|| drop(open(of("/drafts")).kill_switch(&switch).open().unwrap()));
    let [(Level::INFO, _, found), _, (Level::WARN, _, text)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(found, "inline: enforcement of every site is switched off");
    assert!(text.contains("enforcement is switched off: every request passes without being judged"), "{text}");
}

/// The mode and the kill switch immediately change the responses to crawlers.
#[test]
fn mode_changes_and_kill_switch_changes_are_events() {
    let switch = KillSwitch::default();
    let live = LiveRobots::text("User-agent: *\nDisallow: /a\n").kill_switch(&switch).open().unwrap();
    let events = events(|| {
        live.set_policy(Policy::builder().mode(Mode::Refuse).build());
        live.set_policy(Policy::builder().mode(Mode::Refuse).build());
        switch.set_enforcement(Enforcement::Off);
        live.set_enforcement(Enforcement::Off).unwrap();
    });
    let told: Vec<_> = events.iter().map(|(level, target, text)| (*level, *target, text.as_str())).collect();
    let event = |text| (Level::INFO, "tower_robots::reload", text);
    assert_eq!(
        told,
        [
            event("inline: mode: observe → refuse"),
            event("inline: enforcement of every site is switched off"),
            event("inline: enforcement of this site is switched off")
        ]
    );
}

/// A new policy has the default mode if the application does not set one.
#[test]
fn a_policy_with_a_milder_mode_causes_a_warning() {
    fn health() -> PolicyBuilder {
        Policy::builder().exempt_paths(["/health$"]).unwrap()
    }
    let forgotten: fn(&LiveRobots) = |live| live.set_policy(health().build());
    for (change, is_warned) in [
        (forgotten, true),
        (|live| live.set_policy(Policy::from(Mode::Tag)), true),
        (|live| live.set_policy(health().mode(Mode::Refuse).build()), false),
        (|live| live.set_mode(Mode::Observe), false),
        (|live| live.update_policy(|policy| policy.mode = Mode::Off), false),
    ] {
        let live = LiveRobots::text("User-agent: *\nDisallow: /a\n").mode(Mode::Refuse).open().unwrap();
        let events = events(|| change(&live));
        let is_warning = |(level, _, text): &&Emitted| *level == Level::WARN && text.contains("the milder mode");
        assert_eq!(events.iter().filter(is_warning).count(), usize::from(is_warned), "{events:?}");
    }
}

/// A crawler could otherwise bypass the rules by sending another host.
#[test]
fn each_host_without_a_site_causes_one_warning_up_to_a_limit() {
    let (live, _) = drafts();
    let mut hosts = HostMap::new();
    hosts.insert("shop.example", live.clone()).unwrap();
    let request = |host: &str| {
        let mut request = by_gptbot("/drafts/x");
        request.headers_mut().insert("host", host.parse().unwrap());
        request
    };
    let layer = RobotsLayer::new(hosts.clone());
    let events = events_with_fields(|| {
        for host in ["127.0.0.1", "www.shop.example", "WWW.shop.example", "127.0.0.1"] {
            assert_eq!(status(layer.clone(), request(host)), StatusCode::OK, "{host}");
        }
        assert_eq!(status(layer.clone(), request("shop.example")), StatusCode::FORBIDDEN);
    });
    let warned: Vec<_> = events.iter().filter(|(level, ..)| *level == Level::WARN).collect();
    let [(_, "tower_robots::layer", Fields(scanned)), (_, "tower_robots::layer", Fields(missed))] = &warned[..] else {
        panic!("{events:?}")
    };
    assert_eq!([&*scanned["host"], &*missed["host"]], ["\"127.0.0.1\"", "\"www.shop.example\""]);
    assert!(missed["message"].contains("no robots.txt applies to the request"), "{missed:?}");
    // A client can send any host.
    let events = events_with_fields(|| {
        for at in 0..99 {
            assert_eq!(status(layer.clone(), request(&format!("{at}.test"))), StatusCode::OK);
        }
    });
    assert_eq!(events.len(), 14, "{events:?}");
    let service = RobotsLayer::new(hosts.clone()).robots_txt_service();
    let events = crate::events::events(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let response = runtime.block_on(service.oneshot(request("www.shop.example"))).unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
    });
    assert_eq!(events.len(), 1, "{events:?}");
    hosts.insert("*", live).unwrap();
    assert_eq!(status(RobotsLayer::new(hosts), request("127.0.0.1")), StatusCode::FORBIDDEN);
}

/// Without an address all clients share one bucket.
#[test]
fn rate_limited_requests_without_an_address_cause_one_warning() {
    let address = |layer: RobotsLayer| layer.address_from(|_| Some([192, 0, 2, 1].into()));
    let as_it_is = |layer: RobotsLayer| layer;
    for (layer, shared) in [(address as fn(RobotsLayer) -> RobotsLayer, 0), (as_it_is, 2)] {
        let policy = Policy::builder().mode(Mode::Refuse).rate(RateMode::Refuse).build();
        let live = LiveRobots::text("User-agent: GPTBot\nCrawl-delay: 9\n").policy(policy).open().unwrap();
        let layer = layer(RobotsLayer::new(live.clone()));
        let events = events(|| (0..2).for_each(|_| assert_eq!(status(layer.clone(), by_gptbot("/x")), StatusCode::OK)));
        assert_eq!(live.status().without_address, shared);
        let warned = events.iter().filter(|(_, _, text)| text.contains("set RobotsLayer::address_from"));
        assert_eq!(warned.count(), usize::from(shared > 0), "{events:?}");
    }
}

#[test]
fn unchecked_claims_cause_one_warning_if_impostors_are_refused() {
    for (impostors, warned) in [(Impostors::Observe, 0), (Impostors::Refuse, 2)] {
        let policy = Policy::builder().mode(Mode::Refuse).impostors(impostors).build();
        let live = LiveRobots::text("User-agent: *\nDisallow: /b\n").policy(policy).open().unwrap();
        let layer = RobotsLayer::new(live.clone());
        let events = events(|| {
            for agent in [
                "Googlebot/2.1",
                "Googlebot/2.1",
                "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0",
            ] {
                let request = Request::get("/a").header("user-agent", agent).body(()).unwrap();
                let _ = layer.decide(&OriginalRequest::of(&request)).respond(None);
            }
        });
        assert_eq!(live.status().unchecked_claims, warned);
        let said: Vec<_> = events
            .iter()
            .filter(|(level, _, text)| *level == Level::WARN && text.contains("give the layer a Verifier"))
            .collect();
        assert_eq!(said.len(), usize::from(warned > 0), "{events:?}");
        // The warning also covers a function that is set but returns `None`.
        let unanswered = "but nothing checks this, so impostors pass: ";
        let answering = "or a RobotsLayer::identity_from that returns a result for every request";
        assert!(said.iter().all(|(_, _, text)| text.contains(unanswered) && text.ends_with(answering)), "{events:?}");
    }
}

#[test]
fn a_host_with_sites_for_both_default_ports_causes_a_warning() {
    let live = LiveRobots::text("User-agent: *\nDisallow: /b\n").open().unwrap();
    for (patterns, warned) in [
        (&["shop.example:80", "shop.example:443"][..], 1),
        (&["shop.example:80", "shop.example:443", "shop.example"], 0),
        (&["shop.example:80", "shop.example:443", "*"], 0),
        (&["shop.example:8080", "shop.example:443"], 0),
    ] {
        let mut hosts = HostMap::new();
        for pattern in patterns {
            hosts.insert(pattern, live.clone()).unwrap();
        }
        let events = events(|| drop(RobotsLayer::new(hosts)));
        assert_eq!(events.len(), warned, "{patterns:?} {events:?}");
        assert!(events.iter().all(|(_, _, text)| text.contains("insert \"shop.example\" into the HostMap")));
    }
}

#[test]
fn usage_fields_for_a_file_with_only_content_signals_cause_a_warning() {
    for (lines, usage, warned) in [
        ("Content-Signal: ai-train=no\n", UsageField::Unanimous, 1),
        ("Content-Signal: ai-train=no\n", UsageField::ByAgent, 1),
        ("Content-Signal: ai-train=no\n", UsageField::Off, 0),
        ("Content-Signal: ai-train=no\nContent-Usage: train-ai=n\n", UsageField::Unanimous, 0),
        ("Allow: /\n", UsageField::Unanimous, 0),
    ] {
        let live = LiveRobots::text(format!("User-agent: *\nDisallow: /b\n{lines}")).open().unwrap();
        let events = events(|| drop(RobotsLayer::new(live).signals(Signals::default().usage(usage))));
        assert_eq!(events.len(), warned, "{lines:?} {usage} {events:?}");
        assert!(events.iter().all(|(_, _, text)| text.contains("but no Content-Usage lines: also write")));
    }
}

#[test]
fn response_fields_that_no_response_gets_cause_one_warning() {
    let field = FieldRule::new("/", "X-Robots-Tag", "noindex").unwrap();
    let live = LiveRobots::text("User-agent: *\nDisallow: /b\n").open().unwrap();
    let layer = RobotsLayer::new(live).signals(Signals::default().field(field));
    let warned = |ask: &dyn Fn(&mut Request<()>)| {
        let events = events(|| (0..2).for_each(|_| ask(&mut by_gptbot("/x"))));
        events.iter().filter(|(level, _, text)| *level == Level::WARN && text.contains("signals")).count()
    };
    let taken = |request: &mut Request<()>| {
        let mut answer = layer.decide(&OriginalRequest::of(request)).respond(None);
        assert!(answer.response_fields.take().is_some());
        assert!(answer.respond(request).is_none());
    };
    assert_eq!(warned(&taken), 0);
    assert_eq!(warned(&|request| assert!(layer.respond(request).is_none())), 1);
}

/// Tests a policy against impostors with a layer that checks claims but finds no addresses.
#[cfg(feature = "verify")]
#[test]
fn claims_checked_without_an_address_cause_one_warning() {
    use tower_robots::agent::Registry;
    use tower_robots::layer::SenderCheck;
    use tower_robots::source::evidence::Verifier;
    use tower_robots::source::fetch::Fetcher;

    let fetcher = Fetcher::builder().connect_to(|_, _| Some(("127.0.0.1".into(), 9))).start().unwrap();
    let verifier = Verifier::builder(Registry::builtin()).fetcher(&fetcher).without_names().start().unwrap();
    let address: fn(RobotsLayer) -> RobotsLayer = |layer| layer.address_from(|_| Some([10, 0, 0, 1].into()));
    let none_found: fn(RobotsLayer) -> RobotsLayer = |layer| layer.address_from(|_| None);
    for (layer, warned) in [(address, 0), (none_found, 2), (|layer| layer, 2)] {
        let policy = Policy::builder().mode(Mode::Refuse).impostors(Impostors::Refuse).build();
        let live = LiveRobots::text("User-agent: *\nDisallow: /b\n").policy(policy).open().unwrap();
        let layer = layer(RobotsLayer::new(live.clone()).verifier(SenderCheck::new(&verifier)));
        let events = events(|| {
            for agent in ["Googlebot/2.1", "Googlebot/2.1", "Mozilla/5.0 Firefox/143.0"] {
                let request = Request::get("/a").header("user-agent", agent).body(()).unwrap();
                let _ = layer.decide(&OriginalRequest::of(&request)).respond(None);
            }
        });
        assert_eq!(live.status().without_address, warned);
        let said = events.iter().filter(|(_, target, text)| {
            *target == "tower_robots::layer" && text.contains("address of a client is unknown")
        });
        assert_eq!(said.count(), usize::from(warned > 0), "{events:?}");
    }
}

#[test]
fn disallowed_and_rate_limited_requests_have_their_own_messages() {
    let file = "User-agent: GPTBot\nCrawl-delay: 60\nDisallow: /cart\n";
    let policy = Policy::builder().mode(Mode::Refuse).rate(RateMode::Refuse).build();
    let layer = RobotsLayer::new(LiveRobots::text(file).policy(policy).open().unwrap());
    let layer = layer.address_from(|_| Some([192, 0, 2, 1].into())).robots_txt_served_elsewhere();
    let request = |path: &str| {
        let request = Request::get(path).header("user-agent", "GPTBot/1.2").body(()).unwrap();
        let _ = layer.decide(&OriginalRequest::of(&request)).respond(None);
    };
    let events = events_with_fields(|| {
        request("/cart");
        (0..100).for_each(|_| request("/"));
    });
    assert!(
        events.iter().all(|(level, target, _)| (*level, *target) == (Level::INFO, "tower_robots::layer")),
        "{events:?}"
    );
    let said =
        |event: &Emitted<Fields>| ["message", "decision", "reason", "would"].map(|field| event.2.0[field].clone());
    let disallowed = ["robots.txt disallows the request", "\"refuse\"", "\"disallowed\"", "\"refuse\""];
    let limited =
        ["the request comes sooner than the crawl delay of its group allows", "\"limit\"", "\"limited\"", "\"limit\""];
    assert_eq!([said(&events[0]), said(events.last().unwrap())], [disallowed, limited]);
}

#[test]
fn a_directory_reports_its_hosts_and_skipped_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.example.txt"), "User-agent: *\nDisallow: /cart\n").unwrap();
    std::fs::write(folder.path().join("no host.txt"), "User-agent: *\n").unwrap();
    let events = events(|| drop(Directory::new(folder.path()).open().unwrap()));
    let of_directory: Vec<_> = events.iter().filter(|(_, target, _)| *target == "tower_robots::directory").collect();
    for (level, text) in [(Level::INFO, "shop.example"), (Level::WARN, "no host.txt")] {
        let is_reported = of_directory.iter().any(|(at, _, message)| *at == level && message.contains(text));
        assert!(is_reported, "{text}: {events:?}");
    }
}

fn drafts() -> (LiveRobots, RobotsLayer) {
    let policy = Policy::builder().mode(Mode::Refuse).build();
    let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /drafts/\n").policy(policy).open().unwrap();
    (live.clone(), RobotsLayer::new(live))
}

fn by_gptbot(target: &str) -> Request<()> {
    let agent =
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
    Request::get(target).header("user-agent", agent).body(()).unwrap()
}

fn status(layer: RobotsLayer, request: Request<()>) -> StatusCode {
    let service = layer.layer(service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))));
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(service.oneshot(request)).unwrap().status()
}

#[test]
fn the_event_of_a_refused_request_contains_host_path_and_rule() {
    // Registers the event before the subscriber is set. Otherwise, a thread of another test that
    // registers the event at the same time could leave it without a subscriber.
    status(drafts().1, by_gptbot("/drafts/"));
    let events = events_with_fields(|| {
        let (_, layer) = drafts();
        let mut request = by_gptbot("/drafts/%0Ax?token=secret");
        request.headers_mut().insert("host", "example.com".parse().unwrap());
        status(layer.clone(), request);
        status(layer, by_gptbot("/"));
    });
    let of_layer: Vec<_> = events.iter().filter(|(_, target, _)| *target == "tower_robots::layer").collect();
    let [(_, _, Fields(event))] = of_layer[..] else { panic!("{of_layer:?}") };
    for (field, want) in [
        ("agent", "\"GPTBot\""),
        ("host", "\"example.com\""),
        ("path", "/drafts/%0Ax"),
        ("rule", "\"/drafts/\""),
        ("line", "2"),
        ("decision", "\"refuse\""),
        ("reason", "\"disallowed\""),
        ("would", "\"refuse\""),
        ("message", "robots.txt disallows the request"),
    ] {
        assert_eq!(event.get(field).map(String::as_str), Some(want), "{field}");
    }
}

#[cfg(feature = "axum08")]
#[test]
fn the_first_stripped_target_causes_a_warning() {
    let (live, layer) = drafts();
    let events = events(|| {
        for _ in 0..2 {
            let mut request = by_gptbot("/x");
            request.extensions_mut().insert(axum::extract::OriginalUri(Uri::from_static("/drafts/x")));
            assert_eq!(status(layer.clone(), request), StatusCode::OK);
        }
    });
    assert_eq!(live.status().stripped_targets, 2);
    let [(_, "tower_robots::layer", message)] = &events[..] else { panic!("{events:?}") };
    assert!(message.contains("use RobotsLayer::for_axum08 in this router"), "{events:?}");
}

#[cfg(feature = "axum08")]
#[test]
fn the_first_request_judged_only_in_a_nested_router_causes_a_warning() {
    let (live, _) = drafts();
    let pages = axum::Router::new().route("/x", axum::routing::get(async || "a page"));
    let app: axum::Router = axum::Router::new().nest("/a", pages.layer(RobotsLayer::for_axum08(&live)));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let events = events(|| {
        for _ in 0..2 {
            let request = by_gptbot("/a/x").map(|()| axum::body::Body::empty());
            assert_eq!(runtime.block_on(app.clone().oneshot(request)).unwrap().status(), StatusCode::OK);
        }
    });
    assert_eq!(live.status().nested_only, 2);
    let [(_, "tower_robots::layer", message)] = &events[..] else { panic!("{events:?}") };
    assert!(message.contains("put the layer on the outermost router"), "{events:?}");
}
