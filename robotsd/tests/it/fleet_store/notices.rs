//! Tests notices: one replica sends each notice for all replicas. If the store does not respond,
//! every replica sends it.

use super::super::shared_rate::server::StoreServer;
use super::{Fleet, ROBOTS, Replica, a_store};
use crate::harness::*;

const PAGE: &str = include_str!("../../../../docs/src/howto/replicas.md");
const EVERYONE_OUT: &str = "User-agent: *\nDisallow: /\n";

/// A little more than the time after which a silent replica counts as missing.
const SILENT: Duration = Duration::from_secs(17);

/// Returns the arguments of `ACL SETUSER` in the handbook, for the fleet `shop`.
pub(super) fn rights() -> String {
    PAGE.lines().find_map(|line| line.strip_prefix("ACL SETUSER ")).unwrap().replace("shop-prod", "shop")
}

/// Returns the rights that the handbook adds for a cluster.
pub(super) fn further_rights_in_a_cluster() -> &'static str {
    let (_, rights) = PAGE.split_once("(`cluster = true`), add `").unwrap();
    rights.split('`').next().unwrap()
}

/// Starts three replicas with hooks for all events. They log in to the store as the user in the
/// handbook.
fn telling(store: &StoreServer, receiver: &Origin) -> Fleet {
    let notify = format!(
        "[[notify]]\non = [\"waits\", \"enforcement\", \"replica-missing\"]\nurl = \"http://{}/\"\ntimeout = \"30s\"\n",
        receiver.address
    );
    assert_eq!(store.send(&format!("ACL SETUSER {}", rights())), "+OK");
    let start = |name: &str| Replica::start_with(name, store, "robotsd:PASSWORD@", ROBOTS, &notify);
    Fleet::of(["web-1", "web-2", "web-3"].map(start).into())
}

/// Returns the requests about an event: their IDs and bodies.
fn told(receiver: &Origin, event: &str) -> Vec<(String, Value)> {
    let told = |request: &String| {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let id = head.lines().find_map(|line| line.strip_prefix("webhook-id: ")).unwrap();
        (id.to_owned(), serde_json::from_str::<Value>(body).unwrap())
    };
    receiver.requests().iter().map(told).filter(|(_, body)| body["type"] == event).collect()
}

/// Returns the events whose notices were sent, according to a replica, by itself or by another
/// replica. Each event has a file with its latest state.
fn known(replica: &Replica) -> Vec<(String, String)> {
    let files = fs::read_dir(replica.folder.at("state/on_publish")).into_iter().flatten().flatten();
    let read = |file: fs::DirEntry| Some((file.file_name().into_string().ok()?, fs::read_to_string(file.path()).ok()?));
    let mut known: Vec<_> = files.filter_map(read).filter(|(name, _)| name.ends_with(".txt")).collect();
    known.sort();
    known
}

/// Calls `act`, and waits until the events that each replica knows have changed.
fn all_know(replicas: &[Replica], act: impl FnOnce()) {
    let before: Vec<_> = replicas.iter().map(known).collect();
    act();
    let is_known = |(replica, before): (&Replica, &Vec<_>)| known(replica) != *before;
    wait_until("what every replica knows", || replicas.iter().zip(&before).all(is_known));
}

/// Checks the number of requests about an event, and returns them.
fn only(receiver: &Origin, event: &str, times: usize) -> Vec<(String, Value)> {
    let told = told(receiver, event);
    assert_eq!(told.len(), times, "{event}: {:?}", receiver.requests());
    told
}

fn shut_out(replicas: &[Replica]) {
    replicas.iter().for_each(|replica| replica.folder.replace("robots.txt", EVERYONE_OUT));
    replicas.iter().for_each(|replica| drop(replica.waiting()));
}

#[test]
fn one_replica_sends_each_notice_for_all_replicas_even_after_restarts() {
    a_store(async |_, store| {
        let receiver = Origin::showing(204, "");
        let mut fleet = telling(&store, &receiver);
        all_know(&fleet.replicas, || shut_out(&fleet.replicas));
        let waits = only(&receiver, "waits", 1);
        assert_has(waits[0].1["data"]["message"].to_string(), &["is held until accepted: everyone is blocked"]);
        let replica = waits[0].1["data"]["replica"].as_str().unwrap();
        assert!(["web-1", "web-2", "web-3"].contains(&replica), "{waits:?}");
        assert!(waits[0].1["data"]["message"].as_str().unwrap().starts_with(&format!("{replica}: site")), "{waits:?}");
        assert!(waits[0].1["data"]["next"].as_str().unwrap().ends_with(" --fleet"), "{waits:?}");
        let by = store.send("EVAL \"return redis.call('GET', redis.call('KEYS', '*:said:*')[1])\" 0");
        assert_has(by, &["sent web-"]);
        all_know(&fleet.replicas, || drop(fleet.switch("off")));
        let off = only(&receiver, "enforcement", 1);
        let message = off[0].1["data"]["message"].as_str().unwrap();
        assert_has(message, &["enforcement is OFF for every site in the fleet \"shop\" by ", ": \"an outage\""]);
        assert_eq!(off[0].1["data"]["next"], "robotsd enforce on --fleet");
        for replica in &mut fleet.replicas {
            replica.restart();
        }
        fleet.synced();
        // After this, each replica has handled all events since its start.
        all_know(&fleet.replicas, || drop(fleet.switch("on")));
        only(&receiver, "waits", 1);
        let on = only(&receiver, "enforcement", 2);
        assert_has(on[1].1["data"]["message"].to_string(), &["is on again for every site in the fleet"]);
        // Switching off again within a day is a new event. A version that becomes pending again is
        // also a new event.
        let off_at_site = || drop(fleet.followed(&["enforce", "off", "--fleet", "--site", "shop"]));
        all_know(&fleet.replicas, off_at_site);
        let site = only(&receiver, "enforcement", 3);
        assert_part(&site[2].1["data"], &json!({ "site": "shop", "next": "robotsd enforce on --fleet --site shop" }));
        let open = || fleet.replicas.iter().for_each(|replica| replica.folder.replace("robots.txt", ROBOTS));
        all_know(&fleet.replicas, open);
        all_know(&fleet.replicas, || shut_out(&fleet.replicas));
        only(&receiver, "waits", 2);
        only(&receiver, "enforcement", 3);
    });
}

#[test]
fn a_killed_replica_is_reported_as_missing_once_per_kill() {
    a_store(async |_, store| {
        let receiver = Origin::showing(204, "");
        let mut fleet = telling(&store, &receiver);
        let mut leaving = Replica::start("web-4", &store, "");
        fleet.synced_are(4);
        // A replica that ends normally is not missing, however long it is silent.
        leaving.running.end();
        let (others, last) = fleet.replicas.split_at_mut(2);
        // Each round waits for 15 seconds of silence.
        let times = if is_long() { 2 } else { 1 };
        for time in 1..=times {
            all_know(others, || last[0].running.kill());
            let missing = only(&receiver, "replica-missing", time);
            let message = missing[time - 1].1["data"]["message"].as_str().unwrap();
            assert_has(
                message,
                &[
                    "replica \"web-3\" of the fleet \"shop\" is missing: the other replicas have not heard from it since 20",
                ],
            );
            assert_part(&missing[time - 1].1["data"], &json!({ "site": "", "next": "robotsd status --fleet" }));
            // The other replicas must also learn that this replica is back.
            all_know(others, || last[0].running = last[0].folder.start());
        }
        fleet.synced_are(3);
        only(&receiver, "replica-missing", times);
    });
}

#[test]
fn each_replica_notifies_with_the_same_id_while_the_store_is_down() {
    a_store(async |_, store| {
        let receiver = Origin::showing(204, "");
        let fleet = telling(&store, &receiver);
        fleet.synced_are(3);
        store.signal("STOP");
        let out = Instant::now();
        all_know(&fleet.replicas, || shut_out(&fleet.replicas));
        let waits = only(&receiver, "waits", 3);
        assert!(waits.iter().all(|(id, _)| *id == waits[0].0), "{waits:?}");
        thread::sleep(SILENT.saturating_sub(out.elapsed()));
        store.signal("CONT");
        fleet.synced();
        // After this, each replica has checked which replicas are missing.
        all_know(&fleet.replicas, || drop(fleet.switch("off")));
        only(&receiver, "waits", 3);
        only(&receiver, "replica-missing", 0);
    });
}

#[test]
fn one_replica_notifies_after_the_store_has_closed_all_connections() {
    a_store(async |_, store| {
        let receiver = Origin::showing(204, "");
        let fleet = telling(&store, &receiver);
        // The first notice opens the connections that the store then closes.
        all_know(&fleet.replicas, || drop(fleet.switch("off")));
        only(&receiver, "enforcement", 1);
        assert!(store.send("CLIENT KILL TYPE normal").starts_with(':'));
        all_know(&fleet.replicas, || shut_out(&fleet.replicas));
        only(&receiver, "waits", 1);
    });
}

#[test]
fn another_replica_notifies_if_the_elected_one_dies_first() {
    a_store(async |_, store| {
        let receiver = Origin::showing(503, "");
        let mut fleet = telling(&store, &receiver);
        shut_out(&fleet.replicas[..1]);
        let first = wait_for("an attempt", || told(&receiver, "waits").pop());
        fleet.replicas[0].running.kill();
        receiver.show(204, "");
        shut_out(&fleet.replicas[1..2]);
        // There are two events: the first replica is missing, and a version is pending.
        wait_until("both events", || known(&fleet.replicas[1]).len() == 2);
        let told = told(&receiver, "waits");
        let of = |name: &str| told.iter().filter(|(_, body)| body["data"]["replica"] == name).count();
        assert_eq!((of("web-2"), of("web-3")), (1, 0), "{told:?}");
        assert!(told.iter().all(|(id, _)| *id == first.0), "{told:?}");
    });
}

/// A process that was started by another process. It is killed when the test ends.
struct Killed(u32);

impl Drop for Killed {
    fn drop(&mut self) {
        signal("KILL", self.0);
    }
}

/// A process that replaces another one keeps its name, its off switches, and the record of its
/// notices.
#[test]
fn an_upgraded_replica_keeps_its_name_off_switches_and_record_of_notices() {
    a_store(async |_, store| {
        let receiver = Origin::showing(204, "");
        let fleet = telling(&store, &receiver);
        all_know(&fleet.replicas, || drop(fleet.switch("off")));
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
        // All three replicas must be present for longer than a replica may be silent.
        let until = Instant::now() + SILENT;
        while Instant::now() < until {
            let report = fleet.says(&["fleet", "status", "--json"]).json();
            let replicas = report["replicas"].as_array().unwrap();
            let names: Vec<_> = replicas.iter().map(|of| of["replica"].clone()).collect();
            assert_eq!(names, ["web-1", "web-2", "web-3"]);
            let is_lost = |of: &Value| of["state"] == "missing" || of["state"] == "doubled";
            assert!(!replicas.iter().any(is_lost), "{report}");
            thread::sleep(Duration::from_millis(500));
        }
        fleet.synced_are(3);
        only(&receiver, "enforcement", 1);
        all_know(&fleet.replicas, || drop(fleet.switch("on")));
        fleet.all(false);
        only(&receiver, "enforcement", 2);
        only(&receiver, "replica-missing", 0);
    });
}
