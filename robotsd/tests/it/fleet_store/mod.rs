//! Tests a fleet of three processes whose document is in a real store (Valkey and Redis), with
//! every failure that `docs/src/howto/replicas.md` describes. In each case, switching off must
//! work, and enforcement that is off must not turn on by itself.

mod bounds;
mod busy;
mod damage;
pub(crate) mod forwarder;
mod notices;

use tokio::runtime::Runtime;

use self::forwarder::Forwarder;
use super::fleet_calls::comes_to;
use super::shared_rate::nodes::{Cluster, node_of};
use super::shared_rate::server::{StoreServer, any_store, each_store};
use crate::harness::*;
use crate::small_disk::SmallDisk;

const ROBOTS: &str = "User-agent: *\nDisallow: /private/\n";

/// Runs a scene with one store, or in a long run with each store. The scenes do not depend on the
/// differences between stores.
fn a_store(scene: impl AsyncFn(&'static str, StoreServer) + Sync) {
    if is_long() {
        each_store(scene);
    } else if let Some(store) = any_store() {
        Runtime::new().unwrap().block_on(scene("a store", store));
    }
}

/// A replica whose connection to the store can be cut or redirected.
struct Replica {
    folder: Folder,
    running: Running,
    store: Forwarder,
}

/// Three replicas that have read a document, and an operator's folder without a process.
struct Fleet {
    replicas: Vec<Replica>,
    operator: Folder,
}

impl Replica {
    /// Starts a replica. `login` is put in front of the address in the URL of the store.
    fn start(name: &str, store: &StoreServer, login: &str) -> Self {
        Self::start_with(name, store, login, ROBOTS, "")
    }

    fn start_with(name: &str, store: &StoreServer, login: &str, robots: &str, tables: &str) -> Self {
        let store = Forwarder::start(store.address());
        let keys = format!("store = \"redis://{login}{}\"", store.address);
        Self::start_at(name, store, &keys, robots, tables)
    }

    /// Starts a replica. `keys` are added to the settings of the store. The admin listener has a
    /// reserved port, so that no process of another test answers there after a kill.
    fn start_at(name: &str, store: Forwarder, keys: &str, robots: &str, tables: &str) -> Self {
        let admin = free();
        let config = format!(
            "mode = \"refuse\"\nstate_dir = \"state\"\n[admin]\nsocket = \"admin.sock\"\n[[admin.listener]]\n\
             address = \"{admin}\"\naccess = \"full\"\n[fleet]\nname = \"shop\"\nreplica = \"{name}\"\n\
             {keys}\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\nroot = \".\"\n{tables}"
        );
        let (folder, running) = serving(&[("robotsd.toml", &config), ("robots.txt", robots)]);
        Self { folder, running, store }
    }

    fn is_off(&self) -> bool {
        match self.running.get("/private/x", GPTBOT).status {
            404 => true,
            403 => false,
            other => panic!("{other}"),
        }
    }

    fn restart(&mut self) {
        self.running.kill();
        self.running = self.folder.start();
    }

    fn status(&self) -> Value {
        self.running.ask_admin("GET /status").json()
    }

    fn site(&self) -> Value {
        self.status()["sites"][0].take()
    }

    fn fleet(&self) -> Value {
        self.status()["fleet"].take()
    }

    fn becomes(&self, state: &str) {
        wait_until(state, || self.fleet()["state"] == state);
    }

    fn waiting(&self) -> String {
        let pending =
            || self.site()["pending"]["hash"].as_str().map(|hash| hash.trim_start_matches("sha256:").to_owned());
        wait_for("a version that waits", pending)
    }
}

impl Fleet {
    fn start(store: &StoreServer) -> Self {
        Self::of(["web-1", "web-2", "web-3"].map(|name| Replica::start(name, store, "")).into())
    }

    fn of(replicas: Vec<Replica>) -> Self {
        let fleet = Self { operator: folder(&[]), replicas };
        fleet.reach(&[0, 1, 2]);
        fleet.init();
        wait_until("replicas that enforce", || fleet.replicas.iter().all(|replica| !replica.is_off()));
        fleet
    }

    /// Writes these replicas to the operator's config, so that commands ask them directly.
    fn reach(&self, replicas: &[usize]) {
        let places: Vec<_> = replicas.iter().map(|at| self.replicas[*at].running.admin().to_string()).collect();
        self.operator.configure(format!("[fleet]\nname = \"shop\"\nreplicas = {places:?}\n"));
    }

    fn says(&self, arguments: &[&str]) -> Ended {
        self.operator.with_config(arguments)
    }

    /// Creates the document. On a busy machine, the first replica may create it, but answer late.
    fn init(&self) {
        wait_until("a document", || {
            let init = self.says(&["fleet", "init"]);
            init.code == Some(0) || init.error.contains("already has a document")
        });
    }

    fn enforce(&self, to: &str) -> Ended {
        self.says(&["enforce", to, "--fleet", "--reason", "an outage"])
    }

    /// Runs a command until every replica follows. The command itself waits only three seconds for
    /// the replicas, which may be too short on a busy machine.
    fn followed(&self, arguments: &[&str]) -> String {
        let ended = self.says(arguments);
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        self.synced();
        ended.out
    }

    /// Switches enforcement for all sites, and waits until every replica follows.
    fn switch(&self, to: &str) -> String {
        self.followed(&["enforce", to, "--fleet", "--reason", "an outage"])
    }

    /// Makes the fleet accept a version. If the store is slow, this may need two attempts.
    fn accepted(&self, hash: &str) {
        wait_until("that it is accepted", || {
            self.says(&["accept", "shop", hash, "--fleet"]).out.contains("the fleet accepts version")
        });
    }

    /// Waits until there are this many replicas, and all are synced.
    fn synced_are(&self, replicas: usize) {
        wait_until("the replicas", || {
            let report = self.says(&["fleet", "status", "--json"]);
            report.code == Some(0) && report.json()["replicas"].as_array().unwrap().len() == replicas
        });
    }

    /// Waits until enforcement is off, or on, on every replica.
    fn all(&self, is_off: bool) {
        wait_until("every replica", || self.replicas.iter().all(|replica| replica.is_off() == is_off));
    }

    /// Checks for two seconds that enforcement does not turn on by itself on any replica.
    fn stay_off(&self) {
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            assert!(self.replicas.iter().all(Replica::is_off), "a replica turned on by itself");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn synced(&self) {
        self.says(&["fleet", "status", "--wait", "60s"]).succeeded();
    }

    /// Makes a version pending on every replica, and then accepts it.
    fn accept(&self, robots: &str) -> String {
        self.replicas.iter().for_each(|replica| replica.folder.replace("robots.txt", robots));
        let hashes: Vec<_> = self.replicas.iter().map(Replica::waiting).collect();
        let status = self.says(&["status", "--fleet"]).ends_with(1).out;
        let accept = format!("robotsd accept shop {} --fleet --config robotsd.toml", &hashes[0][..16]);
        let names = self.replicas.iter().map(|replica| replica.fleet()["replica"].as_str().unwrap().to_owned());
        for name in names {
            assert_has(
                unfolded(&status),
                &[&format!("waits: shop {} on {name}: everyone is blocked", &hashes[0][..16])],
            );
        }
        assert_eq!(status.matches(&accept).count(), 1, "{status}");
        let json = self.says(&["status", "--fleet", "--json"]).ends_with(1).json();
        let want = format!("sha256:{}", hashes[0]);
        assert_eq!(json["answers"][1]["answer"]["sites"][0]["pending"]["hash"], want, "{json}");
        assert_eq!(json["name"], "shop");
        let own = self.replicas[0].running.command(&["status"]).out;
        assert_has(own, &[&format!("robotsd accept shop {} --fleet", &hashes[0][..16])]);
        self.accepted(&hashes[0][..16]);
        self.synced();
        hashes[0].clone()
    }

    fn serves(&self, hash: &str) {
        self.serves_on(hash, self.replicas.len());
    }

    /// Waits until this many replicas serve the version.
    fn serves_on(&self, hash: &str, replicas: usize) {
        let live = |replica: &&Replica| replica.site()["hash"].as_str().is_some_and(|live| live.contains(hash));
        wait_until("the version", || self.replicas.iter().filter(live).count() == replicas);
    }
}

#[test]
fn the_fleet_board_reports_a_known_replica_without_an_address_as_not_counted() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        fleet.synced_are(3);
        // A heartbeat must contain as many digits of a hash as commands require.
        let live = fleet.replicas[1].site()["hash"].take();
        let short = live.as_str().unwrap().get(7..23).unwrap();
        wait_until("the version of the second", || fleet.replicas[0].fleet()["replicas"][1]["sites"]["shop"] == short);
        let board = || fleet.says(&["board", "--fleet"]);
        fleet.reach(&[0, 1]);
        let unasked = "Not counted: web-3: this replica does not answer at any address in fleet.replicas.";
        comes_to(board, 2, &["Counted: 2 of 3 replicas.", unasked]);
        fleet.reach(&[0, 1, 2]);
        comes_to(board, 0, &["Counted: 3 of 3 replicas."]);
        assert_has(fleet.replicas[0].running.ask_admin("GET /board").body, &[">All replicas</a>"]);
        let none = fleet.replicas[0].running.ask_admin("GET /board?fleet=1").body;
        assert_has(
            unfolded(&none),
            &[
                "Counted: 0 of 1 replica.",
                "no replica could be asked, because &quot;replicas&quot; in [fleet] is empty.",
            ],
        );
    });
}

const DOCUMENT: &str = "robotsd:fleet:{shop}:doc";

#[test]
fn an_off_switch_reaches_every_replica_and_one_that_starts_later() {
    each_store(async |_, store| {
        let mut fleet = Fleet::start(&store);
        fleet.reach(&[0]);
        let telling = fleet.switch("off");
        fleet.all(true);
        let parts = [
            "every site is switched off for the whole fleet",
            " of 3 replicas synced",
            "replicas reached directly: 1; not reached: 0",
        ];
        assert_has(telling, &parts);
        fleet.synced_are(3);
        fleet.replicas.push(Replica::start("web-4", &store, ""));
        fleet.replicas[3].becomes("current");
        fleet.stay_off();
        comes_to(|| fleet.says(&["fleet", "status"]), 0, &["an outage", "web-4: synced"]);
        assert_has(fleet.replicas[1].running.command(&["status"]).out, &["enforce on --fleet"]);
        let said = fleet.replicas[1].running.command(&["enforce", "on"]).out;
        assert_has(
            unfolded(&said),
            &["; enforcement is still off for the whole fleet: to switch it on, run `robotsd enforce on --fleet`"],
        );
        assert_has(fleet.switch("on"), &["removed off switches: 1", " of 4 replicas synced"]);
        fleet.synced_are(4);
        fleet.all(false);
        let audit = fleet.replicas[0].folder.with_config(&["audit", "--json"]).succeeded();
        assert_has(&audit, &["\"replica\":\"web-1\""]);
        // A replica that ends normally must not be reported as missing.
        let mut last = fleet.replicas.pop().unwrap();
        last.running.end();
        fleet.synced_are(3);
        assert_lacks(fleet.says(&["fleet", "status"]).out, &["web-4"]);
        let series = [
            "robotsd_fleet_replicas{fleet=\"shop\",state=\"synced\"} 3",
            "robotsd_fleet_state{",
            "robotsd_fleet_store_up{fleet=\"shop\"} 1",
        ];
        wait_until("three of it", || {
            let metrics = fleet.replicas[2].running.ask_admin("GET /metrics").body;
            series.iter().all(|part| metrics.contains(part))
        });
    });
}

#[test]
fn a_removed_off_switch_of_one_site_does_not_return_with_an_old_document() {
    a_store(async |_, store| {
        let mut fleet = Fleet::start(&store);
        fleet.followed(&["enforce", "off", "--fleet", "--site", "shop"]);
        fleet.all(true);
        let own = |words: &[&str]| {
            unfolded(&fleet.replicas[1].running.command(&[&["enforce", "on"][..], words].concat()).out)
        };
        let parts =
            ["; the fleet has still switched enforcement off for this site: `robotsd fleet status` shows the switch"];
        assert_has(own(&["--site", "shop"]), &parts);
        assert_has(own(&[]), &["to switch a site on, run `robotsd enforce on --site SITE --fleet`): \"shop\""]);
        assert_has(fleet.enforce("on").out, &["removed off switches: 0; still off", "shop"]);
        fleet.all(true);
        assert_has(fleet.says(&["enforce", "off", "--fleet", "--site", "shp"]).ends_with(2).out, &["there is no site"]);
        assert_eq!(store.send(&format!("COPY {DOCUMENT} {DOCUMENT}:old")), ":1");
        fleet.followed(&["enforce", "on", "--fleet", "--site", "shop"]);
        fleet.all(false);
        store.send(&format!("COPY {DOCUMENT}:old {DOCUMENT} REPLACE"));
        fleet.replicas[2].restart();
        fleet.synced();
        fleet.all(false);
    });
}

/// An operator of one site uses the ID of the off switch for all sites, at a replica that cannot
/// have read this off switch.
#[test]
fn an_operator_of_one_site_cannot_remove_or_replace_the_fleet_wide_off_switch() {
    a_store(async |_, store| {
        let made = run(robotsd().args(["token", "new", "team"])).succeeded();
        let (token, hash) = (made.lines().next().unwrap(), made.lines().find(|line| line.starts_with("hash")).unwrap());
        let team = format!("[[admin.token]]\nname = \"team\"\n{hash}\nrole = \"operate\"\nsites = [\"shop\"]\n");
        let replica = |name| Replica::start_with(name, &store, "", ROBOTS, &team);
        let fleet = Fleet::of(["web-1", "web-2", "web-3"].map(replica).into());
        let ask = |at: usize, query: &str, fields: &str| {
            let address = fleet.replicas[at].running.admin();
            let head =
                format!("POST /enforce?{query} HTTP/1.1\r\nHost: {address}\r\nRobotsd-Admin: 1\r\nConnection: close");
            exchange(address, format!("{head}\r\n{fields}\r\n")).status
        };
        let as_team = |at: usize, query: &str| ask(at, query, &format!("Authorization: Bearer {token}\r\n"));
        fleet.replicas[1].store.cut();
        assert_eq!(ask(0, "to=off&mark=m1", ""), 200);
        assert!(!fleet.replicas[1].is_off());
        for query in ["to=off&site=shop&mark=m1", "to=on&site=shop&mark=m2"] {
            assert_eq!(as_team(1, query), 200, "{query}");
        }
        for query in ["to=on&mark=m1", "to=on&site=%2A&mark=m1", "to=on&site=all&mark=m1", "to=on&site=&mark=m1"] {
            assert_eq!(as_team(0, query), 403, "{query}");
        }
        fleet.replicas[1].store.lead_to(store.address());
        fleet.reach(&[0, 1, 2]);
        fleet.synced();
        fleet.all(true);
        fleet.stay_off();
        assert_has(fleet.enforce("on").out, &["removed off switches: 1"]);
        fleet.all(false);
    });
}

#[test]
fn a_replica_that_starts_without_the_store_uses_its_copy_or_enforces_nothing() {
    a_store(async |_, mut store| {
        let mut fleet = Fleet::start(&store);
        fleet.switch("off");
        fleet.synced_are(3);
        store.kill();
        fleet.replicas[1].restart();
        fleet.stay_off();
        fleet.replicas[1].running.wait_for_message("fleet", "the replica keeps using the document that it read last");
        let page = fleet.replicas[1].running.command(&["fleet", "status"]).ends_with(1).out;
        assert_has(
            unfolded(&page),
            &[
                "not since the start of the replica: its own copy of the document is used",
                "stale since its start",
                "shop is stale",
            ],
        );
        // The other replicas must be shown as they were at the last successful read.
        fleet.replicas[0].becomes("stale");
        let page = fleet.replicas[0].running.command(&["fleet", "status"]).ends_with(1).out;
        assert_has(page, &["web-1: stale", "web-2: synced, robotsd 0.1.0, as last read"]);
        let parts = ["is stale, 2 of 3 replicas synced, as last read"];
        assert_has(unfolded(&fleet.replicas[0].running.command(&["status"]).out), &parts);
        let new = Replica::start("web-4", &store, "");
        assert!(new.is_off());
        let unknown = message(
            &new.running
                .wait_for_message("fleet", "nothing is enforced until this replica has read the fleet's document from"),
        )
        .to_owned();
        let off = format!("enforcement of every site is switched off: {unknown}");
        assert_eq!(new.running.json(&["history", "shop"])["entries"][0]["message"], off);
        assert_eq!(new.fleet()["state"], "unknown");
        let page = new.running.command(&["fleet", "status"]).ends_with(1).out;
        assert_has(page, &["FLEET UNKNOWN"]);
        assert_eq!(new.running.ask_admin("GET /readyz").status, 200);
        // The store restarts without its data. The off switches must be written back, and a new
        // replica must learn of them.
        store.start_again();
        fleet.replicas.push(new);
        fleet.replicas[3].becomes("current");
        fleet.reach(&[0, 1, 2, 3]);
        fleet.synced();
        fleet.stay_off();
    });
}

#[test]
fn an_off_switch_reaches_replicas_directly_while_the_store_is_down() {
    a_store(async |_, store| {
        let mut fleet = Fleet::start(&store);
        // The first replica must know the others. Otherwise, it would not count them.
        fleet.synced_are(3);
        store.signal("STOP");
        fleet.replicas[2].running.kill();
        let said = fleet.enforce("off").ends_with(1).out;
        let parts =
            ["the change is not in the store yet: ", "NOT REACHED", "replicas reached directly: 2; not reached: 1"];
        assert_has(unfolded(&said), &parts);
        assert_has(
            unfolded(&said),
            &["after 3 s, ", " of 3 replicas synced according to the last data from the store: to wait"],
        );
        // The state of the other replicas must be reported, too.
        let gone = fleet.replicas[2].running.admin().to_string();
        assert_has(fleet.says(&["status", "--fleet"]).ends_with(1).out, &[&format!("{gone}: NOT REACHED")]);
        assert!(fleet.replicas[0].is_off() && fleet.replicas[1].is_off());
        store.signal("CONT");
        fleet.replicas[2].running = fleet.replicas[2].folder.start();
        // The off switch that the store did not accept is written later automatically. `enforce on`
        // lifts it, too.
        fleet.all(true);
        fleet.synced_are(3);
        assert_has(fleet.switch("on"), &[" of 3 replicas synced"]);
        fleet.synced_are(3);
        fleet.all(false);
    });
}

#[test]
fn replicas_keep_off_switches_after_a_store_wipe_and_fleet_restore_writes_the_rest() {
    each_store(async |_, store| {
        let fleet = Fleet::start(&store);
        let hash = fleet.accept("User-agent: *\nDisallow: /\n");
        fleet.serves(&hash);
        fleet.switch("off");
        store.send("FLUSHALL");
        fleet.replicas.iter().for_each(|replica| replica.becomes("went-back"));
        fleet.stay_off();
        assert_has(
            unfolded(&fleet.says(&["status", "--fleet"]).ends_with(1).out),
            &["went-back", "accept of site \"shop\"", "`robotsd fleet restore`", "web-1: went-back: ", "robotsd 0.1.0"],
        );
        assert_has(fleet.says(&["fleet", "init"]).failed(2), &["document"]);
        assert_has(fleet.says(&["fleet", "restore"]).succeeded(), &["were written back to the store"]);
        fleet.synced();
        fleet.all(true);
        // Without an off switch, nothing is written back, and the document is reported as missing.
        fleet.switch("on");
        store.send("FLUSHALL");
        fleet.replicas[1].becomes("went-back");
        fleet.says(&["fleet", "restore"]).succeeded();
        fleet.synced();
        fleet.all(false);
        fleet.serves(&hash);
    });
}

#[test]
fn replicas_ignore_the_accept_in_an_older_copy_of_the_document() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        let first = fleet.accept("User-agent: *\nDisallow: /\n");
        fleet.serves(&first);
        store.send(&format!("COPY {DOCUMENT} {DOCUMENT}:old"));
        // The command waits three seconds for the replicas, which may be too short on a busy
        // machine.
        assert_has(fleet.says(&["rollback", "shop", "--fleet"]).out, &["the fleet accepts version"]);
        let live = wait_for("the version before", || {
            let live = fleet.replicas[0].site()["hash"].as_str().unwrap().to_owned();
            (!live.contains(&first)).then_some(live)
        });
        fleet.serves(&live);
        fleet.switch("off");
        store.send(&format!("COPY {DOCUMENT}:old {DOCUMENT} REPLACE"));
        fleet.replicas.iter().for_each(|replica| replica.becomes("went-back"));
        fleet.stay_off();
        fleet.serves(&live);
        let parts = ["another replica has changed the entry in the store"];
        assert_has(fleet.says(&["accept", "shop", &first[..16], "--fleet"]).failed(2), &parts);
        fleet.says(&["fleet", "restore"]).succeeded();
        fleet.synced();
        fleet.serves(&live);
        fleet.all(true);
    });
}

#[test]
fn an_off_switch_that_a_failover_lost_is_written_to_the_new_store() {
    a_store(async |_, mut store| {
        let fleet = Fleet::start(&store);
        let promoted = StoreServer::start(&store.program).ready();
        promoted.send(&format!("REPLICAOF 127.0.0.1 {}", store.port));
        wait_until("a copy", || promoted.send(&format!("HEXISTS {DOCUMENT} epoch")) == ":1");
        promoted.send("REPLICAOF NO ONE");
        // The store has confirmed this write, but has not replicated it.
        fleet.switch("off");
        store.kill();
        fleet.replicas.iter().for_each(|replica| replica.store.lead_to(promoted.address()));
        fleet.stay_off();
        fleet.synced();
        wait_until("the mark", || promoted.send(&format!("HLEN {DOCUMENT}")) == ":5");
        fleet.switch("on");
        fleet.all(false);
    });
}

const FOLLOWS: &str = "; this replica makes the change when it next reads the store\n";

#[test]
fn an_unreachable_replica_is_not_confirmed_and_follows_the_store_at_its_next_start() {
    a_store(async |_, store| {
        let mut fleet = Fleet::start(&store);
        let gone = format!("{}: NOT REACHED: no process listens there{FOLLOWS}", fleet.replicas[2].running.admin());
        // This replica ends normally, so it is not missing.
        fleet.replicas[2].running.end();
        for to in ["on", "off"] {
            let said = fleet.enforce(to).ends_with(1).out;
            assert_has(said, &[&gone, " of 2 replicas synced", "replicas reached directly: 2; not reached: 1"]);
            fleet.synced_are(2);
        }
        let waits = |replica: &Replica| {
            replica.folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
            replica.waiting()[..16].to_owned()
        };
        let hash = waits(&fleet.replicas[0]);
        waits(&fleet.replicas[1]);
        let said = fleet.says(&["accept", "shop", &hash, "--fleet"]).ends_with(1).out;
        assert_has(said, &["the fleet accepts version", &gone]);
        let live = |replica: &Replica| replica.site()["hash"].as_str().unwrap().contains(&hash);
        wait_until("the version", || fleet.replicas[..2].iter().all(live));
        let said = fleet.says(&["rollback", "shop", "--fleet"]).ends_with(1).out;
        assert_has(said, &["the fleet accepts version", &gone]);
        // It must start in the same state as the other replicas.
        fleet.replicas[2].running = fleet.replicas[2].folder.start();
        fleet.synced_are(3);
        fleet.all(true);
        assert_has(fleet.switch("on"), &[" of 3 replicas synced", "replicas reached directly: 3; not reached: 0"]);
        fleet.synced_are(3);
    });
}

#[test]
fn the_status_lists_replicas_with_different_versions_and_a_fleet_rollback_is_refused() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        let hash = fleet.accept("User-agent: *\nDisallow: /\n");
        fleet.serves(&hash);
        let status = || fleet.says(&["status", "--fleet"]);
        assert_lacks(comes_to(status, 0, &[]).out, &["different versions"]);
        fleet.replicas[2].running.command(&["rollback", "shop"]).succeeded();
        let line = "site \"shop\": replicas serve different versions: ";
        let both = format!("{} on web-1, web-2", &hash[..16]);
        let said = fleet.says(&["status", "--fleet"]).ends_with(1).out;
        assert_has(unfolded(&said), &[line, &both, " on web-3"]);
        let json = fleet.says(&["status", "--fleet", "--json"]).ends_with(1).json();
        assert_has(json["differing"][0].as_str().unwrap(), &[line, &both]);
        let said = fleet.says(&["rollback", "shop", "--fleet"]).failed(2);
        let parts = [
            line,
            "no replica was rolled back, because it is not clear which version is unwanted: ",
            "`robotsd accept shop HASH --fleet --config robotsd.toml`",
        ];
        assert_has(said, &parts);
        fleet.serves_on(&hash, 2);
        fleet.accepted(&hash[..12]);
        fleet.serves(&hash);
        fleet.synced();
        assert_lacks(comes_to(status, 0, &[]).out, &["different versions"]);
    });
}

#[test]
fn the_fleet_status_compares_versions_of_a_replica_that_the_config_does_not_list() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        fleet.synced_are(3);
        fleet.reach(&[0, 1]);
        let unasked = "web-3: synced: fleet.replicas contains no address of this replica, so `enforce off --fleet` reaches it \
                       only through the store, robotsd 0.1.0";
        comes_to(|| fleet.says(&["status", "--fleet"]), 0, &[unasked, "web-2: synced, robotsd 0.1.0"]);
        let json = || fleet.says(&["status", "--fleet", "--json"]);
        comes_to(json, 0, &["fleet.replicas contains no address of this replica"]);
        // The second replica is asked last. It reports what it knows of the third replica.
        fleet.replicas[1].store.cut();
        fleet.replicas[1].becomes("stale");
        fleet.replicas[2].folder.replace("robots.txt", format!("{ROBOTS}Disallow: /more/\n"));
        // The difference is reported after the next heartbeat of the third replica.
        let line = "site \"shop\": replicas serve different versions: ";
        comes_to(|| fleet.says(&["status", "--fleet"]), 1, &[line, " on web-3"]);
    });
}

/// If a machine is cloned together with its config, other replicas mistake the two processes for
/// one replica.
#[test]
fn two_replicas_with_the_same_name_both_report_a_problem() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        fleet.synced();
        let mut twin = Replica::start_with("web-2", &store, "", "User-agent: *\nDisallow: /other/\n", "");
        for replica in [&fleet.replicas[1], &twin] {
            replica.becomes("doubled");
            let said = unfolded(&replica.running.command(&["status", "--problems"]).ends_with(1).out);
            assert_has(said, &["another process has the same replica name: set a different `replica`"]);
        }
        wait_until("the word of a third", || fleet.says(&["fleet", "status"]).code == Some(1));
        twin.running.kill();
        // When the replica sends its next heartbeat, it finds the last heartbeat of the killed
        // process. That heartbeat is valid for another fifteen seconds.
        fleet.replicas[1].becomes("current");
        fleet.synced();
    });
}

#[test]
fn the_fleet_status_suggests_fleet_init_if_the_store_has_no_document() {
    a_store(async |_, store| {
        let fleet = Fleet { replicas: vec![Replica::start("web-1", &store, "")], operator: folder(&[]) };
        fleet.reach(&[0]);
        let next = "next: the fleet has no document yet, so nothing is enforced; to create the document, once for all replicas: \
                    robotsd fleet init --config robotsd.toml";
        for command in [["status", "--fleet"], ["fleet", "status"]] {
            comes_to(|| fleet.says(&command), 1, &["fleet shop is unknown", next]);
        }
        fleet.init();
        fleet.synced();
        assert_lacks(comes_to(|| fleet.says(&["status", "--fleet"]), 0, &[]).out, &["fleet init"]);
        wait_until("both switches in the history", || {
            let history = fleet.replicas[0].running.json(&["history", "shop"]);
            let switched = history["entries"].as_array().unwrap().iter().filter(|entry| entry["cause"] == "switch");
            switched.map(|entry| &entry["outcome"]).eq(["switched-off", "switched-on"])
        });
    });
}

/// The cluster has three nodes. One node has the slot of all keys of the fleet.
#[test]
fn replicas_write_off_switches_back_after_a_cluster_node_restarts_without_data() {
    a_store(async |_, store| {
        let mut cluster = Cluster::start(&store.program);
        let keys = format!("store = \"{}\"\ncluster = true", cluster.0[0].url());
        let start = |name| Replica::start_at(name, Forwarder::start(cluster.0[0].address()), &keys, ROBOTS, "");
        let fleet = Fleet::of(["web-1", "web-2", "web-3"].map(start).into());
        assert_has(fleet.enforce("off").out, &["every site is switched off for the whole fleet"]);
        fleet.all(true);
        fleet.synced();
        let slot = cluster.0[0].send(&format!("CLUSTER KEYSLOT {DOCUMENT}"));
        let owner = node_of(slot[1..].parse().unwrap());
        cluster.0[owner].kill();
        fleet.replicas.iter().for_each(|replica| {
            replica.running.wait_for_message("fleet", "the replica keeps using the document that it read last");
        });
        fleet.stay_off();
        cluster.0[owner].start_again();
        cluster.0[owner].send("PING");
        cluster.settled();
        assert_eq!(cluster.0[owner].send(&format!("EXISTS {DOCUMENT}:old")), ":0", "it serves its slots");
        wait_until("a fleet that is synced", || fleet.says(&["fleet", "status"]).code == Some(0));
        fleet.stay_off();
        assert_has(fleet.enforce("on").out, &["removed off switches: 1"]);
        fleet.all(false);
        fleet.synced();
    });
}

#[test]
fn the_documented_rights_are_sufficient_in_a_cluster() {
    a_store(async |_, store| {
        let cluster = Cluster::start(&store.program);
        let rights = format!("{} {}", notices::rights(), notices::further_rights_in_a_cluster());
        cluster.0.iter().for_each(|node| assert_eq!(node.send(&format!("ACL SETUSER {rights}")), "+OK"));
        let login = format!("redis://robotsd:PASSWORD@{}", cluster.0[0].address());
        let keys = format!("store = \"{login}\"\ncluster = true");
        let replica = Replica::start_at("web-1", Forwarder::start(cluster.0[0].address()), &keys, ROBOTS, "");
        let fleet = Fleet { replicas: vec![replica], operator: folder(&[]) };
        fleet.reach(&[0]);
        fleet.init();
        fleet.synced();
    });
}

#[test]
fn a_replica_reports_missing_store_permissions_and_continues_to_read() {
    each_store(async |_, store| {
        let rights = "on >secret %R~robotsd:fleet:{shop}:doc +@all";
        assert_eq!(store.send(&format!("ACL SETUSER reader {rights}")), "+OK");
        let third = Replica::start("web-3", &store, "reader:secret@");
        let fleet = Fleet::of(vec![Replica::start("web-1", &store, ""), Replica::start("web-2", &store, ""), third]);
        fleet.reach(&[0]);
        fleet.switch("off");
        fleet.all(true);
        wait_until("a problem", || {
            let problems = fleet.replicas[2].fleet()["problems"].to_string();
            ["may not write robotsd:fleet:{shop}:replicas", "EVALSHA", "CLUSTER SLOTS"]
                .iter()
                .all(|part| problems.contains(part))
        });
        // Enforcement is also switched off directly on this replica. The replica must report that
        // no other replica knows this off switch.
        fleet.switch("on");
        fleet.all(false);
        fleet.reach(&[2]);
        let said = fleet.enforce("off").ends_with(1).out;
        let parts = ["the change is not in the store yet: ", "may not write robotsd:fleet:{shop}:doc"];
        assert_has(unfolded(&said), &parts);
        assert!(fleet.replicas[2].is_off() && !fleet.replicas[0].is_off());
        // With the permission, the replica writes its entries to the store.
        store.send("ACL SETUSER reader ~robotsd:fleet:{shop}:*");
        fleet.all(true);
        fleet.synced();
    });
}

#[test]
fn a_replica_without_the_store_keeps_its_last_document_and_obeys_direct_requests() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        // The first replica must know the third one. Otherwise, it would not report it as missing.
        fleet.synced_are(3);
        fleet.replicas[2].store.cut();
        fleet.replicas[2].running.wait_for_message("fleet", "the replica keeps using the document that it read last");
        // This replica no longer learns of the fleet's decisions.
        let problems = || fleet.replicas[2].running.command(&["status", "--problems"]);
        wait_until("a reading that fails", || problems().code == Some(1));
        let problem = "problem: fleet \"shop\" is stale: ";
        assert_has(
            unfolded(&problems().out),
            &[problem, "; the replica keeps using the document that it read last", "robotsd fleet status"],
        );
        fleet.reach(&[0]);
        fleet.enforce("off");
        wait_until("the others", || fleet.replicas[..2].iter().all(Replica::is_off));
        assert!(!fleet.replicas[2].is_off());
        assert_eq!(fleet.replicas[2].running.ask_admin("GET /readyz").status, 200);
        fleet.reach(&[0, 1, 2]);
        let said = fleet.enforce("off").ends_with(1).out;
        assert_has(said, &["replicas reached directly: 3; not reached: 0", "the change is not in the store yet"]);
        fleet.stay_off();
        wait_until("a replica that is missing", || fleet.replicas[0].fleet()["replicas"][2]["state"] == "missing");
        comes_to(
            || fleet.says(&["status", "--fleet"]),
            1,
            &["web-3: missing: nothing was heard from this replica for"],
        );
        fleet.replicas[2].store.lead_to(store.address());
        fleet.synced();
        fleet.switch("on");
        fleet.all(false);
        wait_until("one that is not stale", || {
            !fleet.replicas[2].running.command(&["status"]).out.contains("is stale")
        });
    });
}

#[test]
fn replicas_ignore_a_document_of_another_fleet_or_of_a_later_format() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        store.send(&format!("COPY {DOCUMENT} {DOCUMENT}:old"));
        store.send(&format!("HSET {DOCUMENT} format 2 tag later off:*:1 {{}}"));
        fleet.replicas.iter().for_each(|replica| replica.becomes("rejected"));
        assert_has(unfolded(&fleet.says(&["status", "--fleet"]).ends_with(1).out), &["rejected", "update robotsd"]);
        fleet.all(false);
        fleet.enforce("off");
        fleet.all(true);
        store.send(&format!("COPY {DOCUMENT}:old {DOCUMENT} REPLACE"));
        fleet.synced();
        fleet.switch("on");
        store.send(&format!("HSET {DOCUMENT} epoch other tag other off:*:2 {{}}"));
        fleet.replicas.iter().for_each(|replica| replica.becomes("foreign"));
        fleet.all(false);
        let said = fleet.enforce("off").ends_with(1).out;
        let parts = ["foreign", "the document in the store belongs to another fleet (its epoch is other)"];
        assert_has(unfolded(&said), &parts);
        fleet.stay_off();
        store.send(&format!("COPY {DOCUMENT}:old {DOCUMENT} REPLACE"));
        fleet.synced();
        fleet.all(true);
    });
}

#[test]
fn enforcement_is_off_after_an_unreadable_copy_until_the_document_is_read() {
    a_store(async |_, store| {
        let mut fleet = Fleet::start(&store);
        fleet.replicas[0].store.cut();
        fleet.replicas[0].running.kill();
        fleet.replicas[0].folder.write("state/fleet.json", "{");
        fleet.replicas[0].running = fleet.replicas[0].folder.start();
        assert!(fleet.replicas[0].is_off());
        fleet.replicas[0].running.wait_for_message("fleet", "fleet.json");
        fleet.replicas[0].store.lead_to(store.address());
        fleet.all(false);
    });
}

#[test]
fn a_new_replica_serves_the_version_that_the_fleet_accepted_and_holds_any_other() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        let closed = "User-agent: *\nDisallow: /\n";
        let hash = fleet.accept(closed);
        let ready = |replica: &Replica| {
            let answer = replica.running.ask_admin("GET /readyz?require=sites");
            (answer.status, answer.body)
        };
        // A new replica must serve the accepted version without another acceptance, whatever the
        // version changes.
        let new = Replica::start_with("web-4", &store, "", closed, "");
        assert_eq!(ready(&new).0, 200);
        wait_until("a refusal", || new.running.get("/any", GPTBOT).status == 403);
        // A new replica must hold the previous file, because it is not the version that the fleet
        // has accepted.
        let old = Replica::start_with("web-5", &store, "", ROBOTS, "");
        let (status, why) = ready(&old);
        assert_eq!(status, 503);
        assert_has(&why, &["is held until accepted: this replica has no earlier version", &hash[..12]]);
        assert_eq!(old.running.get("/robots.txt", GPTBOT).status, 503, "it has none");
        // The accepted version goes live as soon as the source contains it.
        old.folder.replace("robots.txt", closed);
        wait_until("the version", || old.running.get("/any", GPTBOT).status == 403);
    });
}

#[test]
fn the_id_of_a_removed_off_switch_is_refused_and_switches_nothing_off() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        let enforce = |to: &str| fleet.replicas[0].running.ask_admin(&format!("POST /enforce?{to}"));
        let used = |to: &str, why: &str| {
            let refused = enforce(to);
            assert_eq!(refused.status, 409, "{}", refused.body);
            assert_has(refused.body, &["the off switch m1, ", why, "choose a new id"]);
        };
        assert_eq!(enforce("to=off&site=shop&mark=m1").status, 200);
        // The client sends the same request again, as after a lost response.
        assert_eq!(enforce("to=off&site=shop&mark=m1").status, 200);
        fleet.all(true);
        assert_eq!(enforce("to=on&site=shop&mark=m2").status, 200);
        fleet.all(false);
        used("to=off&site=shop&mark=m1", "has already removed the off switch");
        assert!(!fleet.replicas[0].is_off());
        assert_eq!(enforce("to=off&mark=m2").status, 200);
        fleet.all(true);
    });
}

/// The store is down and the disk is full. An operator's decision must still survive a kill.
#[test]
fn fleet_wide_switches_survive_a_kill_with_a_full_disk_and_without_the_store() {
    let name = "fleet_store::fleet_wide_switches_survive_a_kill_with_a_full_disk_and_without_the_store";
    // Only one store is tested, because there is only one full disk.
    let Some(mut store) = any_store() else { return };
    SmallDisk::with(name, |disk| {
        let state = disk.path().join("state");
        let config = format!(
            "mode = \"refuse\"\nstate_dir = {state:?}\n[admin]\nsocket = \"admin.sock\"\naudit = \"audit.jsonl\"\n\
             [[admin.listener]]\naddress = \"127.0.0.1:0\"\naccess = \"full\"\n[fleet]\nname = \"shop\"\nreplica = \"web-1\"\n\
             store = \"{}\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"shop\"\nroot = \".\"\n",
            store.url()
        );
        let (site, running) = serving(&[("robotsd.toml", &config), ("robots.txt", ROBOTS)]);
        let replica = Replica { folder: site, running, store: Forwarder::start(store.address()) };
        let mut fleet = Fleet { replicas: vec![replica], operator: folder(&[]) };
        fleet.reach(&[0]);
        fleet.init();
        fleet.all(false);
        store.kill();
        disk.fill();
        for (to, is_off) in [("off", true), ("on", false), ("off", true)] {
            assert_has(unfolded(&fleet.enforce(to).out), &["the change is not in the store yet"]);
            fleet.replicas[0].restart();
            fleet.reach(&[0]);
            assert_eq!(fleet.replicas[0].is_off(), is_off, "{to}");
        }
    });
}
