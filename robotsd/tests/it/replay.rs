//! Tests `replay` on small logs with known counts.

use crate::harness::*;

const ROBOTS: &str = "User-agent: *\nDisallow: /cart\n\nUser-agent: GPTBot\nDisallow: /drafts/\n";
const NEW: &str = "User-agent: *\nDisallow: /drafts/\n";

fn line(address: &str, hour: u8, target: &str, referer: &str, agent: &str) -> String {
    line_at(address, u32::from(hour) * 3600, &format!("GET {target}"), referer, agent)
}

/// Returns a log line. Its time is this second of the day.
fn line_at(address: &str, second: u32, request: &str, referer: &str, agent: &str) -> String {
    let time = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    format!("{address} - - [01/Nov/2026:{time} +0000] \"{request} HTTP/1.1\" 200 9 \"{referer}\" \"{agent}\"\n")
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

/// A folder with a log, the robots.txt by which it is judged, and another file.
struct Replay(Folder);

impl Replay {
    fn of(log: impl AsRef<[u8]>) -> Self {
        Self::by(ROBOTS, log)
    }

    fn by(robots: &str, log: impl AsRef<[u8]>) -> Self {
        let folder = folder(&[("robots.txt", robots), ("new.txt", NEW)]);
        folder.write("log", log);
        Self(folder)
    }

    /// Creates a folder with a config that names the robots.txt.
    fn configured(config: &Config, robots: &str, log: &str) -> Self {
        Self(config.clone().robots(robots).file("log", log).folder())
    }

    /// Runs `replay`, with the config if there is one.
    fn run(&self, format: &str, arguments: &[&str]) -> Ended {
        let is_configured = self.0.at("robotsd.toml").exists();
        let by = if is_configured { ["--config", "robotsd.toml"] } else { ["--robots", "robots.txt"] };
        self.0.run([&["replay", "log", "--format", format][..], &by, arguments].concat())
    }

    fn text(&self, arguments: &[&str]) -> String {
        self.run("text", arguments).out
    }

    fn html(&self, arguments: &[&str]) -> String {
        self.run("html", arguments).out
    }
}

/// Runs `replay` on a log. Returns the report as JSON, and the exit status.
fn report(log: impl AsRef<[u8]>, arguments: &[&str]) -> (Value, Option<i32>) {
    let output = Replay::of(log).run("json", arguments);
    (serde_json::from_str(&output.out).unwrap_or_default(), output.code)
}

pub(super) fn crawler<'a>(report: &'a Value, name: &str) -> &'a Value {
    row(&report["crawlers"], "name", name)
}

/// Returns one line for each rule of a crawler, with the paths that it disallowed.
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
    let (said, code) = report(log(), &[]);
    assert_eq!(code, Some(0));
    let others = json!([{"class": "browser", "requests": 1, "disallowed": 0}]);
    assert_part(&said, &json!({"requests": 6, "unread_lines": 1, "others": others, "totals": {"disallowed": 2}}));
    let google = crawler(&said, "Googlebot");
    assert_part(google, &json!({"requests": 3, "allowed": 2, "disallowed": 1, "robots_txt": 1}));
    assert_eq!(crawler(&said, "GPTBot")["robots_txt"], 0);
    assert_eq!(rules(google), ["disallowed robots.txt:2 /cart 1: /cart?session=* 1"]);
    assert_eq!(rules(crawler(&said, "GPTBot")), ["disallowed robots.txt:5 /drafts/ 1: /drafts/x 1"]);
}

#[test]
fn nothing_private_is_shown_unless_asked() {
    let text = report(log(), &[]).0.to_string();
    assert!(!text.contains("secret") && !text.contains("198.51") && text.contains("/cart?session=*"), "{text}");
    let (said, _) = report(log(), &["--keep-queries", "--keep-addresses"]);
    assert!(said.to_string().contains("/cart?session=secret"));
}

/// Returns a log that is read in several chunks, and has more targets than a report distinguishes.
fn long_log() -> String {
    (0..60_000_u32)
        .map(|at| {
            let target = match at % 3 {
                0 => format!("/drafts/{at}?color=c{}", at % 999),
                1 => "/drafts/new".to_owned(),
                _ => format!("/post/{at}"),
            };
            line("192.0.2.2", (at % 24) as u8, &target, "-", if at.is_multiple_of(2) { GPTBOT } else { GOOGLEBOT })
        })
        .collect()
}

#[test]
fn varying_paths_are_grouped_as_one_pattern_and_add_up() {
    let log = long_log();
    assert!(log.len() > 5 << 20, "several chunks");
    let replay = Replay::of(log);
    let said = replay.run("json", &[]).json();
    let gptbot = crawler(&said, "GPTBot");
    let want = "disallowed robots.txt:5 /drafts/ 20000: /drafts/*?color=* 10000, /drafts/new 10000";
    assert_eq!((rules(gptbot), &gptbot["disallowed"]), (vec![want.to_owned()], &json!(20_000)));
    let want = "\n      20,000  robots.txt:5: disallow /drafts/\n      10,000    /drafts/*?color=*\n      10,000    \
                /drafts/new\n";
    assert_has(replay.text(&[]), &[want]);
    assert_has(replay.html(&[]), &["<code>/drafts/*?color=*</code></th><td class=\"n\">10,000</td>"]);
}

#[test]
fn two_files_are_compared() {
    let (said, _) = report(log(), &["--against", "new.txt"]);
    assert_part(&said["totals"], &json!({"disallowed_before": 2, "disallowed": 2, "shut": 1, "opened": 1}));
    let google = crawler(&said, "Googlebot");
    assert_part(google, &json!({"shut": 1, "opened": 1}));
    let want = ["shut-out new.txt:2 /drafts/ 1: /drafts/x 1", "let-in robots.txt:2 /cart 1: /cart?session=* 1"];
    assert_eq!(rules(google), want, "by the rule that disallows, in the file it is in");
    assert_part(&said["hours"][0], &json!({"opened": 1, "shut": 0}));
    assert_part(&said["hours"][2], &json!({"shut": 1, "shut_search_engines": 1}));
}

#[test]
fn a_change_that_blocks_a_search_engine_fails_and_comes_first() {
    let busy: String = (0..9).map(|_| line("192.0.2.2", 5, "/drafts/x", "-", "CCBot/2.0")).collect();
    let log = log() + &busy;
    let against = ["--against", "new.txt"];
    let (said, code) = report(&log, &against);
    assert_eq!((code, &said["search_engines_shut_out"]), (Some(1), &json!(["Googlebot"])));
    assert_eq!([0, 1].map(|at| said["crawlers"][at]["name"].clone()), ["Googlebot", "CCBot"]);
    let (said, code) = report(&busy, &against);
    assert_eq!(code, Some(0));
    assert_part(&said, &json!({"search_engines_shut_out": [], "totals": {"shut": 9}}));
    let (said, code) = report(&log, &[]);
    assert_eq!((code, &said["search_engines_shut_out"]), (Some(0), &json!([])));
    let replay = Replay::of(&log);
    let html = replay.html(&against);
    let index = "these pages may drop out of the index\n  Googlebot                       1 newly disallowed\n";
    assert_has(replay.text(&against), &[index]);
    let counts = "<span class=\"value\">100 % of 9 newly disallowed</span>";
    assert_has(&html, &["<li>Googlebot: 1 request newly disallowed</li>", counts]);
    let (_, over_time) = html.split_once("The change, over time").unwrap();
    let columns: Vec<_> = over_time.lines().filter(|line| line.starts_with("<g><title>")).collect();
    let want = "<g><title>2026-11-01 03:00 UTC: 1 newly disallowed (1 of search engines), 0 newly allowed</title><rect class=\"engine\" ";
    assert!(columns[2].starts_with(want) && columns[2].matches("<rect ").count() == 1, "{columns:?}");
    assert_has(columns[4], &["9 newly disallowed (0 of search engines)", "class=\"disallowed\"", "height=\"90.00%\""]);
}

#[test]
fn the_text_names_missing_parts() {
    let person = line("192.0.2.3", 6, "/cart", "-", FIREFOX);
    let want = "1 request, 2026-11-01 06:00 UTC\nthe logs contain no requests by crawlers\n\nrequests that are not of crawlers: 1 \
                by browsers\n";
    assert_eq!(Replay::of(person).text(&[]), want);
    let same = Replay::of(line("192.0.2.3", 6, "/", "-", GPTBOT)).text(&["--against", "new.txt"]);
    assert_has(same, &["by new.txt: 0 newly, and 0 no longer\nno request is judged differently\n"]);
    let early = Replay::of(log()).text(&["--effective-from", "2026-11-01T04:00:00Z"]);
    assert_has(early, &["\n1 more disallowed request came before --effective-from\n"]);
}

#[test]
fn early_requests_are_not_blamed() {
    let (said, _) = report(log(), &["--effective-from", "2026-11-01T04:00:00Z"]);
    // Each request must be in exactly one of the three counts.
    let totals = json!({"disallowed": 1, "not_blamed": 1, "allowed": 3, "crawler_requests": 5});
    assert_part(&said["totals"], &totals);
    let in_hours = |name: &str| said["hours"].as_array().unwrap().iter().map(|hour| hour[name].as_u64().unwrap()).sum();
    let sums: [u64; 3] = ["allowed", "disallowed", "not_blamed"].map(in_hours);
    assert_eq!(sums, [3, 1, 1]);
}

#[test]
fn packed_logs_and_standard_input_are_read() {
    let (said, _) = report(gzip(log()), &[]);
    assert_eq!(said["requests"], 6);
    let folder = folder(&[("robots.txt", ROBOTS)]);
    let text = run_with(folder.robotsd().args(["replay", "-", "--robots", "robots.txt"]), log().as_bytes()).out;
    let want = "6 requests, 2026-11-01 01:00 to 2026-11-01 06:00 UTC\n1 line could not be read";
    assert!(text.starts_with(want), "{text}");
    assert_has(text, &["2 of 5 requests by crawlers (40 %) are disallowed by robots.txt\n"]);
}

#[test]
fn the_page_is_self_contained_and_contains_no_foreign_markup() {
    let agent = "EvilBot<img src=x onerror=y>/1.0 (+https://e.example/)";
    let hostile = line("192.0.2.4", 7, "/cart/<script>alert(1)</script>", "-", agent);
    let replay = Replay::of(log() + &hostile + "<b>bad</b>\n");
    let output = replay.run("html", &["-o", "report.html"]);
    assert_eq!((output.code, output.out.len()), (Some(0), 0));
    let page = replay.0.read("report.html");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert_lacks(&page, &["<script", "<img", "<b>bad", "http://", "src=", "url(", "@import"]);
    assert_lacks(&page, &["href=", " style="]);
    assert!(page.contains("&lt;script&gt;"));
}

/// The page contains many crawlers. Each can be expanded to show its rules.
#[test]
fn every_crawler_of_the_page_expands_to_its_rules_and_every_cell_has_a_header() {
    let request = |at: u8| {
        line("192.0.2.2", at % 24, &format!("/cart?a={at}"), "-", &format!("Bot{at}x/1.0 (+https://b.example/)"))
    };
    let replay = Replay::of(log() + &(0..40).map(request).collect::<String>());
    // There are 40 crawlers, Googlebot, and GPTBot. With `--against`, nothing changes for GPTBot.
    for (more, count) in [(&[][..], 42), (&["--against", "new.txt"], 41)] {
        let page = replay.html(more);
        let crawlers: Vec<_> = page.split("<li><details><summary>").skip(1).collect();
        let with_rules = crawlers.iter().filter(|crawler| crawler.contains("<table class=\"rules\">"));
        assert_eq!((crawlers.len(), with_rules.count()), (42, count));
        assert_eq!(page.matches("<table class=\"rules\">").count(), count, "each of them once");
        assert_eq!(page.matches("<th").count() - page.matches("<thead").count(), page.matches("<th scope=").count());
        assert_has(&page, &["<h3>Unknown crawlers", "and 20 more crawlers with 20 requests"]);
        assert_eq!(page.matches("prefers-color-scheme: dark").count(), 1);
    }
}

/// The chart of a month should have half days as its columns, so that people can read it.
#[test]
fn columns_of_the_chart_are_parts_of_a_day_or_days() {
    let later = |day: &str| line("192.0.2.2", 5, "/cart", "-", GPTBOT).replace("01/Nov", day);
    let html = |day: &str| Replay::of(log() + &later(day)).html(&[]);
    assert_has(html("30/Nov"), &["Requests by crawlers per 12 hours, UTC", "<title>2026-11-01 00:00 UTC: "]);
    assert_has(html("04/Dec"), &["Requests by crawlers per 12 hours, UTC"]);
    assert_has(html("09/Dec"), &["Requests by crawlers per day, UTC", "<title>2026-12-09 00:00 UTC: "]);
}

/// In the mode `refuse`, search engines that people use are not refused.
#[test]
fn a_report_begins_with_the_crawlers_and_the_effect_of_refusing() {
    let replay = Replay::of(log());
    let said =
        ["\nwith mode = \"refuse\", 1 of these would be refused; 1 would be only tagged, as for search engines that \
                 people use\n  Googlebot: 33 % disallowed, by /cart; none of these verified\n  \
                 GPTBot: 50 % disallowed, by /drafts/; none of these verified\n"];
    assert_has(replay.text(&[]), &said);
    let lead = "<ul class=\"lead\"><li>Googlebot: 33 % disallowed, by /cart; none of these verified</li>\n<li>GPTBot";
    let figure = "<span>Refused by mode = &quot;refuse&quot;</span><b>1</b><small>1 of search engines only tagged: \
     allowed, but marked</small>";
    assert_has(replay.html(&[]), &[lead, figure]);
    let parts = ["\n  Googlebot: 33 % newly disallowed, by /drafts/; none of these verified\n"];
    assert_has(replay.text(&["--against", "new.txt"]), &parts);
    // The policy of a site may refuse search engines, too.
    let config = Config::new().files_of("shop").tables("[site.modes]\n\"index\" = \"refuse\"");
    let replay = Replay::configured(&config, ROBOTS, &log());
    let refused = ["with mode = \"refuse\", 2 of these would be refused\n"];
    assert_has(replay.text(&[]), &refused);
}

#[test]
fn a_packed_cdn_log_is_recognised_and_an_empty_one_is_reported() {
    let mut log =
        "#Version: 1.0\n#Fields: date time c-ip cs-method cs(Host) cs-uri-stem sc-status cs(User-Agent) cs-uri-query\n"
            .to_owned();
    let query = "q=".repeat(100);
    for number in 0..10_000 {
        log += &format!(
            "2026-11-01\t10:00:00\t192.0.2.7\tGET\tshop.test\t/drafts/x\t200\tGPTBot/1.2%20(x{number})\t{query}\n"
        );
    }
    assert!(log.len() > 2 << 20, "several chunks");
    let folder = folder(&[("robots.txt", ROBOTS), ("empty", "")]);
    folder.write("log.gz", gzip(log));
    let output = folder.run(["replay", "empty", "log.gz", "--robots", "robots.txt", "--format", "json"]);
    let want = json!({"requests": 10_000, "unread_lines": 0, "totals": {"disallowed": 10_000}});
    assert_part(&output.json(), &want);
    assert_eq!(output.error, "robotsd: empty: the log is empty\n");
    assert_eq!(folder.run(["replay", "empty", "--robots", "robots.txt"]).out, "the logs contain no requests\n");
    folder.write("wide", b"\xFF\xFEa\0");
    let error = folder.run(["replay", "wide", "--robots", "robots.txt"]).failed(2);
    assert_eq!(error, "robotsd: wide: the log is UTF-16: save it as UTF-8\n");
}

#[test]
fn a_log_that_cannot_be_read_does_not_hide_the_others() {
    let packed = gzip(log().repeat(2_000));
    let folder = folder(&[("robots.txt", ROBOTS), ("log", &log())]);
    folder.write("cut.gz", &packed[..packed.len() / 2]);
    std::fs::create_dir(folder.at("dir")).unwrap();
    let arguments = ["replay", "missing", "cut.gz", "dir", "log", "--robots", "robots.txt", "--format", "json"];
    let output = folder.run(arguments).ends_with(2);
    // There are more requests than in the last log: all that could be decompressed counts.
    assert!(output.json()["requests"].as_u64().unwrap() > 6, "{output:?}");
    let lines: Vec<_> = output.error.lines().collect();
    for (line, [start, part]) in lines.iter().zip([
        ["robotsd: missing: No such file", ""],
        ["robotsd: cut.gz: ", "damaged or cut"],
        ["robotsd: dir: Is a directory", "name the logs in it"],
    ]) {
        assert!(line.starts_with(start) && line.contains(part), "{lines:?}");
    }
    assert!(lines.len() >= 3 && lines[2].ends_with("name the logs in it"), "{lines:?}");
}

#[test]
fn logs_without_a_request_get_the_list_of_formats() {
    // Lines with a quoted request must be handled in the same way.
    let quoted = "2026/11/22 10:00:00 [error] 7#7: *1 no, client: 192.0.2.7, request: \"GET /a HTTP/1.1\"\n".repeat(3);
    for (log, why) in [
        ("2026/11/01 10:00:00 [error] 7#7: *1 open() failed\n", "these are error logs"),
        (&*quoted, "these are error logs"),
        ("a\nb\n", "Supported are access logs in the common or combined format, JSON lines"),
    ] {
        assert_has(Replay::of(log).run("text", &[]).failed(2), &[why]);
    }
}

/// Returns three counts of a report: requests, unreadable lines, and requests by GPTBot.
fn counts(report: &Value) -> [Option<u64>; 3] {
    let gptbot = || report["crawlers"].as_array()?.iter().find(|row| row["name"] == "GPTBot")?["requests"].as_u64();
    [report["requests"].as_u64(), report["unread_lines"].as_u64(), gptbot()]
}

/// The unit tests of `format` have the other collectors.
#[test]
fn logs_that_collectors_wrap_are_read() {
    let agent = |at: usize| if at % 2 == 1 { GPTBOT } else { FIREFOX };
    let line = |at| line(&format!("192.0.2.{at}"), 3, &format!("/drafts/{at}"), "-", agent(at));
    let docker =
        |line: &str| json!({"log": line, "stream": "stdout", "time": "2026-11-27T03:12:00.1Z"}).to_string() + "\n";
    let log: String = (0..20).map(|at| docker(&line(at))).collect();
    let notice = docker("ready for start up\n");
    for (log, unread) in [(log.clone(), 0), (log + &notice.repeat(3), 3)] {
        let (said, code) = report(&log, &[]);
        assert_eq!((counts(&said), code), ([Some(20), Some(unread), Some(10)], Some(0)), "{said}");
        assert_eq!(said["totals"]["disallowed"], 10);
    }
}

/// If a line cannot be parsed, it must not be attributed to a client.
#[test]
fn unknown_lines_count_as_unreadable_and_the_error_names_the_keys() {
    let escaped = serde_json::to_string(line("192.0.2.1", 3, "/drafts/", "-", GPTBOT).trim_end()).unwrap();
    let pretty =
        format!("{{\n    \"__CURSOR\" : \"s=1\",\n    \"MESSAGE\" : {escaped},\n    \"PRIORITY\" : \"6\"\n}}\n");
    // Without the field for `User-Agent`, no crawler would be found in this log.
    let others = json!({"method": "GET", "path": "/drafts/", "userAgent": GPTBOT}).to_string() + "\n";
    for (log, unread) in [(pretty, 5), (others.repeat(4), 4)] {
        let replay = Replay::of(&log);
        let output = replay.run("json", &[]).ends_with(2);
        assert_part(&output.json(), &json!({"requests": 0, "unread_lines": unread}));
        assert_has(&output.error, &["no line of the logs could be read as a request. Supported are access logs"]);
        let parts = ["these keys of JSON objects are read (--json-keys VALUE=KEY adds others):\n  ua: "];
        assert_has(&output.error, &parts);
        let wants = ["http_user_agent, request.headers.User-Agent", "\n  method: ", "\n  path: ", "\n  time: "];
        assert_has(&output.error, &wants);
    }
    // The readable half of the log must be used.
    let (said, code) = report(log() + &others, &[]);
    assert_eq!((counts(&said), code), ([Some(6), Some(2), Some(2)], Some(0)));
}

#[test]
fn the_keys_of_json_lines_can_be_named() {
    let log = json!({"at": 1_793_494_800, "req": {"verb": "GET", "url": "/drafts/", "ua": GPTBOT}}).to_string() + "\n";
    let replay = Replay::of(log.repeat(3));
    let keys = ["--json-keys", "ua=req.ua,method=req.verb", "--json-keys", "path=req.url,time=at"];
    let output = replay.run("json", &keys).ends_with(0);
    assert_eq!((counts(&output.json()), &*output.error), ([Some(3), Some(0), Some(3)], ""));
    assert_part(&output.json(), &json!({"timeless": 0, "totals": {"disallowed": 3}}));
    // A key that no line contains must be reported, even if the requests can be read without it.
    let output = replay.run("json", &[&keys[..], &["--json-keys", "address=req.ip"]].concat()).ends_with(0);
    assert_eq!(output.error, "robotsd: --json-keys address=req.ip: no line of the logs has this key\n");
    let output = replay.run("json", &["--json-keys", "ua=ua,method=req.verb,path=req.url"]).ends_with(2);
    let parts = ["--json-keys ua=ua: no line", "no request in the logs has a User-Agent", "\n  ua: ua\n"];
    assert_has(output.error, &parts);
    for (arguments, why) in [
        (["--json-keys", "agent=ua"], "the values are ua, request, method, path, host, address, time, status, referer"),
        (["--json-keys=ua=ua", "--log-format=combined"], "--json-keys is for JSON lines"),
    ] {
        assert_has(replay.run("json", &arguments).failed(2), &[why]);
    }
    let diff = |arguments: &[&str]| {
        let diff = ["diff", "robots.txt", "new.txt", "--format", "json", "--log", "google"];
        replay.0.run([&diff[..], arguments].concat())
    };
    replay.0.write("google", log.replace(GPTBOT, GOOGLEBOT) + "junk\n");
    let output = diff(&["--json-keys", "ua=req.ua,method=req.verb,path=req.url"]).ends_with(0);
    assert_eq!(output.json()["pages"]["losses"][0]["requests"], json!({"lost": 1, "all": 1}));
    assert_eq!(output.error, "robotsd: 1 line of the logs could not be read: `robotsd replay` shows examples\n");
}

#[test]
fn logs_that_are_not_unpacked_are_named() {
    let want =
        "robotsd: log: the log is compressed with xz, which is not supported: decompress it with xz -dc, and name - ";
    assert_has(Replay::of(b"\xFD7zXZ\0\0\x04\xE6\xD6\xB4\x46").run("text", &[]).failed(2), &[want]);
}

#[test]
fn the_family_of_a_crawler_counts_as_the_config_says() {
    let log = line("192.0.2.1", 4, "/drafts/x", "-", "Googlebot-Image/1.0").repeat(3);
    for (family, disallowed) in [("follow", 3), ("ignore", 0)] {
        let config = shop().tables(format!("[agents]\nfamily = \"{family}\""));
        let replay = Replay::configured(&config, "User-agent: Googlebot\nDisallow: /drafts/\n", &log);
        let want = json!({"requests": 3, "disallowed": disallowed});
        assert_part(crawler(&replay.run("json", &[]).json(), "Googlebot-Image"), &want);
    }
}

fn shop() -> Config {
    Config::new().files_of("shop").tables("robots = { source = \"file\", path = \"robots.txt\" }")
}

#[test]
fn the_rules_hold_from_a_day_or_a_moment() {
    for (from, early) in [("2026-11-02", 2), ("2026-11-01", 0), ("2026-11-01T04:00:00Z", 1), ("2026-11-01 04:00:00", 1)]
    {
        let (said, code) = report(log(), &["--effective-from", from]);
        assert_eq!((code, said["totals"]["not_blamed"].as_u64()), (Some(0), Some(early)), "{from}: {said}");
    }
    let output = Replay::of("").run("text", &["--effective-from", "1.11.2026"]);
    assert_has(output.error, &["such as 2026-11-01 or 2026-11-01T12:00:00Z"]);
}

#[test]
fn an_undecidable_replay_fails() {
    for (log, arguments, code) in [
        ("junk\n", &[][..], 2),
        ("", &[], 0),
        ("junk\n", &["--against", "missing.txt"], 2),
        (&log(), &["--expect", "missing.toml"], 2),
        (&log(), &["--effective-from", "yesterday"], 2),
    ] {
        assert_eq!(report(log, arguments).1, Some(code), "{arguments:?}");
    }
    let replay = Replay::of(log());
    let complaint = |expected: &str| {
        replay.0.write("e.toml", expected);
        replay.run("text", &["--expect", "e.toml"])
    };
    let said = complaint("[[allow]]\nagents = [\"Googlebot\"]\npaths = [\"/cart\"]\n").failed(1);
    assert_eq!(said, "e.toml:3:10: Googlebot may not fetch /cart: robots.txt:2: disallow /cart\n");
    let said = complaint("[[allow]]\nagents = [\"Googelbot\"]\npaths = [\"/\"]\n").error;
    assert!(said.starts_with("robotsd: e.toml:2:11: error: no crawler of the registry "), "{said}");
    assert_has(said, &["\"Googlebot\"?"]);
}

/// The prediction for `refuse` considers only rules: the report names limits of rates.
#[test]
fn a_report_says_that_rate_limited_requests_are_not_counted() {
    let log = line("192.0.2.2", 4, "/page", "-", GPTBOT).repeat(60);
    let delayed = "User-agent: GPTBot\nCrawl-delay: 10\nDisallow: /drafts/\n";
    let note = "requests that exceed a Crawl-delay are not counted here: a server with mode = \"observe\" in \
                [site.rate] measures them";
    let limiting = shop().keys("mode = \"refuse\"").tables("rate = { mode = \"refuse\" }");
    let replay = Replay::configured(&limiting, delayed, &log);
    assert_has(replay.run("text", &[]).succeeded(), &[&format!("\n{note}\n")]);
    assert_has(replay.html(&[]), &[&format!("<p class=\"warn\">{}.</p>", note.replace('"', "&quot;"))]);
    // One config has no delay, and one has no limit.
    for other in [Replay::configured(&limiting, ROBOTS, &log), Replay::configured(&shop(), delayed, &log)] {
        assert_lacks(other.run("text", &[]).succeeded(), &["Crawl-delay"]);
    }
}

#[test]
fn fields_missing_in_a_log_are_reported() {
    let say = |log: &str, form: &str| {
        // Without a `User-Agent` in any line, the report cannot say anything about crawlers.
        let is_nameless = !log.contains(GPTBOT);
        let replay = Replay::by("User-agent: *\nDisallow: /cart\n", log);
        let output = replay.run(form, &[]).ends_with(if is_nameless { 2 } else { 0 });
        let says_nothing = "no request in the logs has a User-Agent, so the report cannot tell anything about crawlers";
        assert_eq!(output.error.contains(says_nothing), is_nameless, "{output:?}");
        output.out
    };
    let common = "192.0.2.1 - - [01/Nov/2026:04:00:00 +0000] \"GET /cart HTTP/1.1\" 200 9\n".repeat(3);
    let nameless = "no request has a User-Agent, or the log does not contain it, so crawlers cannot be recognised: \
                    use the combined format (W3C: cs(User-Agent))";
    assert_eq!(say(&common, "text"), format!("3 requests, 2026-11-01 04:00 UTC\n{nameless}\n"));
    let html = say(&common, "html");
    assert_has(&html, &[&format!("<p class=\"warn\">{nameless}.</p>")]);
    assert_lacks(html, &["contain no requests"]);
    // This log has the field, but no client has sent it.
    let dashes = line("192.0.2.1", 4, "/cart", "-", "-").repeat(3);
    assert_eq!(say(&dashes, "text"), format!("3 requests, 2026-11-01 04:00 UTC\n{nameless}\n"));
    // The only line with the field is from a crawler.
    let text = say(&(common + &line("192.0.2.1", 4, "/cart", "-", GPTBOT)), "text");
    assert_has(text, &["\n1 of 1 request by crawlers (100 %) is disallowed by robots.txt\n"]);

    let timeless =
        format!("{{\"remote_addr\":\"-\",\"request\":\"GET /a HTTP/1.1\",\"http_user_agent\":\"{GPTBOT}\"}}\n");
    let want = "all requests have no readable time, so it is unknown which came before --effective-from\n";
    assert_has(say(&timeless.repeat(7), "text"), &[want]);
    let unaddressed = line("-", 4, "/a", "-", GPTBOT).repeat(7);
    assert_has(say(&(timeless + &unaddressed), "text"), &["\n1 request has no readable time, so "]);
}

#[test]
fn disallowed_requests_without_a_name_are_shown() {
    let config = shop().tables(
        "[agents]
wildcard_empty = \"hold\"",
    );
    let log = line("192.0.2.1", 4, "/cart", "-", "-").repeat(3);
    let text = Replay::configured(&config, "User-agent: *\nDisallow: /cart\n", &log).run("text", &[]).succeeded();
    assert_has(text, &["\nof them 3 are disallowed, because the policy applies the rules for \"*\" to them\n"]);
}

/// Hosts as clients send them, each with the site that a server chooses for it.
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

fn sites() -> Config {
    let site = |config: Config, (name, keys): (&str, &str)| {
        config.site(name, format!("{keys}\nrobots = {{ source = \"inline\", text = \"User-agent: *\\nAllow: /\\n\" }}"))
    };
    let hosts = [
        ("shop", "hosts = [\"shop.test\"]"),
        ("below", "hosts = [\"*.shop.test\"]"),
        ("port", "hosts = [\"shop.test:8080\"]"),
        ("rest", ""),
    ];
    hosts.into_iter().fold(Config::new().listener("kind = \"decision\""), site)
}

/// Returns the line of a request for `/p` by Googlebot. The format of the log contains hosts.
fn line_for(format: &str, host: &str) -> String {
    let combined = |target: &str| line("192.0.2.1", 1, target, "-", GOOGLEBOT);
    let plus = GOOGLEBOT.replace(' ', "+");
    let nothing = if host.is_empty() { "-" } else { host };
    let or_other = if host.is_empty() { "other.test" } else { host };
    let name = host.split(':').next();
    let line = match format {
        "vhost" => return format!("{nothing} {}", combined("/p")),
        // This client treats the server as a proxy, so its request contains an absolute URL.
        "absolute" => return combined(&format!("http://{or_other}/p")),
        "nginx" => json!({
            "time_iso8601": "2026-11-01T01:00:00Z", "remote_addr": "192.0.2.1", "request": "GET /p HTTP/1.1",
            "http_user_agent": GOOGLEBOT, "host": name, "http_host": host,
        }),
        "caddy" => json!({"ts": 1_793_494_800.5, "status": 200, "request": {
            "client_ip": "192.0.2.1", "method": "GET", "host": host, "uri": "/p", "headers": {"User-Agent": [GOOGLEBOT]},
        }}),
        "traefik" => json!({
            "ClientHost": "192.0.2.1", "RequestAddr": host, "RequestHost": name, "RequestMethod": "GET",
            "RequestPath": "/p", "StartUTC": "2026-11-01T01:00:00Z", "request_User-Agent": GOOGLEBOT,
        }),
        "envoy" => json!({
            "start_time": "2026-11-01T01:00:00.1Z", "method": "GET", "path": "/p", "authority": nothing,
            "user_agent": GOOGLEBOT, "downstream_remote_address": "192.0.2.1:1234",
        }),
        "iis" => return format!("2026-11-01 01:00:00 192.0.2.1 GET /p {nothing} {plus}\n"),
        "cloudfront" => {
            let agent = GOOGLEBOT.replace(' ', "%20");
            return format!("2026-11-01\t01:00:00\t192.0.2.1\tGET\td111.cloudfront.net\t/p\t{agent}\t{nothing}\n");
        }
        _ => {
            let has_port = or_other.contains("]:") || or_other.rsplit(':').next().unwrap().parse::<u16>().is_ok();
            let port = if has_port { "" } else { ":443" };
            return format!(
                "https 2026-11-01T01:00:00.186641Z app/lb/50dc6c495c0c9188 192.0.2.1:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 \"GET https://{or_other}{port}/p HTTP/1.1\" \"{GOOGLEBOT}\" - -\n"
            );
        }
    };
    format!("{line}\n")
}

/// Returns the lines of requests for every host. Their numbers are such that no two sums are equal.
fn lines_for(format: &str) -> String {
    HOSTS.iter().enumerate().map(|(at, (host, _))| line_for(format, host).repeat(1 << at)).collect()
}

#[test]
fn a_site_has_the_requests_for_its_hosts_in_logs_of_every_format() {
    let folder = sites().file("new.txt", "User-agent: *\nDisallow: /p\n").folder();
    let ask = |arguments: &[&str]| {
        let Ended { code, out, error } = folder.with_config(arguments);
        (serde_json::from_str::<Value>(&out).unwrap_or_default(), error, code)
    };
    let replay =
        |site: &str, more: &[&str]| ask(&[&["replay", "log", "--format", "json", "--site", site], more].concat());
    let formats = ["vhost", "absolute", "nginx", "caddy", "traefik", "envoy", "iis", "cloudfront", "alb"];
    for (number, format) in formats.into_iter().enumerate() {
        let head = match format {
            "iis" => "#Fields: date time c-ip cs-method cs-uri-stem cs-host cs(User-Agent)\n",
            "cloudfront" => "#Fields: date time c-ip cs-method cs(Host) cs-uri-stem cs(User-Agent) x-host-header\n",
            _ => "",
        };
        folder.write("log", head.to_owned() + &lines_for(format));
        for (at, site) in ["shop", "below", "port", "rest"].into_iter().enumerate() {
            let of_site = |(at, (_, owner)): (usize, &(&str, &str))| if *owner == site { 1 << at } else { 0 };
            let by_hand: u64 = HOSTS.iter().enumerate().map(of_site).sum();
            let (report, said, code) = replay(site, &[]);
            let counts = ["requests", "other_hosts", "without_host", "unread_lines"].map(|name| report[name].as_u64());
            assert_eq!(counts, [by_hand, 2047 - by_hand, 0, 0].map(Some), "{format} {site} {said}");
            assert_eq!((code, crawler(&report, "Googlebot")["requests"].as_u64()), (Some(0), Some(by_hand)));
            // All logs are read in the same way, so each site is tested with one of four formats.
            if at != number % 4 {
                continue;
            }
            let (diff, said, _) = ask(&["diff", "--site", site, "new.txt", "--log", "log", "--format", "json"]);
            let want = json!({"lost": by_hand, "all": by_hand});
            assert_eq!(diff["pages"]["losses"][0]["requests"], want, "{format} {said}");
        }
    }

    // Requests without a host may all belong to the site. This must be reported once, unless the
    // command line names their host.
    folder.write("log", line("192.0.2.1", 1, "/p", "-", GOOGLEBOT).repeat(900));
    let (report, said, _) = replay("shop", &[]);
    assert_part(&report, &json!({"requests": 900, "without_host": 900}));
    assert_eq!(said, "");
    let text = folder.with_config(&["replay", "log", "--site", "shop"]).out;
    assert_eq!(text.matches("--host HOST").count(), 1);
    let diff = ["diff", "--site", "shop", "new.txt", "--log", "log"];
    assert_eq!(ask(&diff).1.matches("--host HOST").count(), 1);
    let (_, said, code) = ask(&[&diff[..], &["--host", "SHOP.test:443"]].concat());
    assert_eq!((&*said, code), ("", Some(0)));
    assert_part(&replay("shop", &["--host", "shop.test"]).0, &json!({"requests": 900, "without_host": 0}));
    let (_, said, code) = replay("shop", &["--host", "www.shop.test"]);
    assert_has(said, &["\"www.shop.test\" is not a host of the site \"shop\", which serves \"shop.test\""]);
    assert_eq!(code, Some(2));
    // One line is invalid. All other requests are for other hosts.
    folder.write("log", line_for("vhost", "other.test") + "junk\n");
    let (_, said, code) = replay("shop", &[]);
    assert_has(said, &["no request of the logs is for a host of the site \"shop\""]);
    assert_eq!(code, Some(2));
}

/// The site has one file per host. Only requests to which the named file applies may be counted.
#[test]
fn a_file_of_a_folder_has_the_requests_for_its_host() {
    let mut config = Config::new().listener("kind = \"decision\"").file("log", lines_for("vhost"));
    config = config.site("hosts", "robots = { source = \"directory\", path = \"sites\" }");
    for name in ["shop.test", "_wildcard.shop.test", "default"] {
        config = config.file(&format!("sites/{name}.txt"), "User-agent: *\nDisallow: /p\n");
    }
    let folder = config.folder();
    let cases = [("hosts/shop.test", 0b1100_1111), ("hosts/x.shop.test", 0b11_0000), ("any.test", 0b111_0000_0000)];
    for (site, by_hand) in cases {
        let report = folder.with_config(&["replay", "log", "--format", "json", "--site", site]).json();
        assert_eq!(report["requests"], by_hand, "{site}");
    }
}

/// Runs git in a folder, with this date as its time. Fails if git is not installed.
fn git_at(folder: &Folder, site: &str, date: &str, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.arg("-C").arg(folder.at(site)).args(["-c", "user.name=t", "-c", "user.email=t@a.test"]);
    command.env("GIT_COMMITTER_DATE", date).env("GIT_AUTHOR_DATE", date);
    run(command.args(arguments)).succeeded();
}

fn has_git() -> bool {
    std::process::Command::new("git").arg("--version").output().is_ok()
}

/// Returns when each version came into force.
fn since(report: &Value) -> Vec<&str> {
    report["history"]["versions"].as_array().unwrap().iter().map(|version| version["since"].as_str().unwrap()).collect()
}

/// Neither a wrong clock nor settings that change git's output may change the history.
#[test]
fn the_order_of_commits_counts_whatever_their_dates_and_user_settings() {
    if !has_git() {
        return super::programs::skip("git");
    }
    let folder = folder(&[("site/shared/r[1].txt", ROBOTS), ("log", &line("192.0.2.1", 20, "/a", "-", GOOGLEBOT))]);
    let git = |day: u32, arguments: &[&str]| git_at(&folder, "site", &format!("2026-11-{day:02}T00:00:00Z"), arguments);
    let commit = |day: u32| {
        git(day, &["add", "--all"]);
        git(day, &["commit", "--quiet", "--message", "A version"]);
    };
    git(1, &["init", "--quiet", "--initial-branch", "main"]);
    folder.write("site/shared/r1.txt", "# no version of the other");
    commit(5);
    folder.write("site/shared/r[1].txt", NEW);
    folder.write("site/shared/r1.txt", "# nor is this");
    commit(3);
    folder.write("gitconfig", "[log]\nshowRoot = false\nfollow = true\ndiffMerges = off\n[color]\nui = always\n[core]\npager = false\n[diff]\nexternal = false\n");
    let replay = |path: &str| {
        let mut command = folder.robotsd();
        command.env("GIT_CONFIG_GLOBAL", folder.at("gitconfig")).env("GIT_DIR", "nowhere");
        run(command.args(["replay", "log", "--format", "json", "--history", path])).json()
    };
    let report = replay("site/shared/r[1].txt");
    assert_eq!(since(&report), ["2026-11-03T00:00:00Z", "2026-11-03T00:00:00Z"]);
    assert_eq!((&report["robots"], report["history"]["left_out"].is_null()), (&"site/shared/r[1].txt".into(), true));

    // If the file is a link, the versions are those of its target, from the repository of the
    // target. Links of earlier commits are not followed.
    std::os::unix::fs::symlink("../shared/r[1].txt", {
        std::fs::create_dir(folder.at("site/pages")).unwrap();
        folder.at("site/pages/robots.txt")
    })
    .unwrap();
    commit(6);
    let report = replay("site/pages");
    assert_eq!((since(&report).len(), &report["robots"]), (2, &"site/pages/robots.txt".into()));
    folder.remove("site/pages/robots.txt");
    folder.write("site/pages/robots.txt", ROBOTS);
    commit(7);
    let report = replay("site/pages");
    assert_eq!(since(&report), ["2026-11-07T00:00:00Z"]);
    assert_has(report["history"]["left_out"].to_string(), &["the file is a link in that version"]);

    folder.write("site/pages/robots.txt", NEW);
    commit(8);
    let from = format!("file://{}", folder.at("site").display());
    git_at(&folder, ".", "2026-11-09T00:00:00Z", &["clone", "--quiet", "--depth", "1", &from, "shallow"]);
    let report = replay("shallow/pages/robots.txt");
    assert_eq!(since(&report), ["2026-11-08T00:00:00Z"]);
    assert_has(report["history"]["left_out"].to_string(), &["the repository is a shallow clone"]);
}

#[test]
fn the_newest_versions_of_a_long_history_count_and_the_report_says_so() {
    if !has_git() {
        return super::programs::skip("git");
    }
    let folder = folder(&[("site/x", ""), ("log", &line("192.0.2.1", 20, "/a", "-", GOOGLEBOT))]);
    git_at(&folder, "site", "2026-11-01T00:00:00Z", &["init", "--quiet", "--initial-branch", "main"]);
    let commit = |at: u32| {
        let text = format!("User-agent: *\nDisallow: /{at}\n");
        let file = format!("M 100644 inline robots.txt\ndata {}\n{text}\n", text.len());
        format!("commit refs/heads/main\ncommitter t <t@a.test> {} +0000\ndata 1\nv\n{file}", 1_700_000_000 + at)
    };
    folder.write("import", (0..515).map(commit).collect::<String>());
    let mut import = std::process::Command::new("git");
    import.arg("-C").arg(folder.at("site")).args(["fast-import", "--quiet"]);
    assert!(import.stdin(std::fs::File::open(folder.at("import")).unwrap()).status().unwrap().success());
    git_at(&folder, "site", "2026-11-01T00:00:00Z", &["reset", "--quiet", "--hard"]);
    let ended = folder.run(["replay", "log", "--format", "json", "--history", "site"]);
    let report = ended.json();
    assert_eq!(since(&report).len(), 512);
    assert_eq!(since(&report).last(), Some(&"2023-11-14T22:21:54Z"));
    assert_has(report["history"]["left_out"].to_string(), &["are left out: at most 512 versions are read"]);
}

#[test]
fn an_invalid_history_is_refused_with_the_expected_form() {
    let page = "<!DOCTYPE html><html><body>User-agent: *</body></html>";
    let files = [("old/one.txt", ROBOTS), ("pages/2026-10-01.html", page), ("robots-2026-10-01.txt", NEW)];
    let folder = folder(&[&files[..], &[("log", &log())]].concat());
    for (path, want) in [("old", "no file in it has a date in its name"), ("pages", "pages/2026-10-01.html:1")] {
        let said = folder.run(["replay", "log", "--history", path]).failed(2);
        let parts = [want, "files as they were served, with the day in their names, such as robots-2026-11-01.txt"];
        assert_has(said, &parts);
    }
    // If the file of a site is missing, no other file may be used in its place without notice.
    let config = Config::deciding().site("shop", "robots.path = \"none.txt\"").file("log", log());
    let folder = config.file("robots-2026-10-01.txt", NEW).folder();
    let ended = folder.with_config(&["replay", "log", "--history", "robots-2026-10-01.txt"]);
    let wants = ["none.txt: No such file", "using the newest version of --history instead: robots-2026-10-01.txt"];
    assert_has(ended.error, &wants);
}

#[test]
fn a_report_with_a_history_begins_with_the_judgements() {
    let folder = folder(&[("log", &log()), ("robots-2026-10-01.txt", NEW), ("robots.txt", ROBOTS)]);
    let history = ["replay", "log", "--history", "robots-2026-10-01.txt"];
    let text = folder.run(history).out;
    let want = "by the versions that crawlers had read\n  no crawler is judged: a judgement requires";
    assert!(text.starts_with(want), "{text}");
    assert_has(&text, &["\n  2 names not judged (not verified: anyone could have sent these requests): "]);
    let requests = text.find("6 requests").unwrap();
    let note = "robots-2026-10-01.txt); the counts below use one robots.txt for all requests\n";
    assert!(text.find(note).unwrap() < requests, "{text}");
    let page = folder.run([&history[..], &["--format", "html"]].concat()).out;
    assert!(page.find("no crawler is judged").unwrap() < page.find("6 requests").unwrap());
    // Without a name, the default file is used.
    assert_eq!(folder.run(["replay", "log", "--format", "json"]).json()["robots"], "robots.txt");
    folder.remove("robots.txt");
    let usual = "robots.txt: No such file or directory (os error 2): name a file, a URL such as https://example.com";
    assert_has(folder.run(["replay", "log"]).failed(2), &[usual]);
}

#[test]
fn queries_of_a_proxy_are_not_requests() {
    let questions = ["/-/auth/nginx", "/-/refusal/nginx", "/-/site/shop/auth/envoy/a"];
    let questions: String = questions.iter().map(|target| line("192.0.2.1", 1, target, "-", GPTBOT)).collect();
    let mine = line("192.0.2.1", 1, "/-/health", "-", GPTBOT) + &line("192.0.2.1", 1, "/-/auth/", "-", GPTBOT);
    let ended = Replay::of(&questions).run("text", &[]);
    assert_has(ended.failed(2), &["cannot count 2 lines with a proxy's question"]);
    let (report, _) = report(questions + &mine, &[]);
    assert_eq!(report["requests"], 2);
}

/// A version on a branch was not served before the branch was merged.
#[test]
fn a_version_of_another_branch_is_in_force_from_the_merge_on() {
    if !has_git() {
        return super::programs::skip("git");
    }
    let folder = folder(&[("site/pages/index.html", ""), ("log", &line("192.0.2.1", 20, "/a", "-", GOOGLEBOT))]);
    let git = |hour: u32, arguments: &[&str]| {
        git_at(&folder, "site", &format!("2026-11-01T{hour:02}:00:00Z"), arguments);
    };
    let commit = |hour: u32, text: &str| {
        folder.write("site/pages/robots.txt", text);
        git(hour, &["add", "--all"]);
        git(hour, &["commit", "--quiet", "--message", "A version"]);
    };
    git(0, &["init", "--quiet", "--initial-branch", "main"]);
    commit(1, ROBOTS);
    git(2, &["checkout", "--quiet", "-b", "next"]);
    commit(2, NEW);
    git(3, &["checkout", "--quiet", "main"]);
    folder.write("site/pages/other.html", "");
    git(3, &["add", "--all"]);
    git(3, &["commit", "--quiet", "--message", "Another page"]);
    git(9, &["merge", "--quiet", "--no-ff", "--no-edit", "next"]);
    git(10, &["rm", "--quiet", "pages/robots.txt"]);
    git(10, &["commit", "--quiet", "--message", "None any more"]);
    folder.write("site/pages/robots.txt", "");
    let report = folder.run(["replay", "log", "--format", "json", "--history", "site/pages/robots.txt"]).json();
    assert_eq!(since(&report), ["2026-11-01T01:00:00Z", "2026-11-01T09:00:00Z", "2026-11-01T10:00:00Z"]);
    assert_eq!(report["robots"], "site/pages/robots.txt");

    let without = |arguments: &[&str]| {
        let mut command = folder.robotsd();
        run(command.args(["replay", "log", "--history"]).args(arguments).env("PATH", "")).failed(2)
    };
    assert_has(without(&["site/pages"]), &["the command git is missing", "install git, or name dated files"]);
    assert_has(without(&["site/none.txt"]), &["site/none.txt: No such file"]);
    // Files with dates in their names need no git.
    folder.write("old/robots-2026-10-01.txt", ROBOTS);
    folder.write("old/20261101T0930.txt", NEW);
    folder.write("old/README.md", "no version");
    let report = folder.run(["replay", "log", "--format", "json", "--history", "old"]).json();
    assert_eq!(since(&report), ["2026-10-01T00:00:00Z", "2026-11-01T09:30:00Z"]);
}

#[test]
fn crawled_pages_are_compared_with_visitors() {
    let log = [
        line("192.0.2.2", 1, "/a", "-", GPTBOT),
        line("192.0.2.2", 1, "/b", "-", GPTBOT),
        line("192.0.2.2", 1, "/b.css", "-", GPTBOT),
        line("192.0.2.2", 1, "/robots.txt", "-", GPTBOT),
        line("192.0.2.2", 1, "/c", "-", GPTBOT).replace("\" 200 9", "\" 403 9"),
        line("192.0.2.9", 2, "/a", "https://chatgpt.com/", FIREFOX),
        line("192.0.2.9", 2, "/a", "https://chatgpt.com/", FIREFOX).replace("\" 200 9", "\" 301 9"),
        line("192.0.2.9", 2, "/a.css", "https://chatgpt.com/", FIREFOX),
        line("192.0.2.9", 2, "/a", "https://chatgpt.com.evil.example/", FIREFOX),
        line("192.0.2.9", 2, "/a", "https://chatgpt.com/", GOOGLEBOT),
        line_at("192.0.2.9", 9000, "POST /a", "https://chatgpt.com/", FIREFOX),
    ];
    let output = Replay::of(log.concat()).text(&[]);
    let want = "OpenAI: GPTBot (ai-training) fetched 2 pages; chatgpt.com sent 1 visitor: 2.0 pages per visitor";
    assert_has(&output, &["what crawling gives back, by operator", want]);
    let page = Replay::of(log.concat()).html(&[]);
    assert_has(&page, &["<h2>What crawling gives back</h2>", ">1 from chatgpt.com<"]);
    // If the log has no `Referer`, the report must not mention referrals.
    assert_lacks(Replay::of(line("192.0.2.2", 1, "/a", "-", GPTBOT)).text(&[]), &["gives back"]);
}
