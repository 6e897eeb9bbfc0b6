//! Tests switching enforcement off under load: with hanging hooks of every site, queued notices and
//! a slow store.

use tokio::runtime::Runtime;

use super::super::shared_rate::server::any_store;
use super::{Fleet, Forwarder, Replica};
use crate::harness::*;

/// How long the store takes to respond.
const ANSWER: Duration = Duration::from_millis(200);

/// Time limit of the test. On a busy machine, switching off takes seconds. If the load delayed the
/// reader, it would take minutes.
const GENEROUS: Duration = Duration::from_secs(60);

fn busy(name: &str, store: &Forwarder, [sites, hooks]: [usize; 2], receiver: &Origin) -> Replica {
    let site = |number: usize| {
        format!(
            "[[site]]\nname = \"site-{number}\"\nhosts = [\"h{number}.test\"]\nroot = \".\"\nrobots.path = \"robots.txt\"\n"
        )
    };
    let hook = |number: usize| {
        format!(
            "[[notify]]\non = [\"waits\", \"enforcement\"]\nurl = \"http://{}/{number}\"\ntimeout = \"30s\"\n",
            receiver.address
        )
    };
    let tables: String = (0..sites).map(site).chain((0..hooks).map(hook)).collect();
    let keys = format!("store = \"redis://{}\"", store.address);
    Replica::start_at(name, store.clone(), &keys, super::ROBOTS, &tables)
}

#[test]
fn an_off_switch_reaches_every_replica_despite_hanging_hooks_and_a_slow_store() {
    let Some(store) = any_store() else { return };
    Runtime::new().unwrap().block_on(async {
        // Each site has one notice for each hook.
        let (sites, hooks, rounds) = if is_long() { (1_000, 10, 20) } else { (60, 2, 2) };
        // The receiver accepts connections, but does not respond.
        let receiver = Origin::answering(|_| Reply::Bytes(Vec::new()));
        let start = |name| busy(name, &Forwarder::start(store.address()), [sites, hooks], &receiver);
        let fleet = Fleet::of(["web-1", "web-2", "web-3"].map(start).into());
        for replica in &fleet.replicas {
            replica.folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
        }
        let waits = |replica: &Replica| {
            let status = replica.status();
            status["sites"].as_array().unwrap().iter().filter(|site| site["pending"].is_object()).count()
        };
        wait_until("versions that wait", || fleet.replicas.iter().all(|replica| waits(replica) > sites));
        wait_until("requests that hang", || receiver.requests().len() >= hooks);
        fleet.replicas.iter().for_each(|replica| replica.store.takes(ANSWER));
        let mut longest = Duration::ZERO;
        for round in 0..rounds {
            let told = &fleet.replicas[round % 3].running;
            if round % 2 == 1 {
                // All connections are lost at the same time, as after a restart of the network.
                fleet.replicas.iter().for_each(|replica| replica.store.lead_to(store.address()));
            }
            let began = Instant::now();
            let answer = told.ask_admin(&format!("POST /enforce?to=off&mark=round{round}"));
            assert_eq!(answer.status, 200, "{}", answer.body);
            while !fleet.replicas.iter().all(Replica::is_off) {
                assert!(began.elapsed() < GENEROUS, "round {round}: not off everywhere after {:?}", began.elapsed());
                thread::sleep(Duration::from_millis(10));
            }
            longest = longest.max(began.elapsed());
            wait_until("that it is lifted", || {
                told.ask_admin("POST /enforce?to=on&mark=x").status == 200
                    && !told.get("/private/x", GPTBOT).body.is_empty()
            });
            fleet.all(false);
        }
        println!("{sites} sites, {hooks} hooks each, {rounds} rounds: off everywhere after {longest:?} at most");
    });
}
