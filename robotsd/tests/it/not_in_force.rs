//! Tests what an operator sees if a config key has no effect because something is broken at the
//! start or breaks later, and what the operator sees after the repair.
//!
//! The table has a cell for every place that an operator checks, even if that place shows no
//! problem.

use std::cell::RefCell;
use std::collections::HashMap;

use data_encoding::HEXLOWER;

use super::fleet_calls::comes_to;
use super::fleet_store::forwarder::Forwarder;
use super::identity::{TRUSTING, crawlers, known_by};
use super::shared_rate::server::any_store;
use super::tls;
use super::upstreams::secure_origin;
use crate::harness::*;
use crate::played_dns::PlayedDns;

/// The exit status of a command, and part of its output.
type Said = (i32, &'static str);
/// Parts of the line in the metrics, and the value of the line.
type Metric = (&'static [&'static str], &'static str);
/// The event in the log, and part of its message.
type Logged = (&'static str, &'static str);

/// What each place must show.
struct Cells {
    config_check: Said,
    problems: Said,
    ready: &'static str,
    metric: Metric,
    log: Logged,
}

struct Row {
    key: &'static str,
    at_start: Cells,
    later: Cells,
    mended: Cells,
}

const SERVED: Said = (0, "can be served");
const READY: &str = "ready";

/// What a command prints if no process is running.
const NOBODY: &str = "nobody answers";

/// Returns the cells of a process that is ready and whose config is valid.
const fn served(problems: Said, metric: Metric, log: Logged) -> Cells {
    Cells { config_check: SERVED, problems, ready: READY, metric, log }
}

/// Like [`served`], for a site that needs no attention.
const fn well(metric: Metric, log: Logged) -> Cells {
    served((0, "0 of 1 sites need attention"), metric, log)
}

const CONFIRMED: &[&str] = &["robotsd_identity_lists{", "\"confirmed\""];
const UNCONFIRMED: &[&str] = &["robotsd_identity_lists{", "\"unconfirmed\""];
const REJECTED_PAIR: &[&str] = &["robotsd_tls_certificate_rejected{path="];
const NOT_APPENDED: &str = "the file does not exist; this list is not available, so it is not appended";
const PENDING_HOOK: &[&str] = &["robotsd_publish_pending{site=\"shop\",target="];
const UNREAD: &[&str] = &["robotsd_site_gate_unread{site=\"shop\"}"];

const TABLE: &[Row] = &[
    Row {
        key: "[identity]",
        at_start: served(
            (1, "impostors pass unrecognised: "),
            (CONFIRMED, "0"),
            ("identity", "impostors pass unrecognised: "),
        ),
        // Evidence that was fetched within a day can still refute claims.
        later: served(
            (0, "1 of 1 published list cannot be fetched"),
            (CONFIRMED, "1"),
            ("identity", "1 of 1 published list cannot be fetched"),
        ),
        mended: well((UNCONFIRMED, "1"), ("identity", "a DNS resolver answers again")),
    },
    Row {
        key: "rate.store",
        at_start: served((1, " is not used: "), (&["robotsd_rate_store_up"], "0"), ("rate-store", " is not used: ")),
        later: served((1, " is not used: "), (&["robotsd_rate_store_up"], "0"), ("rate-store", " is not used: ")),
        mended: well(
            (&["robotsd_rate_store_up"], "1"),
            ("rate-store", " responds: requests of crawlers are counted there for all processes"),
        ),
    },
    Row {
        key: "certificate",
        at_start: Cells {
            config_check: (2, "the key does not match the first certificate"),
            problems: (2, "robotsd"),
            ready: NOBODY,
            metric: (&[NOBODY], NOBODY),
            log: ("standard error", "the key does not match the first certificate"),
        },
        later: Cells {
            config_check: (2, "the key does not match the first certificate"),
            ..served(
                (1, "; the previous certificate stays in use, but a restart would fail"),
                (REJECTED_PAIR, "1"),
                ("certificate-rejected", "; the previous certificate stays in use, but a restart would fail"),
            )
        },
        mended: well((REJECTED_PAIR, "0"), ("certificate", "used for")),
    },
    Row {
        key: "append",
        at_start: Cells {
            config_check: (0, NOT_APPENDED),
            problems: (1, NOT_APPENDED),
            ready: "is not available, so it is not appended",
            metric: (&["robotsd_append_part_state{", "\"missing\""], "1"),
            log: ("append", "the file does not exist; this list is not available"),
        },
        later: Cells {
            config_check: (
                1,
                "the appended list \"ai.txt\" has not been read yet; without the list, the crawlers that it names would be allowed",
            ),
            ..served(
                (1, "this is an HTML page, not a robots.txt; the last good version of the list is appended"),
                (&["robotsd_append_part_state{", "\"last-good\""], "1"),
                ("append", "this is an HTML page, not a robots.txt; the last good version of the list stays in use"),
            )
        },
        mended: well(
            (&["robotsd_append_part_state{", "\"appended\""], "1"),
            ("append", "which contains 1 crawler name, is now appended"),
        ),
    },
    Row {
        key: "on_publish",
        at_start: served(
            (1, "robotsd will send the request again"),
            (PENDING_HOOK, "1"),
            ("on-publish", "; the next attempt is in "),
        ),
        later: served(
            (1, "robotsd will send the request again"),
            (PENDING_HOOK, "1"),
            ("on-publish", "; the next attempt is in "),
        ),
        mended: well((PENDING_HOOK, "0"), ("on-publish", "the receiver answered with status 200")),
    },
    Row {
        key: "gate.sitemaps",
        at_start: served(
            (1, "gate: the sitemaps cannot be read: https://shop.test/sitemap.xml: "),
            (UNREAD, "1"),
            ("gate", "shop: the sitemaps cannot be read: https://shop.test/sitemap.xml: "),
        ),
        later: served(
            (1, "; the gate continues to watch the 1 pages that it knows"),
            (UNREAD, "1"),
            ("gate", "; the gate continues to watch the 1 pages that it knows"),
        ),
        mended: well((UNREAD, "0"), ("gate", "shop: resolved: the sitemaps cannot be read: ")),
    },
    Row {
        key: "registry_url",
        at_start: served(
            (1, "/crawlers.toml: the server answered 503"),
            (&["robotsd_registry_rejected"], "1"),
            ("registry-rejected", "the server answered 503"),
        ),
        later: served(
            (1, "/crawlers.toml: the server answered 503"),
            (&["robotsd_registry_rejected"], "1"),
            ("registry-rejected", "the server answered 503"),
        ),
        mended: well((&["robotsd_registry_rejected"], "0"), ("registry", "/crawlers.toml: this registry is used now")),
    },
    Row {
        key: "fleet",
        at_start: Cells {
            ready: "enforcement is OFF",
            ..served(
                (1, "fleet: shop is unknown"),
                (&["robotsd_fleet_store_up{"], "0"),
                ("fleet", "the replica keeps using the document that it read last"),
            )
        },
        later: served(
            (1, "fleet \"shop\" is stale: "),
            (&["robotsd_fleet_store_up{"], "0"),
            ("fleet", "the replica keeps using the document that it read last"),
        ),
        mended: well(
            (&["robotsd_fleet_store_up{"], "1"),
            ("fleet", "the store of the fleet can be read and written again"),
        ),
    },
];

#[test]
fn no_cell_of_the_table_is_empty() {
    for Row { key, at_start, later, mended } in TABLE {
        for Cells { config_check, problems, ready, metric, log } in [at_start, later, mended] {
            let texts = [config_check.1, problems.1, ready, metric.1, log.0, log.1];
            let cells = texts.iter().chain(metric.0);
            assert!(!metric.0.is_empty() && cells.copied().all(|text| !text.is_empty()), "{key}");
        }
    }
}

fn row(key: &str) -> &'static Row {
    TABLE.iter().find(|row| row.key == key).unwrap()
}

/// A process, and, for each cell, the number of log lines with its text at the last check.
struct Scene {
    folder: Folder,
    running: Running,
    seen: RefCell<HashMap<&'static str, usize>>,
}

impl Scene {
    fn start(config: &Config) -> Self {
        Self::of(config.folder())
    }

    fn of(folder: Folder) -> Self {
        let running = folder.start();
        Self { folder, running, seen: RefCell::default() }
    }

    /// Waits until each place shows the text of its cell, and until the log has a new line with the
    /// text of its cell.
    fn says(&self, Cells { config_check, problems, ready, metric, log }: &Cells) {
        comes_to(|| self.folder.configured(["config", "check"]), config_check.0, &[config_check.1]);
        comes_to(|| self.running.command(&["status", "--problems"]), problems.0, &[problems.1]);
        wait_until(ready, || {
            let answer = self.running.ask_admin("GET /readyz");
            answer.status == 200 && answer.body.contains(ready)
        });
        wait_until(metric.0[0], || {
            let text = self.running.ask_admin("GET /metrics").body;
            let is_it = |line: &&str| metric.0.iter().all(|part| line.contains(part)) && !line.starts_with('#');
            text.lines().filter(is_it).any(|line| line.rsplit(' ').next() == Some(metric.1))
        });
        let lines =
            || self.running.count(log.0, |line| line["message"].as_str().is_some_and(|text| text.contains(log.1)));
        let before = self.seen.borrow().get(log.1).copied().unwrap_or_default();
        wait_until(log.1, || lines() > before);
        self.seen.borrow_mut().insert(log.1, lines());
    }

    /// Fixes what was broken at the start, and then breaks it again.
    fn plays(&self, row: &Row, mend: impl Fn(usize), break_it: impl Fn()) {
        self.says(&row.at_start);
        mend(0);
        self.says(&row.mended);
        break_it();
        self.says(&row.later);
        mend(1);
        self.says(&row.mended);
    }
}

fn config() -> Config {
    Config::refusing().keys("state_dir = \"state\"").admin()
}

#[test]
fn claims_that_cannot_be_refuted_are_reported_until_a_dns_resolver_answers() {
    const LIST: &str = "https://127.0.0.1:1/list.json";
    let row = row("[identity]");
    let names = PlayedDns::start();
    let crawlers = format!("{}ranges = [{LIST:?}]\n", crawlers());
    let config = known_by(&names, TRUSTING, "impostors = \"refuse\"").keys("mode = \"refuse\"\ngrace = \"24h\"");
    let config = config.file("crawlers.toml", crawlers).robots("User-agent: *\nDisallow: /drafts/\n");
    let scene = Scene::start(&config);
    scene.says(&row.at_start);
    names.confirmed("8.8.4.1", "crawl-1.bot.example");
    let bot = [("User-Agent", "ExampleBot/1.0"), ("X-Forwarded-For", "8.8.4.1")];
    wait_until("an answer of the resolver", || {
        scene.running.request("GET", "/page.html", &bot);
        scene.running.command(&["status", "--problems"]).code == Some(0)
    });
    scene.says(&row.mended);

    // Another process has fetched this list, whose server no longer runs.
    let folder = config.folder();
    let name = HEXLOWER.encode(&hmac_sha256::Hash::hash(LIST.as_bytes()));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let saved = json!({"url": LIST, "confirmed": now, "body": "{\"prefixes\": [{\"ipv4Prefix\": \"8.8.8.0/24\"}]}"});
    folder.write(format!("state/evidence/{}.json", &name[..32]), saved.to_string());
    Scene::of(folder).says(&row.later);
}

#[test]
fn an_unresponsive_rate_store_is_reported_until_it_responds() {
    let Some(store) = any_store() else { return };
    let way = Forwarder::start(store.address());
    way.cut();
    let site = "root = \"root\"\nrobots.path = \"robots.txt\"\n[site.rate]\nmode = \"refuse\"";
    let config = config().keys(format!("rate.store = \"redis://{}\"", way.address)).site("shop", site);
    let scene = Scene::start(&config.robots("User-agent: *\nCrawl-delay: 10\n").file("root/page", ""));
    scene.plays(row("rate.store"), |_| way.lead_to(store.address()), || way.cut());
}

#[test]
fn an_unusable_certificate_is_reported_until_it_is_replaced() {
    let row = row("certificate");
    let certificate = "[[listener.certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"";
    let folder = config().listener(certificate).files_of("shop").robots("# open\n").folder();
    tls::certify(folder.path(), &["a.test"]);
    let (path, own) = (folder.at("a.key"), folder.read("a.key"));
    let other = self::folder(&[]);
    tls::certify(other.path(), &["other.test"]);
    let other = other.read("a.key");
    tls::put(&path, &other);
    let Cells { config_check, problems, log, .. } = &row.at_start;
    comes_to(|| folder.configured(["config", "check"]), config_check.0, &[config_check.1]);
    assert_has(folder.configured(["serve", "--config"]).failed(2), &[log.1]);
    assert_has(folder.with_config(&["status", "--problems"]).failed(problems.0), &[problems.1]);
    tls::put(&path, &own);
    let scene = Scene::of(folder);
    scene.says(&row.mended);
    tls::put(&path, &other);
    scene.says(&row.later);
    tls::put(&path, &own);
    scene.says(&row.mended);
}

#[test]
fn a_list_that_is_not_appended_is_reported_until_it_is_valid() {
    let site = "root = \"root\"\nrobots.path = \"robots.txt\"\n[[site.robots.append]]\npath = \"ai.txt\"";
    let config = config().site("shop", site).robots("User-agent: *\nDisallow: /drafts/\n").file("root/page", "");
    let scene = Scene::start(&config);
    let list = |number: usize| {
        scene.folder.replace("ai.txt", format!("User-agent: GPTBot\nDisallow: /\n# {number}\n"));
    };
    scene.plays(row("append"), list, || scene.folder.replace("ai.txt", "<!doctype html><title>Not found</title>"));
}

#[test]
fn a_version_that_is_not_announced_is_reported_until_the_receiver_accepts_it() {
    let server = Origin::showing(503, "");
    let hook = format!("[[site.robots.on_publish]]\nurl = \"http://{}/purge\"", server.address);
    let site = format!("hosts = [\"shop.test\"]\nroot = \"root\"\nrobots.path = \"robots.txt\"\n{hook}");
    let version = |number: usize| format!("User-agent: *\nDisallow: /drafts/\n# {number}\n");
    let scene = Scene::start(&config().site("shop", site).robots(version(0)).file("root/page", ""));
    // A new version is announced immediately.
    let mend = |number: usize| {
        server.show(200, "");
        scene.folder.replace("robots.txt", version(1 + number));
    };
    scene.plays(row("on_publish"), mend, || {
        server.show(503, "");
        scene.folder.replace("robots.txt", version(9));
    });
}

#[test]
fn sitemaps_that_the_gate_cannot_read_are_reported_until_they_are_readable() {
    let upstream = Origin::showing(503, "");
    let site = format!("hosts = [\"shop.test\"]\nupstreams = [\"http://{upstream}\"]\nrobots.path = \"robots.txt\"");
    let robots = "User-agent: *\nDisallow: /drafts/\n\nSitemap: https://shop.test/sitemap.xml\n";
    let scene = Scene::start(&config().site("shop", site).robots(robots));
    let show = |status: u16, text: &str| {
        upstream.show(status, text);
        scene.running.command(&["reload"]).succeeded();
    };
    show(503, "");
    let mend = |_| show(200, "<urlset><url><loc>https://shop.test/a</loc></url></urlset>");
    scene.plays(row("gate.sitemaps"), mend, || show(503, ""));
}

#[test]
fn a_registry_that_cannot_be_fetched_is_reported_until_it_is_fetched() {
    let (server, ca) = secure_origin("localhost", "");
    server.show(503, "");
    let url = format!("https://localhost:{}/crawlers.toml", server.address.port());
    let registry = format!("[agents]\nregistry_url = {url:?}\nregistry_ca = \"ca.pem\"");
    let config = config().files_of("shop").robots("# open\n").file("ca.pem", ca).tables(registry);
    let scene = Scene::start(&config);
    let show = |status: u16, text: &str| {
        server.show(status, text);
        scene.running.command(&["reload"]);
    };
    let mend = |number: usize| show(200, &format!("[[crawler]]\nname = \"Bot{number}\"\ncategory = \"seo\"\n"));
    scene.plays(row("registry_url"), mend, || show(503, ""));
}

#[test]
fn a_fleet_with_an_unreachable_store_is_reported_until_the_store_responds() {
    let Some(store) = any_store() else { return };
    let way = Forwarder::start(store.address());
    way.cut();
    let config = format!(
        "mode = \"refuse\"\nstate_dir = \"state\"\n[admin]\nsocket = \"admin.sock\"\n[[admin.listener]]\n\
         address = \"127.0.0.1:0\"\naccess = \"full\"\n[fleet]\nname = \"shop\"\nreplica = \"web-1\"\n\
         store = \"redis://{}\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\nroot = \".\"\n",
        way.address
    );
    let scene = Scene::of(folder(&[("robotsd.toml", &config), ("robots.txt", "User-agent: *\nDisallow: /drafts/\n")]));
    let operator = folder(&[]);
    operator.configure(format!("[fleet]\nname = \"shop\"\nreplicas = [\"{}\"]\n", scene.running.admin()));
    let mend = |_| {
        way.lead_to(store.address());
        wait_until("a document", || {
            let init = operator.with_config(&["fleet", "init"]);
            init.code == Some(0) || init.error.contains("already has a document")
        });
    };
    scene.plays(row("fleet"), mend, || way.cut());
}
