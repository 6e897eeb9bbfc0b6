//! Tests how `replay` splits the requests of each crawler by the identity of the sender.
//!
//! The addresses of Google are in the embedded lists. The tests save newer lists, as a running
//! robotsd does.

use std::time::UNIX_EPOCH;

use super::replay::crawler;
use crate::harness::*;
use crate::played_dns::{Played, PlayedDns, ptr};

const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
const CHATGPT_USER: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot";
const YANDEX: &str = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)";
const MYBOT: &str = "MyBot/1.0 (+https://my.example/bot)";

const GOOGLE_LIST: &str = "https://developers.google.com/static/crawling/ipranges/common-crawlers.json";
const BING_LIST: &str = "https://www.bing.com/toolbox/bingbot.json";
const GPTBOT_LIST: &str = "https://openai.com/gptbot.json";
const USER_LIST: &str = "https://openai.com/chatgpt-user.json";

const ROBOTS: &str = "User-agent: *\nDisallow: /cart\n\nUser-agent: GPTBot\nDisallow: /drafts/\n";
fn config() -> Config {
    let site = "upstreams = [\"http://127.0.0.1:9\"]\nrobots = { source = \"file\", path = \"robots.txt\" }";
    let config = Config::new().keys("state_dir = \"state\"").listener("trusted_proxies = [\"192.0.2.0/24\"]");
    config.site("shop", site).robots(ROBOTS).file("new.txt", "User-agent: *\nDisallow: /\n")
}

/// Time of the requests, if a test does not set another one: 2026-11-20 12:00.
const NOON: u64 = 1_795_176_000;
const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// A folder with a site, and with the files that a robotsd with the same config has saved.
struct Site(Folder);

impl std::ops::Deref for Site {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Site {
    fn new() -> Self {
        Self(config().folder())
    }

    /// Creates a site. It has fetched these lists at noon.
    fn with_lists() -> Self {
        let site = Self::new();
        site.save(GOOGLE_LIST, NOON, &["66.249.64.0/19", "2001:4860:4801:10::/64"]);
        site.save(BING_LIST, NOON, &["40.77.167.0/24"]);
        site.save(GPTBOT_LIST, NOON, &["20.125.66.80/28"]);
        site.save(USER_LIST, NOON, &["23.98.142.176/28"]);
        site
    }

    fn save(&self, url: &str, confirmed: u64, prefixes: &[&str]) {
        let hash: String =
            hmac_sha256::Hash::hash(url.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let saved = json!({ "url": url, "confirmed": confirmed, "body": prefixes.join("\n") });
        self.write(format!("state/evidence/{hash}.json"), saved.to_string());
    }

    fn replay(&self, log: &[String], form: &str, arguments: &[&str]) -> Ended {
        self.write("log", log.concat());
        self.with_config(&[&["replay", "log", "--format", form], arguments].concat())
    }

    /// Runs `replay` on these lines. Returns the report, standard error and the exit status.
    fn report(&self, log: &[String], arguments: &[&str]) -> (Value, String, Option<i32>) {
        let output = self.replay(log, "json", arguments);
        (serde_json::from_str(&output.out).unwrap_or_default(), output.error, output.code)
    }
}

fn line(address: &str, time: u64, target: &str, agent: &str) -> String {
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(time)).to_string();
    let line = json!({ "time": time, "remote_addr": address, "request_method": "GET", "request_uri": target,
                       "http_user_agent": agent });
    format!("{line}\n")
}

fn impostors<'a>(report: &'a Value, name: &str) -> &'a Value {
    row(&report["impostors"], "crawler", name)
}

/// Returns the numbers of a crawler's requests: verified, only claimed, and by impostors.
fn split(report: &Value, name: &str) -> [u64; 3] {
    let identity = &crawler(report, name)["identity"];
    ["verified", "claimed", "impostors"].map(|part| identity[part]["requests"].as_u64().unwrap_or(0))
}

fn because(report: &Value, name: &str) -> Value {
    crawler(report, name)["identity"]["claimed_because"].clone()
}

/// Returns the result for one request. The log also contains another request, which is verified.
fn fate(site: &Site, address: &str, time: u64, agent: &str) -> String {
    let log = [line("66.249.66.1", NOON, "/", GOOGLEBOT), line(address, time, "/cart", agent)];
    let (report, said, _) = site.report(&log, &[]);
    let split = &report["identity"];
    assert_eq!(said, "");
    match (split["verified"]["requests"].as_u64(), split["impostors"]["requests"].as_u64()) {
        (Some(2), _) => "verified".to_owned(),
        (_, Some(1)) => "impostor".to_owned(),
        _ => split["claimed_because"].as_object().unwrap().keys().cloned().collect(),
    }
}

#[test]
fn requests_from_impostors_are_counted_separately_from_those_of_the_crawler() {
    let site = Site::with_lists();
    let mut log =
        vec![line("66.249.66.1", NOON, "/cart", GOOGLEBOT), line("66.249.66.2", NOON, "/robots.txt", GOOGLEBOT)];
    log.extend((0..9).map(|at| line("198.51.100.7", NOON + at, "/cart/a", GOOGLEBOT)));
    log.extend((0..4).map(|at| line("203.0.113.9", NOON + at, "/wp-login", GOOGLEBOT)));
    log.push(line("10.0.0.1", NOON, "/cart/b", GOOGLEBOT));
    log.push(line("203.0.113.9", NOON, "/drafts/x", GPTBOT));
    let (report, said, code) = site.report(&log, &[]);
    assert_eq!((&*said, code), ("", Some(0)));
    let google = crawler(&report, "Googlebot");
    let want = json!({
        "requests": 3, "allowed": 1, "disallowed": 2,
        "identity": {
            "verified": {"requests": 2, "disallowed": 1}, "claimed": {"requests": 1, "disallowed": 1},
            "impostors": {"requests": 13, "disallowed": 9}, "claimed_because": {"address": 1},
        },
    });
    assert_part(google, &want);
    assert_eq!(google["rules"][0]["requests"], 2, "{google}");
    assert_eq!(because(&report, "Googlebot"), json!({ "address": 1 }));
    let google = impostors(&report, "Googlebot");
    let network = |address: &str, requests: u64, disallowed: u64| json!({ "address": address, "requests": requests, "disallowed": disallowed });
    let networks = [network("198.51.100.0/24", 9, 9), network("203.0.113.0/24", 4, 0)];
    assert_part(google, &json!({"requests": 13, "allowed": 4, "disallowed": 9, "addresses": networks}));
    assert_eq!(google["rules"][0]["line"], 2);
    assert_eq!(google["rules"][0]["paths"][0]["pattern"], "/cart/a");
    // If only impostors use a name, it must not have a row among the crawlers.
    assert_eq!((crawler(&report, "GPTBot"), &impostors(&report, "GPTBot")["disallowed"]), (&Value::Null, &json!(1)));
    let totals = json!({"crawler_requests": 3, "disallowed": 2});
    assert_part(&report, &json!({"requests": 17, "identity": {"lists_of": "2026-11-20"}, "totals": totals}));
    let list = json!({"url": GOOGLE_LIST, "origin": "saved", "prefixes": 2});
    assert_part(&report["identity"]["lists"][0], &list);
    assert_eq!(report["hours"].as_array().unwrap().len(), 1);
    assert_part(&report["hours"][0], &json!({"allowed": 1, "disallowed": 2}));
    let (report, _, _) = site.report(&log, &["--keep-addresses"]);
    assert_eq!(impostors(&report, "Googlebot")["addresses"][0], network("198.51.100.7", 9, 9));
}

#[test]
fn the_text_report_and_the_html_page_have_a_section_about_impostors() {
    let site = Site::with_lists();
    let log = [
        line("66.249.66.1", NOON, "/", GOOGLEBOT),
        line("198.51.100.7", NOON, "/cart/<a>", GOOGLEBOT),
        line("1.2.3.4", NOON, "/", MYBOT),
    ];
    let parts = [
        "\nsenders of the requests, checked against the published lists from 2026-11-20:\n           1  came from \
         addresses that the operators of the crawlers publish (0 disallowed)\n           1  could be from anyone (0 \
         disallowed)\n           1  came from addresses that do not belong to the operators of the crawlers (1 \
         disallowed)\n",
        "\nGooglebot           1         1           0      0 %  ",
        "\nMyBot               1         -           0      0 %  ",
        "\nimpostors of                requests  disallowed  from\n",
        "\nGooglebot                          1           1  198.51.100.0/24 (1)\n",
        "\nimpostors of Googlebot: what is disallowed, by rule and path\n           1  robots.txt:2: disallow /cart\n",
        "\nwhy requests could be from anyone\n           1  the operators publish no complete lists of addresses",
    ];
    assert_has(site.replay(&log, "text", &[]).out, &parts);
    let parts = [
        "<h2>Who sent them</h2>",
        "<span class=\"name\">1 came from addresses that do not belong to the operators of the crawlers</span>",
        "<h3>Impostors <small>1 request, 100 % disallowed</small></h3>",
        "<b>Impostors of Googlebot</b>",
        "<dt>From</dt><dd>198.51.100.0/24 (1)</dd>",
        "<code>/cart/&lt;a&gt;</code>",
    ];
    assert_has(site.replay(&log, "html", &[]).out, &parts);
    // If there is no evidence at all, the text must not mention it.
    let text = site.replay(&[line("1.2.3.4", NOON, "/", MYBOT)], "text", &[]).out;
    assert_lacks(text, &["impostors", "by the published lists"]);
}

#[test]
fn embedded_lists_verify_addresses_but_never_classify_a_sender_as_an_impostor() {
    let site = Site::new();
    for (want, addresses) in [
        ("verified", "66.249.66.9 ::ffff:66.249.66.9 2001:4860:4801:10::1"),
        ("stale", "9.9.9.9 2001:db8::9 ::ffff:9.9.9.9"),
        // The last value is not an address.
        ("address", "10.0.0.1 100.64.0.1 ::1 fe80::1 crawl.example "),
    ] {
        for address in addresses.split(' ') {
            assert_eq!(fate(&site, address, NOON, GOOGLEBOT), want, "{address}");
        }
    }
    let (report, _, _) = site.report(&[line("66.249.66.1", NOON, "/", GOOGLEBOT)], &[]);
    let identity = &report["identity"];
    assert_eq!(identity["lists"][0]["origin"], "embedded");
    assert_eq!(identity["lists_of"], identity["lists"][0]["date"], "{identity}");
}

#[test]
fn fresh_lists_refute_claims_from_unlisted_public_addresses() {
    let site = Site::with_lists();
    for (address, agent, want) in [
        ("9.9.9.9", GOOGLEBOT, "impostor"),
        ("::ffff:9.9.9.9", GOOGLEBOT, "impostor"),
        ("2001:db8::9", GOOGLEBOT, "impostor"),
        ("2001:4860:4801:10::5", GOOGLEBOT, "verified"),
        ("::ffff:66.249.66.5", GOOGLEBOT, "verified"),
        ("172.16.0.1", GOOGLEBOT, "address"),
        // This is the address of a proxy that the config trusts.
        ("192.0.2.7", GOOGLEBOT, "address"),
        // The log may contain truncated addresses.
        ("9.9.9.0", GOOGLEBOT, "address"),
        ("66.249.66.0", GOOGLEBOT, "address"),
        ("2001:db8:1::", GOOGLEBOT, "address"),
        // The fetcher may run on the device of a person.
        ("9.9.9.9", CHATGPT_USER, "unverifiable"),
        ("23.98.142.180", CHATGPT_USER, "verified"),
        // The operator publishes nothing, or only host names.
        ("9.9.9.9", MYBOT, "unverifiable"),
        ("9.9.9.9", YANDEX, "not-loaded"),
    ] {
        assert_eq!(fate(&site, address, NOON, agent), want, "{address} {agent}");
    }
}

#[test]
fn a_list_decides_nothing_about_requests_long_before_or_after_it() {
    let site = Site::with_lists();
    for (time, want) in [
        (NOON + DAY, "impostor"),
        (NOON + DAY + 1, "stale"),
        (NOON - 30 * DAY, "impostor"),
        (NOON - 30 * DAY - 1, "stale"),
        (NOON - 400 * DAY, "stale"),
    ] {
        assert_eq!(fate(&site, "9.9.9.9", time, GOOGLEBOT), want, "{time}");
        assert_eq!(fate(&site, "66.249.66.5", time, GOOGLEBOT), "verified", "{time}");
    }
    let no_time = line("9.9.9.9", NOON, "/cart", GOOGLEBOT).replace("\"time\"", "\"other\"");
    let (report, _, _) = site.report(&[line("66.249.66.1", NOON, "/", GOOGLEBOT), no_time], &[]);
    assert_eq!(because(&report, "Googlebot"), json!({ "stale": 1 }));
}

#[test]
fn an_older_copy_of_a_list_verifies_requests_from_before_a_range_was_removed() {
    let site = Site::with_lists();
    // Google's embedded list contains this range, but the saved list does not.
    let lost = "192.178.4.5";
    assert_eq!(fate(&site, lost, NOON - DAY, GOOGLEBOT), "verified");
    assert_eq!(fate(&site, lost, NOON + HOUR, GOOGLEBOT), "impostor");
    // As in a server, the saved list must be used even if it is older than the embedded list. The
    // embedded list can still verify claims.
    site.save(GOOGLE_LIST, NOON - 400 * DAY, &["8.8.8.0/24"]);
    let (report, _, _) = site.report(&[line("8.8.8.8", NOON - 400 * DAY, "/", GOOGLEBOT)], &[]);
    assert_eq!(split(&report, "Googlebot"), [1, 0, 0]);
    assert_eq!(report["identity"]["lists"][0]["origin"], "saved");
    assert_eq!(fate(&site, "8.8.8.8", NOON, GOOGLEBOT), "verified");
    assert_eq!(fate(&site, "9.9.9.9", NOON, GOOGLEBOT), "stale");
    let said = site.with_config(&["agents", "--offline", "--user-agent", "Googlebot", "--verify", "8.8.8.8"]).out;
    assert!(said.starts_with("8.8.8.8 as Googlebot: verified(range)\n"), "{said}");
    assert_has(said, &["common-crawlers.json (saved, confirmed "]);
}

#[test]
fn a_configured_list_file_verifies_crawlers_and_the_configured_resolvers_are_used() {
    let site = Site::new();
    let dns = PlayedDns::start();
    dns.confirmed("5.255.231.1", "5-255-231-1.spider.yandex.com");
    let list = json!({ "creationTime": "2026-10-01T00:00:00", "prefixes": [{ "ipv4Prefix": "8.8.8.0/24" }] });
    site.write("google.json", list.to_string());
    let identity = format!(
        "[identity]\nresolvers = [\"{}\"]\n[[identity.list]]\nurl = \"{GOOGLE_LIST}\"\npath = \"google.json\"\n",
        dns.address
    );
    site.configure(config().tables(identity));
    let log = [
        line("8.8.8.8", NOON, "/", GOOGLEBOT),
        line("9.9.9.9", NOON, "/", GOOGLEBOT),
        line("5.255.231.1", NOON, "/", YANDEX),
    ];
    let (report, said, _) = site.report(&log, &["--rdns"]);
    assert_eq!((&*said, split(&report, "Googlebot"), split(&report, "YandexBot")), ("", [1, 1, 0], [1, 0, 0]));
    assert_eq!(report["identity"]["lists_of"], "2026-10-01");
    assert_eq!(report["identity"]["lists"][0]["origin"], "file");
    // A list that was saved later is newer than the embedded one.
    site.save(GOOGLE_LIST, NOON, &["9.9.9.0/24"]);
    let (report, _, _) = site.report(&log, &[]);
    assert_eq!((split(&report, "Googlebot"), &report["identity"]["lists"][0]["origin"]), ([1, 0, 1], &json!("saved")));
}

#[test]
fn an_unreadable_saved_list_is_reported_and_the_embedded_copy_is_used() {
    let site = Site::with_lists();
    site.save(GOOGLE_LIST, NOON, &["<html>"]);
    let log = [line("66.249.66.1", NOON, "/", GOOGLEBOT), line("9.9.9.9", NOON, "/", GPTBOT)];
    let (report, said, _) = site.report(&log, &[]);
    assert!(said.starts_with(&format!("robotsd: the saved copy of the list {GOOGLE_LIST} cannot be used: ")), "{said}");
    assert_eq!((split(&report, "Googlebot"), &impostors(&report, "GPTBot")["requests"]), ([1, 0, 0], &json!(1)));
}

#[test]
fn a_log_that_contains_the_addresses_of_a_proxy_counts_no_impostors() {
    let site = Site::with_lists();
    // A CDN sends requests from many addresses, while another crawler is verified.
    let mut log = vec![line("66.249.66.1", NOON, "/", GOOGLEBOT)];
    log.extend((1..=6).map(|at| line(&format!("172.68.{at}.7"), NOON, "/cart", BINGBOT)));
    let (report, _, _) = site.report(&log, &[]);
    assert_eq!((split(&report, "bingbot"), because(&report, "bingbot")), ([0, 6, 0], json!({ "suspect-path": 6 })));
    assert_eq!(report["impostors"], json!([]));
    assert_eq!((&crawler(&report, "bingbot")["disallowed"], &report["hours"][0]["disallowed"]), (&json!(6), &json!(6)));
    let want = json!([{ "crawler": "bingbot", "requests": 6, "other_addresses": 3,
                        "addresses": ["172.68.1.0/24", "172.68.2.0/24", "172.68.3.0/24"] }]);
    assert_eq!(report["identity"]["suspect_paths"], want);
    let text = "\n  bingbot                          6 requests from 172.68.1.0/24, ";
    assert_has(site.replay(&log, "text", &[]).out, &[text]);
    assert_has(site.replay(&log, "html", &[]).out, &["<li>bingbot: 6 requests from 172.68.1.0/24, "]);
    // A few addresses do not prove that there is a proxy. Many addresses do not prove this, either,
    // if the log has verified requests of this crawler.
    let (report, _, _) = site.report(&log[..6], &[]);
    assert_eq!(impostors(&report, "bingbot")["requests"], 5);
    let own = [line("40.77.167.9", NOON, "/", BINGBOT)];
    let (report, _, _) = site.report(&[&log[..], &own[..]].concat(), &[]);
    assert_eq!(split(&report, "bingbot"), [1, 0, 6]);
    // Requests of the crawler that were verified long before the proxy was added must not count.
    let own = [line("40.77.167.9", NOON - DAY - 1, "/", BINGBOT)];
    let (report, _, _) = site.report(&[&log[..], &own[..]].concat(), &[]);
    assert_eq!(split(&report, "bingbot"), [1, 6, 0]);
}

#[test]
fn an_address_with_crawlers_of_several_operators_is_treated_as_a_proxy() {
    let site = Site::with_lists();
    let log = [line("172.68.1.7", NOON, "/", GOOGLEBOT), line("172.68.1.7", NOON, "/", BINGBOT)];
    let (report, _, _) = site.report(&log, &[]);
    assert_eq!((split(&report, "Googlebot"), split(&report, "bingbot")), ([0, 1, 0], [0, 1, 0]));
    // A verified request shows that the log contains the addresses of clients.
    let own = [line("20.125.66.85", NOON, "/", GPTBOT)];
    let (report, _, _) = site.report(&[&log[..], &own[..]].concat(), &[]);
    assert_eq!(report["identity"]["impostors"]["requests"], 2);
    let (report, _, _) = site.report(&log[..1], &[]);
    assert_eq!(report["identity"]["impostors"]["requests"], 1);
}

#[test]
fn replay_exits_with_status_0_if_a_change_only_blocks_impostors() {
    let site = Site::with_lists();
    let impostor = line("9.9.9.9", NOON, "/new", GOOGLEBOT);
    let (report, _, code) = site.report(std::slice::from_ref(&impostor), &["--against", "new.txt"]);
    assert_eq!((code, &report["search_engines_shut_out"]), (Some(0), &json!([])));
    let want = json!({"shut": 1, "disallowed": 1, "disallowed_before": 0});
    assert_part(impostors(&report, "Googlebot"), &want);
    let (_, _, code) =
        site.report(&[impostor, line("66.249.66.1", NOON, "/new", GOOGLEBOT)], &["--against", "new.txt"]);
    assert_eq!(code, Some(1));
}

#[test]
fn identity_counts_are_exact_in_a_log_that_is_read_in_several_chunks() {
    let site = Site::with_lists();
    let addresses = ["66.249.66.1", "9.9.9.9", "10.0.0.1", "2001:db8::7"];
    let many = |at: usize| format!("198.18.{}.{}", at / 250 % 250, at % 250 + 1);
    let log: Vec<_> = (0..30_000)
        .map(|at| {
            let address = if at % 5 == 4 { many(at).replace("198.18", "11.7") } else { addresses[at % 5].to_owned() };
            line(&address, NOON + at as u64 % HOUR, &format!("/cart/{at}"), GOOGLEBOT)
        })
        .collect();
    let (report, _, _) = site.report(&log, &[]);
    assert_eq!(split(&report, "Googlebot"), [6_000, 6_000, 18_000]);
    let row = impostors(&report, "Googlebot");
    let shown: u64 = row["addresses"].as_array().unwrap().iter().map(|row| row["requests"].as_u64().unwrap()).sum();
    assert_eq!(shown + row["other_addresses_requests"].as_u64().unwrap(), 18_000, "{row}");
    assert_part(&row["addresses"][0], &json!({"address": "2001:db8::/48", "requests": 6_000}));
}

#[test]
fn host_names_are_looked_up_only_with_the_option() {
    let site = Site::new();
    let dns = PlayedDns::start();
    dns.confirmed("5.255.231.1", "5-255-231-1.spider.yandex.com").names("9.9.9.9", ptr(&["evil.example"]));
    dns.confirmed("66.249.70.1", "crawl-66-249-70-1.googlebot.com");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let log = [
        line("5.255.231.1", now, "/", YANDEX),
        line("9.9.9.9", now, "/cart", YANDEX),
        line("9.9.9.8", now, "/cart", YANDEX),
        line("9.9.9.8", now - 31 * DAY, "/cart", YANDEX),
        line("10.0.0.1", now, "/", YANDEX),
        line("66.249.66.1", now, "/", GOOGLEBOT),
        line("11.0.0.1", now, "/", MYBOT),
    ];
    let resolver = dns.address.to_string();
    let (report, said, _) = site.report(&log, &["--rdns", "--resolver", &resolver]);
    assert_eq!(said, "");
    assert_eq!(split(&report, "YandexBot"), [1, 2, 2]);
    assert_eq!(because(&report, "YandexBot"), json!({ "address": 1, "stale": 1 }));
    assert_eq!(report["identity"]["names"], json!({ "looked_up": 3, "left_out": 0 }));
    // Each address must be looked up once. Addresses that a list verifies, and addresses of
    // crawlers without known host names, must not be looked up.
    let mut asked = dns.asked();
    asked.sort();
    let want = [
        "A 5-255-231-1.spider.yandex.com.",
        "PTR 1.231.255.5.in-addr.arpa.",
        "PTR 8.9.9.9.in-addr.arpa.",
        "PTR 9.9.9.9.in-addr.arpa.",
    ];
    assert_eq!(asked, want);
    // A resolver that has not confirmed anything cannot refute a claim.
    let (report, _, _) = site.report(&log[1..3], &["--rdns", "--resolver", &resolver]);
    assert_eq!(because(&report, "YandexBot"), json!({ "unproven-resolver": 2 }));
    // Without the option, no query may be sent.
    let before = dns.asked().len();
    let (report, _, _) = site.report(&log, &[]);
    assert_eq!((because(&report, "YandexBot"), dns.asked().len()), (json!({ "address": 1, "not-loaded": 4 }), before));
}

#[test]
fn an_interrupt_ends_the_lookups_but_the_report_is_printed() {
    let site = Site::new();
    let dns = PlayedDns::start();
    dns.unset(Played::Silence);
    site.write("log", (1..=200).map(|at| line(&format!("9.9.9.{at}"), NOON, "/cart", YANDEX)).collect::<String>());
    let mut command = site.robotsd();
    command.args(["replay", "log", "--config", "robotsd.toml", "--format", "json", "--rdns", "--resolver"]);
    command.arg(dns.address.to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until("a question", || !dns.asked().is_empty());
    assert!(signal("INT", child.id()));
    let output = Ended::from(child.wait_with_output().unwrap()).ends_with(0);
    assert_eq!(split(&output.json(), "YandexBot"), [0, 200, 0]);
    assert_has(output.error, &[" addresses were not looked up, so their requests count as unverified"]);
}
