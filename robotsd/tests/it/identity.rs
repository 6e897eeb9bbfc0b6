//! Tests `[identity]`, which verifies who sent a request, with host names from a simulated DNS
//! server.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use data_encoding::HEXLOWER;
use tokio_rustls::rustls::SignatureScheme;
use tokio_rustls::rustls::crypto::ring::sign::any_eddsa_type;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tower_robots::agent::{Crawler, Registry};
use tower_robots::identity::{DirectoryUrl, MessageHead, SignatureCandidate};

use crate::harness::*;
use crate::played_dns::{PlayedDns, ptr};

const ROBOTS: &str = "User-agent: ExampleBot\nDisallow: /drafts/\n";
const BOT: &str = "ExampleBot/1.0 (+https://bot.example/about)";
const REAL: &str = "8.8.4.1";
const IMPOSTOR: &str = "9.9.9.9";

/// Returns a registry with one crawler. The crawler is verified by host names, so robotsd fetches
/// no lists.
pub(super) fn crawlers() -> String {
    let has_evidence = |crawler: &&Crawler| {
        !crawler.ranges.is_empty() || !crawler.reverse_dns.is_empty() || crawler.signature.is_some()
    };
    let mut out = String::new();
    for crawler in Registry::builtin().crawlers().filter(has_evidence) {
        let _ = writeln!(out, "[[crawler]]\nname = {:?}\nremove = true", &crawler.name);
    }
    out + "[[crawler]]\nname = \"ExampleBot\"\ncategory = \"search\"\noperator = \"Example\"\nrdns = [\".bot.example\"]\n"
}

/// Creates a config with a site `shop` and one crawler that simulated host names can verify.
pub(super) fn known_by(names: &PlayedDns, listener: &str, identity: &str) -> Config {
    Config::new()
        .keys("state_dir = \"state\"")
        .listener(listener)
        .site("shop", "root = \"pages\"\nrobots.path = \"robots.txt\"")
        .tables("[agents]\nregistry_extra = \"crawlers.toml\"\n[[admin.listener]]\naddress = \"127.0.0.1:0\"")
        .tables(format!("[identity]\nresolvers = [\"{}\"]\n{identity}", names.address))
        .file("crawlers.toml", crawlers())
        .file("pages/page.html", "a page\n")
}

fn site(names: &PlayedDns, identity: &str, listener: &str) -> Folder {
    let config = known_by(names, listener, identity).keys("mode = \"refuse\"").robots(ROBOTS);
    config.log_requests().tables("address = \"keep\"").folder()
}

pub(super) const TRUSTING: &str = "trusted_proxies = [\"127.0.0.0/8\"]";

fn from(running: &Running, client: &str, path: &str, agent: &str) -> Answer {
    running.request("GET", path, &[("User-Agent", agent), ("X-Forwarded-For", client)])
}

fn status(folder: &Folder) -> Value {
    folder.with_config(&["status", "--json"]).json()
}

#[test]
fn an_impostor_is_refused_after_the_real_crawler_was_verified() {
    let names = PlayedDns::start();
    names.confirmed(REAL, "crawl-1.bot.example").names(IMPOSTOR, ptr(&["host.other.example"]));
    let folder = site(&names, "impostors = \"refuse\"\nwait = \"250ms\"", TRUSTING);
    let running = folder.start();

    // Until a request on this network path has been verified, no claim is refuted.
    assert_eq!(from(&running, IMPOSTOR, "/page.html", BOT).status, 200);
    let known = |client: &str, path: &str, want: &str| {
        wait_until(want, || {
            from(&running, client, path, BOT);
            let of_client = |line: &Value| line["address"] == client && line["identity"] == want;
            running.has_event("request", of_client)
        });
    };
    known(REAL, "/page.html", "verified");
    known(IMPOSTOR, "/page.html", "refuted");

    // The impostor is refused although the file allows the request. The response names no rule.
    let refused = from(&running, IMPOSTOR, "/page.html", BOT);
    assert_eq!(refused.status, 403);
    assert_has(&refused.body, &["The request is not from ExampleBot, although it claims to be."]);
    let line = running.wait_for_event("refused", |line| line["reason"] == "impostor");
    let part = json!({
        "agent": "ExampleBot", "identity": "refuted", "identity_method": "rdns", "identity_reason": "other-name",
        "decision": "allow", "address": IMPOSTOR, "rule": null, "group": null,
    });
    assert_part(&line, &part);
    // The real crawler must still be refused the pages that the file disallows. Browsers are not
    // checked.
    assert_eq!(from(&running, REAL, "/page.html", BOT).status, 200);
    assert_eq!(from(&running, REAL, "/drafts/x", BOT).status, 403);
    assert_eq!(from(&running, IMPOSTOR, "/page.html", FIREFOX).status, 200);
    assert_eq!(from(&running, IMPOSTOR, "/robots.txt", BOT).status, 200, "everyone may read it");
}

/// Returns the names of the events that are logged if impostors are only observed.
pub(super) fn events_of_an_impostor() -> BTreeSet<String> {
    let names = PlayedDns::start();
    names.confirmed(REAL, "crawl-1.bot.example").names(IMPOSTOR, ptr(&["host.other.example"]));
    // One of these events is about a saved list that no crawler uses.
    let copy = "wait = \"250ms\"\n[[identity.list]]\nurl = \"https://lists.example/none.json\"\npath = \"list.json\"";
    let folder = site(&names, copy, TRUSTING);
    folder.write("list.json", r#"{"prefixes": [{"ipv4Prefix": "8.8.8.0/24"}]}"#);
    let running = folder.start();
    running.wait_for_message("identity", "lists.example");
    running.wait_for_message("config-warning", "lists.example");
    wait_until("an impostor", || {
        assert_eq!(from(&running, REAL, "/page.html", BOT).status, 200);
        assert_eq!(from(&running, IMPOSTOR, "/page.html", BOT).status, 200);
        running.has_event("impostor", |line| line["decision"] == "allow")
    });
    running.event_names()
}

const SIGNER: &str = "https://signer.example";

/// Saves the key of RFC 8037 in a state directory, as if an earlier process had fetched it.
fn save_key(folder: &Folder) {
    let url = DirectoryUrl::parse(SIGNER).unwrap();
    let name = HEXLOWER.encode(&hmac_sha256::Hash::hash(url.as_str().as_bytes()));
    let key = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let saved = json!({"url": url.as_str(), "confirmed": seconds(), "body": json!({"keys": [key]}).to_string()});
    folder.write(format!("state/evidence/{}.json", &name[..32]), saved.to_string());
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// Returns the fields of a signed request to `shop.example`. The signature is made with the key of
/// RFC 8037 and covers these components.
fn signature(path: &str, covered: &str) -> String {
    let created = seconds();
    let input = format!(
        "a=({covered} \"signature-agent\");created={created};expires={};\
         keyid=\"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k\";tag=\"web-bot-auth\"",
        created + 3600
    );
    let mut fields = [
        ("signature-agent", format!("\"{SIGNER}\"")),
        ("signature-input", input),
        ("signature", "a=:AAAA:".to_owned()),
    ];
    let base = {
        let fields = fields.as_slice();
        let message = MessageHead::new("GET", "http", Some("shop.example"), path, &fields);
        SignatureCandidate::all(&message, SystemTime::now()).remove(0).unwrap().base
    };
    let mut key = HEXLOWER.decode(b"302e020100300506032b657004220420").unwrap();
    key.extend(URL_SAFE_NO_PAD.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").unwrap());
    let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(key)).unwrap();
    let signed = key.choose_scheme(&[SignatureScheme::ED25519]).unwrap().sign(base.as_bytes()).unwrap();
    fields[2].1 = format!("a=:{}:", STANDARD.encode(signed));
    fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

#[test]
fn a_signature_over_only_the_authority_verifies_any_path_unless_the_path_is_required() {
    let names = PlayedDns::start();
    let crawlers = crawlers().replace("rdns = [\".bot.example\"]", &format!("signature = \"{SIGNER}\""));
    for (require, alone) in [
        ("", ("verified", Value::Null)),
        ("require_components = [\"@path\"]", ("undecided", json!("component-not-covered"))),
    ] {
        let folder = site(&names, require, "");
        folder.write("crawlers.toml", &crawlers);
        save_key(&folder);
        let running = folder.start();
        let ask = |path: &str, signature: &str| {
            let head =
                format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: {BOT}\r\nConnection: close\r\n");
            running.send(format!("{head}{signature}\r\n").as_bytes());
            let line = running.wait_for_event("request", |line| line["path"] == path);
            (line["identity"].as_str().unwrap().to_owned(), line["identity_reason"].clone())
        };
        let alone = (alone.0.to_owned(), alone.1);
        let of_authority = signature("/a", "\"@authority\"");
        assert_eq!(ask("/a", &of_authority), alone, "{require}");
        assert_eq!(ask("/replayed", &of_authority), alone, "{require}");
        let of_path = signature("/b", "\"@authority\" \"@path\"");
        assert_eq!(ask("/b", &of_path), ("verified".to_owned(), Value::Null), "{require}");
        assert_eq!(ask("/b-replayed", &of_path), ("refuted".to_owned(), json!("bad-signature")), "{require}");
    }
}

/// The signature is made for `http`, and covers the scheme as a part of the URL.
#[test]
fn a_signature_is_checked_with_the_scheme_that_the_proxy_reports() {
    let names = PlayedDns::start();
    let crawlers = crawlers().replace("rdns = [\".bot.example\"]", &format!("signature = \"{SIGNER}\""));
    let folder = site(&names, "", TRUSTING);
    folder.write("crawlers.toml", crawlers);
    save_key(&folder);
    let running = folder.start();
    for (path, proto, identity) in [
        ("/reported-http", "X-Forwarded-Proto: http\r\n", "verified"),
        ("/reported-https", "X-Forwarded-Proto: https\r\n", "refuted"),
        ("/unknown", "", "refuted"),
    ] {
        let signature = signature(path, "\"@target-uri\"");
        let head = format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: {BOT}\r\nConnection: close\r\n");
        running.send(format!("{head}{proto}{signature}\r\n").as_bytes());
        let line = running.wait_for_event("request", |line| line["path"] == path);
        assert_eq!(line["identity"], identity, "{path}");
    }
}

#[test]
fn a_list_that_its_server_does_not_confirm_is_counted_as_unconfirmed() {
    let names = PlayedDns::start();
    let crawlers = crawlers() + "ranges = [\"https://127.0.0.1:1/list.json\"]\n";
    let (_folder, running) = known_by(&names, "", "").file("crawlers.toml", crawlers).robots(ROBOTS).start();
    for (state, count) in [("confirmed", 0), ("unconfirmed", 1)] {
        let series = format!("robotsd_identity_lists{{state=\"{state}\"}} {count}\n");
        assert_has(&running.ask_admin("GET /metrics").body, &[&series]);
    }
}

#[test]
fn claims_that_cannot_be_refuted_are_a_problem_only_if_impostors_are_refused() {
    let names = PlayedDns::start();
    let crawlers = crawlers() + "ranges = [\"https://127.0.0.1:1/list.json\"]\n";
    let config = |mode: &str, identity: &str| {
        let config = known_by(&names, "", identity).keys(format!("mode = \"{mode}\""));
        config.file("crawlers.toml", &crawlers).robots(ROBOTS)
    };
    let (folder, running) = config("refuse", "rdns = false").start();
    running.wait_for_message("identity", "impostors pass unrecognised: ");
    folder.with_config(&["status", "--problems"]).succeeded();
    folder.configure(config("observe", "rdns = false\nimpostors = \"refuse\""));
    running.wait_for_message("config", "impostors");
    folder.with_config(&["status", "--problems"]).succeeded();
    // An override can also refuse impostors of its crawler.
    let refused = "[site.modes]\n\"agent:ExampleBot\" = \"refuse\"";
    folder.configure(config("observe", "rdns = false\nimpostors = \"refuse\"").tables(refused));
    wait_until("a problem", || folder.with_config(&["status", "--problems"]).code == Some(1));
    folder.configure(config("refuse", "rdns = false\nimpostors = \"refuse\""));
    running.wait_for_event("config-changed", |line| line["setting"] == "mode" && line["after"] == "refuse");
    let status = folder.with_config(&["status", "--problems"]).out;
    assert_has(unfolded(&status), &["problem: impostors pass unrecognised: ", "and no host names are looked up"]);
    assert_eq!(status.matches("impostors pass unrecognised").count(), 1, "{status}");
}

/// The resolver could refute claims, but has not answered yet.
#[test]
fn the_status_reports_a_problem_until_a_dns_resolver_has_answered() {
    let names = PlayedDns::start();
    let crawlers = crawlers() + "ranges = [\"https://127.0.0.1:1/list.json\"]\n";
    let config = known_by(&names, TRUSTING, "impostors = \"refuse\"").keys("mode = \"refuse\"");
    let (_folder, running) = config.file("crawlers.toml", crawlers).robots(ROBOTS).start();
    let problems = || running.command(&["status", "--problems"]);
    wait_until("a problem", || problems().code == Some(1));
    let want = "problem: impostors pass unrecognised: no published list was confirmed by its server \
                within a day, and no DNS resolver has answered";
    assert_has(unfolded(&problems().out), &[want]);
    running.wait_for_message("identity", "and no DNS resolver has answered for an hour");
    running.command(&["status", "--ready"]).succeeded();
    assert_eq!(running.ask_admin("GET /readyz").status, 200);
    names.confirmed(REAL, "crawl-1.bot.example");
    wait_until("the end of the problem", || {
        from(&running, REAL, "/page.html", BOT);
        problems().code == Some(0)
    });
}

#[test]
fn the_first_request_waits_for_dns_names_if_wait_is_configured() {
    let names = PlayedDns::start();
    for host in 1..=20 {
        names.confirmed(&format!("8.8.4.{host}"), &format!("crawl-{host}.bot.example"));
    }
    for (wait, want) in [("wait = \"250ms\"", "verified"), ("", "undecided")] {
        let folder = site(&names, wait, TRUSTING);
        let running = folder.start();
        let first = |client: &str| {
            assert_eq!(from(&running, client, "/page.html", BOT).status, 200);
            running.wait_for_event("request", |line| line["path"] == "/page.html" && line["address"] == client)
        };
        // Requests may wait only this long. On a busy machine, the host names may arrive later. In
        // this case, the test sends a first request from another address.
        let found = (1..=20).find(|host| first(&format!("8.8.4.{host}"))["identity"] == want);
        let requests = found.unwrap_or_else(|| panic!("{wait}: {:?}", running.all("request")));
        // A request that has waited must be counted like any other.
        assert_eq!(from(&running, &format!("8.8.4.{requests}"), "/robots.txt", BOT).status, 200);
        let text = running.ask_admin("GET /metrics").body;
        for series in [
            format!(
                "robotsd_crawler_requests_total{{site=\"shop\",crawler=\"ExampleBot\",outcome=\"allowed\",identity=\"{want}\"}} 1"
            ),
            format!("robotsd_decisions_total{{site=\"shop\",outcome=\"allowed\"}} {requests}"),
            "robotsd_decisions_total{site=\"shop\",outcome=\"untouched\"} 0".to_owned(),
            "robotsd_robots_txt_requests_total{site=\"shop\",crawler=\"ExampleBot\",code=\"200\"} 1".to_owned(),
        ] {
            assert_has(&text, &[&format!("{series}\n")]);
        }
    }
}

#[test]
fn requests_through_an_untrusted_proxy_are_not_refuted() {
    let names = PlayedDns::start();
    // All requests come from the address of the proxy, which has its own host name.
    let folder = site(&names, "impostors = \"refuse\"\nwait = \"250ms\"", "");
    let running = folder.start();
    for _ in 0..3 {
        assert_eq!(from(&running, REAL, "/page.html", BOT).status, 200);
    }
    let line = running.wait_for_event("request", |line| line["path"] == "/page.html");
    assert_eq!((&line["identity"], &line["identity_reason"]), (&"undecided".into(), &"address".into()));
    assert_eq!(names.asked(), Vec::<String>::new(), "an address of this machine is nobody's");
    drop(running);

    // This proxy has a public address, and the config does not list its network as trusted.
    names.names(IMPOSTOR, ptr(&["edge.cdn.example"]));
    let folder = site(&names, "impostors = \"refuse\"\nwait = \"250ms\"", TRUSTING);
    let running = folder.start();
    for _ in 0..3 {
        assert_eq!(from(&running, IMPOSTOR, "/page.html", BOT).status, 200);
    }
    let identity = status(&folder)["identity"].take();
    assert_eq!(identity["lists"], Value::Array(Vec::new()));
    let known = "names of 1 addresses known";
    wait_until(known, || folder.with_config(&["status"]).out.contains(known));
}

#[test]
fn a_config_reload_keeps_the_known_evidence() {
    let names = PlayedDns::start();
    names.confirmed(REAL, "crawl-1.bot.example");
    let folder = site(&names, "wait = \"250ms\"", TRUSTING);
    let running = folder.start();
    let is_verified = |path: &str| {
        from(&running, REAL, path, BOT);
        running.has_event("request", |line| line["path"] == path && line["identity"] == "verified")
    };
    wait_until("a verified request", || is_verified("/page.html"));
    // Every check begins with this query. One of its later queries may still be in progress.
    let asked = || names.asked().iter().filter(|question| question.starts_with("PTR ")).count();
    let before = asked();
    assert!(before > 0);
    let config = folder.read("robotsd.toml");
    folder.configure(config.replace("wait = \"250ms\"", "impostors = \"refuse\""));
    running.event("config");
    wait_until("a verified request under the new config", || is_verified("/other.html"));
    assert_eq!(asked(), before);
    // Without `[identity]`, claims are not checked.
    let without =
        config.split("[identity]").next().unwrap().to_owned() + "[log]\naddress = \"keep\"\naccess = \"json\"\n";
    folder.configure(without);
    wait_until("a config without the table", || {
        from(&running, REAL, "/drafts/x", BOT);
        running.has_event("refused", |line| line["identity"] == "claimed")
    });
    assert_eq!(status(&folder)["identity"], Value::Null);
}

#[test]
fn a_reload_uses_the_new_content_of_a_local_address_list() {
    let names = PlayedDns::start();
    let url = "https://127.0.0.1:1/list.json";
    let folder = site(&names, &format!("[[identity.list]]\nurl = \"{url}\"\npath = \"list.json\""), TRUSTING);
    folder.write("crawlers.toml", crawlers() + &format!("ranges = [\"{url}\"]\n"));
    folder.write("list.json", r#"{"prefixes": [{"ipv4Prefix": "8.8.8.0/24"}]}"#);
    let running = folder.start();
    let is_verified = |client: &str| {
        from(&running, client, "/page.html", BOT);
        running.has_event("request", |line| line["address"] == client && line["identity"] == "verified")
    };
    wait_until("a request verified by the list", || is_verified("8.8.8.1"));
    folder.write("list.json", r#"{"prefixes": [{"ipv4Prefix": "8.8.4.0/24"}]}"#);
    assert_has(running.command(&["reload"]).succeeded(), &["list.json has changed"]);
    wait_until("a request verified by the new list", || is_verified(REAL));
}

#[test]
fn agents_verify_prints_each_step_of_checking_a_claim() {
    let names = PlayedDns::start();
    names.confirmed(REAL, "crawl-1.bot.example").names(IMPOSTOR, ptr(&["host.other.example"]));
    let folder = site(&names, "", TRUSTING);
    let verify = |address: &str, agent: &str, code: i32| {
        folder.with_config(&["agents", "--verify", address, "--user-agent", agent]).ends_with(code).out
    };
    let text = verify(REAL, BOT, 0);
    let want = "8.8.4.1 as ExampleBot: verified(rdns)\n  the addresses of ExampleBot have DNS names such as .bot.example\n  \
                DNS names of 8.8.4.1: crawl-1.bot.example.\n  addresses of crawl-1.bot.example";
    assert!(text.starts_with(want), "{text}");

    // A single check cannot show that the resolver works on this path.
    let text = verify(IMPOSTOR, "ExampleBot", 3);
    let want = "9.9.9.9 as ExampleBot: undecided(unproven-resolver)\n  the evidence that was checked neither proves nor \
     disproves the claim\n";
    assert!(text.starts_with(want), "{text}");
    assert_has(verify("10.0.0.1", "ExampleBot", 3), &["so it proves nothing about the client"]);
    assert_has(verify(REAL, FIREFOX, 3), &["the request names no crawler"]);
    let asked = || names.asked().iter().filter(|question| question.starts_with("PTR ")).count();
    let before = asked();
    let offline = ["agents", "--verify", REAL, "--user-agent", BOT, "--offline", "--format", "json"];
    let answer = folder.with_config(&offline).ends_with(3).json();
    assert_part(&answer, &json!({ "identity": { "outcome": "undecided" }, "crawler": "ExampleBot" }));
    assert_eq!(asked(), before, "nothing is looked up");

    // The embedded lists can verify this claim.
    let text = run(robotsd().args(["agents", "--verify", "66.249.66.1", "--user-agent", "Googlebot", "--offline"])).out;
    let want = "66.249.66.1 as Googlebot: verified(range)\n  66.249.66.1 is in the list https://";
    assert!(text.starts_with(want), "{text}");
}

#[test]
fn explain_shows_how_a_request_from_an_address_is_handled() {
    let config = Config::refusing().site("shop", "root = \".\"\nrobots.path = \"robots.txt\"");
    let config = config.tables("[exempt]\ncidrs = [\"8.8.4.0/24\"]").robots("User-agent: GPTBot\nDisallow: /drafts/\n");
    let folder = config.folder();
    let explain = |address: &str, more: &[&str]| {
        let asked = ["explain", "--user-agent", "GPTBot", "/drafts/x", "--address", address];
        folder.with_config(&[&asked, more].concat())
    };
    let listed = Registry::builtin().crawler("GPTBot").unwrap().ranges[0].clone();
    let parts = ["  sender: the address is verified as the crawler's: verified(range)\n", &listed];
    assert_has(explain("20.171.206.1", &[]).out, &parts);
    assert_has(explain("9.9.9.9", &[]).out, &["  sender: the address is not verified: undecided(stale)\n"]);
    let answer = explain("8.8.4.1", &["--json"]).json();
    assert_part(&answer, &json!({ "action": "pass", "reason": "exempt", "identity": { "outcome": "undecided" } }));
}
