//! Tests lists that are appended to a robots.txt, and requests that are sent when a version goes
//! live.

use crate::harness::*;

const OWN: &str = "User-agent: *\nDisallow: /private/\n\nUser-agent: CCBot\nDisallow: /drafts/\n";
const LIST: &str = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n";
const CCBOT: &str = "CCBot/2.0 (https://commoncrawl.org/faq/)";

/// Waits for this many requests, and checks that there are no more yet. A request that arrives
/// later is found in the next step or at the end.
fn exactly(server: &Origin, count: usize) -> Vec<String> {
    wait_until("requests", || server.requests().len() >= count);
    let requests = server.requests();
    assert_eq!(requests.len(), count, "{requests:?}");
    requests
}

fn config(more: &str) -> Config {
    let keys = "hosts = [\"site.test\", \"www.site.test\"]\nroot = \"root\"\nrobots.path = \"robots.txt\"";
    let config = Config::refusing().keys("state_dir = \"state\"").admin_socket();
    config.site("shop", format!("{keys}\n{more}")).robots(OWN).file("root/page", "")
}

fn site_status(folder: &Folder) -> Value {
    folder.with_config(&["status", "--json"]).json()["sites"][0].take()
}

#[test]
fn rules_for_all_crawlers_in_an_appended_list_are_omitted_and_reported() {
    let list = format!("{LIST}\nUser-agent: *\nDisallow: /shared/\n");
    let (folder, running) = config("[[site.robots.append]]\npath = \"ai.txt\"").file("ai.txt", &list).start();
    let said = "the rules for \"User-agent: *\" in this list are not appended";
    running.wait_for_event("append", |line| line["level"] == "warn" && message(line).contains(said));
    assert_has(folder.with_config(&["config", "check"]).error, &["ai.txt: ", said]);
    assert_has(folder.with_config(&["explain", "--user-agent", "bingbot", "/shared/"]).error, &["ai.txt: ", said]);
    assert_has(site_status(&folder)["append"][0]["left_out"].as_str().unwrap(), &[said]);
    assert_eq!(site_status(&folder)["problems"], json!([]));
    folder.replace("ai.txt", LIST);
    running.wait_for_event("append", |line| line["level"] == "info");
    assert_eq!(site_status(&folder)["append"][0]["left_out"], Value::Null);
}

fn version(request: &str) -> &str {
    request.rsplit("sha256:").next().unwrap()
}

fn served(running: &Running) -> String {
    running.get("/robots.txt", GOOGLEBOT).body
}

#[test]
fn an_appended_list_in_a_file_is_served_checked_enforced_and_reloaded() {
    let (folder, mut running) = config("[[site.robots.append]]\npath = \"ai.txt\"").file("ai.txt", LIST).start();
    let want = format!(
        "{OWN}\n# From ai.txt\n# These crawlers are named above, so they are left out here: \
                 CCBot\nUser-agent: GPTBot\nDisallow: /\n"
    );
    assert_eq!(served(&running), want);
    let status = |target: &str, agent: &str| running.get(target, agent).status;
    assert_eq!((status("/x", GPTBOT), status("/x", CCBOT), status("/drafts/x", CCBOT)), (403, 404, 403));
    let explained = folder.with_config(&["explain", "--user-agent", GPTBOT, "/x"]);
    assert_has(&explained.out, &["Disallow: /"]);
    assert_has(explained.error, &["robots.txt: the lines from line 6 on come from the appended lists: \"ai.txt\""]);
    assert_eq!(site_status(&folder)["append"][0]["state"], "appended");

    // A changed list must result in a new version, although the file is the same.
    folder.replace("ai.txt", "User-agent: GPTBot\nDisallow: /\nDisallow: * # odd\nDisallow: secret\n");
    running.wait_for_event("published", |line| line["reason"] == "append");
    assert!(served(&running).ends_with("Disallow: /\nDisallow: *\nDisallow: secret\n"));
    let finding = running.wait_for_message("finding", "appended:");
    assert!(message(&finding).ends_with("(appended: line 4 of ai.txt)"), "{finding}");
    // An invalid list must remove nothing.
    let before = served(&running);
    folder.replace("ai.txt", "<!doctype html><title>Not found</title>");
    let event = running.wait_for_event("append", |line| line["level"] == "error");
    let wanted = "this is an HTML page, not a robots.txt; the last good version of the list stays in use";
    assert!(message(&event).ends_with(wanted), "{event}");
    assert_eq!(served(&running), before);
    let failed = site_status(&folder);
    assert_eq!(failed["append"][0]["state"], "last-good");
    assert_has(failed["problems"][0].as_str().unwrap(), &["HTML page"]);
    // Changes of the file itself must still be noticed.
    folder.replace("robots.txt", "User-agent: *\nDisallow: /private/\n# changed\n");
    wait_until("the other file", || served(&running).contains("# changed\n\n# From ai.txt"));
    running.end();

    // If the process starts without the list, it must use the version that contains it.
    folder.remove("ai.txt");
    let running = folder.start();
    assert_has(served(&running), &["# From ai.txt"]);
    running.wait_for_message("append", "is not available");
    assert_eq!(site_status(&folder)["append"][0]["state"], "missing");
    assert_eq!(running.get("/x", GPTBOT).status, 403);
    folder.replace("ai.txt", LIST);
    wait_until("the list", || served(&running).contains("User-agent: CCBot"));
}

#[test]
fn an_appended_list_from_a_url_stays_in_use_if_its_server_fails() {
    let server = Origin::showing(200, LIST);
    let list = format!("url = \"http://{}/ai.txt?key=1\"\nname = \"AI crawlers\"", server.address);
    let (folder, mut running) = config(&format!("[[site.robots.append]]\n{list}")).start();
    // The start waits until the list was fetched for the first time.
    wait_until("the list", || served(&running).contains("\n# From AI crawlers\n"));
    // The start waits for only three seconds, which may be too short on a busy machine.
    if !running.has_event("append", |line| message(line).contains("is not available")) {
        assert_eq!(running.all("published").len(), 1);
    }
    assert_eq!(running.get("/x", GPTBOT).status, 403);
    // The live version is saved in the background, so a killed process may not have saved it.
    running.end();
    server.show(503, "");
    let running = folder.start();
    assert_has(served(&running), &["\n# From AI crawlers\n"]);
    let event = running.wait_for_event("append", |line| line["level"] == "error");
    assert_has(message(&event), &["503"]);
    assert_eq!(site_status(&folder)["append"][0]["state"], "last-good");
    assert_lacks(folder.with_config(&["config", "check"]).said(), &["not available"]);
    assert_has(folder.with_config(&["explain", "--user-agent", GPTBOT, "/x"]).out, &["Disallow: /"]);
}

#[test]
fn a_reload_fetches_lists_again_and_reports_their_state() {
    let server = Origin::showing(503, "");
    let url = format!("http://{}/ai.txt", server.address);
    let lists = format!("[[site.robots.append]]\npath = \"ai.txt\"\n[[site.robots.append]]\nurl = \"{url}\"");
    let (folder, running) = config(&lists).file("ai.txt", LIST).start();
    let reload = |code| folder.with_config(&["reload"]).ends_with(code).out;
    assert_has(
        reload(1),
        &["shop: appended: ", "ai.txt: version ", &format!("shop: missing: {url}: the server answered 503")],
    );
    server.show(200, "User-agent: PerplexityBot\nDisallow: /\n");
    assert_has(reload(0), &[&format!("shop: appended: {url}: version ")]);
    // The list must already be served.
    assert_has(served(&running), &["PerplexityBot"]);
    // A reload must fetch a changed list, even if it is not due.
    server.show(200, "User-agent: Bytespider\nDisallow: /\n");
    let parts = folder.with_config(&["reload", "--site", "shop", "--json"]).succeeded();
    assert_has(parts, &["\"append\"", "\"appended\""]);
    assert_has(served(&running), &["Bytespider"]);
    server.show(200, "<!doctype html><title>Not found</title>");
    assert_has(reload(1), &[&format!("shop: last-good: {url}: version "), "HTML page"]);
    folder.remove("ai.txt");
    assert_has(reload(1), &["shop: last-good: ", "the file does not exist"]);
}

#[test]
fn a_live_version_is_announced_once_and_the_secrets_of_its_hook_are_never_shown() {
    let server = Origin::showing(200, "");
    let hook = format!(
        "[[site.robots.on_publish]]\nurl = \"http://{}/purge/h1dden\"\n\
         headers = {{ Authorization = {{ file = \"token\" }} }}\ntimeout = \"60s\"\n\
         body = '{{\"files\":{{{{urls}}}},\"version\":\"{{{{version}}}}\"}}'",
        server.address
    );
    let (folder, mut running) = config(&hook).file("token", "Bearer s3cr3t\n").start();
    let requests = |count: usize| exactly(&server, count);
    let first = requests(1).remove(0);
    assert!(first.starts_with("POST /purge/h1dden HTTP/1.1\r\n"), "{first}");
    let files =
        "{\"files\":[\"https://site.test/robots.txt\",\"https://www.site.test/robots.txt\"],\"version\":\"sha256:";
    assert_has(&first, &["authorization: Bearer s3cr3t\r\n", files]);
    running.wait_for_event("on-publish", |line| line["status"] == 200);
    folder.replace("robots.txt", format!("{OWN}# changed\n"));
    let second = requests(2).remove(1);
    assert_ne!(version(&first), version(&second));
    folder.with_config(&["reload"]);
    folder.with_config(&["enforce", "off"]);
    requests(2);
    folder.with_config(&["rollback", "shop"]);
    assert_eq!(version(&requests(3)[2]), version(&first));
    wait_until("the answer", || site_status(&folder)["on_publish"][0]["state"] == "delivered");
    let [status, metrics, config] =
        [&["status", "--json"][..], &["status"], &["config", "show"]].map(|words| folder.with_config(words).out);
    assert_has(&config, &["token"]);
    let events = format!("{:?}", running.all("on-publish"));
    assert_lacks([&*status, &metrics, &config, &events].concat(), &["s3cr3t"]);
    assert_lacks([status, metrics, events].concat(), &["h1dden"]);
    running.end();

    // After a restart with a version that was already announced, nothing may be sent until the next
    // version is live.
    let mut running = folder.start();
    folder.replace("robots.txt", format!("{OWN}# changed again\n"));
    let third = requests(4).remove(3);
    assert!(![version(&first), version(&second)].contains(&version(&third)), "{third}");
    wait_until("the answer", || site_status(&folder)["on_publish"][0]["state"] == "delivered");
    running.end();
    // A restart with a new version must send a request.
    folder.replace("robots.txt", format!("{OWN}# changed while it was down\n"));
    let mut running = folder.start();
    let fourth = requests(5).remove(4);
    assert!(![&first, &second, &third].map(|other| version(other)).contains(&version(&fourth)), "{fourth}");
    running.end();
    requests(5);
}

#[test]
fn an_accepted_config_announces_its_versions_and_a_rejected_config_announces_nothing() {
    let server = Origin::showing(200, "");
    let config = |hosts: &str, robots: &str| {
        let body = "body = \"{{urls}} {{version}}\"\ntimeout = \"60s\"";
        let keys = format!(
            "hosts = [{hosts}]\nroot = \"root\"\n[site.robots]\npath = \"{robots}\"\n\
             [[site.robots.on_publish]]\nurl = \"http://{}/purge/h1dden\"\n{body}",
            server.address
        );
        Config::new().keys("state_dir = \"state\"").admin_socket().site("shop", keys)
    };
    let requests = |count: usize| exactly(&server, count);
    let folder = config("\"site.test\"", "robots.txt").robots(OWN).file("root/page", "").folder();
    folder.write("other.txt", "User-agent: *\nDisallow: /other\n");
    let mut running = folder.start();
    let reload = |config: Config| {
        folder.configure(config);
        folder.with_config(&["reload"]).out
    };
    let first = requests(1).remove(0);
    // The source of this site is opened before another site turns out to be unusable.
    let unusable = "hosts = [\"b.test\"]\nroot = \"root\"\nrobots = { path = \"none.txt\", on_missing = \"fail\" }";
    assert_has(reload(config("\"site.test\"", "other.txt").site("b", unusable)), &["none.txt"]);
    requests(1);
    reload(config("\"site.test\"", "other.txt"));
    let second = requests(2).remove(1);
    assert_ne!(version(&first), version(&second));
    // The version is the same, but the site has an additional host.
    reload(config("\"site.test\", \"new.test\"", "other.txt"));
    let third = requests(3).remove(2);
    assert_eq!(version(&second), version(&third));
    assert_has(&third, &["https://new.test/robots.txt"]);
    assert_lacks(&second, &["new.test"]);
    let hook = "[[site.robots.on_publish]]\nurl = \"http://127.0.0.1:1/h1dden\"";
    let said = reload(config("\"site.test\", \"new.test\"", "other.txt").tables(hook));
    let shown = format!("{said} {:?} {:?}", running.all("config"), running.all("config-changed"));
    assert_has(&shown, &["on_publish"]);
    assert_lacks(&shown, &["h1dden"]);
    running.end();
    requests(3);
}

#[test]
fn the_check_warns_about_a_hook_secret_that_others_can_read_or_that_is_sent_without_tls() {
    use std::os::unix::fs::PermissionsExt;
    for (url, mode, wants) in [
        ("https://cdn.test/purge", 0o640, &[][..]),
        ("http://127.0.0.1:9/purge", 0o600, &[]),
        ("https://cdn.test/purge", 0o644, &["token: every user of this machine can read this secret"]),
        ("http://cdn.test/purge", 0o600, &["authorization is sent to http://cdn.test without TLS"]),
    ] {
        let hook = format!("url = \"{url}\"\nheaders = {{ Authorization = {{ file = \"token\" }} }}");
        let folder = config(&format!("[[site.robots.on_publish]]\n{hook}")).file("token", "Bearer s3cr3t\n").folder();
        fs::set_permissions(folder.at("token"), fs::Permissions::from_mode(mode)).unwrap();
        let said = folder.with_config(&["config", "check"]).ends_with(0).error;
        assert_eq!(said.matches("warning: ").count(), wants.len(), "{url} {mode:o}: {said}");
        assert_has(&said, wants);
        assert_lacks(&said, &["s3cr3t"]);
    }
}

#[test]
fn the_status_shows_a_failed_announcement_and_its_retries_do_not_delay_the_shutdown() {
    let server = Origin::showing(0, "");
    let hook = format!("url = \"http://{}\"\nmethod = \"PURGE\"\ntimeout = \"1s\"", server.address);
    let (folder, mut running) = config(&format!("[[site.robots.on_publish]]\n{hook}")).start();
    let event = running.wait_for_event("on-publish", |line| line["level"] == "warn");
    assert_has(message(&event), &["the receiver did not answer within 1 s; the next attempt is in"]);
    assert_eq!(site_status(&folder)["on_publish"][0]["state"], "sending");
    assert!(server.requests()[0].starts_with("PURGE / HTTP/1.1\r\n"));
    // Neither an attempt in progress nor a pause between attempts may delay the end.
    running.end();
    drop(running);
    // A version that could not be announced must be announced once the server is back.
    server.show(204, "");
    let running = folder.start();
    running.wait_for_event("on-publish", |line| line["status"] == 204);
}

#[test]
fn every_source_uses_the_appended_lists_and_hooks_of_the_current_config() {
    let [server, first, second] = [OWN, "", ""].map(|text| Origin::showing(200, text));
    let config = |part: &str, hook: &Origin| {
        let hook = format!(
            "[[site.robots.on_publish]]\nurl = \"http://{}/\"\ntimeout = \"60s\"\nbody = \"{{{{site}}}} {{{{url}}}} {{{{version}}}}\"",
            hook.address
        );
        let robots = format!("url = \"http://{}/robots.txt\"", server.address);
        let sites = [
            ("inline", "\"inline.test\"", "text = \"User-agent: *\\nDisallow: /inline\\n\"", ""),
            ("url", "\"url.test\"", &robots, ""),
            ("each", "", "source = \"directory\"\npath = \"each\"", &hook),
        ];
        sites.into_iter().fold(Config::new().admin_socket(), |config, (name, hosts, robots, more)| {
            config.site(name, format!("hosts = [{hosts}]\nroot = \"root\"\n[site.robots]\n{robots}\n{part}{more}"))
        })
    };
    let (folder, running) = config("[[site.robots.append]]\npath = \"ai.txt\"\n", &first)
        .file("ai.txt", LIST)
        .file("each/a.test.txt", OWN)
        .file("each/b.test.txt", "User-agent: *\nDisallow: /b\n")
        .file("root/page", "")
        .start();
    let robots = |host: &str| running.request("GET", "/robots.txt", &[("Host", host), ("User-Agent", GOOGLEBOT)]).body;
    for (host, own) in
        [("inline.test", "Disallow: /inline\n"), ("url.test", OWN), ("a.test", OWN), ("b.test", "Disallow: /b\n")]
    {
        let body = wait_for(host, || Some(robots(host)).filter(|body| body.contains("# From ai.txt")));
        assert!(body.split("\n# From ai.txt\n").next().unwrap().ends_with(own), "{body}");
    }
    let announced = |server: &Origin, what: &str| {
        wait_until(what, || server.requests().iter().any(|request| request.contains(what)));
    };
    announced(&first, "each/a.test https://a.test/robots.txt sha256:");
    announced(&first, "each/b.test https://b.test/robots.txt sha256:");
    // Each host has its own versions, and a changed list results in a new version of each.
    folder.replace("ai.txt", "User-agent: GPTBot\nDisallow: /other/\n");
    let hosts = ["inline.test", "url.test", "a.test", "b.test"];
    for host in hosts {
        wait_until(host, || robots(host).contains("Disallow: /other/"));
    }
    wait_until("the hosts", || first.requests().len() >= 4);

    folder.configure(config("", &second));
    for host in hosts {
        wait_for(host, || Some(robots(host)).filter(|body| !body.contains("# From") && body.contains("Disallow")));
    }
    announced(&second, "each/a.test https://a.test/robots.txt sha256:");
    let before = first.requests().len();
    folder.replace("each/a.test.txt", format!("{OWN}# changed\n"));
    wait_until("the change", || robots("a.test").contains("# changed"));
    wait_until("a request", || second.requests().len() >= 3);
    assert_eq!(first.requests().len(), before, "the hook of the config before has no more requests");
}

/// Creates a config that includes files of teams. `keys` are added at its top.
fn including(keys: &str) -> Config {
    let keys = format!("state_dir = \"state\"\ninclude = [\"sites.d/*.toml\"]\n{keys}");
    Config::refusing().keys(keys).files_of("shop").robots(OWN)
}

/// Returns a file of a team with one site. The hooks of the site have these URLs.
fn team(name: &str, urls: impl IntoIterator<Item = String>) -> String {
    let hook = |url: String| format!("[[site.robots.on_publish]]\nurl = {url:?}\ntimeout = \"60s\"\n");
    let hooks: String = urls.into_iter().map(hook).collect();
    format!(
        "[[site]]\nname = {name:?}\nhosts = [\"{name}.test\"]\nroot = \".\"\nrobots.text = \"User-agent: *\\nDisallow: /x\"\n{hooks}"
    )
}

#[test]
fn no_hook_reaches_the_admin_interface() {
    let admin = free();
    let target = |host: &str| format!("http://{host}:{}/enforce?to=off", admin.port());
    let hosts = ["127.0.0.1", "localhost", "0.0.0.0", "127.1", "2130706433", "[::ffff:127.0.0.1]"];
    let listed = "hook_hosts = [\"0.0.0.0/0\", \"::/0\", \"localhost\"]";
    let notify = format!("[[notify]]\non = [\"enforcement\"]\nurl = {:?}", target("127.0.0.1"));
    let replicas = ["10.9.9.9:81", "replicas.internal:9145"];
    let of_replica =
        |place: &str| format!("[[notify]]\non = [\"waits\"]\nurl = \"http://{}/enforce?to=off\"", place.to_uppercase());
    let tables = format!(
        "[admin]\naddress = \"{admin}\"\n[[admin.listener]]\naddress = \"127.0.0.1:0\"\n{notify}\n{}\n[fleet]\nreplicas = {replicas:?}",
        replicas.map(of_replica).join("\n")
    );
    let folder = including(listed).tables(tables).file("sites.d/team.toml", team("team", hosts.map(target))).folder();
    // This error is found without resolving names, so it is reported before anything is served.
    let checked = folder.with_config(&["config", "check"]).ends_with(2);
    let said =
        format!("127.0.0.1:{} is an admin interface of robotsd, and hooks must not send requests to it", admin.port());
    assert_has(&checked.error, &[&said, "team.toml:7:7", "robotsd.toml:"]);
    assert_eq!(checked.error.matches("is an admin interface of robotsd").count(), hosts.len() + 1 + replicas.len());

    let running = folder.start();
    let is_refused = |line: &Value| line["level"] == "error" && message(line).contains("is an admin interface");
    wait_until("every hook", || running.count("on-publish", is_refused) == hosts.len());
    folder.with_config(&["enforce", "off"]).succeeded();
    running.wait_for_event("notify", is_refused);
    folder.with_config(&["enforce", "on"]).succeeded();
    let status = folder.with_config(&["status", "--json"]).json();
    assert_eq!(status["switch"], "on");
    let of_team = row(&status["sites"], "name", "team");
    assert!(of_team["on_publish"].as_array().unwrap().iter().all(|hook| hook["state"] == "failed"), "{of_team}");
    assert_has(of_team["on_publish"][0]["problem"].as_str().unwrap(), &[&said]);
    // An admin interface is protected even if the system has chosen its port.
    let is_other = |line: &Value| message(line).starts_with("http://") && !message(line).contains(&admin.to_string());
    let opened = running.wait_for_event("admin-listening", is_other);
    let opened = message(&opened).trim_start_matches("http://").split(' ').next().unwrap().to_owned();
    folder.replace("sites.d/team.toml", team("other", [format!("http://{opened}/reload")]));
    running.wait_for_message("on-publish", &format!("{opened} is an admin interface"));
}

#[test]
fn hooks_of_an_included_file_only_send_to_hosts_that_the_operator_lists() {
    let (receiver, own) = (Origin::showing(204, ""), Origin::showing(204, ""));
    let url = |origin: &Origin| format!("http://{origin}/purge");
    let hook = format!("[[site.robots.on_publish]]\nurl = {:?}", url(&own));
    let keys = "hosts = [\"own.test\"]\nroot = \".\"\nrobots.path = \"robots.txt\"";
    let config = |listed: &str| including(listed).admin_socket().site("own", format!("{keys}\n{hook}"));
    let folder = config("").file("sites.d/team.toml", team("team", [url(&receiver)])).folder();
    let said = "127.0.0.1 is a loopback address, and hooks in an included file (";
    let checked = folder.with_config(&["config", "check"]).ends_with(2).error;
    assert_has(&checked, &[said, "team.toml:7:7", "hook_hosts = [\"127.0.0.1\"]"]);
    assert_eq!(checked.matches(said).count(), 1, "those of the config go anywhere: {checked}");

    let running = folder.start();
    running.wait_for_event("on-publish", |line| line["level"] == "error" && message(line).contains(said));
    wait_until("the operator's own", || own.requests().len() == 1);
    // Another port belongs to another server.
    folder.configure(config("hook_hosts = [\"127.0.0.1:9\"]"));
    folder.with_config(&["config", "check"]).ends_with(2);
    folder.configure(config(&format!("hook_hosts = [\"{receiver}\"]")));
    folder.with_config(&["config", "check"]).ends_with(0);
    folder.with_config(&["reload"]);
    assert!(receiver.requests().is_empty(), "{:?}", receiver.requests());
    folder.replace("sites.d/team.toml", team("team", [url(&receiver)]).replace("agent: *", "agent: GPTBot"));
    wait_until("a request", || receiver.requests().len() == 1);
}

/// Servers that accept connections, but never respond.
struct Hanging(Vec<TcpListener>);

impl Hanging {
    fn new(count: usize) -> Self {
        let bind = |_| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        };
        Self((0..count).map(bind).collect())
    }

    /// Returns a file of a team with one hook for each server.
    fn file(&self, name: &str) -> String {
        let of_site = |(number, servers): (usize, &[TcpListener])| {
            let url = |server: &TcpListener| format!("http://{}/", server.local_addr().unwrap());
            team(&format!("{name}{number}"), servers.iter().map(url))
        };
        self.0.chunks(16).enumerate().map(of_site).collect()
    }

    /// Waits for this many connections, and returns them so that they stay open.
    fn wait_for(&self, count: usize) -> Vec<TcpStream> {
        let taken = Mutex::new(Vec::new());
        wait_until("connections", || {
            let mut taken = taken.lock().unwrap();
            taken.extend(self.0.iter().filter_map(|server| Some(server.accept().ok()?.0)));
            taken.len() >= count
        });
        taken.into_inner().unwrap()
    }
}

#[test]
fn hooks_that_hang_do_not_delay_hooks_of_other_files_or_switch_notices() {
    let (receiver, cache) = (Origin::showing(204, ""), Origin::showing(204, ""));
    let hanging = Hanging::new(96);
    let notify = format!("[[notify]]\non = [\"enforcement\"]\nurl = \"http://{receiver}/\"\ntimeout = \"60s\"");
    let well = team("well", [format!("http://{cache}/")]);
    let config = including("hook_hosts = [\"127.0.0.1\"]").admin_socket().tables(notify);
    let (folder, running) = config.file("sites.d/a.toml", hanging.file("a")).file("sites.d/well.toml", &well).start();
    let held = hanging.wait_for(8);
    wait_until("the first version", || !cache.requests().is_empty());
    folder.replace("sites.d/well.toml", well.replace("agent: *", "agent: GPTBot"));
    wait_until("another file's hook", || cache.requests().len() == 2);
    folder.with_config(&["enforce", "off"]).succeeded();
    wait_until("the notice", || receiver.requests().len() == 1);
    // The hanging hooks must still hang.
    assert_eq!(running.count("on-publish", |line| message(line).contains("no answer")), 0);
    assert_eq!(held.len(), 8, "the permits of one file");
}
