//! Tests robotsd with its state directory on a full disk. The tests also kill robotsd.

use tower_robots::live::VersionHash;

use crate::harness::*;
use crate::small_disk::SmallDisk;

const FIRST: &str = "User-agent: *\nDisallow: /cart\n";
const SECOND: &str = "User-agent: *\nDisallow: /cart\nDisallow: /account\n";
const THIRD: &str = "User-agent: *\nDisallow: /cart\nDisallow: /account\nDisallow: /search\n";
const FOURTH: &str = "User-agent: *\nDisallow: /checkout\n";

fn wait_for_robots(running: &Running, text: &str) {
    wait_until(text, || running.get("/robots.txt", FIREFOX).body == text);
}

/// Reports whether this version is the saved state of a site. The state is written last, after the
/// version and its record.
fn is_saved(own: &Path, text: &str) -> bool {
    let hash = VersionHash::of(text.as_bytes()).to_string();
    fs::read_to_string(own.join("state.json")).is_ok_and(|state| state.contains(&hash))
}

fn status(running: &Running) -> String {
    running.command(&["status"]).out
}

fn problems(running: &Running) -> Vec<String> {
    let status = running.json(&["status"]);
    let problems = status["sites"][0]["problems"].as_array().unwrap();
    problems.iter().map(|problem| problem.as_str().unwrap().to_owned()).collect()
}

fn shop(state: &Path) -> Folder {
    Config::new().keys(format!("state_dir = {state:?}")).admin().files_of("shop").robots(FIRST).folder()
}

#[test]
fn a_full_disk_is_reported_even_after_a_kill_and_versions_are_saved_later() {
    SmallDisk::with("full_disk::a_full_disk_is_reported_even_after_a_kill_and_versions_are_saved_later", |disk| {
        let state = disk.path().join("state");
        let site = shop(&state);
        let own = state.join("sites/shop");
        let mut running = site.start();
        wait_until("the first version on the disk", || is_saved(&own, FIRST));
        disk.fill();
        for text in [SECOND, THIRD] {
            site.replace("robots.txt", text);
            wait_for_robots(&running, text);
        }
        let want = "cannot be written, so a restart forgets the live version: No space left on device (os error 28)";
        let problem = wait_for("a problem", || problems(&running).into_iter().find(|text| text.contains(want)));
        running.wait_for_event("state", |line| line["message"] == *format!("shop: {problem}"));
        assert_has(unfolded(&status(&running)), &[&problem]);

        disk.free();
        running.wait_for_event("state", |line| {
            line["message"] == "shop: the live version is now saved in the state directory"
        });
        wait_until("no problem", || problems(&running).is_empty());
        assert!(is_saved(&own, THIRD), "without another edit");
        running.kill();

        site.replace("robots.txt", "Error: cannot connect to database\n");
        // A process that was killed while writing has left this file.
        let left = [
            own.join(format!(".state.json.{}.ThreadId(5).tmp", 1 << 30)),
            state.join("..probe.1073741824.ThreadId(1).tmp"),
        ];
        left.iter().for_each(|path| fs::write(path, "{").unwrap());
        let mut running = site.start();
        wait_for_robots(&running, THIRD);
        assert!(problems(&running).is_empty(), "{:?}", problems(&running));
        running.wait_for_event("rejected", |line| {
            message(line).ends_with("and according to the state directory, it was live before the restart")
        });
        wait_until("what was left to be removed", || !left.iter().any(|path| path.exists()));

        disk.fill();
        site.replace("robots.txt", FOURTH);
        wait_for_robots(&running, FOURTH);
        wait_for("a problem", || problems(&running).into_iter().next());
        running.kill();
        site.replace("robots.txt", "{\"error\": \"not found\"}\n");
        let running = site.start();
        wait_for_robots(&running, THIRD);
        let older = "; the later version ";
        let behind = wait_for("what is behind", || problems(&running).into_iter().find(|text| text.contains(older)));
        running.wait_for_event("state", |line| line["message"] == *format!("shop: {behind}"));
        running.wait_for_message("rejected", older);
        assert!(unfolded(&status(&running)).contains(&behind), "in the same words");
        // Once the source contains the live version again, nothing is left to write.
        site.replace("robots.txt", FOURTH);
        wait_for_robots(&running, FOURTH);
        wait_until("no longer behind", || !problems(&running).contains(&behind));
    });
}

#[test]
fn pending_writes_are_done_or_reported_as_lost_when_robotsd_stops() {
    SmallDisk::with("full_disk::pending_writes_are_done_or_reported_as_lost_when_robotsd_stops", |disk| {
        let state = disk.path().join("state");
        let site = shop(&state);
        let own = state.join("sites/shop");
        for is_freed in [true, false] {
            site.replace("robots.txt", FIRST);
            let mut running = site.start();
            wait_until("the first version on the disk", || is_saved(&own, FIRST));
            disk.fill();
            site.replace("robots.txt", if is_freed { SECOND } else { THIRD });
            wait_for("a problem", || problems(&running).into_iter().next());
            if is_freed {
                disk.free();
            }
            running.end();
            let forgets = "changes that could not be written to the state directory are lost";
            let has_said = || running.has_event("state", |line| line["message"] == forgets);
            if is_freed {
                assert!(!has_said());
                assert!(is_saved(&own, SECOND));
            } else {
                wait_until("a last word", has_said);
            }
        }
    });
}

/// The file of each kill switch is created at the first start, and later overwritten in place. The
/// audit log is on another disk. If a change cannot be recorded there, enforcement must not be
/// turned on.
#[test]
fn kill_switches_keep_their_position_after_a_kill_on_a_full_disk() {
    SmallDisk::with("full_disk::kill_switches_keep_their_position_after_a_kill_on_a_full_disk", |disk| {
        let state = disk.path().join("state");
        let config = Config::new().keys(format!("state_dir = {state:?}")).admin().tables("audit = \"audit.jsonl\"");
        let site = config.files_of("shop").robots(FIRST).folder();
        let own = state.join("sites/shop");
        let mut running = site.start();
        wait_until("the first version on the disk", || is_saved(&own, FIRST));
        wait_until("the switch of the site", || fs::read(own.join("enforcement")).is_ok_and(|text| text == b"on \n"));
        disk.fill();
        for (of_site, shown) in [(&[][..], "/enforcement"), (&["--site", "shop"], "/sites/0/switch")] {
            for to in ["off", "on", "off"] {
                running.command(&[&["enforce", to], of_site].concat()).succeeded();
                running.kill();
                running = site.start();
                assert_eq!(running.json(&["status"]).pointer(shown), Some(&to.into()));
            }
        }
    });
}

#[test]
fn lost_access_log_lines_are_a_problem_until_the_log_is_writable() {
    let name = "full_disk::lost_access_log_lines_are_a_problem_until_the_log_is_writable";
    SmallDisk::with(name, |disk| {
        let path = disk.path().join("access.log");
        let config = Config::new().admin().files_of("shop").robots(FIRST).log_requests();
        let (_folder, running) = config.tables(format!("access_path = {path:?}")).start();
        disk.fill();
        let told = || running.json(&["status"])["problems"].to_string();
        let asked = |told: bool| {
            running.get("/robots.txt", FIREFOX);
            told
        };
        let want = "access.log cannot be written, so lines of the log are lost: No space left on device (os error 28)";
        wait_until("a problem", || asked(told().contains(want)));
        assert_has(running.command(&["status", "--problems"]).ends_with(1).out, &["problem:"]);
        disk.free();
        wait_until("no problem", || asked(told() == "[]"));
    });
}

/// Auditors rely on these events: refusals, switches, and who used the switches.
#[test]
fn lost_event_lines_are_a_problem_until_standard_output_is_writable_again() {
    let name = "full_disk::lost_event_lines_are_a_problem_until_standard_output_is_writable_again";
    SmallDisk::with(name, |disk| {
        let path = disk.path().join("events.log");
        let folder = Config::new().admin_socket().files_of("shop").robots(FIRST).folder();
        let mut serve = folder.robotsd();
        serve.args(["serve", "--config", "robotsd.toml"]).stdout(fs::File::create(&path).unwrap());
        let _running = KillOnDrop(serve.spawn().unwrap());
        wait_until("a start", || folder.with_config(&["status", "--ready"]).code == Some(0));
        folder.with_config(&["status", "--problems"]).succeeded();
        disk.fill();
        // Each of these commands causes an event.
        let told = || {
            folder.with_config(&["enforce", "on"]);
            folder.with_config(&["status", "--json"]).json()["problems"].to_string()
        };
        let want =
            "standard output cannot be written, so lines of the log are lost: No space left on device (os error 28)";
        wait_until("a problem", || told().contains(want));
        assert_has(unfolded(&folder.with_config(&["status", "--problems"]).ends_with(1).out), &[want]);
        disk.free();
        wait_until("no problem", || told() == "[]");
        let log = || fs::read_to_string(&path).unwrap();
        wait_until("what is lost", || log().contains("standard output can be written again; "));
        // At most one line may be truncated.
        let is_whole = |line: &str| serde_json::from_str::<Value>(line).is_ok();
        assert!(log().lines().filter(|line| !line.is_empty() && !is_whole(line)).count() <= 1, "{}", log());
    });
}
