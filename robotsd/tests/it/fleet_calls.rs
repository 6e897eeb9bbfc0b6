//! Commands that ask every replica of a fleet directly: real processes, one of which is stopped, and one that refuses.

use std::net::SocketAddr;

use crate::harness::*;

const ROBOTS: &str = "User-agent: *\nDisallow: /private/\n";

/// A process of the fleet; its admin listener admits what `access` says, and whoever has a token of these tables.
fn replica_with(access: &str, tokens: &str) -> (Folder, Running) {
    let config = format!(
        "mode = \"refuse\"\nstate_dir = \"state\"\n[admin]\nsocket = \"admin.sock\"\n{tokens}[[admin.listener]]\n\
         address = \"127.0.0.1:0\"\naccess = {access:?}\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\n\
         root = \".\"\n"
    );
    serving(&[("robotsd.toml", &config), ("robots.txt", ROBOTS)])
}

fn replica(access: &str) -> (Folder, Running) {
    replica_with(access, "")
}

/// The folder of an operator, where nothing runs.
fn operator(replicas: &[SocketAddr]) -> Folder {
    let replicas: Vec<_> = replicas.iter().map(ToString::to_string).collect();
    // Broken elsewhere: the fleet is reached all the same.
    folder(&[("robotsd.toml", &format!("mode = refuse\n[fleet]\nreplicas = {replicas:?}\n"))])
}

fn fleet(operator: &Folder, arguments: &[&str]) -> Ended {
    operator.with_config(&[arguments, &["--fleet"]].concat())
}

fn page(running: &Running) -> u16 {
    running.get("/private/x", GPTBOT).status
}

#[test]
fn every_replica_confirms_or_is_named() {
    let (first, second, third) = (replica("full"), replica("full"), replica("full"));
    let replicas = [&first, &second, &third].map(|(_, running)| running.admin());
    let operator = operator(&replicas);
    for (to, status) in [("off", 404), ("on", 403)] {
        let said = fleet(&operator, &["enforce", to]).succeeded();
        let lines: Vec<_> = said.lines().collect();
        for (line, replica) in lines.iter().zip(replicas) {
            assert_eq!(*line, format!("{replica}: enforcement of every site is switched {to}"));
        }
        assert_eq!(lines[3], "3 of 3 replicas confirmed");
        for (_, running) in [&first, &second, &third] {
            assert_eq!(page(running), status);
        }
    }
    assert_has(fleet(&operator, &["status"]).succeeded(), &["is serving, 1 site\n", "3 of 3 replicas confirmed\n"]);
    assert_has(fleet(&operator, &["reload"]).succeeded(), &[": reloaded 1 site\n", "3 of 3 replicas confirmed\n"]);

    // One that is stopped takes connections and does not answer; one that is gone takes none.
    second.1.freeze();
    let (third_folder, mut third) = third;
    third.kill();
    let ended = fleet(&operator, &["enforce", "off", "--json"]).ends_with(2);
    let answers = ended.json();
    assert_eq!(answers[0]["answer"]["enforcement"], "off");
    assert_has(answers[1]["error"].as_str().unwrap(), &["NOT REACHED: no answer after 10 s"]);
    assert_has(answers[2]["error"].as_str().unwrap(), &["NOT REACHED: no process listens there"]);
    for (answer, replica) in answers.as_array().unwrap().iter().zip(replicas) {
        assert_eq!(answer["replica"], replica.to_string());
    }
    assert_eq!(page(&first.1), 404);
    second.1.signal("CONT");
    drop(third_folder);
}

#[test]
fn a_replica_that_refuses_or_has_another_token_is_no_confirmation() {
    let token = || {
        let said = run(robotsd().args(["token", "new", "alice"])).succeeded();
        let (token, tables) = said.split_once('\n').unwrap();
        (token.to_owned(), format!("{}\n", tables.trim().replace("\"read\"", "\"operate\"")))
    };
    let ((mine, of_mine), (_, of_other)) = (token(), token());
    let (full, other, read) =
        (replica_with("token", &of_mine), replica_with("token", &of_other), replica_with("read", &of_mine));
    let operator = operator(&[full.1.admin(), other.1.admin(), read.1.admin()]);
    let fleet = |arguments: &[&str]| {
        let arguments = [arguments, &["--fleet", "--config", "robotsd.toml"]].concat();
        run(operator.robotsd().args(arguments).env("ROBOTSD_TOKEN", &mine))
    };
    let said = fleet(&["enforce", "off", "--reason", "an outage"]).ends_with(2).out;
    assert_has(&said, &[": REFUSED: no [[admin.token]] has this token\n", "1 of 3 replicas confirmed\n"]);
    assert_eq!(said.matches(": REFUSED: ").count(), 2, "{said}");
    assert_eq!((page(&full.1), page(&other.1), page(&read.1)), (404, 403, 403));
    let audit = full.0.with_config(&["audit", "--json"]).out;
    assert_has(audit, &["alice", "an outage"]);
    // One that may be read is, and that it is off is said.
    assert_has(fleet(&["status"]).ends_with(2).out, &["ENFORCEMENT IS OFF FOR EVERY SITE", "1 of 3 replicas"]);
}

#[test]
fn a_version_is_accepted_and_rolled_back_everywhere_or_it_is_said_where_not() {
    let (first, second) = (replica("full"), replica("full"));
    let operator = operator(&[first.1.admin(), second.1.admin()]);
    let everyone_out = "User-agent: *\nDisallow: /\n";
    let waiting = |(folder, running): &(Folder, Running)| {
        folder.replace("robots.txt", everyone_out);
        wait_for("the version that waits", || {
            running.json(&["status"])["sites"][0]["pending"]["hash"].as_str().map(str::to_owned)
        })
    };
    let hash = waiting(&first).trim_start_matches("sha256:").to_owned();
    waiting(&second);
    assert_has(fleet(&operator, &["status"]).ends_with(1).out, &["waits", "0 of 2 replicas confirmed"]);
    assert_has(fleet(&operator, &["accept", "shop"]).failed(2), &["with --fleet name the version"]);
    // One has it already: it confirms.
    first.1.command(&["accept", "shop", &hash[..16]]).succeeded();
    let status = fleet(&operator, &["status"]).ends_with(1).out;
    assert_has(unfolded(&status), &["site \"shop\": replicas serve different versions: "]);
    let said = fleet(&operator, &["rollback", "shop"]).failed(2);
    assert_has(said, &["replicas serve different versions, so none is rolled back"]);
    let said = fleet(&operator, &["accept", "shop", &hash[..16]]).succeeded();
    assert_has(said, &["is live already\n", "2 of 2 replicas confirmed\n"]);
    fleet(&operator, &["status"]).succeeded();
    assert_has(
        fleet(&operator, &["accept", "shop", "0123456789abcdef"]).ends_with(2).out,
        &["REFUSED: site \"shop\": "],
    );
    let said = fleet(&operator, &["rollback", "shop"]).succeeded();
    assert_has(said, &["is live again", "2 of 2 replicas confirmed\n"]);
}

#[test]
fn without_replicas_it_is_said_what_is_missing() {
    let folder = folder(&[("robotsd.toml", "mode = \"tag\"\n")]);
    assert_has(fleet(&folder, &["status"]).failed(2), &["there is no [fleet] with replicas"]);
    folder.configure("[fleet]\nreplicas = [\"127.0.0.1:1\", \"http://web\"]\n");
    assert_has(fleet(&folder, &["enforce", "off"]).failed(2), &["robotsd.toml:2:28: \"http://web\" is no place"]);
    folder.configure("[fleet]\nreplicas = [\"no-such-name.invalid:9145\"]\n");
    let said = fleet(&folder, &["enforce", "off"]).ends_with(2).out;
    assert_has(said, &["no-such-name.invalid:9145: NOT REACHED: ", "0 of 1 replica confirmed"]);
}
