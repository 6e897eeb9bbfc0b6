//! Tests the pages that the gate protects: pages in sitemaps of a real upstream, pages in lists,
//! and pages that search engines request. Also tests a baseline.

use std::fmt::Write as _;

use super::identity::crawlers;
use crate::harness::*;
use crate::played_dns::PlayedDns;

const OPEN: &str = "User-agent: *\nDisallow: /cart/\n";
/// A mistaken version that blocks no crawler entirely.
const ACCIDENT: &str =
    "User-agent: *\nDisallow: /cart/\nDisallow: /news/\nDisallow: /2026/\nDisallow: /*?\nDisallow: /assets/\n";
/// A version that an owner may reasonably publish.
const EDIT: &str = "User-agent: *\nDisallow: /cart/\nDisallow: /admin/\n";

fn urlset(urls: impl Iterator<Item = String>) -> Vec<u8> {
    let urls = urls.fold(String::new(), |mut all, url| {
        let _ = write!(all, "<url><loc>{url}</loc></url>");
        all
    });
    format!("<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{urls}</urlset>")
        .into_bytes()
}

fn config(backend: &str, more: &str) -> Config {
    let keys = format!("hosts = [\"shop.test\"]\n{backend}\n[site.robots]\npath = \"robots.txt\"\n{more}");
    Config::new().keys("mode = \"observe\"\nstate_dir = \"state\"").admin().site("shop", keys)
}

fn site(backend: &str, more: &str) -> Folder {
    config(backend, more).robots(OPEN).file("page.html", "hello").folder()
}

fn before(upstream: &Origin) -> String {
    format!("upstreams = [\"http://{}\"]", upstream.address)
}

fn status(running: &Running) -> Value {
    running.ask_admin("GET /status").json()["sites"][0].take()
}

fn warning(running: &Running) -> String {
    message(&running.wait_for_event("gate", |line| line["level"] == "warn")).to_owned()
}

/// Waits until the gate protects this many pages of a list.
fn watches(running: &Running, of: &str, count: u64) {
    let is_it = |list: &Value| list["of"] == of && list["count"] == count;
    wait_for(&format!("{count} pages {of}"), || {
        status(running)["watched_pages"].as_array().is_some_and(|lists| lists.iter().any(is_it)).then_some(())
    });
}

fn live(running: &Running) -> String {
    running.request("GET", "/robots.txt", &[("Host", "shop.test"), ("User-Agent", FIREFOX)]).body
}

/// Publishes a robots.txt that passes the gate.
fn goes_live(folder: &Folder, running: &Running, text: &str) {
    folder.replace("robots.txt", text);
    wait_until("the version", || live(running) == text);
}

/// Waits until a version is pending, and returns the message about it.
fn waits(running: &Running) -> String {
    let event = running.event("gated");
    assert_eq!(live(running), OPEN, "the previous version stays");
    message(&event).to_owned()
}

#[test]
fn a_version_that_loses_sitemap_pages_is_held_and_accept_suggests_a_baseline_update() {
    let index = "<sitemapindex><sitemap><loc>https://shop.test/news.xml.gz</loc></sitemap>\
                 <sitemap><loc>https://shop.test/large.xml</loc></sitemap>\
                 <sitemap><loc>https://elsewhere.test/none.xml</loc></sitemap></sitemapindex>";
    let large = urlset((0..5_000).map(|number| format!("https://shop.test/2026/{number}")));
    let news = urlset((0..100).flat_map(|number| {
        [format!("https://shop.test/news/{number}"), format!("https://elsewhere.test/news/{number}")]
    }));
    let documents = [("/sitemap.xml", index.as_bytes().to_vec()), ("/news.xml.gz", gzip(&news)), ("/large.xml", large)];
    let upstream = Origin::of(documents);
    let folder = site(&before(&upstream), "baseline = \"robots.accepted.txt\"\n");
    folder.write("robots.accepted.txt", OPEN);
    let running = folder.start();
    running.command(&["reload"]).succeeded();
    watches(&running, "of the sitemaps", 5_100);
    let heads = upstream.requests();
    assert!(heads.iter().all(|head| head.to_ascii_lowercase().contains("host: shop.test\r\n")), "{heads:?}");
    assert!(!heads.iter().any(|head| head.contains("none.xml")), "{heads:?}");

    goes_live(&folder, &running, EDIT);
    goes_live(&folder, &running, OPEN);
    folder.replace("robots.txt", ACCIDENT);
    let message = waits(&running);
    let parts = ["lose 5100 of 5100 pages of the sitemaps (100 %)", "by line 3, \"/news/\"", "by line 4, \"/2026/\""];
    assert_has(&message, &parts);
    let report = status(&running);
    let objections = report["pending"]["objections"].as_array().unwrap();
    assert_eq!(objections.len(), 12, "a sum, ten pages, and how many more: {objections:?}");
    assert_eq!(report["problems"], json!([]));

    let hash = report["pending"]["hash"].as_str().unwrap();
    let said = running.command(&["accept", "shop", hash]).succeeded();
    assert_eq!(live(&running), ACCIDENT);
    let copy = said.lines().find(|line| line.trim().starts_with("cp ")).expect(&said).trim();
    // The suggested command must work as it is printed.
    assert!(Command::new("sh").arg("-c").arg(copy).status().unwrap().success());
    assert_eq!(folder.read("robots.accepted.txt"), ACCIDENT);
}

#[test]
fn unreadable_sitemaps_hold_no_version_and_their_known_pages_still_count() {
    let pages = urlset((0..30).map(|number| format!("https://shop.test/news/{number}")));
    let upstream = Origin::of([("/sitemap.xml", pages)]);
    let folder = site(&before(&upstream), "");
    let mut running = folder.start();
    running.command(&["reload"]).succeeded();
    watches(&running, "of the sitemaps", 30);
    running.end();

    folder.configure(config(&before(&Origin::down()), ""));
    let running = folder.start();
    watches(&running, "of the sitemaps", 30);
    running.command(&["reload"]).succeeded();
    let note = warning(&running);
    assert_has(&note, &["shop: the sitemaps cannot be read: https://shop.test/sitemap.xml: "]);
    assert!(note.ends_with("the gate continues to watch the 30 pages that it knows"), "{note}");
    assert_has(
        running.command(&["status"]).out,
        &["gate: the sitemaps cannot be read", "watches 30 pages of the sitemaps"],
    );
    goes_live(&folder, &running, EDIT);
    goes_live(&folder, &running, OPEN);
    folder.replace("robots.txt", ACCIDENT);
    assert_has(waits(&running), &["lose 30 of 30 pages of the sitemaps"]);
}

#[test]
fn broken_sitemaps_are_reported_and_do_not_hold_a_version() {
    let broken = b"<html>down for maintenance</html>".to_vec();
    let elsewhere = urlset(["https://elsewhere.test/".to_owned()].into_iter());
    let upstream = Origin::of([("/sitemap.xml", broken), ("/own.xml", elsewhere)]);
    let folder = site(&before(&upstream), "");
    let named = "Sitemap: https://shop.test/sitemap.xml\nSitemap: https://shop.test/own.xml\nSitemap: https://shop.test/missing.xml\nSitemap: https://cdn.test/s.xml\n";
    folder.replace("robots.txt", format!("{OPEN}{named}"));
    let running = folder.start();
    running.command(&["reload"]).succeeded();
    let note = running.event("gate");
    let parts = ["own.xml: all pages in this sitemap are on other hosts", "sitemap.xml: the document is not a sitemap"];
    assert_has(message(&note), &parts);
    goes_live(&folder, &running, ACCIDENT);
}

#[test]
fn a_site_without_a_sitemap_has_no_problem_if_the_upstream_returns_a_web_page() {
    let page = b"<!doctype html><title>An application</title>".to_vec();
    let upstream = Origin::of([("/sitemap.xml", page)]);
    let folder = site(&before(&upstream), "");
    let running = folder.start();
    running.command(&["reload"]).succeeded();
    wait_until("the request", || !upstream.requests().is_empty());
    running.command(&["reload"]).succeeded();
    wait_until("the next one", || upstream.requests().len() > 1);
    assert_eq!((status(&running)["problems"].clone(), running.events("gate")), (json!([]), 0));
}

#[test]
fn a_url_list_protects_pages_and_an_updated_baseline_accepts_a_held_version() {
    let folder =
        site("root = \".\"", "baseline = \"robots.accepted.txt\"\n[gate]\nurls = \"urls.txt\"\nsitemaps = false\n");
    folder.write("urls.txt", "# what matters\n/\n/news/\nhttps://shop.test/2026/a\nhttps://other.test/2026/b\n");
    folder.write("robots.accepted.txt", OPEN);
    let running = folder.start();
    watches(&running, "of urls.txt", 3);
    folder.replace("robots.txt", ACCIDENT);
    assert_has(waits(&running), &["lose 2 of 3 pages of urls.txt (67 %)"]);
    folder.replace("robots.accepted.txt", ACCIDENT);
    wait_until("the version", || live(&running) == ACCIDENT);
    // The gate must use a changed list. If a list cannot be read, the gate must keep the known
    // pages.
    folder.replace("urls.txt", "/guide/1\n/guide/2\n");
    watches(&running, "of urls.txt", 2);
    folder.replace("urls.txt", "guide\n");
    let note = warning(&running);
    assert_has(&note, &["the list of URLs cannot be read", "urls.txt:1:1: \"guide\""]);
    watches(&running, "of urls.txt", 2);
}

#[test]
fn a_list_that_lost_most_pages_is_a_problem_until_it_is_restored_or_reloaded() {
    let sitemap = |count: usize| urlset((0..count).map(|number| format!("https://shop.test/news/{number}")));
    let urls = |count: usize| (0..count).map(|number| format!("/guide/{number}\n")).collect::<String>();
    let folder = site("root = \".\"", "[gate]\nurls = \"urls.txt\"\n");
    folder.write("sitemap.xml", sitemap(30));
    folder.write("urls.txt", urls(31));
    let mut running = folder.start();
    running.command(&["reload"]).succeeded();
    watches(&running, "of the sitemaps", 30);
    watches(&running, "of urls.txt", 31);
    // Losing half of a list must not be reported.
    folder.replace("urls.txt", urls(16));
    watches(&running, "of urls.txt", 16);
    assert_eq!(status(&running)["problems"], json!([]));

    let lost = |of: &str, has: &str, had: usize| {
        format!(
            "the list of pages {of} contains only {has} (before: {had}), so the gate does not watch the missing pages"
        )
    };
    folder.replace("urls.txt", urls(7));
    let of_urls = lost("of urls.txt", "7 pages", 16);
    assert_has(warning(&running), &[&format!("shop: {of_urls}")]);
    watches(&running, "of urls.txt", 7);
    let said = format!("problem: gate: {of_urls}: if they were removed on purpose, run `robotsd reload`");
    wait_until(&said, || unfolded(&running.command(&["status"]).out).contains(&said));
    // A growing list must be compared with its last complete content.
    folder.replace("urls.txt", urls(8));
    watches(&running, "of urls.txt", 8);
    let problems = || status(&running)["problems"].to_string();
    wait_until("no problem", || problems() == "[]");

    folder.replace("sitemap.xml", sitemap(1));
    running.command(&["reload"]).succeeded();
    watches(&running, "of the sitemaps", 1);
    let of_sitemaps = lost("of the sitemaps", "1 page", 30);
    wait_until(&of_sitemaps, || problems().contains(&of_sitemaps));
    // The warning must be logged only once. After a full reload, the operator is assumed to have
    // seen it.
    running.command(&["reload"]).succeeded();
    wait_until("no problem", || problems() == "[]");
    let said = || running.count("gate", |line| line["level"] == "warn" && message(line).contains("the list of pages"));
    wait_until("a line for each list", || said() >= 2);
    assert_eq!(said(), 2);
    running.end();
    // After a restart, the gate must use the list that it read last.
    let running = folder.start();
    watches(&running, "of the sitemaps", 1);
    assert_eq!(status(&running)["problems"], json!([]));
}

#[test]
fn the_gate_protects_pages_that_verified_search_engines_request_most() {
    let names = PlayedDns::start();
    names.confirmed("8.8.4.1", "crawl-1.bot.example");
    let more = format!(
        "[agents]\nregistry_extra = \"crawlers.toml\"\n[identity]\nresolvers = [\"{}\"]\nwait = \"200ms\"\n[gate]\nsitemaps = false\n",
        names.address
    );
    let folder = site("root = \".\"", &more);
    let config = folder.read("robotsd.toml");
    let trusting = config.replacen("[admin]", "trusted_proxies = [\"127.0.0.0/8\"]\n[admin]", 1);
    folder.write("robotsd.toml", trusting);
    folder.write("crawlers.toml", crawlers() + "index = true\n");
    let running = folder.start();
    let bot = "ExampleBot/1.0 (+https://bot.example/about)";
    let request = |path: &str, client: &str| {
        running.request("GET", path, &[("Host", "shop.test"), ("User-Agent", bot), ("X-Forwarded-For", client)])
    };
    // Requests of other clients must not count.
    (0..9).for_each(|_| drop(request("/impostor", "9.9.9.9")));
    wait_until("the board to have them", || {
        // The first request may arrive before the host names have been resolved.
        for path in ["/news/1", "/news/2?token=secret", "/2026/a", "/page.html"] {
            request(path, "8.8.4.1");
        }
        running.command(&["reload"]).succeeded();
        let lists = status(&running)["watched_pages"].clone();
        lists[0]["count"] == 4 && lists[0]["of"] == "that search engines request most"
    });
    folder.replace("robots.txt", ACCIDENT);
    let message = waits(&running);
    assert_has(&message, &["lose 3 of 4 pages that search engines request most (75 %)"]);
    assert!(!message.contains("secret"), "{message}");
}

#[test]
fn a_first_start_serves_the_baseline_while_another_version_is_held() {
    let folder = site("root = \".\"", "baseline = \"robots.accepted.txt\"\n[gate]\nsitemaps = false\n");
    folder.write("robots.accepted.txt", OPEN);
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    // There are no files of an earlier process, as in a container that was replaced.
    for _ in 0..2 {
        let _ = fs::remove_dir_all(folder.at("state"));
        let running = folder.start();
        assert_eq!(live(&running), OPEN);
        waits(&running);
    }
}

#[test]
fn accept_suggests_the_served_file_as_the_baseline_if_a_list_is_appended() {
    let folder = site(
        "root = \".\"",
        "baseline = \"robots.accepted.txt\"\n[[site.robots.append]]\npath = \"ai.txt\"\n[gate]\nsitemaps = false\n",
    );
    folder.write("ai.txt", "User-agent: GPTBot\nDisallow: /\n");
    folder.write("robots.accepted.txt", OPEN);
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    let running = folder.start();
    waits(&running);
    let waiting = status(&running)["pending"]["hash"].as_str().unwrap().to_owned();
    let said = unfolded(&running.command(&["accept", "shop", &waiting]).succeeded());
    assert_has(&said, &["save /robots.txt as it is served now"]);
    assert_lacks(&said, &["cp "]);
    let served = live(&running);
    assert_has(&served, &["# From ai.txt"]);
    folder.write("robots.accepted.txt", served);
    folder.configured(["config", "check", "--gate"]).succeeded();
}

#[test]
fn config_check_gate_compares_a_version_with_the_baseline_without_any_state() {
    let folder = site("root = \".\"", "baseline = \"robots.accepted.txt\"\n[gate]\nurls = \"urls.txt\"\n");
    folder.write("urls.txt", "/\n/news/1\n/news/2\n");
    folder.write("sitemap.xml", urlset((0..400).map(|number| format!("https://shop.test/2026/{number}"))));
    let check = |more: &[&str]| folder.with_config(&[&["config", "check", "--gate"], more].concat());
    let lacks_baseline =
        || assert_has(check(&[]).failed(1), &["the baseline (the accepted version) cannot be read: copy"]);
    lacks_baseline();
    folder.write("robots.accepted.txt", "<html>");
    lacks_baseline();
    folder.write("robots.accepted.txt", OPEN);
    check(&[]).succeeded();
    folder.replace("robots.txt", EDIT);
    assert_eq!(check(&[]).ends_with(0).error, "");

    folder.replace("robots.txt", ACCIDENT);
    let waits = check(&[]).ends_with(1);
    assert_has(waits.out, &["can be served, but the gate would hold new versions of a robots.txt"]);
    let parts = [
        "the gate would hold the version:",
        "lose 2 of 3 pages of urls.txt",
        "robotsd.toml:",
        "\"/news/1\" by line 3, \"/news/\"",
    ];
    assert_has(waits.error, &parts);
    let sitemap = ["--sitemap", "sitemap.xml"];
    assert_has(
        check(&sitemap).error,
        &["lose 400 of 400 pages of the sitemaps (100 %)", "and 390 more of these pages"],
    );
    assert_has(check(&["--sitemap", "/none.xml"]).failed(1), &["the sitemaps cannot be read: /none.xml"]);
    // The operator accepts the version by committing it.
    folder.write("robots.accepted.txt", ACCIDENT);
    check(&sitemap).succeeded();
    assert!(!folder.at("state").exists(), "no state is read or made");
}
