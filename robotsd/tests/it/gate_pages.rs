//! Pages that the gate watches: sitemaps of a real upstream, lists, what search engines request; and a baseline.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use serde_json::Value;

use super::identity::crawlers;
use super::played_names::PlayedNames;
use crate::harness::{
    ADMIN, Ended, FIREFOX, Folder, LISTENER, Origin, Running, assert_has, folder, replace_file, robotsd, run, wait_for,
    wait_until,
};

const OPEN: &str = "User-agent: *\nDisallow: /cart/\n";
/// The accident that shuts no crawler out at large.
const ACCIDENT: &str =
    "User-agent: *\nDisallow: /cart/\nDisallow: /news/\nDisallow: /2026/\nDisallow: /*?\nDisallow: /assets/\n";
/// What a reasonable owner does.
const EDIT: &str = "User-agent: *\nDisallow: /cart/\nDisallow: /admin/\n";

fn urlset(urls: impl Iterator<Item = String>) -> Vec<u8> {
    let urls = urls.fold(String::new(), |mut all, url| {
        let _ = write!(all, "<url><loc>{url}</loc></url>");
        all
    });
    format!("<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{urls}</urlset>")
        .into_bytes()
}

fn packed(octets: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(octets).unwrap();
    packer.finish().unwrap()
}

fn config(backend: &str, more: &str) -> String {
    format!(
        "mode = \"observe\"\nstate_dir = \"state\"\n{LISTENER}{ADMIN}[[site]]\nname = \"shop\"\n\
         hosts = [\"shop.test\"]\n{backend}\n[site.robots]\npath = \"robots.txt\"\n{more}"
    )
}

fn site(backend: &str, more: &str) -> Folder {
    folder(&[("robotsd.toml", &config(backend, more)), ("robots.txt", OPEN), ("page.html", "hello")])
}

fn command(running: &Running, arguments: &[&str]) -> Ended {
    run(robotsd().args(arguments).arg("--admin").arg(running.admin().to_string()))
}

fn status(running: &Running) -> Value {
    command(running, &["status", "--json"]).json()["sites"][0].clone()
}

/// Waits until the gate watches so many pages of these.
fn watches(running: &Running, of: &str, count: u64) {
    let is_it = |list: &Value| list["of"] == of && list["count"] == count;
    wait_for(&format!("{count} pages {of}"), || {
        status(running)["watched_pages"].as_array().is_some_and(|lists| lists.iter().any(is_it)).then_some(())
    });
}

fn live(running: &Running) -> String {
    running.request("GET", "/robots.txt", &[("Host", "shop.test"), ("User-Agent", FIREFOX)]).body
}

fn goes_live(running: &Running, text: &str) {
    wait_until("the version", || live(running) == text);
}

/// The message about the version that waits.
fn waits(running: &Running) -> String {
    let message = running.event("gated")["message"].as_str().unwrap().to_owned();
    assert_eq!(live(running), OPEN, "the version before stays");
    message
}

#[test]
fn the_accident_waits_by_sitemaps_of_the_upstream_and_accept_says_what_to_commit() {
    let index = "<sitemapindex><sitemap><loc>https://shop.test/news.xml.gz</loc></sitemap>\
                 <sitemap><loc>https://shop.test/large.xml</loc></sitemap>\
                 <sitemap><loc>https://elsewhere.test/none.xml</loc></sitemap></sitemapindex>";
    let large = urlset((0..50_000).map(|number| format!("https://shop.test/2026/{number}")));
    let news = urlset((0..100).flat_map(|number| {
        [format!("https://shop.test/news/{number}"), format!("https://elsewhere.test/news/{number}")]
    }));
    let documents =
        [("/sitemap.xml", index.as_bytes().to_vec()), ("/news.xml.gz", packed(&news)), ("/large.xml", large)];
    let upstream = Origin::of(documents);
    let folder =
        site(&format!("upstreams = [\"http://{}\"]", upstream.address), "baseline = \"robots.accepted.txt\"\n");
    folder.write("robots.accepted.txt", OPEN);
    let running = folder.start();
    assert!(command(&running, &["reload"]).code == Some(0));
    // 50,100 are more than are kept, so it is every second.
    watches(&running, "of the sitemaps", 25_050);
    let heads = upstream.requests();
    assert!(heads.iter().all(|head| head.to_ascii_lowercase().contains("host: shop.test\r\n")), "{heads:?}");
    assert!(!heads.iter().any(|head| head.contains("none.xml")), "{heads:?}");

    folder.replace("robots.txt", EDIT);
    goes_live(&running, EDIT);
    folder.replace("robots.txt", OPEN);
    goes_live(&running, OPEN);
    folder.replace("robots.txt", ACCIDENT);
    let message = waits(&running);
    assert_has(
        &message,
        &["lose 25050 of 25050 pages of the sitemaps (100 %)", "by line 3, \"/news/\"", "by line 4, \"/2026/\""],
    );
    let report = status(&running);
    let objections = report["pending"]["objections"].as_array().unwrap();
    assert_eq!(objections.len(), 12, "a sum, ten pages, and how many more: {objections:?}");
    assert_eq!(report["troubles"], serde_json::json!([]));

    let hash = report["pending"]["hash"].as_str().unwrap();
    let accepted = command(&running, &["accept", "shop", hash]);
    let said = accepted.out;
    assert!(accepted.code == Some(0) && live(&running) == ACCIDENT, "{said}");
    let copy = said.lines().find(|line| line.trim().starts_with("cp ")).expect(&said).trim();
    // What it says can be typed.
    assert!(std::process::Command::new("sh").arg("-c").arg(copy).status().unwrap().success());
    assert_eq!(folder.read("robots.accepted.txt"), ACCIDENT);
}

#[test]
fn sitemaps_that_cannot_be_read_refuse_nothing_and_those_that_were_read_still_count() {
    let pages = urlset((0..30).map(|number| format!("https://shop.test/news/{number}")));
    let upstream = Origin::of([("/sitemap.xml", pages)]);
    let folder = site(&format!("upstreams = [\"http://{}\"]", upstream.address), "");
    let mut running = folder.start();
    assert!(command(&running, &["reload"]).code == Some(0));
    watches(&running, "of the sitemaps", 30);
    running.end();

    // The upstream is gone.
    let config = config(&format!("upstreams = [\"http://{}\"]", Origin::down().address), "");
    folder.write("robotsd.toml", config);
    let running = folder.start();
    watches(&running, "of the sitemaps", 30);
    assert!(command(&running, &["reload"]).code == Some(0));
    let note = running.wait_for_event("gate", |line| line["level"] == "warn")["message"].as_str().unwrap().to_owned();
    assert_has(&note, &["shop: sitemaps not read: https://shop.test/sitemap.xml: "]);
    assert!(note.ends_with("the gate watches the 30 pages that are known"), "{note}");
    let said = command(&running, &["status"]).out;
    assert_has(&said, &["gate: sitemaps not read", "watches 30 pages of the sitemaps"]);
    folder.replace("robots.txt", EDIT);
    goes_live(&running, EDIT);
    folder.replace("robots.txt", OPEN);
    goes_live(&running, OPEN);
    folder.replace("robots.txt", ACCIDENT);
    assert!(waits(&running).contains("lose 30 of 30 pages of the sitemaps"));
}

#[test]
fn broken_sitemaps_are_named_and_nothing_waits_for_them() {
    let broken = b"<html>down for maintenance</html>".to_vec();
    let elsewhere = urlset(["https://elsewhere.test/".to_owned()].into_iter());
    let upstream = Origin::of([("/sitemap.xml", broken), ("/own.xml", elsewhere)]);
    let folder = site(&format!("upstreams = [\"http://{}\"]", upstream.address), "");
    let named = "Sitemap: https://shop.test/sitemap.xml\nSitemap: https://shop.test/own.xml\nSitemap: https://shop.test/missing.xml\nSitemap: https://cdn.test/s.xml\n";
    folder.replace("robots.txt", format!("{OPEN}{named}"));
    let running = folder.start();
    assert!(command(&running, &["reload"]).code == Some(0));
    let note = running.event("gate")["message"].as_str().unwrap().to_owned();
    assert_has(&note, &["own.xml: all of its pages are on other hosts", "sitemap.xml: it is no sitemap"]);
    folder.replace("robots.txt", ACCIDENT);
    goes_live(&running, ACCIDENT);
}

#[test]
fn a_site_without_a_sitemap_has_no_trouble_whatever_its_upstream_answers() {
    let page = b"<!doctype html><title>An application</title>".to_vec();
    let upstream = Origin::of([("/sitemap.xml", page)]);
    let folder = site(&format!("upstreams = [\"http://{}\"]", upstream.address), "");
    let running = folder.start();
    assert!(command(&running, &["reload"]).code == Some(0));
    wait_until("the request", || !upstream.requests().is_empty());
    assert!(command(&running, &["reload"]).code == Some(0));
    wait_until("the next one", || upstream.requests().len() > 1);
    assert_eq!((status(&running)["troubles"].clone(), running.events("gate")), (serde_json::json!([]), 0));
}

#[test]
fn a_list_counts_and_a_baseline_that_follows_lets_a_version_go_live() {
    let folder =
        site("root = \".\"", "baseline = \"robots.accepted.txt\"\n[gate]\nurls = \"urls.txt\"\nsitemaps = false\n");
    let path = |name: &str| folder.at(name);
    fs::write(path("urls.txt"), "# what matters\n/\n/news/\nhttps://shop.test/2026/a\nhttps://other.test/2026/b\n")
        .unwrap();
    fs::write(path("robots.accepted.txt"), OPEN).unwrap();
    let running = folder.start();
    watches(&running, "of urls.txt", 3);
    folder.replace("robots.txt", ACCIDENT);
    let message = waits(&running);
    assert_has(&message, &["lose 2 of 3 pages of urls.txt (66 %)"]);
    replace_file(&path("robots.accepted.txt"), ACCIDENT);
    goes_live(&running, ACCIDENT);
    // A list that changes counts from then on, and one that cannot be read leaves what is known.
    replace_file(&path("urls.txt"), "/guide/1\n/guide/2\n");
    watches(&running, "of urls.txt", 2);
    replace_file(&path("urls.txt"), "guide\n");
    let note = running.wait_for_event("gate", |line| line["level"] == "warn")["message"].as_str().unwrap().to_owned();
    assert_has(&note, &["urls not read", "urls.txt:1:1: \"guide\""]);
    watches(&running, "of urls.txt", 2);
}

#[test]
fn what_verified_search_engines_request_most_counts() {
    let names = PlayedNames::start();
    names.confirmed("8.8.4.1", "crawl-1.bot.example");
    let more = format!(
        "[agents]\nregistry_extra = \"crawlers.toml\"\n[identity]\nresolvers = [\"{}\"]\nwait = \"200ms\"\n[gate]\nsitemaps = false\n",
        names.address()
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
    for _ in 0..3 {
        for path in ["/news/1", "/news/2?token=secret", "/2026/a", "/page.html"] {
            request(path, "8.8.4.1");
        }
    }
    // Others count for nothing.
    (0..9).for_each(|_| drop(request("/impostor", "9.9.9.9")));
    wait_until("the board to have them", || {
        assert!(command(&running, &["reload"]).code == Some(0));
        let lists = status(&running)["watched_pages"].clone();
        lists[0]["count"] == 4 && lists[0]["of"] == "that search engines request most"
    });
    folder.replace("robots.txt", ACCIDENT);
    let message = waits(&running);
    assert_has(&message, &["lose 3 of 4 pages that search engines request most (75 %)"]);
    assert!(!message.contains("secret"), "{message}");
}

#[test]
fn a_first_start_serves_the_baseline_while_another_version_waits() {
    let folder = site("root = \".\"", "baseline = \"robots.accepted.txt\"\n[gate]\nsitemaps = false\n");
    folder.write("robots.accepted.txt", OPEN);
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    // Without what an earlier process wrote, as in a container that is replaced.
    for _ in 0..2 {
        let _ = fs::remove_dir_all(folder.at("state"));
        let running = folder.start();
        assert_eq!(live(&running), OPEN);
        waits(&running);
    }
}

#[test]
fn what_is_to_be_committed_is_what_is_served_where_a_list_is_appended() {
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
    let output = command(&running, &["accept", "shop", &waiting]);
    let said = output.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.code == Some(0) && said.contains("save /robots.txt as it is served now"), "{said}");
    assert!(!said.contains("cp "), "{said}");
    let served = live(&running);
    assert_has(&served, &["# From ai.txt"]);
    folder.write("robots.accepted.txt", served);
    let gate = folder.configured(["config", "check", "--gate"]);
    assert!(gate.code == Some(0), "{gate:?}");
}

#[test]
fn in_ci_versions_are_compared_with_the_baseline_and_no_state() {
    let folder = site("root = \".\"", "baseline = \"robots.accepted.txt\"\n[gate]\nurls = \"urls.txt\"\n");
    let path = |name: &str| folder.at(name);
    fs::write(path("urls.txt"), "/\n/news/1\n/news/2\n").unwrap();
    fs::write(path("sitemap.xml"), urlset((0..400).map(|number| format!("https://shop.test/2026/{number}")))).unwrap();
    let check = |more: &[&str]| {
        let output =
            run(robotsd().args(["config", "check", "--gate"]).args(more).arg("--config").arg(path("robotsd.toml")));
        (output.code, output.out, output.error)
    };
    let (code, _, said) = check(&[]);
    assert!(code == Some(1) && said.contains("there is no baseline to compare with: copy"), "{said}");
    fs::write(path("robots.accepted.txt"), "<html>").unwrap();
    let (code, _, said) = check(&[]);
    assert!(code == Some(1) && said.contains("there is no baseline to compare with: copy"), "{said}");
    fs::write(path("robots.accepted.txt"), OPEN).unwrap();
    assert_eq!(check(&[]).0, Some(0));
    folder.replace("robots.txt", EDIT);
    assert_eq!((check(&[]).0, check(&[]).2), (Some(0), String::new()));

    folder.replace("robots.txt", ACCIDENT);
    let (code, out, said) = check(&[]);
    assert!(code == Some(1) && out.contains("has versions that would wait at the gate"), "{out}");
    assert_has(
        &said,
        &[
            "the version would wait at the gate:",
            "lose 2 of 3 pages of urls.txt",
            "robotsd.toml:",
            "\"/news/1\" by line 3, \"/news/\"",
        ],
    );
    let sitemap = path("sitemap.xml").display().to_string();
    let (_, _, said) = check(&["--sitemap", &sitemap]);
    assert_has(&said, &["lose 400 of 400 pages of the sitemaps (100 %)", "and 390 more of them"]);
    let (code, _, said) = check(&["--sitemap", "/none.xml"]);
    assert!(code == Some(1) && said.contains("sitemaps not read: /none.xml"), "{said}");
    // Accepted by being committed.
    fs::write(path("robots.accepted.txt"), ACCIDENT).unwrap();
    assert_eq!(check(&["--sitemap", &sitemap]).0, Some(0));
    assert!(!path("state").exists(), "no state is read or made");
}
