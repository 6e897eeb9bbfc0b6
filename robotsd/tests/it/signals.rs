//! Tests the response fields that repeat the usage preferences in robots.txt, also with real caches
//! (nginx and Varnish).

use std::process::Command;

use super::daemon::{Daemon, find, free_ports};
use super::programs::present;
use crate::harness::*;

const ROBOTS: &str = "License: https://a.test/l.xml\n\nUser-agent: *\nContent-Usage: train-ai=n\nAllow: /\n\n\
                      User-agent: ExampleBot\nContent-Usage: train-ai=y\nAllow: /\n\n\
                      User-agent: GPTBot\nContent-Usage: /a/ train-ai=n, search=y\nDisallow: /drafts/\n";
const EXAMPLE: &str = "ExampleBot/1.0";
const LINK: &str = "<https://a.test/l.xml>; rel=\"license\"; type=\"application/rsl+xml\"";

/// Starts robotsd in front of a site whose pages caches may store. `/own` has a field of its own,
/// and a request with `If-None-Match` gets 304.
fn start(signals: &str) -> (Folder, Running) {
    let origin = Origin::answering(|asked| {
        let own = ["Cache-Control: max-age=600", "Content-Usage: search=y", "content-usage: Train=?0"];
        let fields = if asked.target == "/own" { &own[..] } else { &own[..1] };
        let status = match &*asked.target {
            "/missing" => "404 Not Found",
            _ if asked.field("if-none-match").is_some() => "304 Not Modified",
            _ => "200 OK",
        };
        response(status, fields, if status.starts_with("304") { "" } else { "page" })
    });
    let config = Config::refusing().upstream("shop", origin.address);
    config.tables(signals).admin().robots(ROBOTS).start()
}

#[test]
fn responses_contain_the_usage_preferences_of_robots_txt_and_keep_upstream_fields() {
    let (folder, running) = start(
        "[site.signals]\ncontent_usage = \"by-agent\"\nlicense_link = true\n\
         [[site.field]]\npath = \"/b/*\"\nname = \"X-Robots-Tag\"\nvalue = \"noindex\"\n\
         [[site.field]]\npath = \"/b/\"\nname = \"tdm-reservation\"\nvalue = \"1\"\ncrawlers = [\"category:ai-training\"]",
    );
    for (path, agent, status, usage) in [
        ("/", FIREFOX, 200, Some("train-ai=n")),
        ("/", EXAMPLE, 200, Some("train-ai=y")),
        ("/", GPTBOT, 200, None),
        ("/a/", GPTBOT, 200, Some("search=y, train-ai=n")),
        ("/drafts/", GPTBOT, 403, None),
        ("/missing", FIREFOX, 404, None),
    ] {
        let answer = running.get(path, agent);
        assert_eq!((answer.status, answer.field("content-usage")), (status, usage), "{path} {agent}");
        assert_eq!(answer.field("link"), Some(LINK), "{path} {agent}");
    }
    let answer = running.get("/b/x", GPTBOT);
    assert_eq!((answer.field("x-robots-tag"), answer.field("tdm-reservation")), (Some("noindex"), Some("1")));
    let answer = running.get("/b/x", FIREFOX);
    assert_eq!((answer.field("x-robots-tag"), answer.field("tdm-reservation")), (Some("noindex"), None));
    assert_eq!(answer.field("vary"), Some("User-Agent"));
    let own = running.get("/own", FIREFOX);
    let lines: Vec<_> =
        own.head.lines().filter(|line| line.to_ascii_lowercase().starts_with("content-usage")).collect();
    let values: Vec<_> = lines.iter().filter_map(|line| line.split_once(':')).map(|(_, value)| value.trim()).collect();
    assert_eq!(values, ["search=y", "Train=?0"]);
    let metrics = running.ask_admin("GET /metrics").body;
    assert_has(&metrics, &["robotsd_response_fields_kept_total{site=\"shop\"} 1\n"]);
    // A 304 updates the stored field after robots.txt has changed.
    folder.replace("robots.txt", ROBOTS.replace("train-ai=n\nAllow", "train-ai=y\nAllow"));
    let known = [("User-Agent", FIREFOX), ("If-None-Match", "\"a\"")];
    wait_until("a 304 with the new field", || {
        let answer = running.request("GET", "/", &known);
        assert_eq!(answer.status, 304);
        answer.field("content-usage") == Some("train-ai=y")
    });
}

#[test]
fn a_decision_response_for_nginx_contains_the_usage_and_license_fields() {
    let site = "robots.path = \"robots.txt\"\n[site.signals]\ncontent_usage = \"by-agent\"\nlicense_link = true";
    let (_folder, running) = Config::deciding().site("shop", site).robots(ROBOTS).start();
    let ask = |method, agent, uri| {
        let fields = [("X-Original-URI", uri), ("X-Original-Method", method), ("User-Agent", agent)];
        running.request("GET", "/-/auth/nginx", &fields)
    };
    let answer = ask("GET", EXAMPLE, "/");
    assert_eq!((answer.status, answer.field("content-usage")), (200, Some("train-ai=y")));
    assert_eq!((answer.field("link"), answer.field("vary")), (Some(LINK), Some("User-Agent")));
    assert_eq!(ask("POST", EXAMPLE, "/").field("content-usage"), None);
    let refusal = ask("GET", GPTBOT, "/drafts/");
    assert_eq!((refusal.status, refusal.field("content-usage"), refusal.field("link")), (403, None, Some(LINK)));
}

#[test]
fn the_check_reports_problems_of_response_fields_and_commands_show_usage_preferences() {
    let site = "root = \".\"\nrobots.path = \"robots.txt\"\n[site.signals]\ncontent_usage = \"by-agent\"\n\
                [[site.field]]\npath = \"/drafts/*\"\nname = \"X-Robots-Tag\"\nvalue = \"noindex\"\ncrawlers = [\"GPTBot\"]";
    let folder = Config::refusing().site("shop", site).robots(ROBOTS).folder();
    let said = folder.configured(["config", "check"]).said();
    assert_has(said, &["a cache keeps a copy for each User-Agent", "crawlers never see this noindex"]);
    let explained = folder.with_config(&["explain", "--user-agent", "ExampleBot", "/x"]).out;
    assert_has(
        explained,
        &[
            "Content-Usage: train-ai=y\n",
            "train-ai=y for this path",
            "License: https://a.test/l.xml",
            "field:  content-usage: train-ai=y",
        ],
    );
    let checked = folder.run(["check", "robots.txt"]).said();
    assert_has(
        checked,
        &["usage preferences for the front page: they differ between crawlers", "licences: https://a.test/l.xml"],
    );
    folder.write("new.txt", ROBOTS.replace("train-ai=y", "train-ai=n").replace("l.xml", "new.xml"));
    let changed = folder.run(["diff", "robots.txt", "new.txt"]).said();
    assert_has(
        changed,
        &[
            "Content-Usage of /: train-ai=n; was train-ai=y",
            "licences that are only in the new file: https://a.test/new.xml",
        ],
    );
    // robotsd does not send the content signals of a robots.txt in responses, but commands show
    // them.
    let signals = |ai_train: &str| {
        format!("User-agent: *\nContent-Signal: search=yes, ai-train={ai_train}\nAllow: /\n\nUser-agent: a\nAllow: /\n")
    };
    let file = |name: &str, ai_train: &str| folder.write(name, signals(ai_train));
    file("no.txt", "no");
    file("yes.txt", "yes");
    let checked = folder.run(["check", "no.txt"]).said();
    assert_has(checked, &["no.txt: content signals: search=yes, ai-train=no"]);
    let changed = folder.run(["diff", "no.txt", "yes.txt"]).said();
    let change = "any crawler that is named in neither file: Content-Signal of /: search=yes, ai-train=yes; was \
                  search=yes, ai-train=no";
    assert_has(changed, &[change, "no rule changed; usage preferences changed for "]);
    let row = "| Content-Signal of `/`: `search=yes, ai-train=yes` | | `search=yes, ai-train=no` |";
    assert_has(folder.run(["diff", "--format", "markdown", "no.txt", "yes.txt"]).said(), &[row]);
    for (old, new, problem) in [
        ("X-Robots-Tag", "Set-Cookie", "is not the name of a field that can be added"),
        ("X-Robots-Tag", "Content_Length", "is not the name of a field that can be added"),
        ("GPTBot", "NeverHeardOfBot", "no crawler is called \"NeverHeardOfBot\""),
        ("GPTBot", "operator:Nobody", "no crawler of the registry has the operator \"Nobody\""),
    ] {
        folder.configure(Config::refusing().site("shop", site.replace(old, new)));
        assert_has(folder.configured(["config", "check"]).said(), &[problem]);
    }
}

/// Sends requests of several agents for the same pages through a cache, and checks that each gets
/// its own field.
fn asks_through_a_cache(port: u16) {
    let agents = [
        (FIREFOX, Some("train-ai=n"), Some("train-ai=n")),
        (EXAMPLE, Some("train-ai=y"), Some("train-ai=y")),
        (GPTBOT, Some("search=y, train-ai=n"), None),
        (GOOGLEBOT, Some("train-ai=n"), Some("train-ai=n")),
        ("OtherBot/1.0", Some("train-ai=n"), Some("train-ai=n")),
    ];
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    wait_until("the cache", || TcpStream::connect(address).is_ok());
    let (mut cache, mut hits) = (Kept::open(address, "site.test"), 0);
    for number in 0..1000_usize {
        let (agent, in_a, elsewhere) = agents[number * 7 % agents.len()];
        let (folder, want) = [("a", in_a), ("b", elsewhere), ("drafts", elsewhere)][number % 3];
        let target = format!("/{folder}/{}", number / 3 % 8);
        let fields = format!("User-Agent: {agent}\r\n");
        let answer = cache.ask("GET", target.as_bytes(), &fields).unwrap_or_else(|| {
            // nginx ends a connection after a thousand requests.
            cache = Kept::open(address, "site.test");
            cache.ask("GET", target.as_bytes(), &fields).expect("an answer")
        });
        let status = if folder == "drafts" && agent == GPTBOT { 403 } else { 200 };
        assert_eq!((answer.status, answer.field("content-usage")), (status, want), "{target} {agent}: {answer:?}");
        hits += usize::from(
            answer
                .field("x-cache")
                .is_some_and(|state| state == "HIT" || state.parse().is_ok_and(|hits: u32| hits > 0)),
        );
    }
    assert!(hits > 500, "{hits} answers are from the cache");
}

const BY_AGENT: &str = "[site.signals]\ncontent_usage = \"by-agent\"\nlicense_link = true";

#[test]
fn nginx_as_a_cache_sends_each_user_agent_its_own_usage_field() {
    let Some(program) = present(find("nginx")) else { return };
    let ((folder, running), port) = (start(BY_AGENT), free_ports(1)[0]);
    folder.write(
        "nginx.conf",
        format!(
            "user root; worker_processes 1; pid nginx.pid; daemon off; error_log stderr;\nevents {{}}\nhttp {{\n\
             access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;\n\
             proxy_cache_path cache keys_zone=c:1m;\nserver {{ listen 127.0.0.1:{port}; location / {{\n\
             proxy_pass http://{}; proxy_set_header Host $host; proxy_cache c; proxy_cache_key $uri;\n\
             add_header X-Cache $upstream_cache_status always; }} }} }}\n",
            running.address
        ),
    );
    let mut command = Command::new(program);
    let _nginx = Daemon::logging(command.args(["-p", ".", "-c", "nginx.conf", "-e", "stderr"]), &folder);
    asks_through_a_cache(port);
}

#[test]
fn varnish_as_a_cache_sends_each_user_agent_its_own_usage_field() {
    let Some(program) = present(find("varnishd")) else { return };
    let ((folder, running), port) = (start(BY_AGENT), free_ports(1)[0]);
    let vcl = format!(
        "vcl 4.1;\nbackend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; }}\n\
         sub vcl_deliver {{ set resp.http.X-Cache = obj.hits; }}\n",
        running.address.port()
    );
    folder.write("cache.vcl", vcl);
    let mut command = Command::new(program);
    command.args(["-F", "-j", "none", "-s", "malloc,16m", "-a", &format!("127.0.0.1:{port}")]);
    command.arg("-n").arg(folder.at("work")).arg("-f").arg(folder.at("cache.vcl"));
    let _varnish = Daemon::logging(&mut command, &folder);
    asks_through_a_cache(port);
}
