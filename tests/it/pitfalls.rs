//! Tests for mistakes of other tools, which refuse requests that must pass, or let requests pass
//! that must be refused.

use tower_robots::check::{Options, check};
use tower_robots::live::LiveRobots;
use tower_robots::policy::{Action, Mode, Override, Policy, RequestFacts};
use tower_robots::rules::{RequestPath, RobotsTxt};

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
const CHROME: &str =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
const GPTBOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot";
const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

fn is_refused(file: &str, agent: &str, method: &str, target: &str) -> bool {
    // By default, requests of search engines are only tagged. With this override, a refusal shows
    // that a request was judged.
    let policy = Policy::builder().mode(Mode::Refuse).with_override(Override::index_engines(Mode::Refuse)).build();
    let live = LiveRobots::text(file).policy(policy).open().unwrap();
    live.with(|snapshot| {
        let agents = snapshot.content.as_ref().unwrap().agents(agent.as_bytes());
        let path = RequestPath::new(target.as_bytes());
        snapshot.decide(&agents, RequestFacts::new(method, &path)).action == Action::Refuse
    })
}

fn shuts_out(names: &str, agent: &str) -> bool {
    let names: String = names.split(", ").map(|name| format!("User-agent: {name}\n")).collect();
    is_refused(&format!("{names}Disallow: /\n"), agent, "GET", "/x")
}

#[test]
fn the_mozilla_prefix_of_a_header_is_not_its_product_token() {
    for agent in [FIREFOX, CHROME, GPTBOT, GOOGLEBOT] {
        assert!(!shuts_out("Mozilla", agent), "{agent}");
    }
    assert!(shuts_out("GPTBot", GPTBOT) && !shuts_out("GPTBot", GOOGLEBOT) && !shuts_out("GPTBot", FIREFOX));
    assert!(shuts_out("Googlebot", GOOGLEBOT) && !shuts_out("Googlebot", GPTBOT) && !shuts_out("Googlebot", CHROME));
}

#[test]
fn a_group_for_a_crawler_and_the_star_does_not_block_people() {
    assert!(shuts_out("GPTBot, *", GPTBOT) && shuts_out("GPTBot, *", GOOGLEBOT));
    for person in [FIREFOX, CHROME, ""] {
        assert!(!shuts_out("GPTBot, *", person), "{person}");
    }
}

#[test]
fn allow_rules_count_a_question_mark_is_literal_and_a_dollar_matches_the_end() {
    let file = "User-agent: GPTBot\nDisallow: /\nAllow: /open/\nAllow: /a?b\nAllow: /end$\n";
    for (targets, refused) in [("/open/x /a?b /end", false), ("/x /axb /ab /end2", true)] {
        for target in targets.split(' ') {
            assert_eq!(is_refused(file, GPTBOT, "GET", target), refused, "{target}");
        }
    }
}

#[test]
fn a_group_does_not_block_other_clients_whose_header_contains_its_name() {
    for (name, person) in [
        (
            "Code",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Code/1.85.0 Chrome/114.0.5735.289 Electron/25.9.7 Safari/537.36",
        ),
        (
            "Spider",
            "Mozilla/5.0 (Linux; Android 13; SpiderPhone) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36",
        ),
        ("LCC", "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.0; SLCC1; .NET CLR 2.0.50727)"),
        (
            "Titan",
            "Mozilla/5.0 (Linux; Android 9; Titan) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/88.0.4324.181 Mobile Safari/537.36",
        ),
        ("Disco", "Discourse/3.2"),
        (
            "bot",
            "Mozilla/5.0 (Linux; Android 11; CUBOT NOTE 20) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/96.0.4664.45 Mobile Safari/537.36",
        ),
        ("Java", CHROME),
        ("Google", CHROME),
        ("Opera", "Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18"),
        ("es", "Mozilla/5.0 (Windows; U; Windows NT 5.1; es; rv:1.9.2) Gecko/20100115 Firefox/3.6"),
        ("008", FIREFOX),
        ("Safari", CHROME),
    ] {
        assert!(!shuts_out(name, person), "{name}: {person}");
    }
}

#[test]
fn a_crawler_name_that_is_a_separate_word_is_recognised() {
    for (name, crawler) in [
        ("Spider", "Spider/1.0 (+http://example.net/spider)"),
        ("Disco", "Disco/2.0"),
        ("LCC", "LCC (+http://corpora.informatik.uni-leipzig.de/crawler_faq.html)"),
        ("MJ12bot", "Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)"),
        ("archive.org_bot", "Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)"),
        ("008", "Mozilla/5.0 (compatible; 008/0.83; http://www.80legs.com/webcrawler.html) Gecko/2008032620"),
        ("Googlebot 2.1", GOOGLEBOT),
        ("googlebot/1.2", GOOGLEBOT),
    ] {
        assert!(shuts_out(name, crawler), "{name}: {crawler}");
    }
}

#[test]
fn requests_for_robots_txt_are_never_refused() {
    let file = "User-agent: *\nDisallow: /\n";
    for method in ["GET", "HEAD"] {
        for agent in [GPTBOT, GOOGLEBOT, FIREFOX] {
            assert!(!is_refused(file, agent, method, "/robots.txt?x"), "{method} {agent}");
        }
        assert!(is_refused(file, GPTBOT, method, "/robots.txt.bak"));
    }
}

#[test]
fn certificate_validation_health_probes_and_webhooks_pass() {
    let file = "User-agent: *\nDisallow: /\n";
    for agent in [
        "",
        "kube-probe/1.29",
        "ELB-HealthChecker/2.0",
        "Mozilla/5.0 (compatible; Let's Encrypt validation server; +https://www.letsencrypt.org)",
        "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        "GitHub-Hookshot/044aadd",
    ] {
        for method in ["GET", "POST"] {
            assert!(!is_refused(file, agent, method, "/hook"), "{method} {agent}");
        }
    }
    assert!(!is_refused(file, GPTBOT, "GET", "/.well-known/acme-challenge/x"));
    assert!(is_refused(file, GPTBOT, "GET", "/hook"));
}

#[test]
fn the_decision_for_one_header_is_not_reused_for_another_header() {
    let policy = Policy::builder().mode(Mode::Refuse).build();
    let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /\n").policy(policy).open().unwrap();
    for _ in 0..3 {
        let cases = [(GPTBOT, Action::Refuse), (FIREFOX, Action::Pass), ("GPTBot", Action::Refuse), ("", Action::Pass)];
        for (agent, action) in cases {
            live.with(|snapshot| {
                let agents = snapshot.content.as_ref().unwrap().agents(agent.as_bytes());
                let path = RequestPath::new(b"/");
                assert_eq!(snapshot.decide(&agents, RequestFacts::new("GET", &path)).action, action, "{agent}");
            });
        }
    }
}

#[test]
fn a_group_for_a_control_token_does_not_block_any_request() {
    for agent in [GOOGLEBOT, GPTBOT, FIREFOX] {
        assert!(!shuts_out("Google-Extended", agent), "{agent}");
    }
}

#[test]
fn known_extensions_have_no_findings_and_a_misspelled_extension_is_reported() {
    let codes = |file: &str| {
        let report = check(&RobotsTxt::parse(file.as_bytes()), &Options::new());
        report.findings.iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    let known = "Content-Signal: search=yes\nLicense: https://example.com/l.xml\nUser-agent: *\nContent-Usage: ai=n\nAllow: /\n";
    assert_eq!(codes(known), [""; 0]);
    assert_eq!(codes("User-agent: *\nContent-Signals: search=yes\nAllow: /\n"), ["unknown-directive"]);
}
