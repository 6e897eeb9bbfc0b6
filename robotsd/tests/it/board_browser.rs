//! Opens the board and a report of `replay` in a real browser. axe-core checks their accessibility.
//!
//! `ROBOTSD_AXE` names the file `axe.min.js` of the npm package `axe-core`. If the file is missing,
//! the tests are skipped with a message; in CI they fail.

use super::board::write_words;
use crate::browser::Browser;
use crate::harness::*;

const CONFIG: &str = "state_dir = \"state\"\nmode = \"refuse\"\nworkers = 1\n[admin]\naddress = \"127.0.0.1:0\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                      [[site]]\nname = \"Shop 1\"\nroot = \".\"\nrobots.path = \"robots.txt\"\n\
                      [[site]]\nname = \"Shop 2\"\nhosts = [\"two.test\"]\nroot = \".\"\n[board]\nsees_all = true\n";
const ROBOTS: &str = "User-agent: *\nDisallow: /a-rather-long-folder-name-that-has-to-be-broken-somewhere/private/\n";

pub(crate) fn axe() -> Option<String> {
    let text = std::env::var_os("ROBOTSD_AXE").and_then(|path| fs::read_to_string(path).ok());
    crate::programs::present(text.ok_or("ROBOTSD_AXE names no axe.min.js"))
}

/// A script that returns true once a page is loaded, for pages without scripts.
pub(crate) const LOADED: &str = "return document.readyState === 'complete'";

/// Checks the accessibility of a page in different looks: wide and narrow, light and dark,
/// collapsed and expanded. The page is complete when the script `settled` returns true.
pub(crate) fn hinders_nobody(browser: &Browser, axe: &str, url: &str, page: &str, settled: &str) {
    // By default, each width and each colour scheme is used once. A long run uses every
    // combination.
    let looks = [
        ("wide-light", 1280, "light"),
        ("narrow-dark", 360, "dark"),
        ("wide-dark", 1280, "dark"),
        ("narrow-light", 360, "light"),
    ];
    for (name, width, scheme) in looks.into_iter().take(if is_long() { 4 } else { 2 }) {
        browser.looks(width, 900, scheme);
        browser.open_until(url, settled);
        for is_opened in [false, true] {
            let open = "document.querySelectorAll('details').forEach(each => each.open = true);";
            browser.run(if is_opened { open } else { "" });
            let widths = browser.run("return [document.documentElement.scrollWidth, window.innerWidth]");
            assert!(widths[0].as_u64() <= widths[1].as_u64(), "{name}: it scrolls sideways: {widths}");
            browser.run(&format!("{axe};"));
            let check = "const done = arguments[0]; axe.run().then(found => done(found.violations.map(each => \
                         [each.id, each.nodes.map(node => node.html + ' ' + node.failureSummary)])), error => done(String(error)))";
            let found = browser.post("/execute/async", &json!({ "script": check, "args": [] }));
            assert_eq!(found, json!([]), "{name}");
            let opened = if is_opened { "-opened" } else { "" };
            fs::write(format!("{}/{page}-{name}{opened}.png", env!("CARGO_TARGET_TMPDIR")), browser.picture()).unwrap();
        }
    }
}

#[test]
fn a_replay_report_is_accessible() {
    let Some(axe) = axe() else { return };
    let Some(browser) = Browser::start("") else { return };
    let folder = folder(&[]);
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/access.log");
    let robots = ["examples/site/robots.txt", "examples/next.txt"]
        .map(|path| format!("{}/../{path}", env!("CARGO_MANIFEST_DIR")));
    for (page, against) in [("report", &[][..]), ("report-change", &["--against", &robots[1]])] {
        let arguments = ["replay", log, "--robots", &robots[0], "--format", "html", "-o", "report.html"];
        folder.run(arguments.iter().chain(against));
        hinders_nobody(&browser, &axe, &format!("file://{}", folder.at("report.html").display()), page, LOADED);
    }
}

#[test]
fn the_board_is_accessible_and_no_other_page_can_read_it() {
    let Some(axe) = axe() else { return };
    let Some(browser) = Browser::start("MAP rebound.test 127.0.0.1") else { return };
    let folder = folder(&[("robotsd.toml", CONFIG), ("robots.txt", ROBOTS)]);
    write_words(folder.path());
    let running = folder.start();
    let admin = running.admin();
    running.get("/robots.txt", GPTBOT);
    for agent in [GPTBOT, "CCBot/2.0 (https://commoncrawl.org/faq/)", "<b>Bot/1 (+https://a.test)"] {
        for number in 0..5 {
            running.get(&format!("/page-{number}"), agent);
            running.get(&format!("/a-rather-long-folder-name-that-has-to-be-broken-somewhere/private/{number}"), agent);
        }
    }
    let board = format!("http://{admin}/board");
    let text = "return document.body.innerText";
    wait_for("the counts on the page", || {
        browser.open(&board);
        browser.run(text).as_str().filter(|text| text.contains("GPTBot") && text.contains("CCBot")).map(str::to_owned)
    });
    browser.requested();
    hinders_nobody(&browser, &axe, &board, "board", LOADED);
    let errors: Vec<Value> = browser.log("browser").into_iter().filter(|entry| entry["level"] != "INFO").collect();
    assert_eq!(errors, Vec::<Value>::new());
    let requested = browser.requested();
    let own = format!("http://{admin}/");
    assert!(!requested.is_empty(), "{requested:?}");
    assert!(requested.iter().all(|url| url.starts_with(&own) || url.starts_with("data:")), "{requested:?}");

    // This name resolves to the admin interface, but is not one of its configured names.
    browser.open(&format!("http://rebound.test:{}/board", admin.port()));
    let refusal = browser.run(text);
    assert!(refusal.as_str().unwrap().contains("is not a host of this admin interface"), "{refusal}");

    // A page of another origin.
    let other = Origin::answering(|_| response("200 OK", &["Content-Type: text/html"], "other"));
    let elsewhere = other.address;
    browser.open(&format!("http://{elsewhere}/"));
    for mode in ["cors", "no-cors"] {
        let script = format!(
            "const done = arguments[0]; fetch('{board}.json', {{ mode: '{mode}' }}).then(answer => answer.text()).then(\
             text => done(text.length), () => done('refused'))"
        );
        let read = browser.post("/execute/async", &json!({ "script": script, "args": [] }));
        assert!(read == "refused" || read == 0, "{mode}: {read}");
    }
}
