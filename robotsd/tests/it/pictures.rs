//! Checks that the pictures in the README are up to date: a report of `replay`, the board and the
//! tester, as a browser shows them.
//!
//! Fonts differ between machines, so pictures are not compared. Instead, the hash of the page is
//! recorded next to its picture. If the page or its style sheet has changed, the picture must be
//! made again with `UPDATE_DOCS=1`, which needs Chromium.

use tower_robots::live::VersionHash;

use super::board::{DayLine, hours, read, row, watches, write_lines};
use super::board_browser::LOADED;
use super::tester::ANSWERED;
use crate::browser::Browser;
use crate::harness::*;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

const MAX_BYTES: u64 = 150_000;

/// Compares the hash of a page with the hash that was recorded for its picture, or makes the
/// picture again.
///
/// The page is complete when the script `settled` returns true.
fn shows(name: &str, page: &str, url: &str, height: u32, settled: &str) {
    let place = |end: &str| PathBuf::from(format!("{}/tests/pictures/{name}.{end}", env!("CARGO_MANIFEST_DIR")));
    let hash = |bytes: &[u8]| VersionHash::of(bytes).to_string();
    let recorded = |picture: &[u8]| format!("page {}\npicture {}\n", hash(page.as_bytes()), hash(picture));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let browser = Browser::start("").expect("a browser");
        browser.looks(1000, height, "light");
        browser.command("Emulation.setScrollbarsHidden", json!({ "hidden": true }));
        browser.open_until(url, settled);
        let picture = browser.picture();
        fs::create_dir_all(place("png").parent().unwrap()).unwrap();
        fs::write(place("png"), &picture).unwrap();
        fs::write(place("txt"), recorded(&picture)).unwrap();
    }
    let picture = fs::read(place("png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() as u64 <= MAX_BYTES, "{name}: {} bytes", picture.len());
    let is_of_page = fs::read_to_string(place("txt")).unwrap() == recorded(&picture);
    assert!(is_of_page, "{name}.png is of another page: run this test with UPDATE_DOCS=1, and look at it");
}

/// Removes numbers and the columns of charts, because this data changes. Numbers of the layout
/// remain, because they are in the style sheet.
fn without_numbers(page: &str) -> String {
    let lines = page.lines().filter(|line| !line.starts_with("<g>"));
    lines.flat_map(str::chars).filter(|char| !char.is_ascii_digit() && !",.".contains(*char)).collect()
}

#[test]
fn the_picture_of_a_report_is_up_to_date() {
    let folder = folder(&[]);
    let report = folder.at("report.html");
    let arguments = ["replay", "examples/access.log", "--robots", "examples/site/robots.txt", "--format", "html", "-o"];
    run(robotsd().current_dir(ROOT).args(arguments).arg(&report)).succeeded();
    let page = fs::read_to_string(&report).unwrap();
    shows("report", &page, &format!("file://{}", report.display()), 1180, LOADED);
}

/// The page of the tester also contains its program. The program changes more often than the look
/// of the page, so only the files that determine the look are compared.
#[test]
fn the_picture_of_the_tester_is_up_to_date() {
    let files =
        ["robotsd/src/html/style.css", "docs/tester/tester.css", "docs/tester/tester.html", "docs/tester/tester.js"];
    let look = files.map(|file| fs::read_to_string(project(file)).unwrap()).concat();
    // Only `UPDATE_DOCS` needs the page itself.
    let page = std::env::var("ROBOTSD_TESTER_PAGE").unwrap_or_default();
    shows("tester", &look, &format!("file://{page}"), 1105, ANSWERED);
}

const CONFIG: &str = "state_dir = \"state\"\nmode = \"observe\"\nworkers = 1\n[admin]\naddress = \"127.0.0.1:0\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                      [[site]]\nname = \"Shop 1\"\nroot = \"pages\"\nrobots.path = \"robots.txt\"\n[board]\nsees_all = true\n";
const ROBOTS: &str =
    "User-agent: *\nDisallow: /cart/\nDisallow: /search\n\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n";

/// A crawler's name, category and identity, and its maximum numbers of allowed and disallowed
/// requests per hour.
type Played = (&'static str, &'static str, &'static str, u64, u64);

const PLAYED: [Played; 10] = [
    ("Googlebot", "search", "verified", 90, 4),
    ("bingbot", "search", "verified", 50, 0),
    ("DuckDuckBot", "search", "verified", 12, 0),
    ("GPTBot", "ai-training", "verified", 0, 60),
    ("CCBot", "ai-training", "claimed", 0, 25),
    ("OAI-SearchBot", "ai-search", "verified", 30, 0),
    ("ChatGPT-User", "user-fetch", "claimed", 20, 1),
    ("AhrefsBot", "seo", "claimed", 25, 6),
    ("UptimeRobot", "monitoring", "claimed", 12, 0),
    ("Googlebot", "search", "impostor", 0, 9),
];

/// Returns the records of a day on which these crawlers send more requests by day than by night.
fn day() -> Vec<DayLine> {
    let mut lines = watches().to_vec();
    for (name, category, identity, allowed, disallowed) in PLAYED {
        for ago in 1..24 {
            let part = |most: u64| most * (4 + (ago * 7 + most) % 5 + 12_u64.abs_diff(ago) / 2) / 14;
            let (allowed, disallowed) = (part(allowed), part(disallowed));
            let at = hours(ago) + 9;
            let case = json!([{ "origin": "https://a.test", "disallowed_by": ["2"], "allowed_by": ["1"], "first": at, "last": at, "count": disallowed }]);
            let (line, pattern) = if category == "ai-training" {
                (7, "/")
            } else {
                (2 + ago % 2, ["/cart/", "/search"][ago as usize % 2])
            };
            let hits = json!([{ "version": "2", "line": line, "pattern": pattern, "hits": disallowed }]);
            let mut counts =
                json!({ "allowed": allowed, "disallowed": disallowed, "done": { "observed": disallowed } });
            if disallowed > 0 {
                (counts["cases"], counts["lines"]) = (case, hits);
            }
            // The picture must not accuse crawlers that exist: they obey the version that they
            // fetched, and that version allows the request.
            if ago == 23 && identity == "verified" {
                counts["reads"] = read(if disallowed > 0 { "1" } else { "2" }, ago);
            }
            let (day, text) = row(name, ago, counts);
            let text = text.replace("\"search\"", &format!("\"{category}\""));
            lines.push((day, text.replace("\"verified\"", &format!("\"{identity}\""))));
        }
    }
    lines
}

#[test]
fn the_picture_of_the_board_is_up_to_date() {
    // If a new hour begins between writing the lines and generating the page, the page is generated
    // again.
    let of_one_hour = || {
        let folder = folder(&[("robotsd.toml", CONFIG), ("robots.txt", ROBOTS), ("pages/none", "")]);
        // A new thread uses the current hour. An existing thread keeps the hour of its first line.
        let (hour, lines) = thread::spawn(|| (hours(0), day())).join().unwrap();
        write_lines(folder.path(), 1, &lines);
        let running = folder.start();
        let page = wait_for("the requests of the last minute", || {
            let page = running.ask_admin("GET /board").body;
            if !page.contains("now 0.0 per minute") {
                // The page appears only after some seconds, and is slower than other responses.
                thread::sleep(Duration::from_millis(200));
                return None;
            }
            Some(page)
        });
        let is_same = thread::spawn(|| hours(0)).join().unwrap() == hour;
        is_same.then_some((folder, running, page))
    };
    let (folder, running, page) = of_one_hour().or_else(of_one_hour).expect("a page that took less than an hour");
    let style = running.ask_admin("GET /board.css").body;
    let page = without_numbers(&page.replace(&*folder.path().to_string_lossy(), ""));
    shows("board", &(page + &style), &format!("http://{}/board", running.admin()), 1130, LOADED);
}
