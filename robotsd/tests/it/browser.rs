//! Controls a real browser: Chromium, with WebDriver.
//!
//! The tests use `chromedriver` in `PATH`, from Debian's packages `chromium` and `chromium-driver`.
//! If it is missing, the tests are skipped with a message; in CI they fail.

use std::process::Child;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::harness::*;

/// `chromedriver` with one browser. Dropping this ends both.
pub(super) struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
}

impl Browser {
    /// Starts a browser; `None` if no browser is installed.
    pub(super) fn start(hosts: &str) -> Option<Self> {
        let (driver, address) = Self::driver()?;
        let mut browser = Self { driver, address, session: String::new() };
        // The sandbox does not work for root, nor in most containers. The browser loads only pages
        // of this test.
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

    /// Starts `chromedriver`, and returns the address on which it listens.
    fn driver() -> Option<(Child, SocketAddr)> {
        let mut said = Vec::new();
        // `chromedriver` chooses a port that is free for IPv4. It exits if another program uses
        // this port for IPv6.
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
                // The pipes must be read, so that they do not fill up.
                thread::spawn(move || lines.for_each(drop));
                thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
                return Some((driver, SocketAddr::from(([127, 0, 0, 1], port))));
            }
            let mut why = String::new();
            errors.read_to_string(&mut why).unwrap();
            said.push(why);
            driver.wait().unwrap();
        }
        panic!("chromedriver does not start: {said:?}");
    }

    pub(super) fn send(&self, method: &str, path: &str, body: &Value) -> Value {
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

    pub(super) fn post(&self, path: &str, body: &Value) -> Value {
        self.send("POST", &format!("/session/{}{path}", self.session), body)
    }

    pub(super) fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// Opens a page, and waits until the script returns true in this page.
    pub(super) fn open_until(&self, url: &str, settled: &str) {
        self.open(url);
        self.wait_until(settled);
    }

    /// Waits until the script returns true.
    pub(super) fn wait_until(&self, settled: &str) {
        wait_for(settled, || (self.run(settled) == true).then_some(()));
    }

    /// Presses and releases keys, one after the other. In WebDriver, private-use characters
    /// represent keys without a character.
    pub(super) fn press(&self, keys: &str) {
        let press = |key: char| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }));
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }));
    }

    pub(super) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Sends a command of Chromium's own protocol.
    pub(super) fn command(&self, command: &str, parameters: Value) {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    pub(super) fn looks(&self, width: u32, height: u32, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.command("Emulation.setEmulatedMedia", json!({ "features": features }));
        let device = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", device);
    }

    /// Returns a screenshot of the window as PNG.
    pub(super) fn picture(&self) -> Vec<u8> {
        let picture = self.send("GET", &format!("/session/{}/screenshot", self.session), &Value::Null);
        BASE64_STANDARD.decode(picture.as_str().unwrap()).unwrap()
    }

    pub(super) fn log(&self, kind: &str) -> Vec<Value> {
        self.post("/se/log", &json!({ "type": kind })).as_array().unwrap().clone()
    }

    /// Returns the URLs that were requested since the last call.
    pub(super) fn requested(&self) -> Vec<String> {
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
