//! Tests `replay` on small logs with known counts.

use crate::harness::*;

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

/// A folder with a log, the robots.txt that judges the log, and another robots.txt.
struct Replay(Folder);

impl Replay {
    fn of(log: impl AsRef<[u8]>) -> Self {
        let folder = folder(&[("robots.txt", ROBOTS), ("new.txt", NEW)]);
        folder.write("log", log);
        Self(folder)
    }

    fn run(&self, format: &str, arguments: &[&str]) -> Ended {
        self.0.run([&["replay", "log", "--format", format, "--robots", "robots.txt"], arguments].concat())
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
fn private_data_is_shown_only_on_request() {
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
fn varying_paths_are_grouped_and_counted_as_one_pattern() {
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
fn replay_against_a_new_robots_txt_counts_requests_that_it_newly_blocks_or_allows() {
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
fn a_change_that_blocks_a_search_engine_exits_with_status_1_and_is_listed_first() {
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
    let want = "<g><title>2026-11-01 03:00 UTC: 1 newly disallowed (1 from search engines), 0 newly \
                allowed</title><rect class=\"engine\" ";
    assert!(columns[2].starts_with(want) && columns[2].matches("<rect ").count() == 1, "{columns:?}");
    assert_has(
        columns[4],
        &["9 newly disallowed (0 from search engines)", "class=\"disallowed\"", "height=\"90.00%\""],
    );
}

#[test]
fn disallowed_requests_before_the_effective_time_are_counted_as_not_blamed() {
    let (said, _) = report(log(), &["--effective-from", "2026-11-01T04:00:00Z"]);
    // Each request must be in exactly one of the three counts.
    let totals = json!({"disallowed": 1, "not_blamed": 1, "allowed": 3, "crawler_requests": 5});
    assert_part(&said["totals"], &totals);
    let in_hours = |name: &str| said["hours"].as_array().unwrap().iter().map(|hour| hour[name].as_u64().unwrap()).sum();
    let sums: [u64; 3] = ["allowed", "disallowed", "not_blamed"].map(in_hours);
    assert_eq!(sums, [3, 1, 1]);
}

#[test]
fn compressed_logs_and_standard_input_are_read() {
    let (said, _) = report(gzip(log()), &[]);
    assert_eq!(said["requests"], 6);
    let folder = folder(&[("robots.txt", ROBOTS)]);
    let text = run_with(folder.robotsd().args(["replay", "-", "--robots", "robots.txt"]), log().as_bytes()).out;
    let want = "6 requests, 2026-11-01 01:00 to 2026-11-01 06:00 UTC\n1 line could not be read";
    assert!(text.starts_with(want), "{text}");
    assert_has(text, &["2 of 5 requests by crawlers (40 %) are disallowed by robots.txt\n"]);
}

#[test]
fn the_replay_page_loads_nothing_and_escapes_markup_from_the_log() {
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
fn each_crawler_on_the_page_expands_to_its_rules_and_every_header_cell_has_a_scope() {
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
fn each_chart_column_covers_12_hours_or_a_day_depending_on_the_length_of_the_log() {
    let later = |day: &str| line("192.0.2.2", 5, "/cart", "-", GPTBOT).replace("01/Nov", day);
    let html = |day: &str| Replay::of(log() + &later(day)).html(&[]);
    assert_has(html("30/Nov"), &["Requests by crawlers per 12 hours, UTC", "<title>2026-11-01 00:00 UTC: "]);
    assert_has(html("04/Dec"), &["Requests by crawlers per 12 hours, UTC"]);
    assert_has(html("09/Dec"), &["Requests by crawlers per day, UTC", "<title>2026-12-09 00:00 UTC: "]);
}

#[test]
fn a_compressed_cdn_log_is_recognised_and_an_empty_or_utf_16_log_is_reported() {
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
fn a_log_that_cannot_be_read_does_not_prevent_reading_the_others() {
    let packed = gzip(log().repeat(2_000));
    let folder = folder(&[("robots.txt", ROBOTS), ("log", &log())]);
    folder.write("cut.gz", &packed[..packed.len() / 2]);
    fs::create_dir(folder.at("dir")).unwrap();
    let arguments = ["replay", "missing", "cut.gz", "dir", "log", "--robots", "robots.txt", "--format", "json"];
    let output = folder.run(arguments).ends_with(2);
    // There are more requests than in the last log, because all requests that could be decompressed
    // count.
    assert!(output.json()["requests"].as_u64().unwrap() > 6, "{output:?}");
    let lines: Vec<_> = output.error.lines().collect();
    for (line, [start, part]) in lines.iter().zip([
        ["robotsd: missing: No such file", ""],
        ["robotsd: cut.gz: ", "damaged or incomplete"],
        ["robotsd: dir: Is a directory", "specify the logs in it"],
    ]) {
        assert!(line.starts_with(start) && line.contains(part), "{lines:?}");
    }
    assert!(lines.len() >= 3 && lines[2].ends_with("specify the logs in it"), "{lines:?}");
}

/// Returns three counts of a report: requests, unreadable lines, and requests by GPTBot.
fn counts(report: &Value) -> [Option<u64>; 3] {
    let gptbot = || report["crawlers"].as_array()?.iter().find(|row| row["name"] == "GPTBot")?["requests"].as_u64();
    [report["requests"].as_u64(), report["unread_lines"].as_u64(), gptbot()]
}

/// The unit tests of `format` cover the other collectors.
#[test]
fn log_lines_that_docker_wraps_in_json_are_read() {
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

#[test]
fn a_log_compressed_with_xz_is_rejected_with_the_command_that_decompresses_it() {
    let want = "robotsd: log: the log is compressed with xz, which is not supported: decompress it with xz -dc, and ";
    assert_has(Replay::of(b"\xFD7zXZ\0\0\x04\xE6\xD6\xB4\x46").run("text", &[]).failed(2), &[want]);
}

#[test]
fn the_html_report_of_a_log_without_user_agents_does_not_call_the_log_empty() {
    let log = "192.0.2.1 - - [01/Nov/2026:04:00:00 +0000] \"GET /cart HTTP/1.1\" 200 9\n";
    assert_lacks(Replay::of(log).html(&[]), &["contain no requests"]);
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

/// Returns the log line of Googlebot's request for `/p`, in a log format that contains hosts.
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

/// Returns the lines of requests for every host. The numbers of lines are chosen so that no two
/// sums are equal.
fn lines_for(format: &str) -> String {
    HOSTS.iter().enumerate().map(|(at, (host, _))| line_for(format, host).repeat(1 << at)).collect()
}

#[test]
fn a_site_counts_only_the_requests_for_its_hosts_in_logs_of_every_format() {
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
            // `diff` reads all logs in the same way, so it is tested with one of four formats per
            // site.
            if at != number % 4 {
                continue;
            }
            let (diff, said, _) = ask(&["diff", "--site", site, "new.txt", "--log", "log", "--format", "json"]);
            let want = json!({"lost": by_hand, "all": by_hand});
            assert_eq!(diff["pages"]["losses"][0]["requests"], want, "{format} {said}");
        }
    }

    // Requests without a host may all belong to the site. The output must mention this once, unless
    // the command line names their host.
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
    assert_has(said, &["no request in the logs is for a host of the site \"shop\""]);
    assert_eq!(code, Some(2));
}

/// The site has one file per host. Only requests that the named file applies to may be counted.
#[test]
fn replay_of_one_file_in_a_folder_counts_only_requests_for_its_host() {
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
    let mut command = Command::new("git");
    command.arg("-C").arg(folder.at(site)).args(["-c", "user.name=t", "-c", "user.email=t@a.test"]);
    command.env("GIT_COMMITTER_DATE", date).env("GIT_AUTHOR_DATE", date);
    run(command.args(arguments)).succeeded();
}

fn has_git() -> bool {
    Command::new("git").arg("--version").output().is_ok()
}

fn since(report: &Value) -> Vec<&str> {
    report["history"]["versions"].as_array().unwrap().iter().map(|version| version["since"].as_str().unwrap()).collect()
}

/// Neither a wrong clock nor settings that change git's output may change the history.
#[test]
fn the_order_of_commits_counts_regardless_of_their_dates_and_git_settings() {
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
        fs::create_dir(folder.at("site/pages")).unwrap();
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
    assert_has(report["history"]["left_out"].to_string(), &["in that version, the file is a symbolic link"]);

    folder.write("site/pages/robots.txt", NEW);
    commit(8);
    let from = format!("file://{}", folder.at("site").display());
    git_at(&folder, ".", "2026-11-09T00:00:00Z", &["clone", "--quiet", "--depth", "1", &from, "shallow"]);
    let report = replay("shallow/pages/robots.txt");
    assert_eq!(since(&report), ["2026-11-08T00:00:00Z"]);
    assert_has(report["history"]["left_out"].to_string(), &["the repository is a shallow clone"]);
}

#[test]
fn the_report_of_a_long_history_states_that_only_the_newest_versions_count() {
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
    let mut import = Command::new("git");
    import.arg("-C").arg(folder.at("site")).args(["fast-import", "--quiet"]);
    assert!(import.stdin(fs::File::open(folder.at("import")).unwrap()).status().unwrap().success());
    git_at(&folder, "site", "2026-11-01T00:00:00Z", &["reset", "--quiet", "--hard"]);
    let ended = folder.run(["replay", "log", "--format", "json", "--history", "site"]);
    let report = ended.json();
    assert_eq!(since(&report).len(), 512);
    assert_eq!(since(&report).last(), Some(&"2023-11-14T22:21:54Z"));
    assert_has(report["history"]["left_out"].to_string(), &["are left out: only 512 versions are read"]);
}

/// A version on a branch was not served before the branch was merged.
#[test]
fn a_version_from_another_branch_takes_effect_at_the_time_of_the_merge() {
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
    assert_has(
        without(&["site/pages"]),
        &["the command git is not installed", "install git, or specify files with a date"],
    );
    assert_has(without(&["site/none.txt"]), &["site/none.txt: No such file"]);
    // Files with dates in their names need no git.
    folder.write("old/robots-2026-10-01.txt", ROBOTS);
    folder.write("old/20261101T0930.txt", NEW);
    folder.write("old/README.md", "no version");
    let report = folder.run(["replay", "log", "--format", "json", "--history", "old"]).json();
    assert_eq!(since(&report), ["2026-10-01T00:00:00Z", "2026-11-01T09:30:00Z"]);
}
