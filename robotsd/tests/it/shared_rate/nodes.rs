//! Stores of several servers: a name with several addresses, and a cluster of three nodes of which one dies.

use crate::harness::*;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use robotsd::shared_rate::{SharedKey, SharedRate, SharedVerdict, StoreNodes, StoreSettings, StoreUsage};

use super::super::daemon::free_ports;
use super::server::{StoreServer, each_program};
use super::{back, is_used, key, settings, used, why, wide};

fn at(program: &Path, address: SocketAddr) -> StoreServer {
    let port = address.port().to_string();
    StoreServer::start_at(program, address, &["--port", &port])
}

/// Waits until the store is used again; a test only prints how long that took.
async fn recovered(rate: &SharedRate, what: &str) {
    let start = Instant::now();
    back(rate, what).await;
    println!("{what}: used after {:?}", start.elapsed());
}

async fn out(rate: &SharedRate) {
    super::lost(rate, "an address that is out").await;
}

#[test]
fn the_next_address_of_a_name_is_used_where_the_first_is_dead_or_dies() {
    each_program(async |name, program| {
        let port = free_ports(1)[0];
        let addresses: Vec<SocketAddr> =
            ["127.0.0.1", "127.0.0.2"].map(|ip| SocketAddr::new(ip.parse().unwrap(), port)).into();
        let known = Arc::new(Mutex::new(addresses.clone()));
        let lookup = Arc::clone(&known);
        let mut second = at(program, addresses[1]).ready();
        let rate = SharedRate::start_resolving(
            StoreSettings { batch: 1, ..settings(&format!("redis://cache.internal:{port}")) },
            move |host, asked| {
                assert_eq!((host, asked), ("cache.internal", port));
                Ok(lookup.lock().unwrap().clone())
            },
            |_| {},
        )
        .unwrap();
        recovered(&rate, &format!("{name}, the first address is dead")).await;

        let first = at(program, addresses[0]).ready();
        second.kill();
        recovered(&rate, &format!("{name}, the second dies, the first is there")).await;

        // It takes connections, and answers nothing.
        second.start_again();
        first.signal("STOP");
        out(&rate).await;
        recovered(&rate, &format!("{name}, the first hangs")).await;
        first.signal("CONT");

        // The first becomes a replica of the second, which stays the one that is used.
        assert!(first.send(&format!("REPLICAOF 127.0.0.2 {port}")).starts_with("+OK"));
        second.signal("STOP");
        out(&rate).await;
        wait_until("both are said", || {
            let why = why(&rate);
            why.contains(&format!("127.0.0.1:{port}: ")) && why.contains(&format!("127.0.0.2:{port}: "))
        });
        second.signal("CONT");
        recovered(&rate, &format!("{name}, the first is a replica")).await;

        // A name that is gone does not matter while an address of it answers.
        known.lock().unwrap().clear();
        second.kill();
        out(&rate).await;
        second.start_again();
        recovered(&rate, &format!("{name}, the name is gone")).await;
    });
}

/// Three nodes that have a third of the slots each, and serve theirs though others are out.
pub(crate) struct Cluster(pub(crate) Vec<StoreServer>);

/// The first slot of each node, and the end.
const SLOTS: [usize; 4] = [0, 5461, 10_923, 16_384];

impl Cluster {
    pub(crate) fn start(program: &Path) -> Self {
        let ports = free_ports(6);
        let (ports, buses) = ports.split_at(3);
        let nodes = ports.iter().zip(buses).map(|(&port, bus)| {
            let (port_argument, bus) = (port.to_string(), bus.to_string());
            let arguments = [
                ["--port", &port_argument],
                ["--cluster-enabled", "yes"],
                ["--cluster-port", &bus],
                ["--cluster-require-full-coverage", "no"],
                ["--cluster-node-timeout", "2000"],
            ];
            StoreServer::start_with(program, port, arguments.as_flattened())
        });
        let nodes: Vec<_> = nodes.collect::<Vec<_>>().into_iter().map(StoreServer::ready).collect();
        for (number, node) in nodes.iter().enumerate() {
            let (first, last) = (SLOTS[number], SLOTS[number + 1] - 1);
            assert_eq!(node.send(&format!("CLUSTER ADDSLOTSRANGE {first} {last}")), "+OK");
            assert_eq!(node.send(&format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1)), "+OK");
        }
        for (port, bus) in ports.iter().zip(buses).skip(1) {
            assert_eq!(nodes[0].send(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}")), "+OK");
        }
        let cluster = Self(nodes);
        cluster.settled();
        cluster
    }

    /// Waits until all nodes know all slots.
    pub(crate) fn settled(&self) {
        for node in &self.0 {
            wait_until("a cluster", || {
                let info = node.text("CLUSTER INFO");
                let is_whole = info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384");
                is_whole && info.contains("cluster_known_nodes:3")
            });
        }
    }

    /// Names of buckets with their slots.
    fn slots(&self, count: usize) -> Vec<(String, usize)> {
        let names = (0..count).map(|number| format!("crawler {number}"));
        names.map(|name| (name.clone(), self.slot(key(&name)))).collect()
    }

    fn slot(&self, key: SharedKey) -> usize {
        self.0[0].send(&format!("CLUSTER KEYSLOT {}", key.name("robotsd:rate:")))[1..].parse().unwrap()
    }
}

pub(crate) fn node_of(slot: usize) -> usize {
    (0..3).find(|node| slot < SLOTS[node + 1]).unwrap()
}

/// A run of slots that the store's client takes for one part, some of which are another node's.
fn is_between(slot: usize) -> bool {
    let part = slot / 1024;
    [SLOTS[1], SLOTS[2]].iter().any(|first| first / 1024 == part)
}

#[test]
fn a_node_of_a_cluster_that_dies_takes_only_its_own_slots_with_it() {
    each_program(async |name, program| {
        let mut cluster = Cluster::start(program);
        let rate = SharedRate::start(
            StoreSettings { nodes: StoreNodes::Cluster, batch: 1, ..settings(&cluster.0[0].url()) },
            |_| {},
        )
        .unwrap();
        used(&rate);
        let slots = cluster.slots(200);
        let count = |node| slots.iter().filter(|(_, slot)| node_of(*slot) == node).count();
        assert!((0..3).all(|node| count(node) > 20), "{name}");
        recovered(&rate, &format!("{name}, a cluster")).await;

        // A slot that moved while the client was connected: MOVED is followed.
        let (moved, slot) = slots.iter().find(|(_, slot)| node_of(*slot) == 0 && !is_between(*slot)).unwrap();
        let to = cluster.0[1].text("CLUSTER MYID");
        for node in [1, 0, 2] {
            assert_eq!(cluster.0[node].send(&format!("CLUSTER SETSLOT {slot} NODE {to}")), "+OK");
        }
        let start = Instant::now();
        while rate.spend(key(moved), wide()).await != SharedVerdict::Allow {
            assert!(start.elapsed() < PATIENCE, "{name}: {:?}", rate.report());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!("{name}, a slot that moved: answered after {:?}", start.elapsed());

        // The first, which the URL names, and then the last.
        for dead in [2, 0] {
            let back = |slot: usize| node_of(slot) != dead && !is_between(slot) && slot != slot_of(&slots, moved);
            cluster.0[dead].kill();
            let start = Instant::now();
            let mut slowest = Duration::ZERO;
            // Each bucket of the others is answered, all in one round; none of the dead one's is.
            loop {
                let (mut heard, mut silent) = (true, true);
                for (name, slot) in &slots {
                    let asked = Instant::now();
                    let said = rate.spend(key(name), wide()).await;
                    slowest = slowest.max(asked.elapsed());
                    assert!(!matches!(said, SharedVerdict::Deny { .. }), "{name}");
                    heard &= said == SharedVerdict::Allow || !back(*slot);
                    silent &=
                        said == SharedVerdict::Unknown || node_of(*slot) != dead || *slot == slot_of(&slots, moved);
                }
                let report = rate.report();
                if heard && silent && report.usage == StoreUsage::Partly {
                    break;
                }
                assert!(start.elapsed() < PATIENCE, "{name}, {dead}: {report:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            println!(
                "{name}, node {dead} is dead: the others go on after {:?}, the slowest request took {slowest:?}: {}",
                start.elapsed(),
                why(&rate)
            );
            cluster.0[dead].start_again();
            let start = Instant::now();
            // A node that starts takes no requests for two seconds, whatever its settings.
            cluster.0[dead].send("PING");
            let takes = || cluster.0[dead].text("CLUSTER INFO").contains("cluster_state:ok");
            wait_until("a node that takes requests", || takes() || is_used(&rate));
            let ready = start.elapsed();
            wait_until("all of the cluster", || is_used(&rate));
            let after = start.elapsed() - ready;
            println!("{name}, node {dead} is back: it takes requests after {ready:?}, and is used {after:?} later");
            cluster.settled();
        }
    });
}

fn slot_of(slots: &[(String, usize)], name: &str) -> usize {
    slots.iter().find(|(other, _)| other == name).unwrap().1
}
