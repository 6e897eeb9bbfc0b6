//! Tests how the mode of a site limits the action on a request, at the proxy and at the decision
//! endpoint.

use crate::harness::*;

const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const ROBOTS: &str = "User-agent: GPTBot\\nUser-agent: Googlebot\\nCrawl-delay: 30\\nDisallow: /drafts/\\n";
const BARE: &str = "bare.test";

#[test]
fn a_log_line_names_the_override_and_the_host() {
    let modes = "hosts = [\"a.test\", \"b.test\"]\n[site.modes]\nindex = \"refuse\"\n\"agent:CCBot\" = \"tag\"";
    let config = Config::refusing().files_of("shop").tables(modes).robots("User-agent: *\nDisallow: /x\n");
    let (_folder, running) = config.start();
    let rows = [
        (GOOGLEBOT, "a.test", "refused", json!("index engines")),
        ("CCBot/2.0", "b.test", "tagged", json!("agent \"ccbot\"")),
        (GPTBOT, "b.test", "refused", Value::Null),
    ];
    for (agent, host, event, exception) in rows {
        running.request("GET", "/x", &[("Host", host), ("User-Agent", agent)]);
        let line = running.wait_for_event(event, |line| line["host"] == host && line["exception"] == exception);
        assert!(agent.contains(line["agent"].as_str().unwrap()), "{line}");
    }
}

/// All modes, the most lenient one first.
const MODES: [&str; 4] = ["off", "observe", "tag", "refuse"];

/// A site in the table of modes and overrides.
#[derive(Debug)]
struct Row {
    host: String,
    mode: usize,
    rate: &'static str,
    over: &'static str,
}

impl Row {
    fn all() -> Vec<Self> {
        let overrides = [
            "",
            "\"agent:GPTBot\" = \"refuse\"",
            "\"agent:GPTBot\" = { rate = \"refuse\" }",
            "\"category:ai-training\" = \"tag\"",
            "\"pattern:/drafts/\" = \"refuse\"",
        ];
        let mut rows = Vec::new();
        for mode in 0..MODES.len() {
            for rate in ["off", "observe", "refuse"] {
                for over in overrides {
                    rows.push(Self { host: format!("site{}.test", rows.len()), mode, rate, over });
                }
            }
        }
        rows
    }

    fn site(&self, upstream: &str) -> String {
        let Self { host, mode, rate, over } = self;
        let over = if over.is_empty() { String::new() } else { format!("[site.modes]\n{over}\n") };
        format!(
            "[[site]]\nname = \"{host}\"\nhosts = [\"{host}\"]\n{upstream}robots.text = \"{ROBOTS}\"\n\
             enforcement.mode = \"{}\"\nrate = {{ mode = \"{rate}\", burst = 1 }}\n{over}",
            MODES[*mode]
        )
    }

    /// Returns the mode that applies to requests of GPTBot.
    fn bound(&self) -> &'static str {
        match self.over {
            over if over.starts_with("\"agent") && !over.contains("rate") => "refuse",
            over if over.starts_with("\"category") => "tag",
            _ => MODES[self.mode],
        }
    }

    /// Returns what must happen to a disallowed request of GPTBot.
    fn disallowed(&self) -> &'static str {
        if self.over.starts_with("\"pattern") { "refuse" } else { self.bound() }
    }

    /// Returns what must happen to a disallowed request of Googlebot. Only the override for the
    /// rule applies to it.
    fn engine(&self) -> &'static str {
        match (self.over.starts_with("\"pattern"), MODES[self.mode]) {
            (true, _) => "refuse",
            (false, "refuse") => "tag",
            (false, mode) => mode,
        }
    }

    fn is_limited(&self) -> bool {
        self.over.contains("rate") || self.rate == "refuse" && self.bound() == "refuse"
    }

    fn is_untouched(&self) -> bool {
        self.over.is_empty() && self.mode < 2
    }
}

fn start(listener: &str, origin: &Origin) -> (Folder, Running) {
    let upstream = match listener {
        "" => format!("upstreams = [\"http://{origin}\"]\n"),
        _ => String::new(),
    };
    let config = Config::new().keys("workers = 1").listener(listener).tables("[admin]\nenabled = false");
    let config = Row::all().iter().fold(config, |config, row| config.tables(row.site(&upstream)));
    let bare = format!("hosts = [\"{BARE}\"]\n{upstream}robots.text = \"# nothing restricted\\n\"");
    config.site("bare", bare).start()
}

/// Returns a response in a form that is comparable between hosts. The request ID is left out, and
/// so is the length, because the content is compared.
fn comparable(answer: &Answer, host: &str) -> (u16, Vec<String>, String) {
    let is_of_request = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["x-request-id", "date", "content-length"].iter().any(|name| line.starts_with(name))
    };
    let of = |text: &str| {
        text.replace(host, "HOST").lines().filter(|line| !is_of_request(line)).map(str::to_owned).collect::<Vec<_>>()
    };
    (answer.status, of(&answer.head), of(&answer.body).join("\n"))
}

/// Sends the requests to every site. Returns how many responses were checked, and how many of them
/// came from sites that must not change responses.
fn compare(ask: impl Fn(&str, &str, &str) -> Answer) -> (usize, usize) {
    let (mut compared, mut untouched) = (0, 0);
    for row in Row::all() {
        let limit = if row.is_limited() { "limit" } else { "pass" };
        for (agent, path, want) in [
            (GPTBOT, "/drafts/x", row.disallowed()),
            (GOOGLEBOT, "/drafts/x", row.engine()),
            (GPTBOT, "/page", "pass"),
            (GPTBOT, "/page", limit),
        ] {
            let answer = ask(&row.host, path, agent);
            let is_tagged = format!("{}{}", answer.head, answer.body).to_ascii_lowercase().contains("robots-verdict:");
            let done = match answer.status {
                429 => "limit",
                403 => "refuse",
                200 if is_tagged => "tag",
                _ => "pass",
            };
            let want = if matches!(want, "off" | "observe") { "pass" } else { want };
            assert_eq!(done, want, "{row:?} {agent} {path}: {answer:?}");
            if done == "pass" {
                let bare = comparable(&ask(BARE, path, agent), BARE);
                assert_eq!(comparable(&answer, &row.host), bare, "{row:?} {agent} {path}");
            }
            assert!(done == "pass" || !row.is_untouched());
            compared += 1;
            untouched += usize::from(row.is_untouched());
        }
    }
    (compared, untouched)
}

#[test]
fn the_mode_of_a_site_limits_the_action_and_observe_leaves_responses_unchanged() {
    let origin = Origin::start();
    let (_folder, running) = start("", &origin);
    let ask =
        |host: &str, path: &str, agent: &str| running.request("GET", path, &[("Host", host), ("User-Agent", agent)]);
    assert_eq!(compare(ask), (240, 24));
    // The log must contain the action that would have been taken.
    let observing: Vec<_> = Row::all().into_iter().filter(|row| row.over.is_empty() && row.mode == 1).collect();
    for row in &observing {
        let of = |event: &str, agent: &str, would: &str| {
            running.wait_for_event(event, |line| {
                line["site"] == *row.host && line["agent"] == agent && line["would"] == would
            })
        };
        of("observed", "GPTBot", "refuse");
        of("observed", "Googlebot", "tag");
        match row.rate {
            "refuse" => drop(of("limit-observed", "GPTBot", "limit")),
            "observe" => drop(of("limit-observed", "GPTBot", "pass")),
            _ => {}
        }
    }
    assert_eq!(observing.len(), 3);
    let is_of_none =
        |line: &Value| Row::all().iter().any(|row| row.mode == 0 && row.over.is_empty() && line["site"] == *row.host);
    for event in ["observed", "limit-observed", "passed", "refused", "tagged", "limited"] {
        assert!(!running.has_event(event, is_of_none), "{event}: the mode is off");
    }
}

#[test]
fn the_mode_of_a_site_limits_the_action_on_decision_requests() {
    let (_folder, running) = start("kind = \"decision\"", &Origin::down());
    let ask = |host: &str, path: &str, agent: &str| {
        let asked = [("X-Forwarded-Uri", path), ("X-Forwarded-Method", "GET"), ("X-Forwarded-Host", host)];
        let client = [("User-Agent", agent), ("X-Forwarded-For", "192.0.2.3")];
        running.request("GET", "/-/auth/traefik", &[&asked[..], &client].concat())
    };
    assert_eq!(compare(ask), (240, 24));
}

/// The rules have been in the file for a year, but are new to a robotsd that starts for the first
/// time. Requests must therefore not be refused yet.
#[test]
fn the_first_change_to_refuse_reports_how_many_rules_are_in_their_grace_period() {
    const ROBOTS: &str = "User-agent: *\nDisallow: /a\nDisallow: /b\n\nUser-agent: GPTBot\nDisallow: /\n";
    let config = |mode: &str| Config::new().keys(format!("mode = \"{mode}\"\ngrace = \"24h\"\nstate_dir = \"state\""));
    let config = |mode: &str| config(mode).admin().files_of("shop").robots(ROBOTS);
    let said = "3 rules are enforced from 20";
    let (folder, running) = config("observe").start();
    let checked = || folder.configured(["config", "check"]).ends_with(0).error;
    assert_lacks(checked(), &["enforced from"]);
    folder.configure(config("refuse"));
    assert_has(
        checked(),
        &[
            "note: site \"shop\": 3 rules are enforced from 20",
            "Z at the latest: the grace period of a rule begins when",
            "robotsd.toml:",
        ],
    );
    assert_has(running.command(&["reload"]).succeeded(), &[said]);
    assert_eq!(running.get("/x", GPTBOT).status, 404);
    let explained = folder.with_config(&["explain", "--user-agent", GPTBOT, "/x"]).out;
    assert_has(
        &explained,
        &["policy: let pass, and record (the rule is new, and in its grace period: 3 rules are enforced from 20"],
    );
    assert_has(unfolded(&running.command(&["status"]).out), &["grace: 3 rules are enforced from 20"]);
    running.wait_for_event("observed", |line| line["reason"] == "grace" && line["message"].to_string().contains(said));
    // Without a grace period, there must be no such message, and the request must be refused.
    folder.configure(config("refuse").to_string().replace("24h", "0s"));
    assert_lacks(running.command(&["reload"]).succeeded(), &["enforced from"]);
    assert_lacks(checked(), &["enforced from"]);
    assert_eq!(running.get("/x", GPTBOT).status, 403);
}
