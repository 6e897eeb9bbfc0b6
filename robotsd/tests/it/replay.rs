//! `replay`, on small logs whose counts are known.

use std::io::Write;

use serde_json::{Value, json};

use crate::harness::{Ended, FIREFOX, GOOGLEBOT, GPTBOT, LISTENER, folder, robotsd, run, run_with};

const ROBOTS: &str = "User-agent: *\nDisallow: /cart\n\nUser-agent: GPTBot\nDisallow: /drafts/\n";
const NEW: &str = "User-agent: *\nDisallow: /drafts/\n";

fn line(address: &str, hour: u8, target: &str, referer: &str, agent: &str) -> String {
    format!(
        "{address} - - [01/Nov/2026:{hour:02}:00:00 +0000] \"GET {target} HTTP/1.1\" 200 9 \"{referer}\" \"{agent}\"\n"
    )
}

fn log() -> String {
    [
        line("192.0.2.1", 1, "/cart?session=secret", "-", GOOGLEBOT),
        line("192.0.2.1", 2, "/robots.txt", "-", GOOGLEBOT),
        line("192.0.2.1", 3, "/drafts/x", "-", GOOGLEBOT),
        line("192.0.2.2", 4, "/drafts/x", "-", GPTBOT),
        line("192.0.2.2", 5, "/cart", "-", GPTBOT),
        line("192.0.2.3", 6, "/cart", "-", FIREFOX),
        "198.51.100.77 what?x=secret is this\n".to_owned(),
    ]
    .concat()
}

/// The report as JSON.
fn report(log: &[u8], arguments: &[&str]) -> (Value, Option<i32>) {
    let folder = folder(&[("robots.txt", ROBOTS), ("new.txt", NEW)]);
    folder.write("log", log);
    let arguments = [&["replay", "log", "--robots", "robots.txt", "--format", "json"], arguments].concat();
    let output = folder.run(arguments);
    let said = serde_json::from_str(&output.out).unwrap_or_default();
    (said, output.code)
}

fn crawler<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["crawlers"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()
}

/// Each rule of a crawler with its paths, on a line.
fn rules(crawler: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rule = |rule: &Value| {
        let paths = rule["paths"].as_array().unwrap().iter();
        let paths: Vec<_> = paths.map(|path| format!("{} {}", text(&path["pattern"]), path["requests"])).collect();
        let (effect, file, pattern) = (text(&rule["effect"]), text(&rule["file"]), text(&rule["pattern"]));
        format!("{effect} {file}:{} {pattern} {}: {}", rule["line"], rule["requests"], paths.join(", "))
    };
    crawler["rules"].as_array().unwrap().iter().map(rule).collect()
}

#[test]
fn requests_are_counted_by_crawler() {
    let (said, code) = report(log().as_bytes(), &[]);
    assert_eq!(code, Some(0));
    assert_eq!((&said["requests"], &said["unread_lines"]), (&json!(6), &json!(1)));
    let google = crawler(&said, "Googlebot");
    assert_eq!((&google["requests"], &google["allowed"], &google["disallowed"]), (&json!(3), &json!(2), &json!(1)));
    assert_eq!((&google["robots_txt"], &crawler(&said, "GPTBot")["robots_txt"]), (&json!(1), &json!(0)));
    assert_eq!(rules(google), ["disallowed robots.txt:2 /cart 1: /cart?session=* 1"]);
    assert_eq!(rules(crawler(&said, "GPTBot")), ["disallowed robots.txt:5 /drafts/ 1: /drafts/x 1"]);
    assert_eq!(said["others"], json!([{"class": "browser", "requests": 1, "disallowed": 0}]));
    assert_eq!(said["totals"]["disallowed"], 2);
}

#[test]
fn nothing_private_is_shown_unless_asked() {
    let (said, _) = report(log().as_bytes(), &[]);
    let text = said.to_string();
    assert!(!text.contains("secret") && !text.contains("198.51") && text.contains("/cart?session=*"), "{text}");
    let (said, _) = report(log().as_bytes(), &["--keep-queries", "--keep-addresses"]);
    assert!(said.to_string().contains("/cart?session=secret"));
}

/// A log of several chunks, with more targets than are distinguished.
fn long_log() -> String {
    (0..60_000)
        .map(|at| {
            let target = match at % 3 {
                0 => format!("/drafts/{at}?color=c{}", at % 999),
                1 => "/drafts/new".to_owned(),
                _ => format!("/post/{at}"),
            };
            line("192.0.2.2", (at % 24) as u8, &target, "-", if at % 2 == 0 { GPTBOT } else { GOOGLEBOT })
        })
        .collect()
}

#[test]
fn paths_that_vary_are_one_pattern_and_add_up() {
    let log = long_log();
    assert!(log.len() > 5 << 20, "several chunks");
    let (said, _) = report(log.as_bytes(), &[]);
    let gptbot = crawler(&said, "GPTBot");
    let want = "disallowed robots.txt:5 /drafts/ 20000: /drafts/*?color=* 10000, /drafts/new 10000";
    assert_eq!((rules(gptbot), &gptbot["disallowed"]), (vec![want.to_owned()], &json!(20_000)));
    let folder = folder(&[("robots.txt", ROBOTS), ("log", &log)]);
    let page = |form: &str| folder.run(["replay", "log", "--robots", "robots.txt", "--format", form]).out;
    let want = "\n      20,000  robots.txt:5: disallow /drafts/\n      10,000    /drafts/*?color=*\n      10,000    \
                /drafts/new\n";
    assert!(page("text").contains(want), "{}", page("text"));
    assert!(
        page("html").contains("<code>/drafts/*?color=*</code></th><td class=\"n\">10,000</td>"),
        "{}",
        page("html")
    );
}

#[test]
fn two_files_are_compared() {
    let (said, _) = report(log().as_bytes(), &["--against", "new.txt"]);
    let totals = &said["totals"];
    assert_eq!((&totals["disallowed_before"], &totals["disallowed"]), (&json!(2), &json!(2)));
    assert_eq!((&totals["shut"], &totals["opened"]), (&json!(1), &json!(1)));
    let google = crawler(&said, "Googlebot");
    assert_eq!((&google["shut"], &google["opened"]), (&json!(1), &json!(1)));
    let want = ["shut-out new.txt:2 /drafts/ 1: /drafts/x 1", "let-in robots.txt:2 /cart 1: /cart?session=* 1"];
    assert_eq!(rules(google), want, "by the rule that disallows, in the file it is in");
    let hour = |at: usize| &said["hours"][at];
    assert_eq!((&hour(0)["opened"], &hour(0)["shut"]), (&json!(1), &json!(0)), "{said}");
    assert_eq!((&hour(2)["shut"], &hour(2)["shut_search_engines"]), (&json!(1), &json!(1)), "{said}");
}

#[test]
fn a_change_that_shuts_a_search_engine_out_fails_and_comes_first() {
    let busy: String = (0..9).map(|_| line("192.0.2.2", 5, "/drafts/x", "-", "CCBot/2.0")).collect();
    let log = log() + &busy;
    let (said, code) = report(log.as_bytes(), &["--against", "new.txt"]);
    assert_eq!((code, &said["search_engines_shut_out"]), (Some(1), &json!(["Googlebot"])));
    assert_eq!((&said["crawlers"][0]["name"], &said["crawlers"][1]["name"]), (&json!("Googlebot"), &json!("CCBot")));
    let (said, code) = report(busy.as_bytes(), &["--against", "new.txt"]);
    assert_eq!((code, &said["search_engines_shut_out"], &said["totals"]["shut"]), (Some(0), &json!([]), &json!(9)));
    let (said, code) = report(log.as_bytes(), &[]);
    assert_eq!((code, &said["search_engines_shut_out"]), (Some(0), &json!([])));
    let folder = folder(&[("robots.txt", ROBOTS), ("new.txt", NEW), ("log", &log)]);
    let page = |form: &str| {
        folder.run(["replay", "log", "--robots", "robots.txt", "--against", "new.txt", "--format", form]).out
    };
    let (text, html) = (page("text"), page("html"));
    assert!(text.contains("these pages may leave the index\n  Googlebot                       1 shut out\n"), "{text}");
    assert!(html.contains("<li>Googlebot: 1 request shut out</li>"), "{html}");
    assert!(html.contains("<span class=\"value\">9 shut out, 0 let in</span>"), "{html}");
    let (_, over_time) = html.split_once("The change, over time").unwrap();
    let columns: Vec<_> = over_time.lines().filter(|line| line.starts_with("<span title=")).collect();
    let want =
        "<span title=\"2026-11-01 03:00 UTC: 1 shut out, 1 of them of search engines, 0 let in\"><i class=\"engine\" ";
    assert!(columns[2].starts_with(want) && columns[2].matches("<i ").count() == 1, "{columns:?}");
    assert!(
        columns[4].contains("9 shut out, 0 of them") && columns[4].contains("style=\"height:100.00%\""),
        "{columns:?}"
    );
}

/// The report as text.
fn text(log: &str, arguments: &[&str]) -> String {
    let folder = folder(&[("robots.txt", ROBOTS), ("new.txt", NEW), ("log", log)]);
    let arguments = [&["replay", "log", "--robots", "robots.txt"], arguments].concat();
    folder.run(arguments).out
}

#[test]
fn the_text_says_what_there_is_not() {
    let person = line("192.0.2.3", 6, "/cart", "-", FIREFOX);
    let want = "1 request, 2026-11-01 06:00 UTC\nthe logs hold no request by a crawler\n\nrequests that are not of crawlers: 1 \
                by browsers\n";
    assert_eq!(text(&person, &[]), want);
    let crawler = line("192.0.2.3", 6, "/", "-", GPTBOT);
    let same = text(&crawler, &["--against", "new.txt"]);
    assert!(same.contains("by new.txt: 0 newly, and 0 no longer\nno request is judged differently\n"), "{same}");
    let early = text(&log(), &["--effective-from", "2026-11-01T04:00:00Z"]);
    assert!(early.contains("\n1 more disallowed request came before --effective-from\n"), "{early}");
}

#[test]
fn early_requests_are_not_blamed() {
    let (said, _) = report(log().as_bytes(), &["--effective-from", "2026-11-01T04:00:00Z"]);
    let totals = &said["totals"];
    assert_eq!((&totals["disallowed"], &totals["not_blamed"], &totals["allowed"]), (&json!(1), &json!(1), &json!(3)));
    assert_eq!(totals["crawler_requests"], 5, "each is one of the three");
    let in_hours = |name: &str| said["hours"].as_array().unwrap().iter().map(|hour| hour[name].as_u64().unwrap()).sum();
    let sums: [u64; 3] = ["allowed", "disallowed", "not_blamed"].map(in_hours);
    assert_eq!(sums, [3, 1, 1]);
}

#[test]
fn a_person_behind_a_crawlers_name_fails() {
    let agent = "XBot/1.0 (+https://xbot.example/)";
    let own = "https://example.com/cart";
    let person = |target: &str, referer: &str| line("192.0.2.9", 1, target, referer, agent);
    let log = [person("/cart", "-"), person("/a.css", own), person("/a.js", own), person("/a.png", own)].concat();
    let engine = log.replace(agent, GOOGLEBOT);
    let (said, code) = report(engine.as_bytes(), &[]);
    assert_eq!((code, &said["suspect_humans"]), (Some(0), &json!([])), "a search engine renders pages");
    let (said, code) = report((engine + &log).as_bytes(), &[]);
    assert_eq!(code, Some(1));
    let want = json!([{"address": "192.0.2.0/24", "claims": "XBot", "disallowed": 1, "target": "/cart"}]);
    assert_eq!(said["suspect_humans"], want);
}

#[test]
fn packed_logs_and_standard_input_are_read() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(log().as_bytes()).unwrap();
    let (said, _) = report(&gzip.finish().unwrap(), &[]);
    assert_eq!(said["requests"], 6);
    let folder = folder(&[("robots.txt", ROBOTS)]);
    let text = run_with(folder.robotsd().args(["replay", "-", "--robots", "robots.txt"]), log().as_bytes()).out;
    assert!(
        text.starts_with("6 requests, 2026-11-01 01:00 to 2026-11-01 06:00 UTC\n1 line could not be read"),
        "{text}"
    );
    assert!(text.contains("2 of 5 requests by crawlers (40 %) are disallowed by robots.txt\n"), "{text}");
}

#[test]
fn the_page_needs_nothing_else_and_holds_no_markup_of_strangers() {
    let hostile = line(
        "192.0.2.4",
        7,
        "/cart/<script>alert(1)</script>",
        "-",
        "EvilBot<img src=x onerror=y>/1.0 (+https://e.example/)",
    );
    let folder = folder(&[("robots.txt", ROBOTS), ("log", &(log() + &hostile + "<b>bad</b>\n"))]);
    let output = folder.run(["replay", "log", "--robots", "robots.txt", "--format", "html", "-o", "report.html"]);
    assert_eq!((output.code, output.out.len()), (Some(0), 0));
    let page = folder.read("report.html");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    for markup in ["<script", "<img", "<b>bad", "http://", "src=", "url(", "@import"] {
        assert!(!page.contains(markup), "{markup}");
    }
    assert_eq!(page.matches("href=").count(), page.matches("href=\"#").count(), "links stay within the page");
    assert!(page.contains("&lt;script&gt;"));
}

/// A page of many crawlers, whose rows and sections can be found.
#[test]
fn every_crawler_of_the_page_is_linked_to_its_rules_and_every_cell_has_a_head() {
    let crawlers: String = (0..40)
        .map(|at| {
            line("192.0.2.2", at % 24, &format!("/cart?a={at}"), "-", &format!("Bot{at}x/1.0 (+https://b.example/)"))
        })
        .collect();
    let folder = folder(&[("robots.txt", ROBOTS), ("new.txt", NEW), ("log", &(log() + &crawlers))]);
    // 40, Googlebot and GPTBot, for which nothing changes.
    for (more, count) in [(&[][..], 42), (&["--against", "new.txt"], 41)] {
        let arguments = [&["replay", "log", "--robots", "robots.txt", "--format", "html"], more].concat();
        let page = folder.run(arguments).out;
        let links: Vec<_> = page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(links.iter().all(|link| page.matches(&format!(" id=\"{link}\"")).count() == 1), "{links:?}");
        let sections = page.matches("<h3 id=\"crawler-").count();
        let to_sections = links.iter().filter(|link| link.starts_with("crawler-")).count();
        assert_eq!((sections, to_sections), (count, count));
        // Heads say what they are heads of, and a stacked cell repeats the head of its column.
        assert_eq!(page.matches("<th").count() - page.matches("<thead").count(), page.matches("<th scope=").count());
        let (_, table) = page.split_once("<table class=\"stacked\">").unwrap();
        let (table, _) = table.split_once("</table>").unwrap();
        let heads = table.matches("<th scope=\"col\"").count();
        for row in table.lines().filter(|line| line.starts_with("<tr><th scope=\"row\">")) {
            let cells = row.matches("<td").count();
            assert_eq!((cells, row.matches(" data-label=\"").count()), (heads - 1, heads - 1), "{row}");
        }
        assert!(!page.contains("<svg") && page.matches("prefers-color-scheme: dark").count() == 1);
    }
}

#[test]
fn a_packed_log_of_a_cdn_is_recognised_and_an_empty_one_is_said_to_be_empty() {
    let mut log =
        "#Version: 1.0\n#Fields: date time c-ip cs-method cs(Host) cs-uri-stem sc-status cs(User-Agent) cs-uri-query\n"
            .to_owned();
    for number in 0..40_000 {
        log +=
            &format!("2026-11-01\t10:00:00\t192.0.2.7\tGET\tshop.test\t/drafts/x\t200\tGPTBot/1.2%20(x{number})\t-\n");
    }
    assert!(log.len() > 2 << 20, "several chunks");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    Write::write_all(&mut gzip, log.as_bytes()).unwrap();
    let folder = folder(&[("robots.txt", ROBOTS), ("empty", "")]);
    folder.write("log.gz", gzip.finish().unwrap());
    let output = folder.run(["replay", "empty", "log.gz", "--robots", "robots.txt", "--format", "json"]);
    let said = output.json();
    assert_eq!((&said["requests"], &said["unread_lines"]), (&40_000.into(), &0.into()), "{said}");
    assert_eq!(said["totals"]["disallowed"], 40_000);
    assert_eq!(output.error, "robotsd: empty: the log is empty\n");
    let output = folder.run(["replay", "empty", "--robots", "robots.txt"]);
    assert_eq!(output.out, "the logs hold no request\n");
    folder.write("wide", b"\xFF\xFEa\0");
    let error = folder.run(["replay", "wide", "--robots", "robots.txt"]).failed(2);
    assert_eq!(error, "robotsd: wide: the log is UTF-16: save it as UTF-8\n");
}

#[test]
fn a_log_that_cannot_be_read_does_not_hide_the_others() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    Write::write_all(&mut gzip, log().repeat(2_000).as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let folder = folder(&[("robots.txt", ROBOTS), ("log", &log())]);
    folder.write("cut.gz", &gzip[..gzip.len() / 2]);
    std::fs::create_dir(folder.at("dir")).unwrap();
    let arguments = ["replay", "missing", "cut.gz", "dir", "log", "--robots", "robots.txt", "--format", "json"];
    let Ended { code, out, error } = folder.run(arguments);
    let said: Value = serde_json::from_str(&out).unwrap();
    // More than those of the last one: what could be unpacked counts.
    assert!(said["requests"].as_u64().unwrap() > 6 && code == Some(2), "{said} {error}");
    let lines: Vec<_> = error.lines().collect();
    assert!(lines[0].starts_with("robotsd: missing: No such file"), "{error}");
    assert!(lines[1].starts_with("robotsd: cut.gz: ") && lines[1].contains("damaged or cut"), "{error}");
    assert!(
        lines[2].starts_with("robotsd: dir: Is a directory") && lines[2].ends_with("name the logs in it"),
        "{error}"
    );
}

#[test]
fn logs_without_a_request_get_the_list_of_formats() {
    let folder = folder(&[("robots.txt", ROBOTS), ("log", "2026/11/01 10:00:00 [error] 7#7: *1 open() failed\n")]);
    let error = folder.run(["replay", "log", "--robots", "robots.txt"]).error;
    assert!(error.contains("the logs are error logs"), "{error}");
    // Lines with a request in quotes are such lines all the same.
    let quoted = "2026/11/22 10:00:00 [error] 7#7: *1 no, client: 192.0.2.7, request: \"GET /a HTTP/1.1\"\n".repeat(3);
    for (log, why) in [
        (&*quoted, "the logs are error logs"),
        ("a\nb\n", "they are access logs in the common or combined format, JSON lines"),
    ] {
        let folder = self::folder(&[("robots.txt", ROBOTS), ("log", log)]);
        let Ended { code, error, .. } = folder.run(["replay", "log", "--robots", "robots.txt"]);
        assert!(code == Some(2) && error.contains(why), "{error}");
    }
}

/// A crawler of a family without a group of its own: the config says whether it obeys that of its family.
#[test]
fn the_family_of_a_crawler_counts_as_the_config_says() {
    let image = "Googlebot-Image/1.0";
    let log = line("192.0.2.1", 4, "/drafts/x", "-", image).repeat(3);
    for (family, disallowed) in [("follow", 3), ("ignore", 0)] {
        let config = format!(
            "[agents]\nfamily = \"{family}\"\n{LISTENER}[[site]]\nname = \"shop\"\nroot = \".\"\n[site.robots]\n\
             source = \"file\"\npath = \"robots.txt\"\n"
        );
        let robots = "User-agent: Googlebot\nDisallow: /drafts/\n";
        let folder = folder(&[("robots.txt", robots), ("log", &log), ("robotsd.toml", &config)]);
        let said = folder.run(["replay", "log", "--config", "robotsd.toml", "--format", "json"]).json();
        let row = crawler(&said, "Googlebot-Image");
        assert_eq!((&row["requests"], &row["disallowed"]), (&json!(3), &json!(disallowed)), "{family}: {said}");
    }
}

#[test]
fn the_rules_hold_from_a_day_or_a_moment() {
    for (from, early) in [("2026-11-02", 2), ("2026-11-01", 0), ("2026-11-01T04:00:00Z", 1), ("2026-11-01 04:00:00", 1)]
    {
        let (said, code) = report(log().as_bytes(), &["--effective-from", from]);
        assert_eq!((code, said["totals"]["not_blamed"].as_u64()), (Some(0), Some(early)), "{from}: {said}");
    }
    let folder = folder(&[("robots.txt", ROBOTS), ("log", "")]);
    let output = folder.run(["replay", "log", "--robots", "robots.txt", "--effective-from", "1.11.2026"]);
    assert!(output.error.contains("such as 2026-11-01 or 2026-11-01T12:00:00Z"));
}

#[test]
fn what_cannot_be_decided_fails() {
    for (log, arguments, code) in [
        (&b"junk\n"[..], &[][..], 2),
        (b"", &[], 0),
        (b"junk\n", &["--against", "missing.txt"], 2),
        (log().as_bytes(), &["--expect", "missing.toml"], 2),
        (log().as_bytes(), &["--effective-from", "yesterday"], 2),
    ] {
        assert_eq!(report(log, arguments).1, Some(code), "{arguments:?}");
    }
    let folder = folder(&[
        ("robots.txt", ROBOTS),
        ("log", &log()),
        ("e.toml", "[[allow]]\nagents = [\"Googlebot\"]\npaths = [\"/cart\"]\n"),
    ]);
    let arguments = ["replay", "log", "--robots", "robots.txt", "--expect", "e.toml"];
    let complaint = folder.run(arguments).failed(1);
    assert_eq!(complaint, "e.toml:1: Googlebot may not fetch /cart: robots.txt:2: disallow /cart\n");
    folder.write("e.toml", "[[allow]]\nagents = [\"Googelbot\"]\npaths = [\"/\"]\n");
    let complaint = folder.run(arguments).error;
    assert!(
        complaint.starts_with("robotsd: e.toml:2:11: no crawler of the registry ")
            && complaint.contains("\"Googlebot\"?"),
        "{complaint}"
    );
}

#[test]
fn requests_faster_than_the_delay_are_counted() {
    let at = |second: u32, target: &str| {
        let time = format!("{:02}:{:02}", second / 60, second % 60);
        format!("192.0.2.2 - - [01/Nov/2026:04:{time} +0000] \"GET {target} HTTP/1.1\" 200 9 \"-\" \"{GPTBOT}\"\n")
    };
    // One request a second for a minute, with a style sheet that does not count, and one page that is disallowed.
    let log: String =
        (0..60).flat_map(|second| [at(second, &format!("/page-{second}")), at(second, "/a.css")]).collect();
    let log = log + &at(60, "/drafts/x");
    let robots = "User-agent: GPTBot\nCrawl-delay: 10\nDisallow: /drafts/\n";
    let folder = folder(&[("robots.txt", robots), ("log", &log)]);
    let replay = |form: &str| folder.run(["replay", "log", "--robots", "robots.txt", "--format", form]).out;
    // A burst of five, and one for each ten seconds after the first.
    let sentence = "50 of 60 requests came faster than its Crawl-delay of 10 s allows";
    let text = replay("text");
    assert!(text.contains(&format!("\nfaster than asked\n  GPTBot  {sentence} (robots.txt:2)\n")), "{text}");
    let html = replay("html");
    assert!(html.contains(&format!("<li>GPTBot: {sentence} <small>robots.txt:2</small></li>")), "{html}");
    let json: Value = serde_json::from_str(&replay("json")).unwrap();
    let want = json!([{
        "name": "GPTBot", "senders": "own", "requests": 60, "too_soon": 50, "refused": 0, "without_address": 0,
        "seconds": 10.0, "enforced_seconds": 10.0, "line": 2
    }]);
    assert_eq!(json["paces"], want);
}

/// What `serve` does with the same config: at most 30 s, by address, for the methods of `*`, the strictest of all names, and 429.
#[test]
fn what_comes_too_soon_is_what_a_server_would_find() {
    let line = |address: &str, second: u32, method: &str, agent: &str| {
        let time = format!("{:02}:{:02}", second / 60, second % 60);
        format!("{address} - - [01/Nov/2026:04:{time} +0000] \"{method} /page HTTP/1.1\" 200 9 \"-\" \"{agent}\"\n")
    };
    let both = "Mozilla/5.0 (compatible; CCBot/2.0; GPTBot/1.2)";
    let log: String = (0..10)
        .flat_map(|at| {
            [
                // Once in 31 s from each of two addresses, of which one is written a little early.
                line("9.9.9.1", 31 * at + 31, "GET", GPTBOT),
                line("9.9.9.2", 31 * at, "GET", GPTBOT),
                // "*" is for GET and HEAD.
                line("9.9.9.3", 31 * at, "POST", "Examplebot/1.0 (+https://example.com/bot)"),
                line("9.9.9.3", 31 * at, "POST", "Examplebot/1.0 (+https://example.com/bot)"),
                line("9.9.9.4", 31 * at, "GET", both),
                line("9.9.9.4", 31 * at + 2, "GET", both),
            ]
        })
        .collect();
    let group = |name: &str, delay: u32| format!("User-agent: {name}\nCrawl-delay: {delay}\nDisallow: /x\n\n");
    let robots = group("*", 10) + &group("CCBot", 1) + &group("GPTBot", 60);
    let config = "mode = \"refuse\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\nroot = \".\"\n[site.robots]\nsource = \"file\"\npath = \"robots.txt\"\n\
                  [site.rate]\nmode = \"refuse\"\nburst = 1\n";
    let folder = folder(&[("robots.txt", &robots), ("log", &log), ("robotsd.toml", config)]);
    let replay = |form: &str| folder.run(["replay", "log", "--config", "robotsd.toml", "--format", form]).succeeded();
    let json: Value = serde_json::from_str(&replay("json")).unwrap();
    let want = json!([{
        "name": "GPTBot", "senders": "own", "requests": 40, "too_soon": 10, "refused": 10, "without_address": 0,
        "seconds": 60.0, "enforced_seconds": 30.0, "line": 10
    }]);
    assert_eq!(json["paces"], want);
    let sentence = "10 of 40 requests came faster than its Crawl-delay of 60 s allows, of which 30 s are enforced: answered with 429";
    let text = replay("text");
    assert!(text.contains(sentence), "{text}");
}

#[test]
fn what_a_log_lacks_is_said() {
    let say = |log: &str, form: &str| {
        let folder = folder(&[("robots.txt", "User-agent: *\nCrawl-delay: 10\nDisallow: /cart\n"), ("log", log)]);
        let output = folder.run(["replay", "log", "--robots", "robots.txt", "--format", form]);
        // Where no request names an agent, there is no answer.
        let is_nameless = !log.contains(GPTBOT);
        assert_eq!(output.code, Some(if is_nameless { 2 } else { 0 }), "{output:?}");
        let error = output.error;
        assert_eq!(
            error.contains("this says nothing about crawlers: no request of the logs names an agent"),
            is_nameless,
            "{error}"
        );
        output.out
    };
    let common = "192.0.2.1 - - [01/Nov/2026:04:00:00 +0000] \"GET /cart HTTP/1.1\" 200 9\n".repeat(3);
    let nameless = "no request has a User-Agent, or the log does not hold it, so crawlers cannot be told from others: the \
                    combined format has it (W3C: cs(User-Agent))";
    assert_eq!(say(&common, "text"), format!("3 requests, 2026-11-01 04:00 UTC\n{nameless}\n"));
    let html = say(&common, "html");
    assert!(
        html.contains(&format!("<p class=\"warn\">{nameless}.</p>")) && !html.contains("hold no request"),
        "{html}"
    );
    // A log that has the field, which nobody sent.
    let dashes = line("192.0.2.1", 4, "/cart", "-", "-").repeat(3);
    assert_eq!(say(&dashes, "text"), format!("3 requests, 2026-11-01 04:00 UTC\n{nameless}\n"));
    // One line that has it is a crawler's.
    let text = say(&(common + &line("192.0.2.1", 4, "/cart", "-", GPTBOT)), "text");
    assert!(text.contains("\n1 of 1 request by crawlers (100 %) is disallowed by robots.txt\n"), "{text}");

    let timeless =
        format!("{{\"remote_addr\":\"-\",\"request\":\"GET /a HTTP/1.1\",\"http_user_agent\":\"{GPTBOT}\"}}\n");
    let text = say(&timeless.repeat(7), "text");
    let want = "all requests have no time that can be read: what came faster than a Crawl-delay or before --effective-from is \
                not known\n";
    assert!(text.contains(want), "{text}");
    let unaddressed = line("-", 4, "/a", "-", GPTBOT).repeat(7);
    let text = say(&(timeless + &unaddressed), "text");
    assert!(text.contains("\n1 request has no time that can be read: "), "{text}");
    let want = "\nfaster than asked\n  GPTBot  2 of 7 requests came faster than its Crawl-delay of 10 s allows (robots.txt:2)\n  \
                requests without the address of a client in the log count together; a server counts each address by itself\n";
    assert!(text.contains(want), "{text}");
}

#[test]
fn what_is_disallowed_of_requests_without_a_name_is_shown() {
    let config = "[agents]\nstar_empty = \"hold\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\nroot = \".\"\n\
                  [site.robots]\nsource = \"file\"\npath = \"robots.txt\"\n";
    let robots = "User-agent: *\nDisallow: /cart\n";
    let log = line("192.0.2.1", 4, "/cart", "-", "-").repeat(3);
    let folder = folder(&[("robots.txt", robots), ("log", &log), ("robotsd.toml", config)]);
    let out = folder.run(["replay", "log", "--config", "robotsd.toml"]).succeeded();
    let text = out;
    assert!(text.contains("\nof them 3 are disallowed, because the policy holds them to \"*\"\n"), "{text}");
}

/// Hosts as clients send them, and the site that a server with these sites has for each.
const HOSTS: [(&str, &str); 11] = [
    ("shop.test", "shop"),
    ("SHOP.Test", "shop"),
    ("shop.test:443", "shop"),
    ("shop.test.", "shop"),
    ("www.shop.test", "below"),
    ("A.B.SHOP.TEST:8443", "below"),
    ("shop.test:8080", "port"),
    ("Shop.test:8080", "port"),
    ("[2001:db8::1]:80", "rest"),
    ("other.test", "rest"),
    ("", "rest"),
];

const SITES: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\nkind = \"decision\"\n\
                     [[site]]\nname = \"shop\"\nhosts = [\"shop.test\"]\nrobots.source = \"inline\"\nrobots.text = \"User-agent: *\\nAllow: /\\n\"\n\
                     [[site]]\nname = \"below\"\nhosts = [\"*.shop.test\"]\nrobots.source = \"inline\"\nrobots.text = \"User-agent: *\\nAllow: /\\n\"\n\
                     [[site]]\nname = \"port\"\nhosts = [\"shop.test:8080\"]\nrobots.source = \"inline\"\nrobots.text = \"User-agent: *\\nAllow: /\\n\"\n\
                     [[site]]\nname = \"rest\"\nrobots.source = \"inline\"\nrobots.text = \"User-agent: *\\nAllow: /\\n\"\n";

/// A request for `/p` by Googlebot in every format that has hosts.
fn line_for(format: &str, host: &str) -> String {
    let combined = |target: &str| line("192.0.2.1", 1, target, "-", GOOGLEBOT);
    let plus = GOOGLEBOT.replace(' ', "+");
    let nothing = if host.is_empty() { "-" } else { host };
    let json = |value: Value| format!("{value}\n");
    match format {
        "vhost" => format!("{nothing} {}", combined("/p")),
        // A client that takes the server for a proxy.
        "absolute" => {
            combined(&if host.is_empty() { "http://other.test/p".to_owned() } else { format!("http://{host}/p") })
        }
        "nginx" => json(
            json!({"time_iso8601": "2026-11-01T01:00:00Z", "remote_addr": "192.0.2.1", "request": "GET /p HTTP/1.1", "http_user_agent": GOOGLEBOT, "host": host.split(':').next(), "http_host": host}),
        ),
        "caddy" => json(
            json!({"ts": 1_793_494_800.5, "request": {"client_ip": "192.0.2.1", "method": "GET", "host": host, "uri": "/p", "headers": {"User-Agent": [GOOGLEBOT]}}, "status": 200}),
        ),
        "traefik" => json(
            json!({"ClientHost": "192.0.2.1", "RequestAddr": host, "RequestHost": host.split(':').next(), "RequestMethod": "GET", "RequestPath": "/p", "StartUTC": "2026-11-01T01:00:00Z", "request_User-Agent": GOOGLEBOT}),
        ),
        "envoy" => json(
            json!({"start_time": "2026-11-01T01:00:00.1Z", "method": "GET", "path": "/p", "authority": nothing, "user_agent": GOOGLEBOT, "downstream_remote_address": "192.0.2.1:1234"}),
        ),
        "iis" => format!("2026-11-01 01:00:00 192.0.2.1 GET /p {nothing} {plus}\n"),
        "cloudfront" => format!(
            "2026-11-01\t01:00:00\t192.0.2.1\tGET\td111.cloudfront.net\t/p\t{}\t{nothing}\n",
            GOOGLEBOT.replace(' ', "%20")
        ),
        _ => {
            let host = if host.is_empty() { "other.test" } else { host };
            let port = if host.contains("]:") || host.rsplit(':').next().unwrap().parse::<u16>().is_ok() {
                ""
            } else {
                ":443"
            };
            format!(
                "https 2026-11-01T01:00:00.186641Z app/lb/50dc6c495c0c9188 192.0.2.1:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 \"GET https://{host}{port}/p HTTP/1.1\" \"{GOOGLEBOT}\" - -\n"
            )
        }
    }
}

#[test]
fn a_site_has_the_requests_for_its_hosts_in_logs_of_every_format() {
    let folder = folder(&[("robotsd.toml", SITES), ("new.txt", "User-agent: *\nDisallow: /p\n")]);
    let path = folder.path();
    let ask = |arguments: &[&str]| {
        let Ended { code, out, error: said } = run(robotsd().current_dir(path).args(arguments));
        (serde_json::from_str::<Value>(&out).unwrap_or_default(), said, code)
    };
    let replay = |site: &str, more: &[&str]| {
        ask(&[&["replay", "log", "--config", "robotsd.toml", "--format", "json", "--site", site], more].concat())
    };
    for format in ["vhost", "absolute", "nginx", "caddy", "traefik", "envoy", "iis", "cloudfront", "alb"] {
        let head = match format {
            "iis" => "#Fields: date time c-ip cs-method cs-uri-stem cs-host cs(User-Agent)\n",
            "cloudfront" => "#Fields: date time c-ip cs-method cs(Host) cs-uri-stem cs(User-Agent) x-host-header\n",
            _ => "",
        };
        // Each host so often that no two sums are the same.
        let lines = HOSTS.iter().enumerate().map(|(at, (host, _))| line_for(format, host).repeat(1 << at));
        std::fs::write(path.join("log"), head.to_owned() + &lines.collect::<String>()).unwrap();
        for site in ["shop", "below", "port", "rest"] {
            let of_site = |(at, (_, owner)): (usize, &(&str, &str))| if *owner == site { 1 << at } else { 0 };
            let by_hand: u64 = HOSTS.iter().enumerate().map(of_site).sum();
            let (report, said, code) = replay(site, &[]);
            let counts =
                [&report["requests"], &report["other_hosts"], &report["without_host"], &report["unread_lines"]];
            assert_eq!(
                counts,
                [&json!(by_hand), &json!(2047 - by_hand), &json!(0), &json!(0)],
                "{format} {site} {said}"
            );
            assert_eq!((code, crawler(&report, "Googlebot")["requests"].as_u64()), (Some(0), Some(by_hand)));
            let diff =
                ["diff", "--config", "robotsd.toml", "--site", site, "new.txt", "--log", "log", "--format", "json"];
            let (diff, said, _) = ask(&diff);
            assert_eq!(
                diff["pages"]["losses"][0]["requests"],
                json!({"lost": by_hand, "all": by_hand}),
                "{format} {said}"
            );
        }
    }

    // Without a host all may be the site's: that is said once, unless their host is named.
    std::fs::write(path.join("log"), line("192.0.2.1", 1, "/p", "-", GOOGLEBOT).repeat(900)).unwrap();
    let (report, said, _) = replay("shop", &[]);
    assert_eq!((&report["requests"], &report["without_host"], &*said), (&json!(900), &json!(900), ""));
    let text =
        run(robotsd().current_dir(path).args(["replay", "log", "--config", "robotsd.toml", "--site", "shop"])).out;
    assert_eq!(text.matches("--host HOST").count(), 1);
    let diff = ["diff", "--config", "robotsd.toml", "--site", "shop", "new.txt", "--log", "log"];
    assert_eq!(ask(&diff).1.matches("--host HOST").count(), 1);
    let (_, said, code) = ask(&[&diff[..], &["--host", "SHOP.test:443"]].concat());
    assert_eq!((&*said, code), ("", Some(0)));
    let (report, _, _) = replay("shop", &["--host", "shop.test"]);
    assert_eq!((&report["requests"], &report["without_host"]), (&json!(900), &json!(0)));
    let (_, said, code) = replay("shop", &["--host", "www.shop.test"]);
    assert!(said.contains("\"www.shop.test\" is no host of the site \"shop\", which serves \"shop.test\""), "{said}");
    assert_eq!(code, Some(2));
    // All for others.
    std::fs::write(path.join("log"), line_for("vhost", "other.test")).unwrap();
    let (_, said, code) = replay("shop", &[]);
    assert!(said.contains("no request of the logs is for a host of the site \"shop\""), "{said}");
    assert_eq!(code, Some(2));
}

/// A site with a file for each host: only the requests that the named file is for.
#[test]
fn a_file_of_a_folder_has_the_requests_for_its_host() {
    let robots = "User-agent: *\nDisallow: /p\n";
    let folder = folder(&[
        (
            "robotsd.toml",
            "[[listener]]\naddress = \"127.0.0.1:0\"\nkind = \"decision\"\n[[site]]\nname = \"all\"\nrobots.source = \"directory\"\nrobots.path = \"sites\"\n",
        ),
        ("sites/shop.test.txt", robots),
        ("sites/_wildcard.shop.test.txt", robots),
        ("sites/default.txt", robots),
    ]);
    let lines = HOSTS.iter().enumerate().map(|(at, (host, _))| line_for("vhost", host).repeat(1 << at));
    folder.write("log", lines.collect::<String>());
    for (site, by_hand) in
        [("all/shop.test", 0b1100_1111), ("all/x.shop.test", 0b11_0000), ("any.test", 0b111_0000_0000)]
    {
        let output = folder.run(["replay", "log", "--config", "robotsd.toml", "--format", "json", "--site", site]);
        let report: Value = serde_json::from_str(&output.out).unwrap_or_default();
        assert_eq!(report["requests"], by_hand, "{site}: {}", output.error);
    }
}
