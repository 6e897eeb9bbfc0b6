//! Tests a document with damaged fields, as after an edit by hand or an error of the store.
//! Switching enforcement off must still reach every replica, each replica must name the unreadable
//! field, and a command must repair it.

use super::{DOCUMENT, Fleet, Replica, a_store};
use crate::harness::*;

/// A number that exceeds every limit, but can still be incremented as a 64-bit integer.
const FAR: &str = "18446744073709551614";

impl Fleet {
    /// Waits until every replica reports this field as unreadable.
    fn names(&self, field: &str) {
        for replica in &self.replicas {
            replica.becomes("damaged");
            let said = unfolded(&replica.running.command(&["fleet", "status"]).ends_with(1).out);
            assert_has(said, &["the fleet's document has damaged fields: ", field, "`robotsd fleet restore --repair`"]);
        }
    }

    /// Checks that an off switch reaches the replicas through the store, without direct requests.
    fn follows_off(&self) {
        self.reach(&[0]);
        assert_has(self.enforce("off").out, &["every site is switched off for the whole fleet"]);
        self.all(true);
    }

    fn repaired(&self) -> String {
        let said = unfolded(&self.says(&["fleet", "restore", "--repair"]).succeeded());
        self.synced();
        said
    }
}

#[test]
fn an_off_switch_reaches_every_replica_despite_damaged_fields_and_survives_a_repair() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        let damaged = [
            ("accept:shop", "{}", "dropped"),
            ("accept:shop", "\"\\xff\"", "dropped"),
            ("rev", FAR, "written again"),
            ("rev", "\"\\xff\"", "written again"),
            ("epoch", "\"\\xff\"", "written again"),
            ("format", "one", "written again"),
            ("off:*", "{}", "dropped"),
            ("lifted:0123456789abcdef", "\"\\xff\"", "kept"),
        ];
        for (field, value, done) in damaged {
            store.send(&format!("HSET {DOCUMENT} {field} {value} tag {field}"));
            fleet.names(&format!("\"{field}\": "));
            for command in ["init", "restore"] {
                let refused = unfolded(&fleet.says(&["fleet", command]).failed(2));
                assert_has(refused, &[&format!("\"{field}\": "), "`robotsd fleet restore --repair`"]);
            }
            assert_has(fleet.repaired(), &[&format!("\"{field}\" is {done}")]);
            fleet.all(false);
            // The field is damaged again. Writing the off switch may repair it before the command
            // does.
            store.send(&format!("HSET {DOCUMENT} {field} {value} tag {field}"));
            fleet.follows_off();
            fleet.says(&["fleet", "restore", "--repair"]).succeeded();
            fleet.synced();
            assert!(fleet.replicas.iter().all(Replica::is_off), "{field}");
            assert_has(fleet.switch("on"), &["removed off switches: 1"]);
            fleet.all(false);
        }
        let rev: u64 = fleet.says(&["fleet", "status", "--json"]).json()["rev"].as_u64().unwrap();
        assert!(rev < 1_000, "{rev}");
    });
}

#[test]
fn a_repair_restores_a_damaged_accept_and_the_reason_of_a_damaged_off_switch() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        let hash = fleet.accept("User-agent: *\nDisallow: /\n");
        fleet.serves(&hash);
        store.send(&format!("HSET {DOCUMENT} accept:shop \"\\xff\" tag x"));
        fleet.names("\"accept:shop\": ");
        fleet.serves(&hash);
        assert_has(fleet.repaired(), &["\"accept:shop\" is written again"]);
        fleet.serves(&hash);
        fleet.switch("off");
        let mark = fleet.says(&["fleet", "status", "--json"]).json()["marks"][0]["what"].take();
        let field = format!("off:*:{}", mark.as_str().unwrap());
        store.send(&format!("HSET {DOCUMENT} {field} \"\\xff\" tag y"));
        fleet.names(&format!("\"{field}\": "));
        fleet.stay_off();
        assert_has(fleet.repaired(), &[&format!("\"{field}\" is kept")]);
        assert_has(fleet.says(&["fleet", "status"]).out, &["an outage"]);
        fleet.stay_off();
    });
}

#[test]
fn a_repair_replaces_a_key_of_the_wrong_type_and_keeps_the_off_switch() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        fleet.switch("off");
        store.send(&format!("SET {DOCUMENT} x"));
        fleet.names("the key in the store must have the type hash");
        fleet.stay_off();
        fleet.repaired();
        fleet.stay_off();
        fleet.switch("on");
        fleet.all(false);
    });
}

/// Heartbeats are fields, too, and may be damaged.
#[test]
fn an_unreadable_heartbeat_does_not_hide_other_replicas() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        fleet.synced_are(3);
        store.send("HSET robotsd:fleet:{shop}:replicas \"web-\\xff\" \"\\xff\"");
        // The time of this heartbeat cannot be read. The heartbeat is forgotten when the next
        // heartbeat arrives.
        fleet.switch("off");
        fleet.synced_are(3);
        fleet.all(true);
    });
}
