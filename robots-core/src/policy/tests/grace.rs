//! Tests the grace periods of new rules.

use super::*;

#[test]
fn a_path_that_the_previous_version_allowed_has_a_grace_period() {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let hours = |hours: u64| Duration::from_secs(3600 * hours);
    let old = Site::new("User-agent: *\nDisallow: /old\nDisallow: /shop/\nAllow: /shop/open\n").rules;
    let site = Site::new(
        "User-agent: *\nDisallow: /new\nDisallow: /shop/\n\nUser-agent: GPTBot\nDisallow: /old\nDisallow: /all\n",
    );
    let mut grace = Grace::new(hours(24), start + hours(100));
    grace.add(start, old.into());
    let policy = refusing().build();
    let at = |hour: u64, fields: &[&str], target: &str| {
        let clock = || start + hours(hour);
        let facts = RequestFacts { clock: Some(&clock), ..RequestFacts::of_target("GET", target.as_bytes()) };
        let agents: Vec<_> = fields.iter().map(|field| site.recognizer.identify(field.as_bytes())).collect();
        let decision = policy.decide_with_grace(&site.rules, Some(&grace), &agents, facts);
        (decision.action, decision.reason)
    };
    let in_grace = (Action::Pass, Reason::Grace);
    for (fields, target, then) in [
        (&[UNKNOWN][..], "/new", in_grace),
        (&[UNKNOWN], "/shop/x", REFUSED),
        // The rule is not new, but the `Allow` that outweighed it has been removed.
        (&[UNKNOWN], "/shop/open", in_grace),
        // The rule has moved to a group for GPTBot.
        (&[GPTBOT], "/old", REFUSED),
        (&[GPTBOT], "/all", in_grace),
        (&[GPTBOT, UNKNOWN], "/shop/x", REFUSED),
        (&[UNKNOWN, UNKNOWN], "/new", in_grace),
    ] {
        assert_eq!(at(101, fields, target), then, "{target}");
        assert_eq!(at(124, fields, target), REFUSED, "{target}");
    }
    assert_eq!(grace.end(), start + hours(124));
    // The rules with a grace period are `/new` and, for GPTBot, `/all`. The rule `/shop/` is not
    // counted, because only the paths that the removed `Allow` rule allowed have a grace period.
    assert_eq!([101, 124].map(|hour| grace.count_rules(start + hours(hour), &site.rules)), [2, 0]);
}

#[test]
fn each_rule_in_its_grace_period_is_counted_once() {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let length = Duration::from_secs(100);
    for (old, new, count) in [
        ("", "User-agent: *\nDisallow: /a\nDisallow: /b$\nAllow: /c\nDisallow:\n", 2),
        ("", "User-agent: a\nUser-agent: b\nUser-agent: *\nDisallow: /a\nDisallow: /*.pdf\n", 2),
        ("User-agent: *\nDisallow: /a\n", "User-agent: *\nDisallow: /a\nDisallow: /b\n", 1),
        ("User-agent: *\nDisallow: /\n", "User-agent: *\nDisallow: /a\nDisallow: /b\n", 0),
        // The first case adds a crawler to an existing group. The second case replaces `*` with a
        // crawler.
        ("User-agent: a\nDisallow: /a\n", "User-agent: a\nUser-agent: b\nDisallow: /a\n", 1),
        ("User-agent: *\nDisallow: /a\n", "User-agent: b\nDisallow: /a\n", 0),
        // Rules without an effect have no grace period.
        ("", "User-agent: *\nDisallow: /a\nDisallow: /a\nDisallow: /b\nAllow: /b\n", 1),
    ] {
        let site = Site::new(new);
        let mut grace = Grace::new(length, start + length / 2);
        grace.add(start - length, Site::new(old).rules.into());
        assert_eq!(grace.count_rules(start + length, &site.rules), count, "{old:?} {new:?}");
        assert_eq!(grace.count_rules(start + length * 2, &site.rules), 0);
    }
}

#[test]
fn a_grace_period_lasts_until_exactly_its_end_time() {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let old = Site::new("User-agent: GPTBot\nDisallow: /\n").rules;
    let length = Duration::from_secs(100);
    let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
    let at = |grace: &Grace, now: SystemTime| {
        let clock = || now;
        let facts = RequestFacts { clock: Some(&clock), ..RequestFacts::of_target("GET", b"/") };
        refusing().build().decide_with_grace(&site.rules, Some(grace), &agents, facts).reason
    };
    let tick = Duration::from_nanos(1);
    let alone = Grace::new(length, start);
    assert_eq!(at(&alone, start + length - tick), Reason::Grace);
    assert_eq!(at(&alone, start + length), Reason::Disallowed);
    // If an earlier version disallows the path, the grace period ends with the grace period of that
    // version.
    let mut with_earlier = Grace::new(length, start + length / 2);
    with_earlier.add(start, old.into());
    assert_eq!(at(&with_earlier, start + length - tick), Reason::Grace);
    assert_eq!(at(&with_earlier, start + length), Reason::Disallowed);
}

#[test]
fn a_longer_crawl_delay_has_a_grace_period_in_which_the_previous_delay_applies() {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let length = Duration::from_secs(100);
    let file = |delay: &str| format!("User-agent: GPTBot\nCrawl-delay: {delay}\nDisallow:\n");
    for (old, new, during, after) in [
        ("10", "11", Some((RateMode::Refuse, 10)), 11),
        ("10", "4", Some((RateMode::Refuse, 4)), 4),
        ("0", "11", Some((RateMode::Observe, 11)), 11),
        // Both delays are enforced as 30 s.
        ("40", "100", Some((RateMode::Refuse, 30)), 30),
    ] {
        let site = Site::new(&file(new));
        let mut grace = Grace::new(length, start);
        grace.add(start - length, Site::new(&file(old)).rules.into());
        let policy = refusing().rate(RateMode::Refuse).build();
        let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
        let at = |now: SystemTime| {
            let clock = || now;
            let facts = RequestFacts { clock: Some(&clock), ..RequestFacts::of_target("GET", b"/") };
            let rate_limit = policy.decide_with_grace(&site.rules, Some(&grace), &agents, facts).rate_limit;
            rate_limit.map(|rate_limit| (rate_limit.mode, rate_limit.interval.as_secs()))
        };
        assert_eq!(at(start), during, "{old} {new}");
        assert_eq!(at(start + length), Some((RateMode::Refuse, after)), "{old} {new}");
    }
}

/// In every mode, a decision must show what [`Mode::Refuse`] would do, even during a grace period.
#[test]
fn a_decision_shows_the_grace_end_and_the_action_that_follows_it() {
    let (start, length) = (SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000), Duration::from_secs(100));
    let site = Site::new(
        "User-agent: *\nCrawl-delay: 10\nDisallow: /new\n\nUser-agent: Googlebot\nDisallow: /new\nDisallow: /shop\n",
    );
    let grace = Grace::new(length, start);
    let policy = |mode: Mode| Policy::builder().mode(mode).rate(RateMode::Refuse).build();
    let at = |now: SystemTime, mode: Mode, fields: &[&str], target: &str| {
        let clock = || now;
        let facts = RequestFacts { clock: Some(&clock), ..RequestFacts::of_target("GET", target.as_bytes()) };
        let agents: Vec<_> = fields.iter().map(|field| site.recognizer.identify(field.as_bytes())).collect();
        let policy = policy(mode);
        let decision = policy.decide_with_grace(&site.rules, Some(&grace), &agents, facts);
        let late = decision.too_soon(Duration::from_secs(1));
        (decision.would(), late.would(), decision.grace_end)
    };
    let end = Some(start + length);
    for mode in [Mode::Observe, Mode::Tag, Mode::Refuse] {
        for (fields, target, would, too_soon) in [
            (&[UNKNOWN][..], "/new", UnderRefuse::Refuse, UnderRefuse::Refuse),
            (&[GOOGLEBOT], "/new", UnderRefuse::Tag, UnderRefuse::Tag),
            (&[GOOGLEBOT, UNKNOWN], "/new", UnderRefuse::Refuse, UnderRefuse::Refuse),
            // The second agent is allowed, and its group has the delay.
            (&[GOOGLEBOT, UNKNOWN], "/shop", UnderRefuse::Tag, UnderRefuse::Limit),
            (&[UNKNOWN], "/", UnderRefuse::Pass, UnderRefuse::Limit),
        ] {
            assert_eq!(at(start, mode, fields, target), (would, too_soon, end), "{mode} {fields:?} {target}");
            let after = at(start + length, mode, fields, target);
            assert_eq!(after, (would, too_soon, None), "{mode} {fields:?} {target}");
        }
    }
}
