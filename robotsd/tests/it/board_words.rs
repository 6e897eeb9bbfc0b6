//! Tests the verdicts of a running board about a verified crawler, also behind a cache and with a
//! full disk.

use std::time::UNIX_EPOCH;

use super::board::{lines, written_disallowed};
use super::daemon::{Daemon, find, free_ports};
use super::identity::{TRUSTING, known_by};
use crate::harness::*;
use crate::played_dns::PlayedDns;
use crate::small_disk::SmallDisk;

const OPEN: &str = "User-agent: ExampleBot\nDisallow: /drafts/\n";
const CLOSED: &str = "User-agent: ExampleBot\nDisallow: /drafts/\nDisallow: /page.html\n";
const BOT: &str = "ExampleBot/1.0 (+https://bot.example/about)";
const REAL: &str = "8.8.4.1";

fn site(names: &PlayedDns, board: &str) -> Folder {
    names.confirmed(REAL, "crawl-1.bot.example");
    let config = known_by(names, TRUSTING, "wait = \"250ms\"");
    config.tables(format!("[board]\n{board}")).robots(OPEN).folder()
}

/// Sends a request of the crawler as a proxy forwards it.
fn get(address: SocketAddr, path: &str, agent: &str) -> Answer {
    let fields = format!("Host: shop.test\r\nUser-Agent: {agent}\r\nX-Forwarded-For: {REAL}\r\nConnection: close");
    exchange(address, format!("GET {path} HTTP/1.1\r\n{fields}\r\n\r\n"))
}

fn board(running: &Running) -> Value {
    running.ask_admin("GET /board.json").json()
}

/// Waits until the condition holds for the verified crawler on the board, and returns its row.
fn crawler(running: &Running, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    wait_for(what, || {
        let board = board(running);
        let crawlers = board["sites"][0]["crawlers"].as_array()?;
        crawlers.iter().find(|row| row["identity"] == "verified" && holds(row)).cloned()
    })
}

/// Waits for the next second, because the order of two events in the same second is unknown.
fn next_second() {
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let now = second();
    wait_until("the next second", || second() > now);
}

/// Verifies the crawler before it fetches robots.txt, so that all fetches are attributed to it.
fn is_known(running: &Running, address: SocketAddr) {
    wait_until("a verified crawler", || {
        get(address, "/other.html", BOT);
        let board = board(running);
        let mut crawlers =
            board["sites"].as_array().into_iter().flatten().filter_map(|site| site["crawlers"].as_array()).flatten();
        crawlers.any(|row| row["identity"] == "verified")
    });
}

#[test]
fn a_verified_crawler_has_the_right_verdict_on_a_running_board() {
    let names = PlayedDns::start();
    let folder = site(&names, "sees_all = true");
    let running = folder.start();
    is_known(&running, running.address);
    let row = crawler(&running, "a crawler that has read nothing", |row| row["word"] == "no read seen here");
    assert_eq!((&row["crawler"], &row["operator"]), (&"ExampleBot".into(), &"Example".into()));

    assert_eq!(get(running.address, "/robots.txt", BOT).body, OPEN);
    next_second();
    assert_eq!(get(running.address, "/page.html", BOT).status, 200);
    let row = crawler(&running, "one that obeys", |row| row["word"] == "obeys");
    let found = (&row["reads"], &row["disallowed"], &row["last_read"]["is_newest"]);
    assert_eq!(found, (&1.into(), &0.into(), &true.into()));

    // A crawler may use a fetched version for a day, and the fetched version allows the page.
    folder.replace("robots.txt", CLOSED);
    wait_until("the newer version", || running.get("/robots.txt", FIREFOX).body == CLOSED);
    // The board learns of a new version within a second. Requests before that are not judged by the
    // new version.
    crawler(&running, "another version", |row| row["last_read"]["is_newest"] == false);
    get(running.address, "/page.html", BOT);
    let row = crawler(&running, "one with an older version", |row| row["word"] == "has not read the newest version");
    assert_eq!(row["judged"]["not_newest"], 1);

    next_second();
    assert_eq!(get(running.address, "/robots.txt", BOT).body, CLOSED);
    next_second();
    get(running.address, "/page.html", BOT);
    get(running.address, "/drafts/1", BOT);
    let row = crawler(&running, "one that ignores", |row| row["judged"]["ignored"] == 2);
    assert_eq!((&row["word"], &row["disallowed"]), (&"ignores".into(), &3.into()));
    let page = running.ask_admin("GET /board").body;
    assert_has(&page, &["<em class=\"badge bad\">ignores</em>", "<dt>Identity</dt><dd>verified"]);

    // The report must also contain the additional columns of the table of sites.
    let never = &board(&running)["sites"][0]["never_hit"];
    assert_eq!((&never["of"], &never["count"]), (&2.into(), &0.into()), "{never}");
    let traffic = wait_for("the requests of the last minute", || {
        Some(board(&running)["sites"][0]["traffic"].take()).filter(|traffic| traffic["seconds"].as_u64() > Some(0))
    });
    assert!(traffic["decision_p99_seconds"].as_f64().unwrap() > 0.0, "{traffic}");
    let page = running.ask_admin("GET /board").body;
    assert_has(&page, &["per minute, 0.0 % refused</small></summary>", "p99 decision time"]);
}

/// The host belongs to another site for a while. The first site does not know of fetches from that
/// site.
#[test]
fn a_crawler_is_not_accused_if_a_host_moves_to_another_site_and_back() {
    let names = PlayedDns::start();
    let folder = site(&names, "sees_all = true");
    let config = folder.read("robotsd.toml");
    let other = "[[site]]\nname = \"other\"\nroot = \"pages\"\nrobots.path = \"open.txt\"\nhosts = [\"other.test\"";
    let hosts = |of_shop: &str, of_other: &str| {
        let shop = config.replace("name = \"shop\"\n", &format!("name = \"shop\"\nhosts = [\"a.test\"{of_shop}]\n"));
        folder.replace("robotsd.toml", format!("{shop}{other}{of_other}]\n"));
    };
    folder.write("open.txt", OPEN);
    folder.write("robots.txt", CLOSED);
    hosts(", \"shop.test\"", "");
    let running = folder.start();
    let shop = |what: &str, holds: &dyn Fn(&Value) -> bool| {
        wait_for(what, || {
            let board = board(&running);
            let site = board["sites"].as_array().into_iter().flatten().find(|site| site["site"] == "shop")?;
            site["crawlers"].as_array()?.iter().find(|row| row["identity"] == "verified" && holds(row)).cloned()
        })
    };
    is_known(&running, running.address);
    assert_eq!(get(running.address, "/robots.txt", BOT).body, CLOSED);
    // A fetch counts as earlier than a request only if the request is in a later second.
    next_second();
    let is_served =
        |text: &str| wait_until("other hosts", || get(running.address, "/robots.txt", FIREFOX).body == text);
    hosts("", ", \"shop.test\"");
    is_served(OPEN);
    assert_eq!(get(running.address, "/robots.txt", BOT).body, OPEN);
    hosts(", \"shop.test\"", "");
    is_served(CLOSED);
    get(running.address, "/page.html", BOT);
    let row = shop("the request", &|row| row["disallowed"] == 1);
    let found = (&row["word"], &row["judged"]["undecided"], &row["reads"]);
    assert_eq!(found, (&Value::Null, &1.into(), &1.into()), "{row}");
}

const NGINX: &str = "events {}
http {
    access_log off;
    proxy_temp_path temp;
    proxy_cache_path cache keys_zone=robots:1m;
    server {
        listen 127.0.0.1:FRONT;
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $http_x_forwarded_for;
        location / {
            proxy_pass http://ROBOTSD;
        }
        location = /robots.txt {
            proxy_pass http://ROBOTSD;
            proxy_cache robots;
            proxy_cache_key $request_uri;
            proxy_cache_valid 200 1h;
            proxy_ignore_headers Cache-Control Expires Vary;
        }
    }
}
";

/// Starts nginx with a cache for robots.txt in front of robotsd, and returns its address.
fn cache(program: &Path, folder: &Path, robotsd: SocketAddr) -> (Daemon, SocketAddr) {
    // Another program may take a free port before nginx uses it. In this case, nginx is started
    // with another port.
    for _ in 0..10 {
        let front = free_ports(1)[0];
        let config = NGINX.replace("FRONT", &front.to_string()).replace("ROBOTSD", &robotsd.to_string());
        fs::write(folder.join("nginx.conf"), config).unwrap();
        let arguments = ["-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g"];
        let mut nginx = Command::new(program);
        nginx.args(arguments).arg("daemon off; pid nginx.pid;").current_dir(folder);
        let mut nginx = Daemon::spawn(nginx.stdin(Stdio::null()).stdout(Stdio::null()));
        let address = ([127, 0, 0, 1], front).into();
        if nginx.comes_to(|| TcpStream::connect(address).is_ok()) {
            return (nginx, address);
        }
    }
    panic!("nginx does not start");
}

/// The cache serves an older version than robotsd does, and robotsd does not see the fetch.
#[test]
fn a_crawler_is_not_accused_behind_a_cache_unless_sees_all_is_set() {
    let Some(program) = crate::programs::present(find("nginx")) else { return };
    let cached = |sees_all: bool, is_accused: bool| {
        let names = PlayedDns::start();
        let folder = site(&names, &format!("sees_all = {sees_all}"));
        let running = folder.start();
        let (_nginx, front) = cache(&program, folder.path(), running.address);
        is_known(&running, front);
        assert_eq!(get(front, "/robots.txt", FIREFOX).body, OPEN, "the cache has it from now on");
        folder.replace("robots.txt", CLOSED);
        wait_until("the newer version", || running.get("/robots.txt", FIREFOX).body == CLOSED);
        // The crawler bypasses the cache and fetches the newer version. Later, the cache sends it
        // the older version, which allows the page.
        assert_eq!(get(front, "/robots.txt?again", BOT).body, CLOSED);
        crawler(&running, "the read", |row| row["last_read"]["is_newest"] == true);
        next_second();
        assert_eq!(get(front, "/robots.txt", BOT).body, OPEN);
        assert_eq!(get(front, "/page.html", BOT).status, 200);
        let row = crawler(&running, "the request", |row| row["disallowed"] == 1 && row["reads"] == 1);
        if is_accused {
            // If the config claims that robotsd sees every fetch although there is a cache, the
            // board wrongly accuses the crawler.
            crawler(&running, "an accusation", |row| row["word"] == "ignores");
            return;
        }
        assert_eq!((&row["word"], &row["judged"]["undecided"]), (&Value::Null, &1.into()), "{row}");
        assert!(row["no_word"].as_str().unwrap().starts_with("this report may lack fetches of robots.txt"), "{row}");
        assert!(!running.ask_admin("GET /board").body.contains(">ignores</em>"));
    };
    thread::scope(|scope| {
        scope.spawn(|| cached(false, false));
        cached(true, true);
    });
}

/// On a full disk, requests must still be served, and are counted in memory. The status must report
/// that they are not written, and existing files must remain.
#[test]
fn a_full_disk_and_a_kill_lose_only_the_counts_that_were_not_written() {
    SmallDisk::with("board_words::a_full_disk_and_a_kill_lose_only_the_counts_that_were_not_written", |disk| {
        let state = disk.path().join("state");
        let config = Config::new().keys(format!("state_dir = {state:?}")).admin().files_of("shop");
        let version = |number: u32| format!("User-agent: *\nDisallow: /private/\n# {number}\n");
        let site = config.robots(version(0)).folder();
        let publish = |running: &Running, number: u32| {
            site.replace("robots.txt", version(number));
            wait_until("a version", || running.get("/robots.txt", FIREFOX).body == version(number));
        };
        let disallowed = |running: &Running| -> u64 {
            let board = board(running);
            let rows = board["sites"][0]["crawlers"].as_array().into_iter().flatten();
            rows.filter_map(|row| row["disallowed"].as_u64()).sum()
        };
        let counts = |running: &Running, count: u64| {
            wait_until("a count", || disallowed(running) == count);
        };
        let problems = |running: &Running| -> Vec<String> {
            let status: Value = serde_json::from_str(&running.ask_admin("GET /status").body).unwrap();
            let problems = status["problems"].as_array().unwrap().iter();
            problems.map(|problem| problem.as_str().unwrap().to_owned()).filter(|text| text.contains("board")).collect()
        };
        let written = || {
            let lines = lines(&state.join("board/shop"));
            let text = json!(lines).to_string();
            assert!(!text.contains("\"lost\""), "{text}");
            written_disallowed(&lines)
        };
        let mut running = site.start();
        running.get("/private/1", GPTBOT);
        counts(&running, 1);
        // The board writes its counts immediately when a version is published.
        publish(&running, 1);
        wait_until("a file", || written() == 1);

        disk.fill();
        running.get("/private/2", GPTBOT);
        publish(&running, 2);
        let problem = wait_for("a problem", || problems(&running).into_iter().next());
        assert_eq!(problem, "the board of site \"shop\" cannot be written: No space left on device (os error 28)");
        running.wait_for_event("state", |line| line["message"] == problem.as_str());
        assert_eq!(running.get("/robots.txt", FIREFOX).status, 200);
        counts(&running, 2);
        // A kill must lose only the counts that were not written.
        running.kill();
        let mut running = site.start();
        counts(&running, 1);

        running.get("/private/3", GPTBOT);
        counts(&running, 2);
        publish(&running, 3);
        wait_for("a problem", || problems(&running).into_iter().next());
        disk.free();
        publish(&running, 4);
        wait_until("no problem", || problems(&running).is_empty());
        wait_until("a file", || written() == 2);
        running.kill();
        counts(&site.start(), 2);
    });
}
