//! Tests notifications of a real robotsd. Another implementation verifies the signatures.

use crate::harness::*;
use crate::programs::python_with;

const ROBOTS: &str = "User-agent: *\nDisallow: /private/\n";
const EVERYONE_OUT: &str = "User-agent: *\nDisallow: /\n";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ALL: &str = "\"waits\", \"accepted\", \"rolled-back\", \"enforcement\", \"replica-missing\", \"config-rejected\"";

fn config(receiver: &Origin, keys: &str) -> Config {
    let notify =
        format!("[[notify]]\non = [{ALL}]\nurl = \"http://{}/h1dden\"\ntimeout = \"60s\"\n{keys}", receiver.address);
    Config::refusing()
        .keys("state_dir = \"state\"")
        .files_of("shop")
        .admin_socket()
        .tables(notify)
        .robots(ROBOTS)
        .file("secret", format!("{SECRET}\n"))
}

fn signed(receiver: &Origin) -> Config {
    config(receiver, "secret = { file = \"secret\" }")
}

fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn field<'r>(request: &'r str, name: &str) -> &'r str {
    request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default()
}

/// Returns the request about the event with this number. The first event has the number 0.
fn told(receiver: &Origin, number: usize) -> String {
    wait_for("a message", || receiver.requests().get(number).cloned())
}

fn waiting(folder: &Folder) -> String {
    let pending = || folder.with_config(&["status", "--json"]).json()["sites"][0]["pending"]["hash"].take();
    wait_for("a version that waits", || pending().as_str().map(|hash| hash[7..23].to_owned()))
}

/// Returns the message about this kind of event. Messages before number `from` are skipped.
fn told_of(receiver: &Origin, from: usize, event: &str) -> Value {
    let of_event = || receiver.requests().iter().skip(from).map(|it| body(it)).find(|said| said["type"] == event);
    wait_for(event, of_event)
}

/// Waits until this many messages are delivered and recorded, and checks that there are no more.
fn delivered(receiver: &Origin, running: &Running, requests: usize, by_this_process: usize) {
    wait_until("deliveries", || running.count("notify", |line| line["status"] == 204) >= by_this_process);
    assert_eq!(receiver.requests().len(), requests, "{:?}", receiver.requests());
}

#[test]
fn each_event_is_reported_once_and_signed() {
    let receiver = Origin::showing(204, "");
    let (folder, mut running) = signed(&receiver).start();
    folder.replace("robots.txt", EVERYONE_OUT);
    let hash = waiting(&folder);
    let waits = told(&receiver, 0);
    assert!(waits.starts_with("POST /h1dden HTTP/1.1\r\n"), "{waits}");
    let said = body(&waits);
    assert_eq!(said["type"], "waits");
    assert_part(&said["data"], &json!({ "site": "shop", "next": format!("robotsd accept shop {hash}") }));
    let message = format!("site \"shop\": version {hash} is held until accepted: everyone is blocked");
    assert_has(said["data"]["message"].as_str().unwrap(), &[&message]);
    delivered(&receiver, &running, 1, 1);

    // Events are collected every two seconds, so several of them may be sent together.
    folder.with_config(&["accept", "shop", &hash, "--reason", "the sale \"ends\""]).succeeded();
    folder.with_config(&["enforce", "off"]).succeeded();
    let sound = folder.read("robotsd.toml");
    let unsound = format!("{sound}[limits]\nconnections = 0\n");
    folder.configure(&unsound);
    let accepted = told_of(&receiver, 1, "accepted");
    let by = format!("version {hash} is live, because it was accepted by uid ");
    assert_has(accepted["data"]["message"].as_str().unwrap(), &[&by, ": \"the sale \\\"ends\\\"\""]);
    let switch = told_of(&receiver, 1, "enforcement");
    let says = "enforcement is OFF for every site: every request passes";
    assert_has(switch["data"]["message"].as_str().unwrap(), &[says]);
    let rejected = told_of(&receiver, 1, "config-rejected");
    assert_has(rejected["data"]["message"].as_str().unwrap(), &["the new config is rejected", "robotsd.toml:"]);
    assert_has(rejected["data"]["next"].as_str().unwrap(), &["robotsd config check "]);
    delivered(&receiver, &running, 4, 4);

    folder.configure(&sound);
    wait_until("the config", || folder.with_config(&["status", "--json"]).json()["config"]["state"] == "accepted");
    folder.with_config(&["rollback", "shop", "--reason", "too early"]).succeeded();
    folder.with_config(&["enforce", "on"]).succeeded();
    let back = told_of(&receiver, 4, "rolled-back");
    assert_has(back["data"]["message"].as_str().unwrap(), &["live again after a rollback by uid ", ": \"too early\""]);
    let switch = told_of(&receiver, 4, "enforcement");
    assert_has(switch["data"]["message"].as_str().unwrap(), &["is on again for every site"]);
    delivered(&receiver, &running, 6, 6);

    // The same mistake is made again after it was corrected.
    folder.with_config(&["enforce", "off", "--site", "shop"]).succeeded();
    folder.configure(&unsound);
    let switch = told_of(&receiver, 6, "enforcement");
    assert_part(&switch["data"], &json!({ "site": "shop", "next": "robotsd enforce on --site shop" }));
    assert_eq!(told_of(&receiver, 6, "config-rejected")["data"]["message"], rejected["data"]["message"]);
    delivered(&receiver, &running, 8, 8);
    folder.configure(&sound);
    wait_until("the config", || folder.with_config(&["status", "--json"]).json()["config"]["state"] == "accepted");

    let requests = receiver.requests();
    let mut ids: Vec<_> = requests.iter().map(|request| field(request, "webhook-id")).collect();
    ids.sort_unstable();
    ids.dedup();
    // The mistake must have the same ID both times.
    assert_eq!(ids.len(), 7, "{requests:?}");
    let log = running.all("notify");
    assert!(log.iter().all(|line| line["status"] == 204), "{log:?}");
    let status = folder.with_config(&["status"]).out + &folder.with_config(&["status", "--json"]).out;
    assert_has(&status, &["notify", "delivered"]);
    assert_lacks(format!("{status}{log:?}"), &["h1dden", "MfKQ"]);
    running.end();

    // A restart must not send anything again: the switch of the site is still off, and the version
    // that was rolled back is still pending.
    let mut running = folder.start();
    folder.with_config(&["enforce", "off"]).succeeded();
    let next = body(&told(&receiver, 8));
    assert_eq!((&next["type"], &next["data"]["site"]), (&"enforcement".into(), &"".into()));
    delivered(&receiver, &running, 9, 1);
    running.end();
    verified(&receiver.requests());
}

/// Returns the result of verifying the requests with another implementation of HMAC.
fn verified(requests: &[String]) {
    const VERIFY: &str = "import base64, hashlib, hmac, json, sys, time\n\
        for it in json.load(sys.stdin):\n \
            key = base64.b64decode(it['secret'][len('whsec_'):])\n \
            text = '.'.join([it['id'], it['time'], it['body']]).encode()\n \
            mac = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()\n \
            assert it['signature'] == 'v1,' + mac, it\n \
            assert not it['now'] or abs(time.time() - int(it['time'])) < 300, it\n\
        print('verified')";
    let of = |request: &String| {
        let body = request.split_once("\r\n\r\n").unwrap().1;
        let [id, time, signature] =
            ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|it| field(request, it));
        json!({ "secret": SECRET, "id": id, "time": time, "signature": signature, "body": body, "now": true })
    };
    // This is the test vector of the reference implementations.
    let vector = json!({
        "secret": SECRET, "id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "time": "1614265330", "body": "{\"test\": 2432232314}",
        "signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "now": false
    });
    let all: Vec<_> = requests.iter().map(of).chain([vector]).collect();
    let Some(mut python) = python_with("hmac", "Python itself") else { return };
    python.args(["-c", VERIFY]).stdin(Stdio::piped());
    assert_has(run_with(&mut python, json!(all).to_string().as_bytes()).succeeded(), &["verified"]);
}

#[test]
fn a_receiver_that_was_down_is_notified_once() {
    let receiver = Origin::showing(503, "");
    let (folder, mut running) = signed(&receiver).start();
    folder.replace("robots.txt", EVERYONE_OUT);
    waiting(&folder);
    running.wait_for_event("notify", |line| line["level"] == "warn");
    let problems = folder.with_config(&["status", "--json"]).json()["problems"].to_string();
    assert_has(problems, &["notify http://", "waits of shop: the receiver answered 503"]);
    // The receiver recovers while robotsd retries. The ID must be the same, and the signature new.
    receiver.show(200, "");
    running.wait_for_event("notify", |line| line["status"] == 200);
    let requests = receiver.requests();
    let id = |request: &String| field(request, "webhook-id").to_owned();
    assert!(requests.iter().all(|request| id(request) == id(&requests[0])), "{requests:?}");

    // If the process ends before an event was sent, the next process must send it once.
    receiver.show(503, "");
    folder.with_config(&["enforce", "off"]).succeeded();
    let is_repeated =
        |said: &str| said.contains("enforcement: the receiver answered 503") && said.contains("next attempt");
    running.wait_for_event("notify", |line| is_repeated(message(line)));
    running.end();
    let all = receiver.requests();
    let since = &all[requests.len()..];
    assert!(since.iter().all(|request| body(request)["type"] == "enforcement"), "{since:?}");
    let before = all.len();
    receiver.show(200, "");
    let mut running = folder.start();
    assert_eq!(body(&told(&receiver, before))["type"], "enforcement");
    running.wait_for_event("notify", |line| line["status"] == 200);
    running.end();
    assert_eq!(receiver.requests().len(), before + 1);

    // A version that has been pending for four more hours must be reported again, with another ID.
    let state = glob(&folder, "state.json");
    let mut kept: Value = serde_json::from_str(&folder.read(&state)).unwrap();
    let since = kept["pending"]["since"].as_i64().unwrap();
    kept["pending"]["since"] = json!(since - 5 * 3600 * 1000);
    folder.write(&state, kept.to_string());
    let running = folder.start();
    let again = told(&receiver, before + 1);
    assert_eq!(body(&again)["type"], "waits");
    assert_ne!(id(&again), id(&requests[0]));
    drop(running);
    verified(&receiver.requests());
}

#[test]
fn notifications_are_counted_as_delivered_or_given_up_even_after_their_event_ended() {
    let receiver = Origin::showing(404, "");
    let (folder, running) = config(&receiver, "[[admin.listener]]\naddress = \"127.0.0.1:0\"").start();
    let counts = |delivered: u64, given_up: u64| {
        let metrics = running.ask_admin("GET /metrics").body;
        let count = |outcome: &str| {
            let of =
                format!("robotsd_notifications_total{{target=\"http://{}\",outcome=\"{outcome}\"}} ", receiver.address);
            metrics.lines().find_map(|line| line.strip_prefix(&of)?.parse::<u64>().ok())
        };
        (count("delivered"), count("given-up")) == (Some(delivered), Some(given_up))
    };
    wait_until("counts of none", || counts(0, 0));
    folder.replace("robots.txt", EVERYONE_OUT);
    wait_until("one that is given up", || counts(0, 1));
    // This event ends before it was ever reported.
    folder.replace("robots.txt", ROBOTS);
    let is_over = || folder.with_config(&["status", "--json"]).json()["sites"][0]["pending"].is_null();
    wait_until("no version that waits", is_over);
    receiver.show(204, "");
    folder.with_config(&["enforce", "off"]).succeeded();
    // Events are collected together. So once a later event is delivered, robotsd also knows that
    // the earlier event has ended.
    wait_until("one that is delivered", || counts(1, 1));
    folder.with_config(&["enforce", "on"]).succeeded();
    wait_until("another one", || counts(2, 1));
}

/// Returns the path of a site's file in the state directory.
fn glob(folder: &Folder, name: &str) -> PathBuf {
    let sites = fs::read_dir(folder.at("state/sites")).unwrap();
    sites.map(|site| site.unwrap().path().join(name)).find(|path| path.exists()).unwrap()
}

#[test]
fn a_template_sets_the_body_and_only_configured_events_are_sent() {
    let receiver = Origin::showing(200, "");
    let folder = config(&receiver, "body = '{\"text\": \"{{message}} `{{next}}`\"}'").folder();
    folder.write("robotsd.toml", folder.read("robotsd.toml").replace(ALL, "\"waits\""));
    let running = folder.start();
    folder.with_config(&["enforce", "off"]).succeeded();
    folder.replace("robots.txt", EVERYONE_OUT);
    let hash = waiting(&folder);
    let text = body(&told(&receiver, 0))["text"].to_string();
    assert_has(text, &["site \\\"shop\\\": version ", &format!(" `robotsd accept shop {hash}`")]);
    assert_eq!(field(&receiver.requests()[0], "webhook-signature"), "");
    // If there were a notification about the switch, it would have arrived before this one.
    folder.replace("robots.txt", format!("{EVERYONE_OUT}# again\n"));
    let next = body(&told(&receiver, 1))["text"].to_string();
    assert_has(next, &["site \\\"shop\\\": version ", " `robotsd accept shop "]);
    drop(running);
}

#[test]
fn quoted_text_is_escaped_for_slack_but_not_for_other_services() {
    let receiver = Origin::showing(200, "");
    let slack = "body = '{\"text\": \"{{message}} `{{next}}`\"}'";
    let folder = config(&receiver, slack).folder();
    folder.write("robotsd.toml", folder.read("robotsd.toml").replace(ALL, "\"accepted\", \"rolled-back\""));
    let _running = folder.start();
    folder.replace("robots.txt", EVERYONE_OUT);
    let (hash, hostile) = (waiting(&folder), "<!channel> <https://evil.test|approve> & so on");
    folder.with_config(&["accept", "shop", &hash, "--reason", hostile]).succeeded();
    let text = body(&told(&receiver, 0))["text"].to_string();
    assert_has(&text, &["&lt;!channel&gt; &lt;https://evil.test|approve&gt; &amp; so on"]);
    assert_lacks(&text, &["<", ">"]);
    // If the JSON is for a service other than Slack, the text must be unchanged.
    folder.configure(folder.read("robotsd.toml").replace(slack, &format!("{slack}\nformat = \"json\"")));
    folder.with_config(&["reload"]).succeeded();
    folder.with_config(&["rollback", "shop", "--reason", hostile]).succeeded();
    assert_has(body(&told(&receiver, 1))["text"].as_str().unwrap(), &[hostile]);
}

#[test]
fn config_check_reports_an_invalid_secret_without_showing_it() {
    let receiver = Origin::showing(200, "");
    let check = |secret: Option<&str>| {
        let folder = signed(&receiver).folder();
        match secret {
            Some(secret) => folder.write("secret", secret),
            None => folder.remove("secret"),
        }
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::set_permissions(folder.at("secret"), fs::Permissions::from_mode(0o600));
        folder.with_config(&["config", "check"])
    };
    check(Some(SECRET)).ends_with(0);
    for (secret, why) in [
        (Some("whsec_c2hvcnQ="), "does not contain a valid secret for signatures"),
        (Some("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "does not contain a valid secret for signatures"),
        (Some("whsec_M!KQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "does not contain a valid secret for signatures"),
        (Some(""), "the file is empty"),
        (None, "No such file"),
    ] {
        let said = check(secret).ends_with(2).said();
        assert_has(&said, &[why, "robotsd.toml:"]);
        assert_lacks(&said, &["KQ9r8GKY", "c2hvcnQ"]);
    }
    // robotsd must still serve, and report that it sends no notifications.
    let (folder, running) = signed(&receiver).file("secret", "nothing").start();
    folder.with_config(&["enforce", "off"]).succeeded();
    running.wait_for_message("notify", "the request cannot be signed");
    assert!(receiver.requests().is_empty());
}
