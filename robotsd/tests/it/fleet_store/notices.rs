//! One replica sends a notification for all of them, and each sends it where the store does not answer.

use std::time::{Duration, Instant};

use serde_json::json;

use super::super::shared_rate::server::{StoreServer, each_store};
use super::{Fleet, ROBOTS, Replica};
use crate::harness::*;

const CHAPTER: &str = include_str!("../../../src/docs/fleet.md");
const EVERYONE_OUT: &str = "User-agent: *\nDisallow: /\n";

/// Longer than it takes until every replica has sent what it would send.
const QUIET: Duration = Duration::from_secs(8);

/// Seconds of silence after which a replica is missing, and a little more.
const SILENT: Duration = Duration::from_secs(17);

/// Three replicas that tell of everything, as the user of the store that the chapter makes.
fn telling(store: &StoreServer, receiver: &Origin) -> Fleet {
    let notify = format!(
        "[[notify]]\non = [\"waits\", \"enforcement\", \"replica-missing\"]\nurl = \"http://{}/\"\ntimeout = \"1s\"\n",
        receiver.address
    );
    let rights =
        CHAPTER.lines().find_map(|line| line.strip_prefix("ACL SETUSER ")).unwrap().replace("shop-prod", "shop");
    assert_eq!(store.send(&format!("ACL SETUSER {rights}")), "+OK");
    let start = |name: &str| Replica::start_with(name, store, "robotsd:PASSWORD@", ROBOTS, &notify);
    Fleet::of(["web-1", "web-2", "web-3"].map(start).into())
}

/// The requests that tell of an event: the ids and the bodies.
fn told(receiver: &Origin, event: &str) -> Vec<(String, Value)> {
    let told = |request: &String| {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let id = head.lines().find_map(|line| line.strip_prefix("webhook-id: ")).unwrap();
        (id.to_owned(), serde_json::from_str::<Value>(body).unwrap())
    };
    receiver.requests().iter().map(told).filter(|(_, body)| body["type"] == event).collect()
}

/// Waits until that many requests tell of it, and finds that there are no more.
fn only(receiver: &Origin, event: &str, times: usize) -> Vec<(String, Value)> {
    let until = Instant::now() + 3 * SILENT;
    while told(receiver, event).len() < times && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(QUIET);
    let told = told(receiver, event);
    assert_eq!(told.len(), times, "{event}: {:?}", receiver.requests());
    told
}

fn shut_out(replicas: &[Replica]) {
    replicas.iter().for_each(|replica| replica.folder.replace("robots.txt", EVERYONE_OUT));
    let waits = |replica: &Replica| !replica.running.json(&["status"])["sites"][0]["pending"].is_null();
    wait_until("a version that waits", || replicas.iter().all(waits));
}

#[test]
fn one_replica_tells_what_all_of_them_see_also_over_restarts() {
    each_store(async |_, store| {
        let receiver = Origin::showing(204, "");
        let mut fleet = telling(&store, &receiver);
        shut_out(&fleet.replicas);
        let waits = only(&receiver, "waits", 1);
        assert_has(waits[0].1["data"]["message"].to_string(), &["waits to be accepted: everyone is shut out"]);
        let replica = waits[0].1["data"]["replica"].as_str().unwrap();
        assert!(["web-1", "web-2", "web-3"].contains(&replica), "{waits:?}");
        assert!(waits[0].1["data"]["message"].as_str().unwrap().starts_with(&format!("{replica}: site")), "{waits:?}");
        assert!(waits[0].1["data"]["next"].as_str().unwrap().ends_with(" --fleet"), "{waits:?}");
        let by = store.send("EVAL \"return redis.call('GET', redis.call('KEYS', '*:said:*')[1])\" 0");
        assert_has(by, &["sent web-"]);
        fleet.enforce("off").succeeded();
        let off = only(&receiver, "enforcement", 1);
        let message = off[0].1["data"]["message"].as_str().unwrap();
        assert_has(message, &["enforcement is OFF for every site in the fleet \"shop\" by ", ": \"an outage\""]);
        assert_eq!(off[0].1["data"]["next"], "robotsd enforce on --fleet");
        for replica in &mut fleet.replicas {
            replica.restart();
        }
        fleet.reach(&[0, 1, 2]);
        fleet.synced();
        only(&receiver, "enforcement", 1);
        only(&receiver, "waits", 1);
        fleet.enforce("on").succeeded();
        let on = only(&receiver, "enforcement", 2);
        assert_has(on[1].1["data"]["message"].to_string(), &["is on again for every site in the fleet"]);
        // Off again within the day is another event, and so is the same version once it was gone.
        fleet.says(&["enforce", "off", "--fleet", "--site", "shop"]).succeeded();
        let site = only(&receiver, "enforcement", 3);
        assert_part(&site[2].1["data"], &json!({ "site": "shop", "next": "robotsd enforce on --fleet --site shop" }));
        fleet.replicas.iter().for_each(|replica| replica.folder.replace("robots.txt", ROBOTS));
        let waits = |replica: &Replica| !replica.running.json(&["status"])["sites"][0]["pending"].is_null();
        wait_until("no version that waits", || !fleet.replicas.iter().any(waits));
        std::thread::sleep(QUIET);
        shut_out(&fleet.replicas);
        only(&receiver, "waits", 2);
    });
}

#[test]
fn a_replica_that_dies_is_told_of_once_each_time() {
    each_store(async |_, store| {
        let receiver = Origin::showing(204, "");
        let mut fleet = telling(&store, &receiver);
        std::thread::sleep(SILENT);
        for times in 1..=2 {
            fleet.replicas[2].running.kill();
            let missing = only(&receiver, "replica-missing", times);
            let message = missing[times - 1].1["data"]["message"].as_str().unwrap();
            assert_has(message, &["replica \"web-3\" of the fleet \"shop\" is missing: silent since 20"]);
            assert_part(&missing[times - 1].1["data"], &json!({ "site": "", "next": "robotsd status --fleet" }));
            fleet.replicas[2].running = fleet.replicas[2].folder.start();
            fleet.reach(&[0, 1, 2]);
            fleet.synced();
        }
        // One that ends in good order is not missed.
        fleet.replicas[1].running.end();
        std::thread::sleep(SILENT);
        only(&receiver, "replica-missing", 2);
    });
}

#[test]
fn each_tells_with_the_same_id_while_the_store_is_out_and_misses_nobody_when_it_is_back() {
    each_store(async |_, store| {
        let receiver = Origin::showing(204, "");
        let fleet = telling(&store, &receiver);
        std::thread::sleep(SILENT);
        store.signal("STOP");
        let out = Instant::now();
        shut_out(&fleet.replicas);
        let waits = only(&receiver, "waits", 3);
        assert!(waits.iter().all(|(id, _)| *id == waits[0].0), "{waits:?}");
        std::thread::sleep((SILENT + QUIET).saturating_sub(out.elapsed()));
        store.signal("CONT");
        fleet.synced();
        only(&receiver, "waits", 3);
        only(&receiver, "replica-missing", 0);
    });
}

#[test]
fn another_tells_where_the_one_whose_turn_it_was_dies_before_it_has_told() {
    each_store(async |_, store| {
        let receiver = Origin::showing(503, "");
        let mut fleet = telling(&store, &receiver);
        shut_out(&fleet.replicas[..1]);
        let first = wait_for("an attempt", || told(&receiver, "waits").pop());
        fleet.replicas[0].running.kill();
        let attempts = told(&receiver, "waits").len();
        receiver.show(204, "");
        shut_out(&fleet.replicas[1..2]);
        let waits = only(&receiver, "waits", attempts + 1);
        assert_eq!(waits[attempts].0, first.0);
    });
}

/// A process that another has started; it ends with the test.
struct Killed(u32);

impl Drop for Killed {
    fn drop(&mut self) {
        signal("KILL", self.0);
    }
}

/// The process that takes the place of another has its name, its marks, and knows what was told.
#[test]
fn a_replica_that_is_upgraded_in_place_stays_itself() {
    each_store(async |_, store| {
        let receiver = Origin::showing(204, "");
        let fleet = telling(&store, &receiver);
        fleet.enforce("off").succeeded();
        only(&receiver, "enforcement", 1);
        let upgraded = &fleet.replicas[1];
        let process = || upgraded.running.json(&["status"])["pid"].as_u64().unwrap();
        let before = process();
        upgraded.running.command(&["upgrade"]).succeeded();
        let after = u32::try_from(process()).unwrap();
        let _ended = Killed(after);
        assert_ne!(u64::from(after), before);
        fleet.stay_off();
        fleet.synced();
        // For longer than a replica may be silent, there are three, and none is missing.
        let until = Instant::now() + SILENT;
        while Instant::now() < until {
            let report = fleet.says(&["fleet", "status", "--json"]).json();
            let states = report["replicas"].as_array().unwrap().iter();
            let states: Vec<_> = states.map(|of| (of["replica"].clone(), of["state"].clone())).collect();
            assert_eq!(states, ["web-1", "web-2", "web-3"].map(|name| (json!(name), json!("synced"))));
            std::thread::sleep(Duration::from_millis(500));
        }
        assert_eq!(told(&receiver, "enforcement").len(), 1, "{:?}", receiver.requests());
        fleet.enforce("on").succeeded();
        fleet.all(false);
        only(&receiver, "enforcement", 2);
        assert_eq!(told(&receiver, "replica-missing"), []);
    });
}
