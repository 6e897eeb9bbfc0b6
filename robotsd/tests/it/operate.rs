//! Tests the decisions of an operator, and their output: the kill switch, accepting a version, and
//! rolling back.

use crate::harness::*;

const OPEN: &str = "User-agent: GPTBot\nDisallow: /page\n\nUser-agent: *\nDisallow: /drafts/\n";
const SHUT: &str = "User-agent: *\nDisallow: /\n";

/// Creates a config with two sites of one folder. Only the log contains the address of the admin
/// interface.
fn config() -> Config {
    let blog = "hosts = [\"blog.test\"]\nroot = \".\"\nrobots.path = \"blog.txt\"";
    let config = Config::refusing().keys("state_dir = \"state\"").admin();
    let config = config.site("shop", "hosts = [\"shop.test\"]\nroot = \".\"").site("the blog", blog);
    config.robots(OPEN).file("blog.txt", OPEN).file("page.html", "hello")
}

/// A running robotsd, as an operator sees it.
struct Operated(Running);

impl std::ops::Deref for Operated {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.0
    }
}

impl Operated {
    fn start(folder: &Folder) -> Self {
        Self(folder.start())
    }

    /// Stops robotsd as an operator does, because a killed process may not have saved its version.
    fn end(mut self) {
        self.0.end();
    }

    /// Returns the output of a command that must succeed.
    #[track_caller]
    fn out(&self, arguments: &[&str]) -> String {
        self.command(arguments).succeeded()
    }

    /// Like [`Self::out`], with the output joined to one line.
    #[track_caller]
    fn said(&self, arguments: &[&str]) -> String {
        unfolded(&self.out(arguments))
    }

    fn site(&self, number: usize) -> Value {
        self.json(&["status"])["sites"][number].clone()
    }

    fn robots(&self) -> String {
        self.request("GET", "/robots.txt", &[("Host", "shop.test"), ("User-Agent", FIREFOX)]).body
    }

    fn page(&self, host: &str) -> u16 {
        self.request("GET", "/page.html", &[("Host", host), ("User-Agent", GPTBOT)]).status
    }

    fn pages(&self) -> [u16; 2] {
        ["shop.test", "blog.test"].map(|host| self.page(host))
    }

    fn waiting(&self) -> String {
        self.site(0)["pending"]["hash"].as_str().unwrap().to_owned()
    }
}

fn started() -> (Folder, Operated) {
    let folder = config().folder();
    let operated = Operated::start(&folder);
    (folder, operated)
}

/// Returns a hash in the form that messages use.
fn short(hash: &str) -> &str {
    &hash["sha256:".len()..][..16]
}

/// Runs a command line from a status in a shell.
fn type_in(line: &str) -> Ended {
    let program = Path::new(env!("CARGO_BIN_EXE_robotsd")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([program.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let runtime = env!("CARGO_TARGET_TMPDIR");
    run(Command::new("sh").arg("-c").arg(line).env("PATH", path).env("RUNTIME_DIRECTORY", runtime))
}

fn suggested(status: &str, command: &str) -> String {
    let line = status.lines().map(str::trim).find(|line| line.starts_with(command));
    line.unwrap_or_else(|| panic!("no {command:?} in {status}")).to_owned()
}

#[test]
fn the_kill_switch_works_under_load_and_survives_a_kill() {
    let (folder, mut operated) = started();
    let address = operated.address;
    let (is_off, passed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let client = || -> Client<'_> {
        let mut kept = Kept::open(address, "shop.test");
        let (is_off, passed) = (&is_off, &passed);
        Box::new(move || {
            let off = is_off.load(Ordering::SeqCst);
            match kept.get("/page.html", GPTBOT) {
                (403, _) => assert!(!off, "refused after the command had ended"),
                (200, body) if body == "hello" => drop(passed.fetch_add(1, Ordering::Relaxed)),
                other => panic!("{other:?}"),
            }
        })
    };
    while_asking((0..4).map(|_| client()), |asking| {
        asking.wait_for_more(400);
        assert_eq!(passed.load(Ordering::Relaxed), 0, "something passed before");
        let said = operated.out(&["enforce", "off"]);
        is_off.store(true, Ordering::SeqCst);
        assert_eq!(said, "enforcement of every site is switched off\n");
        // The switch must affect connections that are already open.
        let before = passed.load(Ordering::Relaxed);
        wait_until("requests that pass", || passed.load(Ordering::Relaxed) > before + 400);
    });

    // Every output that an operator may check must show the switch.
    assert_eq!(operated.event("enforcement")["message"], "enforcement of every site is switched off");
    let status = operated.command(&["status"]).ends_with(1).out;
    assert_has(&status, &["\n2 of 2 sites need attention\n", "\nENFORCEMENT IS OFF FOR EVERY SITE: "]);
    suggested(&status, "robotsd enforce on --admin");
    assert_eq!(operated.json(&["status"])["enforcement"], "off");
    assert_eq!(operated.site(1)["enforcement"], "off");
    let ready = operated.ask_admin("GET /readyz");
    assert_eq!((ready.status, &*ready.body), (200, "ready\nenforcement is OFF for every site\n"));
    assert_eq!(operated.robots(), OPEN, "robots.txt is served as before");

    operated.0.kill();
    let operated = Operated::start(&folder);
    let want = "enforcement is OFF for every site: to switch it on, run `robotsd enforce on`";
    assert_eq!(operated.event("enforcement")["message"], want);
    assert_eq!(operated.pages(), [200, 200]);
    let history = operated.json(&["history", "the blog"]);
    let switched = history["entries"].as_array().unwrap().iter().filter(|entry| entry["cause"] == "switch");
    assert_eq!(switched.map(|entry| &entry["outcome"]).collect::<Vec<_>>(), ["switched-off"]);
    operated.out(&["enforce", "on"]);
    assert_eq!(operated.pages(), [403, 403]);
    assert_eq!(operated.ask_admin("GET /readyz").body, "ready\n");
}

#[test]
fn a_switch_for_one_site_or_all_sites_mentions_the_state_of_the_other() {
    let (_folder, operated) = started();
    let said = operated.out(&["enforce", "off", "--site", "the blog"]);
    assert_eq!(said, "enforcement of site \"the blog\" is switched off\n");
    assert_eq!(operated.pages(), [403, 200]);
    assert_eq!(operated.ask_admin("GET /readyz").body, "ready\nenforcement is OFF for site \"the blog\"\n");
    let status = operated.command(&["status"]).ends_with(1).out;
    assert_has(
        &status,
        &["\n1 of 2 sites need attention\n", "  enforced:   OFF, by the switch of this site: every request passes\n"],
    );
    assert_lacks(&status, &["EVERY SITE"]);
    operated.out(&["enforce", "off"]);
    let said = operated.said(&["enforce", "on", "--site", "the blog"]);
    let want = "enforcement is still switched off for every site: to switch it on, run `robotsd enforce on`";
    assert!(said.ends_with(want), "{said}");
    assert_eq!(operated.page("blog.test"), 200);
    operated.out(&["enforce", "off", "--site", "the blog"]);
    let said = operated.said(&["enforce", "on"]);
    assert!(said.ends_with("; these sites are still off, by their own switch: \"the blog\""), "{said}");
    assert_eq!(operated.pages(), [403, 200]);
    // The command that the status suggests must work as printed.
    type_in(&suggested(&operated.command(&["status"]).out, "robotsd enforce on --site 'the blog'")).succeeded();
    assert_eq!(operated.page("blog.test"), 403);
    assert_eq!(operated.out(&["enforce", "on"]), "enforcement of every site was already switched on\n");
}

#[test]
fn without_a_state_directory_a_switch_lasts_until_the_process_ends() {
    let folder = config().folder();
    let config = folder.read("robotsd.toml").replace("state_dir = \"state\"\n", "");
    folder.configure(&config);
    let operated = Operated::start(&folder);
    let said = operated.out(&["enforce", "off"]);
    assert!(
        said.ends_with("\nthe change is in effect only until robotsd ends: the config has no state_dir\n"),
        "{said}"
    );
    assert_eq!(operated.pages(), [200, 200]);
    assert_eq!(operated.json(&["status"])["next"][0]["command"], json!(["robotsd", "enforce", "on"]));
    // A site that is added later must be off, too.
    let more = "[[site]]\nname = \"news\"\nhosts = [\"news.test\"]\nroot = \".\"\n";
    let config = format!("{config}{more}");
    // The watcher may be faster than the command. The command then finds no change.
    let configure = |config: &str, change: &str| {
        let is_reported = |line: &Value| message(line).contains(change);
        let before = operated.count("config", is_reported);
        folder.configure(config);
        operated.out(&["reload"]);
        wait_until(change, || operated.count("config", is_reported) > before);
    };
    configure(&config, "site \"news\" is new");
    assert_eq!(operated.page("news.test"), 200);
    assert_has(
        operated.said(&["enforce", "on", "--site", "shop"]),
        &["enforcement is still switched off for every site"],
    );
    assert_part(&operated.json(&["enforce", "on"]), &json!({"kept": false, "running": true}));
    assert_eq!(["shop.test", "blog.test", "news.test"].map(|host| operated.page(host)), [403; 3]);
    // If a source replaces another one, the site must keep its switch, whether off or on.
    for (switch, status, max_age) in [("off", 200, 60), ("on", 403, 120)] {
        operated.out(&["enforce", switch, "--site", "news"]);
        configure(&format!("{config}robots.max_age = \"{max_age}s\"\n"), "site \"news\": robots.max_age: ");
        assert_eq!((operated.page("news.test"), operated.page("shop.test")), (status, 403));
    }
    // The same applies if a folder replaces a file.
    operated.out(&["enforce", "off", "--site", "news"]);
    folder.write("each/news.test.txt", OPEN);
    let each = format!("{config}[site.robots]\nsource = \"directory\"\npath = \"each\"\n");
    configure(&each, "site \"news\": robots.source: not set → directory");
    assert_has(operated.command(&["status"]).ends_with(1).out, &["site news/news.test"]);
    assert_eq!((operated.page("news.test"), operated.page("shop.test")), (200, 403));
}

#[test]
fn a_switch_that_cannot_be_saved_takes_effect_with_a_warning() {
    let (folder, operated) = started();
    wait_until("the state directory", || folder.at("state").exists());
    fs::rename(folder.at("state"), folder.at("aside")).unwrap();
    folder.write("state", "a file");
    for arguments in [&["enforce", "off"][..], &["enforce", "off", "--site", "shop"]] {
        let output = operated.command(arguments).ends_with(1);
        assert_has(unfolded(&output.out), &["the change is in effect only until robotsd ends: ", "Not a directory"]);
        assert_eq!(operated.page("shop.test"), 200);
    }
    let site = operated.site(0);
    assert_has(site["problems"][0].as_str().unwrap(), &["Not a directory"]);
    assert_has(site["next"].to_string(), &["repair the state directory"]);
}

#[test]
fn a_robots_txt_that_blocks_everyone_is_held_until_accepted_and_can_be_rolled_back() {
    let folder = config().folder();
    Operated::start(&folder).end();
    folder.replace("robots.txt", SHUT);
    let operated = Operated::start(&folder);
    assert_eq!(operated.robots(), OPEN);
    let status = operated.command(&["status"]).ends_with(1).out;
    assert_has(&status, &["\nsite shop (shop.test): gated\n"]);
    assert_has(unfolded(&status), &["everyone is blocked", "if the change is intended:"]);

    let accept = suggested(&status, "robotsd accept shop ");
    let typed = type_in(&accept).succeeded();
    assert_eq!(operated.robots(), SHUT, "not live once the command has ended");
    assert_has(unfolded(&typed), &["is live; the gate had held it because: ", "everyone is blocked"]);
    let line = operated.wait_for_event("accept", |line| line["site"] == "shop");
    assert!(line["robots_hash"].is_string() && message(&line).contains("is live"), "{line}");
    assert_eq!((operated.site(0)["state"].clone(), operated.page("shop.test")), ("live".into(), 403));

    let said = operated.out(&["rollback", "shop"]);
    assert_has(unfolded(&said), &["is live again; "]);
    assert_eq!(suggested(&said, "robotsd accept"), accept, "the way back is the same command");
    assert_eq!(operated.robots(), OPEN);
    operated.wait_for_event("rollback", |line| line["site"] == "shop");
    // The file still exists. The version must stay rolled back when the file is rewritten, when a
    // reload is requested, and at a start.
    folder.replace("robots.txt", SHUT);
    operated.command(&["reload", "--site", "shop"]).ends_with(1);
    assert_eq!(operated.robots(), OPEN);
    operated.end();
    let operated = Operated::start(&folder);
    assert_eq!(operated.robots(), OPEN);
    let parts = [
        "this version was rolled back before gate: watches no pages:",
        "next: to make it live again:",
        "another version that passes the gate goes live automatically",
    ];
    assert_has(unfolded(&operated.command(&["status"]).ends_with(1).out), &parts);
    let causes = operated.json(&["history", "shop"]);
    let of = |cause: &str| causes["entries"].as_array().unwrap().iter().filter(|entry| entry["cause"] == cause).count();
    assert_eq!((of("accept"), of("rollback")), (1, 1), "{causes}");
    // The other site must not be affected.
    assert_eq!(operated.site(1)["state"], "live");
}

#[test]
fn status_and_history_contain_who_decided_and_why_even_after_a_restart() {
    let (folder, operated) = started();
    folder.replace("robots.txt", SHUT);
    operated.command(&["reload"]).ends_with(1);
    let hash = operated.waiting();
    operated.out(&["accept", "shop", &hash, "--reason", "the \"sale\"\n"]);
    let uid = format!("uid {}", std::os::unix::fs::MetadataExt::uid(&fs::metadata(folder.path()).unwrap()));
    let decided = |operated: &Operated, cause: &str, who: &str, reason: &str| {
        let want = json!({ "cause": cause, "who": who, "reason": reason });
        assert_part(&operated.site(0)["decided"], &want);
        let history = operated.json(&["history", "shop"]);
        assert_part(
            history["entries"].as_array().unwrap().iter().rfind(|entry| entry["who"].is_string()).unwrap(),
            &want,
        );
        let done = if cause == "accept" { "accepted 2" } else { "rolled back 2" };
        let by = format!(" by {who}: {reason:?}");
        assert_has(unfolded(&operated.command(&["status", "--site", "shop"]).out), &[done, &by]);
        assert_has(operated.said(&["history", "shop"]), &[&format!("({cause}{by})")]);
    };
    decided(&operated, "accept", "local", "the \"sale\"\n");
    operated.end();
    let operated = Operated::start(&folder);
    decided(&operated, "accept", "local", "the \"sale\"\n");
    // No decision may be shown for the other site, or for versions that went live without a
    // decision.
    assert!(operated.site(1)["decided"].is_null());
    operated.end();

    // A rollback must also work while robotsd is not running.
    folder.configured(["rollback", "shop", "--reason", "too early", "--config"]).succeeded();
    let operated = Operated::start(&folder);
    decided(&operated, "rollback", &uid, "too early");
    folder.replace("robots.txt", format!("{OPEN}Disallow: /other\n"));
    wait_until("another version", || operated.robots().ends_with("/other\n"));
    assert!(operated.site(0)["decided"].is_null());
}

#[test]
fn a_rollback_reports_what_happens_to_another_pending_version() {
    let (folder, operated) = started();
    let more = format!("{OPEN}Disallow: /more/\n");
    folder.replace("robots.txt", &more);
    operated.out(&["reload", "--site", "shop"]);
    assert_eq!(operated.robots(), more);
    folder.replace("robots.txt", SHUT);
    operated.command(&["reload", "--site", "shop"]).ends_with(1);
    let waiting = operated.waiting();
    let want = format!(
        "; version {} is no longer pending: the gate checks this version again when robotsd next reads the \
         source",
        short(&waiting)
    );
    assert_has(operated.said(&["rollback", "shop"]), &[&want]);
    // The result must match the output of the rollback.
    assert_eq!(operated.robots(), OPEN);
    operated.command(&["reload", "--site", "shop"]).ends_with(1);
    assert_eq!(operated.waiting(), waiting);
}

#[test]
fn the_second_of_two_rollbacks_reports_that_neither_version_returns_unless_accepted() {
    let (folder, operated) = started();
    let more: Vec<String> = (0..2).map(|at| format!("{OPEN}Disallow: /more{at}/\n")).collect();
    for version in &more {
        folder.replace("robots.txt", version);
        operated.out(&["reload", "--site", "shop"]);
    }
    operated.out(&["rollback", "shop"]);
    let waiting = operated.waiting();
    let want =
        format!("; version {}, which was rolled back before, also goes live only if you accept it", short(&waiting));
    assert_has(operated.said(&["rollback", "shop"]), &[&want]);
    // The result must match the output of the rollback.
    operated.command(&["reload", "--site", "shop"]).ends_with(1);
    assert_eq!((operated.robots(), operated.waiting()), (OPEN.to_owned(), waiting));
}

#[test]
fn the_status_shows_modes_overrides_the_grace_period_and_the_outcome_of_each_reload() {
    let more = "enforcement.mode = \"observe\"\n\
        modes = { \"agent:GPTBot\" = { mode = \"refuse\", until = 2099-01-31 },\n\
        \"pattern:/drafts/\" = { mode = \"observe\", until = 2020-01-31 } }\n";
    let folder = config().keys("grace = \"1h\"").tables(more).folder();
    let operated = Operated::start(&folder);
    let status = operated.out(&["status"]);
    let parts = [
        "  mode:       observe: disallowed requests pass, and are logged\n",
        "  override:   agent \"gptbot\": refuse until 2099-02-01T00:00:00Z\n",
        "  override:   pattern \"/drafts/\": observe, but that ended 2020-02-01T00:00:00Z\n",
        "  grace:      2 rules are enforced from 20",
        " %) were checked against the pages of their",
    ];
    assert_has(&status, &parts);
    for line in status.lines().filter(|line| line.chars().count() > 80) {
        let words = line.split_whitespace().filter(|word| !word.ends_with(':')).count();
        assert!(words == 1 || line.trim().starts_with("robotsd "), "not folded: {line:?}");
    }
    let blog = operated.site(1);
    assert_eq!(blog["overrides"][1]["ended"], true);
    // The source disappears and comes back.
    folder.remove("robots.txt");
    operated.command(&["reload"]).ends_with(1);
    let shop = operated.site(0);
    assert_eq!(shop["state"], "last-good");
    let next = shop["next"][0]["what"].as_str().unwrap();
    assert!(
        next.contains("robots.txt: the file does not exist") && next.ends_with("goes live automatically"),
        "{next}"
    );
    folder.replace("robots.txt", OPEN);
    operated.out(&["reload"]);
    let shop = operated.site(0);
    assert_part(&shop, &json!({"state": "live", "next": []}));
    let count = |cause: &str, outcome: &str| {
        let mut counts = shop["reloads"].as_array().unwrap().iter();
        counts.find(|count| count["cause"] == cause && count["outcome"] == outcome).map(|it| it["count"].clone())
    };
    assert_eq!(count("start", "published"), Some(1.into()), "{shop}");
    assert_eq!(count("request", "kept"), Some(1.into()), "{shop}");
    assert_eq!(count("accept", "published"), None, "{shop}");
    assert_has(operated.out(&["history", "shop"]), &["  published (start)  ", "kept (request)\n"]);
}

#[test]
fn a_command_that_cannot_succeed_changes_nothing_and_reports_the_valid_choices() {
    let (folder, operated) = started();
    let live = operated.site(0)["hash"].as_str().unwrap().to_owned();
    let wrong = "0123456789ab";
    let unknown = "robotsd answered 404: there is no site \"b\": the sites are \"shop\", \"the blog\"";
    let nothing =
        format!("version {wrong} cannot be accepted, because no version is pending; version {} is live", short(&live));
    let no_hash = "is not the hash of a version: write the 16 hex digits from the message about the version, or at least 12 of them";
    let none_before = "the site cannot be rolled back, because no earlier accepted version is known";
    let odd =
        "robotsd answered 404: there is no site \"\\u{1b}[2J\\n&site=shop\": the sites are \"shop\", \"the blog\"";
    let host = "robotsd answered 404: there is no site \"shop.test\", but the site \"shop\" serves a host of this name";
    for (arguments, want) in [
        (&["accept", "b", wrong][..], unknown),
        (&["rollback", "b"], unknown),
        (&["history", "b"], unknown),
        (&["enforce", "off", "--site", "b"], unknown),
        (&["reload", "--site", "b"], unknown),
        (&["accept", "shop", wrong], &format!("robotsd answered 409: site \"shop\": {nothing}")),
        (&["accept", "shop", "0123456789a"], &format!("\"0123456789a\" {no_hash}")),
        (&["accept", "shop", "\u{1b}[2J"], &format!("\"\\u{{1b}}[2J\" {no_hash}")),
        (&["rollback", "shop"], &format!("robotsd answered 409: site \"shop\": {none_before}")),
        (&["history", "\u{1b}[2J\n&site=shop"], odd),
        (&["history", ""], "robotsd answered 400: the query must contain site=NAME"),
        (&["history", "shop.test"], host),
    ] {
        let output = operated.command(arguments).ends_with(2);
        assert_eq!((output.out, output.error), (String::new(), format!("robotsd: {want}\n")), "{arguments:?}");
    }
    // The command names a version other than the pending one.
    folder.replace("robots.txt", SHUT);
    operated.event("gated");
    let output = operated.command(&["accept", "shop", wrong]);
    let want = format!(
        "version {wrong} cannot be accepted, because another version is pending: {}\n",
        short(&operated.waiting())
    );
    assert!(output.error.ends_with(&want), "{output:?}");
    assert_eq!(operated.robots(), OPEN);
    for event in ["accept", "rollback", "enforcement"] {
        assert!(!operated.has_event(event, |_| true), "{event}: something was changed");
    }
    let incomplete = "enforce enforce?to=of enforce?to=off&sites=shop enforce?to=off&site= accept?site=shop \
                      accept?site=shop&hash=zz";
    for target in incomplete.split(' ') {
        assert_eq!(operated.ask_admin(&format!("POST /{target}")).status, 400, "{target}");
    }
    for request in ["GET /enforce?to=off", "GET /accept", "POST /history?site=shop"] {
        assert_eq!(operated.ask_admin(request).status, 405, "{request}");
    }
    // These requests come from a web page, or do not declare that they change something.
    let host = format!("Host: {}\r\n", operated.admin());
    for fields in [host.clone(), format!("{host}Robotsd-Admin: 1\r\nOrigin: http://evil.test\r\n")] {
        assert_eq!(super::admin::ask(operated.admin(), "POST /enforce?to=off", &fields).status, 403);
    }
    assert_eq!(operated.page("shop.test"), 403, "it was switched off");
}

#[test]
fn only_one_robotsd_at_a_time_can_use_a_state_directory() {
    let (folder, operated) = started();
    let in_use = format!(
        "{}: process {} has the state directory open: stop that process, or give each process its own state directory",
        folder.at("state").display(),
        operated.id()
    );
    // Another config has the same state directory. A decision must either reach the process that
    // uses the directory, or not be written at all.
    folder.write("elsewhere.toml", folder.read("robotsd.toml"));
    let elsewhere =
        |arguments: &[&str]| run(robotsd().args(arguments).arg("--config").arg(folder.at("elsewhere.toml")));
    elsewhere(&["enforce", "off"]).succeeded();
    assert_eq!(operated.page("shop.test"), 200);
    elsewhere(&["enforce", "on"]).succeeded();
    folder.remove("state/admin.place");
    // Each command waits two seconds for the other process to end, so all commands run at the same
    // time.
    thread::scope(|scope| {
        scope.spawn(|| {
            let second = folder.configured(["serve", "--config"]);
            assert!(second.code != Some(0), "{second:?}");
            assert_has(second.error, &[&in_use]);
        });
        for arguments in [&["enforce", "off"][..], &["rollback", "shop"]] {
            let (elsewhere, operated, in_use) = (&elsewhere, &operated, &in_use);
            scope.spawn(move || {
                let said = elsewhere(arguments).failed(2);
                assert_has(&said, &["no running robotsd uses this config", in_use]);
                let way_out = format!(
                    "Otherwise stop the process (`kill {}`), and switch enforcement before the next start",
                    operated.id()
                );
                let is_reported = said.contains(&way_out) && said.contains("--admin PLACE. ");
                assert_eq!(is_reported, arguments[0] == "enforce", "{said}");
            });
        }
    });
    // A command that only reads must need no lock.
    folder.configured(["config", "check"]).succeeded();
    assert_eq!((operated.page("shop.test"), operated.json(&["status"])["enforcement"].clone()), (403, "on".into()));
    drop(operated);
    // After a kill, there must be no lock left.
    let operated = Operated::start(&folder);
    assert_eq!(operated.out(&["enforce", "off"]), "enforcement of every site is switched off\n");
}

#[test]
fn a_rollback_preview_changes_nothing() {
    let (folder, operated) = started();
    let shown = || operated.command(&["rollback", "shop", "--diff"]);
    assert_has(shown().failed(2), &["the site cannot be rolled back, because no earlier accepted version"]);
    let more = format!("{OPEN}Disallow: /more/\n");
    folder.replace("robots.txt", &more);
    operated.out(&["reload", "--site", "shop"]);
    let site = operated.site(0);
    let (hash, before) = (site["hash"].as_str().unwrap(), site["before"].as_str().unwrap());

    let text = shown().ends_with(1).out;
    let would = format!("a rollback would make version {} live again; effect on crawlers: ", short(before));
    assert_has(unfolded(&text), &[&would]);
    let json = operated.command(&["rollback", "shop", "--diff", "--json"]).ends_with(1).json();
    assert_part(&json, &json!({ "site": "shop", "hash": hash, "before": before }));
    let said = json["message"].as_str().unwrap();
    assert_has(said, &[&would]);
    assert_eq!((operated.robots(), &operated.site(0)["pending"]), (more, &Value::Null));
    assert_lacks(fs::read_to_string(folder.at("state/audit.jsonl")).unwrap_or_default(), &["rollback"]);
    let with_fleet = folder.configured(["rollback", "shop", "--diff", "--fleet", "--config"]);
    assert_has(with_fleet.failed(2), &["cannot be used with"]);

    // The command in the output must work as printed.
    let done = unfolded(&type_in(&suggested(&text, "robotsd rollback shop")).succeeded());
    assert_eq!(operated.robots(), OPEN);
    let (_, effect) = said.split_once("crawlers: ").unwrap();
    assert_has(done, &[&unfolded(effect)]);
}

#[test]
fn a_rollback_preview_names_the_crawlers_that_it_allows_or_blocks() {
    let (folder, operated) = started();
    let shut = "User-agent: ClaudeBot\nUser-agent: CCBot\nUser-agent: Amazonbot\nDisallow: /\n\n";
    folder.replace("robots.txt", format!("{shut}{}Disallow: /tmp/\n", OPEN.replace("GPTBot", "Bytespider")));
    operated.out(&["reload", "--site", "shop"]);
    let diff = ["rollback", "shop", "--diff"];
    let text = unfolded(&operated.command(&diff).ends_with(1).out);
    let json = operated.command(&[&diff[..], &["--json"]].concat()).ends_with(1).json();
    for said in [&*text, json["message"].as_str().unwrap()] {
        assert_has(
            said,
            &[
                "\"/tmp/\" is allowed for \"Googlebot\", \"bingbot\" and ",
                "\"/page\" is disallowed for \"GPTBot\"",
                "\"/page\" is allowed for \"Bytespider\"",
                "is allowed for \"Amazonbot\", \"CCBot\", \"ClaudeBot\"",
            ],
        );
        assert_lacks(said, &["more change"]);
    }
}

#[test]
fn decisions_made_while_robotsd_does_not_run_are_stored_in_the_state_directory() {
    let folder = config().folder();
    Operated::start(&folder).end();
    folder.replace("robots.txt", SHUT);
    let operated = Operated::start(&folder);
    let hash = operated.waiting();
    operated.end();
    let served = folder.read("robotsd.toml");
    let command = |arguments: &[&str]| folder.configured([arguments, &["--config"]].concat());
    let done = |arguments: &[&str]| {
        let said = unfolded(&command(arguments).succeeded());
        assert_has(&said, &["no running robotsd uses this config", "the change takes effect at the next start"]);
        said
    };
    let failed = |arguments: &[&str], want: &str| {
        let said = command(arguments).failed(2);
        assert!(said.contains(want) && (!want.ends_with('\n') || said.ends_with(want)), "{said}");
    };
    assert!(done(&["accept", "shop", &hash]).starts_with("site \"shop\": version "));
    done(&["enforce", "off", "--site", "the blog"]);
    failed(&["enforce", "off", "--site", "b"], "; there is no site \"b\": the sites are \"shop\", \"the blog\"\n");
    failed(&["accept", "shop", "0123456789ab"], "no version is pending");
    failed(&["rollback", "b"], "there is no site \"b\"");
    let operated = Operated::start(&folder);
    assert_eq!((operated.robots(), operated.page("blog.test")), (SHUT.to_owned(), 200));
    operated.end();

    done(&["rollback", "shop"]);
    // The switch must work even if the rest of the config is broken.
    folder.configure(served.replace("mode = \"refuse\"", "mode = \"refuze\""));
    done(&["enforce", "on", "--site", "the blog"]);
    done(&["enforce", "off"]);
    failed(&["rollback", "shop"], "refuze");
    folder.configure(&served);
    let operated = Operated::start(&folder);
    assert_eq!((operated.robots(), operated.page("shop.test")), (OPEN.to_owned(), 200));
    assert_eq!(operated.site(1)["switch"], "on");
    operated.end();

    folder.configure(served.replace("state_dir = \"state\"\n", ""));
    for arguments in [&["enforce", "off"][..], &["rollback", "shop"]] {
        failed(arguments, "the config has no state_dir, so the change cannot be saved for the next start\n");
    }
    folder.configure(&served);
    assert_part(&command(&["enforce", "on", "--json"]).json(), &json!({"kept": true, "running": false}));
    let free = free().to_string();
    let output = run(robotsd().args(["enforce", "off", "--admin", &free]));
    let want =
        "to make the change at the next start, give --config FILE: the change is then written to the state directory\n";
    assert!(output.error.ends_with(want), "{output:?}");
    let output = run(robotsd().args(["history", "shop", "--admin", &free]));
    assert_has(output.error, &["no process listens there, so robotsd is not running"]);
}

/// Returns the exit status and the output of `config check` for the config of a folder.
fn checked(folder: &Folder) -> (Option<i32>, String) {
    let output = folder.configured(["config", "check"]);
    (output.code, output.error + &output.out)
}

#[test]
fn the_check_reports_which_version_has_a_finding() {
    let folder = config().robots("User-agent: *\nDisalow: /drafts/\n").folder();
    Operated::start(&folder).end();
    folder.replace("robots.txt", SHUT);
    let (code, said) = checked(&folder);
    assert_eq!(code, Some(1), "{said}");
    assert_has(said, &["the version of ", "robots.txt that stays live:2:1: warning"]);
}

#[test]
fn the_check_the_log_and_the_status_report_an_unreadable_kill_switch() {
    let folder = config().folder();
    assert_has(checked(&folder).1, &["can be served; "]);
    assert!(!folder.at("state").exists(), "a check writes nothing");
    folder.write("state/sites/shop/enforcement", "no");
    // Root can write to a file regardless of its mode, but not to a folder in its place.
    fs::create_dir(folder.at("state/enforcement")).unwrap();
    let [of_all, of_site] =
        ["state/enforcement", "state/sites/shop/enforcement"].map(|path| folder.at(path).display().to_string());
    let (code, said) = checked(&folder);
    assert_eq!(code, Some(1), "{said}");
    let unreadable = "so robotsd would enforce nothing for any site";
    let parts = [
        &format!("{of_all}: this is not a regular file; enforcement is treated as \"off\", {unreadable}"),
        &format!(
            "site \"shop\": {of_site}: the file contains neither \"on\" nor \"off\"; enforcement is treated as \
             \"off\", so robotsd would enforce nothing for this site"
        ),
        "state_dir = \"state\"",
        "can be served, but a kill switch cannot be read, so rules would not be enforced; listeners: ",
    ];
    assert_has(said, &parts);
    let operated = Operated::start(&folder);
    operated.wait_for_event("enforcement", |line| {
        let message = message(line);
        message.starts_with("enforcement is OFF for every site because the kill switch could not be read (")
            && message.contains(&of_all)
    });
    assert_eq!(operated.page("shop.test"), 200);
    // The exit status must tell a probe that this is not a success.
    let status = operated.command(&["status"]).ends_with(1).out;
    let parts = ["ENFORCEMENT IS OFF FOR EVERY SITE", "not a regular file", "neither \"on\" nor \"off\""];
    assert_has(unfolded(&status), &parts);
    // If an operator turns the switch off, it must stay off.
    fs::remove_dir(&of_all).unwrap();
    for to in ["on", "off"] {
        operated.out(&["enforce", to]);
        operated.out(&["enforce", to, "--site", "shop"]);
    }
    operated.command(&["status"]).ends_with(1);
    // The history must contain the times at which enforcement was switched off and on.
    for (site, of, why) in [("the blog", "every site", of_all), ("shop", "this site", of_site)] {
        let history = operated.json(&["history", site]);
        let switched: Vec<_> =
            history["entries"].as_array().unwrap().iter().filter(|entry| entry["cause"] == "switch").collect();
        let message = switched[0]["message"].as_str().unwrap();
        let begin = format!("enforcement of {of} is switched off: {why}: ");
        assert!(message.starts_with(&begin), "{message}");
        let outcomes: Vec<_> = switched.iter().map(|entry| &entry["outcome"]).take(2).collect();
        assert_eq!(outcomes, ["switched-off", "switched-on"], "{history}");
    }
}

#[test]
fn the_log_and_the_status_report_history_entries_dated_in_the_future() {
    let folder = config().folder();
    Operated::start(&folder).end();
    let path = folder.at("state/sites/shop/history.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut entry: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    entry["when"] = 4_102_444_800_000_u64.into();
    fs::write(&path, format!("{text}{entry}\n")).unwrap();
    let operated = Operated::start(&folder);
    let line = operated.event("clock");
    let said = "but the state directory contains entries of Fri, 01 Jan 2100 00:00:00 GMT: the clock is wrong now, or \
        was wrong when these entries were written";
    assert_eq!(line["level"], "warn");
    assert_has(message(&line), &["the clock shows ", said]);
    assert_has(unfolded(&operated.command(&["status", "--problems"]).ends_with(1).out), &[said]);
    let history = operated.json(&["history", "shop"]);
    let entries = history["entries"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["when"] == "2100-01-01T00:00:00Z"), "{history}");
    let last = operated.site(0)["last_reload"]["when"].as_str().unwrap().to_owned();
    assert!(!last.starts_with("2100"), "{last}");
}

#[test]
fn the_check_reports_off_switches_and_a_pending_version() {
    let (folder, operated) = started();
    operated.out(&["enforce", "off"]);
    operated.out(&["enforce", "off", "--site", "the blog"]);
    let live = operated.site(0)["hash"].as_str().unwrap().to_owned();
    operated.end();
    let (code, said) = checked(&folder);
    assert_eq!(code, Some(0), "{said}");
    let parts = [
        "state: enforcement is switched off for every site: to switch it on, run `robotsd enforce on`",
        "to switch it on, run `robotsd enforce on --site 'the blog'`",
        ", warnings: 2",
    ];
    assert_has(said, &parts);
    // The result must be the same as at the next start: one version is pending, and the other one
    // stays live.
    folder.replace("robots.txt", SHUT);
    let (code, said) = checked(&folder);
    assert_eq!(code, Some(1), "{said}");
    let stays = format!("version {} stays live", short(&live));
    assert_has(&said, &["is held until accepted: everyone is blocked", &stays]);
    assert_lacks(said, &["no version is live"]);
}
