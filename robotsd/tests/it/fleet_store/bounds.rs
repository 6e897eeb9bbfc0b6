//! Tests response times while the store hangs, and the memory use of a large fleet.

use super::*;

/// A request for a report must not wait until the request to the store times out.
#[test]
fn reports_return_the_last_read_state_without_delay_while_the_store_hangs() {
    a_store(async |_, store| {
        let fleet = Fleet::start(&store);
        fleet.synced();
        store.signal("STOP");
        // If each report waited for its own request to the store, all of them would take 110 s.
        let ask = || [(); 10].map(|()| fleet.replicas[0].running.ask_admin("GET /fleet").json());
        let began = Instant::now();
        let reports: Vec<_> = thread::scope(|scope| {
            let readers: Vec<_> = (0..22).map(|_| scope.spawn(ask)).collect();
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
        });
        let took = began.elapsed();
        store.signal("CONT");
        println!("{} reports while the store hangs: {took:?}", reports.len());
        assert!(took < Duration::from_secs(60), "{took:?}");
        for report in reports {
            assert_eq!((report["replicas"].as_array().unwrap().len(), &report["state"]), (3, &"stale".into()));
            assert_has(report["problems"].to_string(), &["the server did not answer "]);
        }
        fleet.synced();
    });
}

/// The timeout of a fleet is long enough for such a store.
#[test]
fn a_fleet_works_with_a_store_that_needs_333_ms_per_response() {
    a_store(async |_, store| {
        let slow = Forwarder::start(store.address());
        slow.takes(Duration::from_millis(333));
        let keys = format!("store = \"redis://{}\"", slow.address);
        let replicas = vec![Replica::start_at("web-1", slow, &keys, ROBOTS, "")];
        let fleet = Fleet { replicas, operator: folder(&[]) };
        fleet.reach(&[0]);
        fleet.init();
        fleet.all(false);
        fleet.switch("off");
        fleet.all(true);
    });
}

/// Bytes per site and replica, as in the handbook.
const BYTES: u64 = 150;

#[test]
fn each_site_of_another_replica_takes_at_most_150_bytes_of_memory() {
    const REPLICAS: u64 = 40;
    const SITES: u64 = 5_000;
    a_store(async |_, store| {
        let replica = Replica::start("web-1", &store, "");
        let heard = || replica.running.ask_admin("GET /metrics").body;
        wait_until("its own heartbeat", || store.send("HLEN robotsd:fleet:{shop}:replicas") == ":1");
        let before = replica.running.peak_kib();
        let beat = format!(
            "local q = string.char(34) for of = 1, {REPLICAS} do local sites = {{}} for site = 1, {SITES} do sites[site] = \
             string.format('%ssite-%05d.test%s:%s%08x%08x%s', q, site, q, q, of, site, q) end redis.call('HSET', KEYS[1], of, '{{' .. q .. \
             'at' .. q .. ':' .. redis.call('TIME')[1] .. ',' .. q .. 'sites' .. q .. ':{{' .. table.concat(sites, ',') .. '}}}}') end return 1"
        );
        store.send(&format!("EVAL \"{beat}\" 1 robotsd:fleet:{{shop}}:replicas"));
        wait_until("the others", || {
            heard().contains(&format!("robotsd_fleet_replicas{{fleet=\"shop\",state=\"unknown\"}} {}", REPLICAS + 1))
        });
        let grown = (replica.running.peak_kib() - before) * 1024;
        println!("{REPLICAS} replicas with {SITES} sites: {} bytes for each", grown / REPLICAS / SITES);
        assert!(grown <= BYTES * REPLICAS * SITES, "{grown}");
    });
}
