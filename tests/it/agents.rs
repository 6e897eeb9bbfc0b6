//! Complete, real headers and the agents they are recognised as: `tests/cases/headers.jsonl`.
//!
//! A case has `ua`, `class` and `held` (whether `*` applies by the default rule), and if relevant
//! `crawler`, `category` and `tokens`. `names` are the groups of a file, and `group` is the group
//! that applies to the header, or null.

use serde_json::Value;
use tower_robots::agent::{Agent, Category, Class, Obeys, Recognizer, Registry};
use tower_robots::rules::{Fallback, ProductToken, Reading, RobotsTxt};

const CASES: &str = include_str!("../cases/headers.jsonl");

/// Everyday and browser words that real files contain as names, which no browser may match.
const HOSTILE_NAMES: &[&str] =
    &["Mozilla", "bot", "Java", "Google", "Opera", "es", "008", "Code", "Spider", "LCC", "Titan", "Disco", "Chrome"];

fn cases() -> impl Iterator<Item = Value> {
    CASES.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap())
}

fn file(names: &[&str]) -> RobotsTxt {
    let text: String = names.iter().map(|name| format!("User-agent: {name}\nDisallow: /\n\n")).collect();
    RobotsTxt::parse(text.into_bytes())
}

fn recognizer(file: &RobotsTxt) -> Recognizer {
    Recognizer::new(Registry::builtin().clone(), file)
}

/// Returns whether `*` applies to the agent by default. Repeats the policy's default rule in short
/// form.
pub(crate) fn held(agent: &Agent) -> bool {
    let exempt =
        [Category::Infrastructure, Category::Monitoring, Category::Preview, Category::Feed, Category::UserFetch];
    matches!(agent.class(), Class::Registered | Class::Declared)
        && !agent.category().is_some_and(|category| exempt.contains(&category))
        && agent.obeys_star() != Obeys::No
}

/// Returns the `User-agent` name, as written, of the group that applies to the header.
fn group(names: &[&str], header: &[u8]) -> Option<String> {
    let file = file(names);
    let registry = Registry::builtin();
    let rules = file.compile_with(Reading::Standard, |name| registry.stands_for(name.value()));
    let agents = recognizer(&file).agents(header);
    let selections = agents.iter().map(|agent| rules.select(agent.tokens(), Fallback::Nothing));
    let verdict = selections
        .into_iter()
        .find(|selection| selection.applies())?
        .verdict(&tower_robots::rules::RequestPath::new(b"/"));
    let name = verdict.group()?.names().next()?;
    Some(String::from_utf8_lossy(name.value()).into_owned())
}

#[test]
fn complete_real_headers_are_recognised_as_in_the_test_cases() {
    let nobody = recognizer(&file(&[]));
    let mut failures = Vec::new();
    for case in cases() {
        let ua = case["ua"].as_str().unwrap();
        let agents = nobody.agents(ua.as_bytes());
        let agent = agents.first();
        let mut expect = |what: &str, got: Value| {
            let want = &case[what];
            if case.get(what).is_some() && *want != got {
                failures.push(format!("{ua}\n    {what}: {got}, not {want}"));
            }
        };
        expect("class", agent.class().as_str().into());
        expect("held", agents.iter().any(held).into());
        expect("crawler", agent.crawler().into());
        expect("category", agent.category().map(Category::as_str).into());
        expect("tokens", agent.tokens().iter().map(ToString::to_string).collect::<Vec<_>>().into());
        if let Some(names) = case["names"].as_array() {
            let names: Vec<_> = names.iter().map(|name| name.as_str().unwrap()).collect();
            expect("group", group(&names, ua.as_bytes()).into());
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_group_named_by_an_everyday_word_applies_to_no_browser_or_app() {
    for case in cases().filter(|case| matches!(case["class"].as_str(), Some("browser" | "app"))) {
        let ua = case["ua"].as_str().unwrap();
        assert_eq!(group(HOSTILE_NAMES, ua.as_bytes()), None, "{ua}");
    }
}

#[test]
fn malformed_or_unusual_headers_do_not_bypass_a_group() {
    let plain = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36";
    let mut odd: Vec<Vec<u8>> = vec![
        b"ExampleBot/1.0".to_vec(),
        b"EXAMPLEBOT".to_vec(),
        b"\tExampleBot\t/1.0\t".to_vec(),
        b"\xffExampleBot\xff/1.0".to_vec(),
        b"ExampleBot\x80".to_vec(),
        b"Ex\x80ample ExampleBot/1.0".to_vec(),
        b"Mozilla/5.0 (compatible;ExampleBot/1.0;+http://example.com/)".to_vec(),
        b"Mozilla/5.0+(compatible;+ExampleBot/1.0;++http://example.com/)".to_vec(),
        b"[ExampleBot/1.0".to_vec(),
        b"[ExampleBot/1.0]".to_vec(),
        b"((((ExampleBot/1.0".to_vec(),
        b"))))ExampleBot/1.0".to_vec(),
        b"\"ExampleBot/1.0\"".to_vec(),
        b"_ExampleBot_".to_vec(),
        b"ExampleBot.".to_vec(),
        b"http://example.com/,ExampleBot/1.0".to_vec(),
        format!("{plain} ExampleBot/1.0").into_bytes(),
        format!("{plain} (compatible; ExampleBot/1.0; \u{e9})").into_bytes(),
    ];
    for filler in ["x", "x ", "(", ")", ";", "[", "/", "@", ".", "-", "like x ", "x@x.y ", "http://x "] {
        odd.push(format!("{} ExampleBot/1.0", filler.repeat(7 * 1024 / filler.len())).into_bytes());
    }
    for name in ["ExampleBot", "GPTBot"] {
        for header in &odd {
            let header = replace(header, b"ExampleBot", name.as_bytes());
            let shown = String::from_utf8_lossy(&header[header.len().saturating_sub(90)..]).into_owned();
            assert_eq!(group(&[name], &header).as_deref(), Some(name), "{shown}");
        }
    }
}

fn replace(header: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let lower = header.to_ascii_lowercase();
    let from_lower = from.to_ascii_lowercase();
    match lower.windows(from.len()).position(|window| window == from_lower) {
        Some(at) => [&header[..at], to, &header[at + from.len()..]].concat(),
        None => header.to_vec(),
    }
}

#[test]
fn a_crawler_name_is_recognised_next_to_other_names() {
    for (name, header) in [
        ("GPTBot", "CCBot Bytespider ClaudeBot PetalBot GPTBot/1.2"),
        ("AcmeBot", "CCBot AcmeBot/1.0"),
        ("AcmeBot", "UptimeRobot/2.0 AcmeBot/1.0"),
        ("AcmeBot", "facebookexternalhit/1.1 AcmeBot/1.0"),
    ] {
        assert_eq!(group(&[name], header.as_bytes()).as_deref(), Some(name), "{header}");
    }
    let nobody = recognizer(&file(&[]));
    assert!(nobody.agents(b"MyBot/1.0 (+https://my.example/bot) UptimeRobot").iter().any(held));
    assert!(!nobody.agents(b"UptimeRobot/2.0").iter().any(held));
}

#[test]
fn the_last_of_over_100_names_in_a_header_decides_within_half_a_second() {
    let names = Registry::builtin().crawlers().filter(|row| row.requires.is_empty());
    let mut header = String::new();
    for name in names.filter_map(|row| row.header_names.first()).filter(|name| !name.eq_ignore_ascii_case("GPTBot")) {
        if header.len() + name.len() < 8 * 1024 {
            header.push_str(name);
            header.push(' ');
        }
    }
    header.push_str("GPTBot/1.2");
    let file = file(&["GPTBot"]);
    super::clock::within(std::time::Duration::from_millis(500), "a decision", || {
        let agents = recognizer(&file).agents(header.as_bytes());
        let rules = file.compile(Reading::Standard);
        let policy = tower_robots::Policy::builder().mode(tower_robots::policy::Mode::Refuse).build();
        let facts = tower_robots::policy::RequestFacts::of_target("GET", b"/x/..%2f/private");
        let decision = policy.decide(&rules, &agents, facts);
        assert_eq!(decision.action, tower_robots::policy::Action::Refuse);
        assert_eq!(agents[decision.agent].crawler(), Some("GPTBot"));
        assert!(agents.len() > 100, "{}", agents.len());
    });
}

#[test]
fn recognition_time_grows_linearly_with_the_header_length() {
    let recognizer = recognizer(&file(&["ExampleBot", "foo", "a-a", "Sogou web spider", "Daum"]));
    let time = |bytes: usize, [start, unit, end]: [&str; 3]| {
        let header = [start, &unit.repeat(bytes / unit.len()), end].concat();
        (0..3)
            .map(|_| {
                let start = super::clock::spent();
                std::hint::black_box(recognizer.agents(header.as_bytes()));
                super::clock::spent() - start
            })
            .min()
            .unwrap()
    };
    let units = "x~a-~a.~(~[~[]~@~x+x@~x@x.y~http://~Daum ~Pinterest ~GPTBot CCBot ~foo....~sogou ~like ~\
        compatible with ~bot ~bot;~(bot;http://x;~x/~x/1 ~;~-~Mozilla/5.0 ~(x;Android;";
    // Words whose meaning depends on the rest of the header.
    let dependent = [
        ["Mozilla/5.0 Gecko ", "(bot", ""],
        ["Mozilla/5.0 Gecko ", "fetch ", ""],
        ["Mozilla/5.0 (MSIE 6.0) Gecko ", "(MSIE bot", ""],
        ["CFNetwork/1 ", "bot http://a;", ""],
        ["CFNetwork/1 (", "bot http://a;", ""],
        ["Foo/1.0 ", "(+http://foo.example)", ""],
        ["", "Stripe ", "stripe.com"],
    ];
    for header in units.split('~').map(|unit| ["", unit, ""]).chain(dependent) {
        let mut measured = Vec::new();
        let is_linear = super::clock::is_measured(|| {
            let (small, large) = (time(4 << 10, header), time(64 << 10, header));
            measured.push((small, large));
            large < small * 16 * 8 + std::time::Duration::from_millis(20)
        });
        assert!(is_linear, "{header:?}: {measured:?}");
    }
}

#[test]
fn recognizers_of_many_files_share_one_registry() {
    // Memory is not measured directly. It is enough that the names of the registry are not copied.
    let names: Vec<String> = (0..10).map(|n| format!("ExampleBot{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let file = file(&names);
    let many: Vec<_> = (0..1000).map(|_| recognizer(&file)).collect();
    assert!(many.iter().all(|one| std::sync::Arc::ptr_eq(one.registry(), Registry::builtin())));
}

#[test]
fn every_example_of_the_registry_is_recognised_as_its_crawler() {
    let nobody = recognizer(&file(&[]));
    let failures: Vec<_> = Registry::builtin()
        .crawlers()
        .flat_map(|crawler| crawler.examples.iter().map(move |example| (crawler.name.as_str(), example)))
        .filter_map(|(name, example)| {
            let agent = nobody.identify(example.as_bytes());
            (agent.crawler() != Some(name))
                .then(|| format!("{name}: {:?} {:?}\n    {example}", agent.class(), agent.crawler()))
        })
        .collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_group_that_names_a_preview_crawler_applies_to_its_example_headers() {
    let previews = Registry::builtin().crawlers().filter(|crawler| crawler.category == Category::Preview);
    let mut asked = 0;
    for crawler in previews {
        for example in &crawler.examples {
            for token in crawler.tokens.iter().map(ToString::to_string) {
                assert_eq!(group(&[&token], example.as_bytes()).as_ref(), Some(&token), "{example}");
                asked += 1;
            }
        }
    }
    assert!(asked > 60, "{asked}");
}

#[test]
fn real_headers_name_one_crawler_except_barkrowler_with_bubing() {
    let nobody = recognizer(&file(&[]));
    let examples = Registry::builtin().crawlers().flat_map(|crawler| crawler.examples.iter().cloned());
    let headers = cases().map(|case| case["ua"].as_str().unwrap().to_owned());
    let mut several: Vec<_> = examples
        .chain(headers)
        .map(|header| nobody.agents(header.as_bytes()))
        .filter(|agents| agents.len() > 1)
        .map(|agents| agents.iter().filter_map(Agent::crawler).collect::<Vec<_>>().join(" + "))
        .collect();
    several.sort_unstable();
    several.dedup();
    // Only "Barkrowler/0.5.1 (…) … based on BuBiNG" names two crawlers.
    assert_eq!(several, ["Barkrowler + BUbiNG"]);
}

#[test]
fn crawlers_that_send_a_browser_header_are_recognised_as_documented() {
    let nobody = recognizer(&file(&[]));
    let phone = "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/141.0.7390.122 Mobile Safari/537.36";
    let iphone = "Mozilla/5.0 (iPhone; CPU iPhone OS 14_7_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                  Version/14.1.2 Mobile/15E148 Safari/604.1";
    let mac = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 \
               Safari/605.1.15";
    for (header, name) in [
        (format!("{phone} (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"), "Googlebot"),
        (
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; \
             +http://www.google.com/bot.html) Chrome/141.0.7390.122 Safari/537.36"
                .to_owned(),
            "Googlebot",
        ),
        (
            format!("{iphone} (compatible; AdsBot-Google-Mobile; +http://www.google.com/mobile/adsbot.html)"),
            "AdsBot-Google-Mobile",
        ),
        (format!("{mac} (Applebot/0.1; +http://www.apple.com/go/applebot)"), "Applebot"),
        (format!("{iphone} (Applebot/0.1; +http://www.apple.com/go/applebot)"), "Applebot"),
    ] {
        let agents = nobody.agents(header.as_bytes());
        assert_eq!(agents.iter().filter_map(Agent::crawler).collect::<Vec<_>>(), [name], "{header}");
    }
}

#[test]
fn a_group_name_with_a_version_or_a_whole_header_maps_to_the_crawlers_token() {
    let registry = Registry::builtin();
    let stands_for =
        |name: &str| registry.stands_for(name.as_bytes()).iter().map(ProductToken::to_string).collect::<Vec<_>>();
    assert_eq!(stands_for("Googlebot 2.1"), ["googlebot"]);
    assert_eq!(stands_for("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"), ["googlebot"]);
    assert_eq!(stands_for("Mozilla/4.0 (compatible; BullsEye; Windows 95)"), ["bullseye"]);
    for name in
        ["Googlebot", "MJ12bot", "008", "es", "Mozilla/4.0 (compatible; MSIE 4.0; Windows 95)", "mozilla/5", "java"]
    {
        assert!(stands_for(name).is_empty(), "{name}: {:?}", stands_for(name));
    }
}

proptest::proptest! {
    #[test]
    fn any_header_has_a_class(header: Vec<u8>) {
        let agent = recognizer(&file(&["ExampleBot", "a", "Foo Bar"])).identify(&header);
        proptest::prop_assert!(Class::ALL.contains(&agent.class()));
    }

    #[test]
    fn text_before_a_product_does_not_hide_it(before in "[ -~&&[^@/:]]{0,40}", name in "[A-Z][a-z]{3,8}Bot") {
        let spoken = before.to_ascii_lowercase();
        // The words after `like`, `with` and `[` name another program or a device.
        proptest::prop_assume!(!["like", "with", "["].iter().any(|word| spoken.contains(word)));
        let header = format!("{before} | {name}/1.0");
        proptest::prop_assert_eq!(group(&[&name], header.as_bytes()), Some(name));
    }
}
