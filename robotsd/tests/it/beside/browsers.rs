//! Tests which requests nginx forwards without asking robotsd: all requests of browsers, and no
//! requests of crawlers.

use tower_robots::agent::{Class, Recognizer, Registry};
use tower_robots::rules::RobotsTxt;

use super::super::daemon::{Daemon, find, free_ports};
use super::server::{SERVERS, Stage};
use crate::harness::*;
use crate::shared::cases;

/// Headers of the most common browsers.
const BROWSERS: &[&str] = &[
    FIREFOX,
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 OPR/124.0.0.0",
    "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.7444.77 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (iPad; CPU OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/145.0 Mobile/15E148 Safari/605.1.15",
];

/// Removes the exception for nginx 1.22 from the shipped file. With this exception, nginx 1.22 asks
/// about every request.
pub(super) fn newer_nginx_config(text: String) -> String {
    text.replace("(?!1\\.22\\.)", "")
}

/// An nginx whose responses contain the result of the map in `config/beside` for the `User-Agent`.
struct Maps {
    _nginx: Daemon,
    client: Kept,
}

impl Maps {
    fn start() -> Option<(Self, Folder)> {
        let nginx = crate::programs::present(find("nginx"))?;
        let http = fs::read_to_string(project("config/beside/nginx/robotsd-http.conf")).unwrap();
        let [front, robotsd, helper] = free_ports(3)[..] else { unreachable!() };
        let http = http.replace(":9180", &format!(":{robotsd}")).replace(":9181", &format!(":{helper}"));
        let config = format!(
            "pid nginx.pid; daemon off; events {{ }} http {{ include http.conf; access_log off; keepalive_requests 100000;
             server {{ listen 127.0.0.1:{front}; location / {{ return 200 \"is $robotsd_browser\"; }} }} }}"
        );
        let folder = folder(&[("nginx.conf", &config), ("http.conf", &http)]);
        let mut command = Command::new(nginx);
        command.args(["-p", ".", "-c", "nginx.conf", "-e", "stderr"]);
        let mut nginx = Daemon::logging(&mut command, &folder);
        let address = ([127, 0, 0, 1], front).into();
        assert!(nginx.comes_to(|| TcpStream::connect(address).is_ok()), "{}", folder.read("log"));
        Some((Self { _nginx: nginx, client: Kept::open(address, "site.test") }, folder))
    }

    fn is_browser(&mut self, agent: &str) -> bool {
        match self.client.get("/", agent) {
            (200, body) if body == "is 1" => true,
            (200, body) if body == "is " => false,
            other => panic!("{agent}: {other:?}"),
        }
    }
}

/// Groups whose names are words in browsers' headers, because a file may contain such groups.
const HOSTILE: &str = "User-agent: Mozilla\nUser-agent: Chrome\nUser-agent: Safari\nUser-agent: Gecko\nUser-agent: Linux\n\
                       User-agent: Android\nUser-agent: Edg\nUser-agent: GSA\nUser-agent: Mobile\nUser-agent: K\nDisallow: /\n";

#[test]
fn nginx_never_takes_the_user_agent_of_a_crawler_for_a_browser() {
    let Some((mut maps, _folder)) = Maps::start() else { return };
    for agent in BROWSERS {
        assert!(maps.is_browser(agent), "is asked about: {agent}");
    }
    let file = RobotsTxt::parse(HOSTILE.as_bytes());
    let recognizer = Recognizer::new(Registry::builtin().clone(), &file);
    let headers = fs::read_to_string(project("tests/cases/headers.jsonl")).unwrap();
    let headers: Vec<Value> = headers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut browsers = 0;
    for case in headers.into_iter().chain(cases("../agents/labelled.jsonl.gz")) {
        let agent = case["ua"].as_str().unwrap();
        if agent.bytes().any(|byte| byte < b' ') || !maps.is_browser(agent) {
            continue;
        }
        browsers += 1;
        assert!(case["bot"] != true, "a bot is not asked about: {agent}");
        let agents = recognizer.agents(agent.as_bytes());
        assert_eq!((agents.first().class(), agents.len()), (Class::Browser, 1), "{agent}");
        assert!(agents.first().tokens().is_empty(), "{agent}");
    }
    assert!(browsers > 100, "{browsers}");
    // nginx must also ask if a crawler's name replaces any part of the header that is not a number.
    for crawler in Registry::builtin().crawlers() {
        for (at, _) in BROWSERS[0].match_indices([' ', ')', '/', ';', '.']) {
            let (before, after) = BROWSERS[0].split_at(at);
            let agent = format!("{before} {}{after}", crawler.name);
            assert!(!maps.is_browser(&agent), "{agent}");
        }
    }
}

#[test]
fn nginx_asks_robotsd_about_crawlers_signed_requests_and_external_referrers() {
    let nginx = &SERVERS[0];
    let Some(program) = crate::programs::present(nginx.find()) else { return };
    let log_requests = "\n[log]\naccess = \"json\"\n";
    let stage = Stage::set(nginx, &program, log_requests, &newer_nginx_config);
    // Log lines are matched by path, because a line may be late.
    let asked = |target: &str| stage.robotsd.count("request", |line| line["path"] == target);
    for (target, fields, is_asked) in [
        ("/a", &[("User-Agent", FIREFOX)][..], false),
        ("/b", &[("User-Agent", FIREFOX), ("Referer", "http://site.test/from?x")], false),
        ("/c", &[("User-Agent", FIREFOX), ("Referer", "https://site.test:8443/")], false),
        ("/d", &[("User-Agent", FIREFOX), ("Referer", "https://chatgpt.com/")], true),
        ("/e", &[("User-Agent", FIREFOX), ("Referer", "https://site.test.evil.example/")], true),
        ("/f", &[("User-Agent", FIREFOX), ("Signature-Input", "sig=(\"@authority\");tag=\"web-bot-auth\"")], true),
        ("/g", &[("User-Agent", GPTBOT)], true),
        ("/h", &[("User-Agent", "curl/8.0")], true),
        ("/i", &[], true),
    ] {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        assert_eq!(stage.ask("GET", target.as_bytes(), &fields, "").status, 200, "{target}");
        // Once the log contains the line of the next request, it also contains the lines of earlier
        // requests.
        let next = format!("/after{target}");
        assert_eq!(stage.ask("GET", next.as_bytes(), &[("User-Agent", GPTBOT.as_bytes())], "").status, 200);
        wait_until("the lines of both", || asked(&next) == 1 && asked(target) >= usize::from(is_asked));
        assert_eq!(asked(target), usize::from(is_asked), "{target}");
    }
}
