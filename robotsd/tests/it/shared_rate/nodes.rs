//! Stores with several servers: a name with several addresses, and a cluster that loses a node.

use crate::harness::*;

use robotsd::shared_rate::{SharedRate, StoreNodes, StoreSettings};

use super::super::daemon::free_ports;
use super::server::{StoreServer, each_program};
use super::{back, key, lost, lost_because, replica, settings, used, why};

fn at(program: &Path, address: SocketAddr) -> StoreServer {
    let port = address.port().to_string();
    StoreServer::start_at(program, address, &["--port", &port])
}

/// Waits until the store is used again, and prints how long that took.
async fn recovered(rate: &SharedRate, what: &str) {
    let start = Instant::now();
    back(rate, what).await;
    println!("{what}: used after {:?}", start.elapsed());
}

async fn out(rate: &SharedRate) {
    lost(rate, "an address that is out").await;
}

#[test]
fn another_address_of_a_store_name_is_used_if_the_one_in_use_fails() {
    each_program(async |name, program| {
        let port = free_ports(1)[0];
        let addresses: Vec<SocketAddr> =
            ["127.0.0.1", "127.0.0.2"].map(|ip| SocketAddr::new(ip.parse().unwrap(), port)).into();
        let known = Arc::new(Mutex::new(addresses.clone()));
        let lookup = Arc::clone(&known);
        let mut second = at(program, addresses[1]).ready();
        let rate = SharedRate::start_with_lookup(
            settings(&format!("redis://cache.internal:{port}")),
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

        // This server accepts connections, but does not respond.
        second.start_again();
        first.signal("STOP");
        out(&rate).await;
        recovered(&rate, &format!("{name}, the first hangs")).await;
        first.signal("CONT");

        // The first server becomes a replica of the second one. The second one must stay in use.
        assert!(first.send(&format!("REPLICAOF 127.0.0.2 {port}")).starts_with("+OK"));
        second.signal("STOP");
        out(&rate).await;
        wait_until("both are said", || {
            let why = why(&rate);
            why.contains(&format!("127.0.0.1:{port}: ")) && why.contains(&format!("127.0.0.2:{port}: "))
        });
        second.signal("CONT");
        recovered(&rate, &format!("{name}, the first is a replica")).await;

        // The store must be used although its name no longer resolves, because one of the known
        // addresses responds.
        known.lock().unwrap().clear();
        second.kill();
        out(&rate).await;
        second.start_again();
        recovered(&rate, &format!("{name}, the name is gone")).await;
    });
}

/// Three nodes, each with a third of the slots. A node serves its slots even if other nodes are
/// down.
pub(crate) struct Cluster(pub(crate) Vec<StoreServer>);

/// The first slot of each node, and the number of slots.
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

    /// Returns a bucket whose key is in a slot of this node, and that slot.
    fn bucket_of(&self, node: usize) -> (String, usize) {
        let slot = |name: &str| -> usize {
            let key = key(name).name("robotsd:rate:");
            self.0[0].send(&format!("CLUSTER KEYSLOT {key}"))[1..].parse().unwrap()
        };
        let mut buckets = (0..).map(|number| format!("crawler {number}")).map(|name| (slot(&name), name));
        let (slot, name) = buckets.find(|(slot, _)| node_of(*slot) == node).unwrap();
        (name, slot)
    }
}

pub(crate) fn node_of(slot: usize) -> usize {
    (0..3).find(|node| slot < SLOTS[node + 1]).unwrap()
}

/// While the node is down, each process must count alone.
#[test]
fn a_dead_cluster_node_refuses_no_request_and_is_used_again_after_its_restart() {
    each_program(async |name, program| {
        let mut cluster = Cluster::start(program);
        let rate = replica(StoreSettings { nodes: StoreNodes::Cluster, ..settings(&cluster.0[0].url()) });
        used(&rate);

        // This slot moves while the client is connected. The client must follow MOVED. Without a higher
        // epoch, a message that its old node sent before the move could take the slot back.
        let (moved, slot) = cluster.bucket_of(1);
        assert!(cluster.0[0].send("CLUSTER BUMPEPOCH").starts_with("+BUMPED"));
        let to = cluster.0[0].text("CLUSTER MYID");
        for node in 0..3 {
            assert_eq!(cluster.0[node].send(&format!("CLUSTER SETSLOT {slot} NODE {to}")), "+OK");
        }
        recovered(&rate, &moved).await;

        // First the last node dies, and then the first one, which is in the URL.
        for dead in [2, 0] {
            let (bucket, _) = cluster.bucket_of(dead);
            back(&rate, &bucket).await;
            cluster.0[dead].kill();
            lost(&rate, &bucket).await;
            println!("{name}, node {dead} is dead: {}", why(&rate));
            assert_lacks(why(&rate), &["set cluster = true"]);
            cluster.0[dead].start_again();
            // A node that starts accepts no requests for two seconds. No setting can change this.
            recovered(&rate, &bucket).await;
            cluster.settled();
        }
    });
}

/// The node in the URL is dead, and another node has its slots. If the connection is lost, it must
/// be opened again without the dead node.
#[test]
fn a_cluster_is_used_again_through_other_nodes_if_the_node_in_the_url_is_dead() {
    each_program(async |name, program| {
        let mut cluster = Cluster::start(program);
        let rate = replica(StoreSettings { nodes: StoreNodes::Cluster, ..settings(&cluster.0[0].url()) });
        let (bucket, _) = cluster.bucket_of(0);
        back(&rate, &bucket).await;
        cluster.0[0].kill();
        let others = &cluster.0[1..];
        for node in others {
            assert_eq!(node.send(&format!("CLUSTER DELSLOTSRANGE 0 {}", SLOTS[1] - 1)), "+OK");
        }
        assert_eq!(others[0].send(&format!("CLUSTER ADDSLOTSRANGE 0 {}", SLOTS[1] - 1)), "+OK");
        assert!(others[0].send("CLUSTER BUMPEPOCH").starts_with("+BUMPED"));
        others.iter().for_each(|node| node.signal("STOP"));
        // The client has tried the node in the URL again.
        lost_because(&rate, &bucket, "no server listens at this address").await;
        others.iter().for_each(|node| node.signal("CONT"));
        recovered(&rate, &format!("{name}, the node of the URL is dead")).await;
    });
}
