//! The board in a real browser: Chromium, driven by WebDriver, with axe-core looking for what hinders people.
//!
//! They are `chromedriver` in `PATH`, Debian's packages `chromium` and `chromium-driver`, and the file `axe.min.js` of npm's `axe-core`,
//! which `ROBOTSD_AXE` names. A missing program is left out with a message; in CI it has to be there.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use super::board::write_words;
use crate::harness::*;

const CONFIG: &str = "state_dir = \"state\"\nmode = \"refuse\"\nworkers = 1\n[admin]\naddress = \"127.0.0.1:0\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                      [[site]]\nname = \"Shop 1\"\nroot = \".\"\nrobots.path = \"robots.txt\"\n[board]\nsees_all = true\n";
const ROBOTS: &str = "User-agent: *\nDisallow: /a-rather-long-folder-name-that-has-to-be-broken-somewhere/private/\n";

/// `chromedriver`, and one browser in it; both end with it.
struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
}

impl Browser {
    /// None where there is none.
    fn start(hosts: &str) -> Option<Self> {
        let (driver, address) = Self::driver()?;
        let mut browser = Self { driver, address, session: String::new() };
        // Its sandbox does not work for root, nor in most containers; it sees pages of this test only.
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            &format!("--host-resolver-rules={hosts}"),
        ]
        .map(str::to_owned);
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": arguments }, "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        } } });
        let made = browser.send("POST", "/session", &capabilities);
        browser.session = made["sessionId"].as_str().unwrap().to_owned();
        Some(browser)
    }

    /// `chromedriver`, and where it listens.
    fn driver() -> Option<(Child, SocketAddr)> {
        let mut said = Vec::new();
        // It takes a port that is free for IPv4, and ends where the same port of IPv6 is not.
        for _ in 0..10 {
            let spawned =
                Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            let mut driver =
                crate::programs::present(spawned.map_err(|error| format!("chromedriver is not here: {error}")))?;
            let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
            let port = lines.by_ref().inspect(|line| said.push(line.clone())).find_map(|line| {
                line.trim_end_matches('.').split_once("started successfully on port ")?.1.parse().ok()
            });
            let mut errors = driver.stderr.take().unwrap();
            if let Some(port) = port {
                // The pipes must not fill up.
                std::thread::spawn(move || lines.for_each(drop));
                std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
                return Some((driver, SocketAddr::from(([127, 0, 0, 1], port))));
            }
            let mut why = String::new();
            errors.read_to_string(&mut why).unwrap();
            said.push(why);
            driver.wait().unwrap();
        }
        panic!("chromedriver does not start: {said:?}");
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE * 3)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let answer = Answer::read(&mut BufReader::new(stream), method).expect("an answer");
        let value = answer.json()["value"].take();
        assert!(value.get("error").is_none(), "{path}: {value}");
        value
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.send("POST", &format!("/session/{}{path}", self.session), body)
    }

    fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// A command of Chromium's own protocol.
    fn command(&self, command: &str, parameters: Value) {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        self.post("/se/log", &json!({ "type": kind })).as_array().unwrap().clone()
    }

    /// The URLs it has requested since it was last asked.
    fn requested(&self) -> Vec<String> {
        let messages = self
            .log("performance")
            .into_iter()
            .map(|entry| serde_json::from_str::<Value>(message(&entry)).unwrap()["message"].clone());
        let sent = messages.filter(|message| message["method"] == "Network.requestWillBeSent");
        sent.map(|message| message["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            self.send("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The text of axe-core; none where it is not there.
fn axe() -> Option<String> {
    let text = std::env::var_os("ROBOTSD_AXE").and_then(|path| fs::read_to_string(path).ok());
    crate::programs::present(text.ok_or("ROBOTSD_AXE names no axe.min.js"))
}

#[test]
fn nothing_on_the_board_hinders_anybody_and_no_other_page_reads_it() {
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
    for (name, width, scheme) in [
        ("wide-light", 1280, "light"),
        ("wide-dark", 1280, "dark"),
        ("narrow-light", 360, "light"),
        ("narrow-dark", 360, "dark"),
    ] {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.command("Emulation.setEmulatedMedia", json!({ "features": features }));
        let device = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        browser.command("Emulation.setDeviceMetricsOverride", device);
        browser.open(&board);
        let scrolls = "return [document.documentElement.scrollWidth, window.innerWidth]";
        let widths = browser.run(scrolls);
        assert!(widths[0].as_u64() <= widths[1].as_u64(), "{name}: it scrolls sideways: {widths}");
        browser.run(&format!("{axe};"));
        let check = "const done = arguments[0]; axe.run().then(found => done(found.violations.map(each => \
                     [each.id, each.nodes.map(node => node.html + ' ' + node.failureSummary)])), error => done(String(error)))";
        let found = browser.post("/execute/async", &json!({ "script": check, "args": [] }));
        assert_eq!(found, json!([]), "{name}");
        let picture = browser.send("GET", &format!("/session/{}/screenshot", browser.session), &Value::Null);
        let path = format!("{}/board-{name}.png.base64", env!("CARGO_TARGET_TMPDIR"));
        fs::write(path, picture.as_str().unwrap()).unwrap();
    }
    let errors: Vec<Value> = browser.log("browser").into_iter().filter(|entry| entry["level"] != "INFO").collect();
    assert_eq!(errors, Vec::<Value>::new());
    let requested = browser.requested();
    let own = format!("http://{admin}/");
    assert!(
        !requested.is_empty() && requested.iter().all(|url| url.starts_with(&own) || url.starts_with("data:")),
        "{requested:?}"
    );

    // A name that leads here, but is not one of this interface.
    browser.open(&format!("http://rebound.test:{}/board", admin.port()));
    let refusal = browser.run(text);
    assert!(refusal.as_str().unwrap().contains("not a name or address of this interface"), "{refusal}");

    // Another origin's page.
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
