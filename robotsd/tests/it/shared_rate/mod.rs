//! Tests buckets that replicas share, with real stores that work, hang, die, lose data or return
//! wrong data.

pub(super) mod nodes;
mod processes;
pub(super) mod server;

use robotsd::shared_rate::{
    SharedBucket, SharedKey, SharedRate, SharedVerdict, StoreCount, StoreNodes, StoreSettings, StoreUrl, StoreUsage,
};

use super::daemon::free_ports;
use crate::harness::*;

pub(super) use self::processes::counted;
use self::server::{StoreServer, any, any_store, each_program, each_store, played, programs, repeated};

fn settings(url: &str) -> StoreSettings {
    StoreSettings::new(StoreUrl::new(url).unwrap())
}

/// Returns settings with a long deadline, so that a working store never responds too late, even on
/// a busy machine.
fn patient(store: &StoreServer) -> StoreSettings {
    StoreSettings { deadline: PATIENCE, ..settings(&store.url()) }
}

/// Starts a replica, which may not use its store yet.
fn replica(settings: StoreSettings) -> SharedRate {
    SharedRate::start(settings, |_| {}).unwrap()
}

fn used(rate: &SharedRate) {
    wait_until("a store that is used", || is_used(rate));
}

fn is_used(rate: &SharedRate) -> bool {
    rate.report().usage == StoreUsage::Used
}

/// Returns the reason why the store cannot be used, as the status shows it.
fn why(rate: &SharedRate) -> String {
    rate.report().problem.map(|(_, why)| why).unwrap_or_default()
}

fn key(name: &str) -> SharedKey {
    SharedKey::new(&[b"shop", name.as_bytes()])
}

/// An interval that is longer than a test, so that no further request becomes allowed.
const SLOW: Duration = Duration::from_secs(600);

fn slow() -> SharedBucket {
    SharedBucket::new(SLOW, 20)
}

/// Returns a bucket that is large enough to allow every request of a test.
fn wide() -> SharedBucket {
    SharedBucket::new(Duration::from_millis(1), 10_000)
}

#[test]
fn three_replicas_together_allow_exactly_the_burst_of_one_bucket() {
    each_store(async |name, store| {
        let replicas: Vec<_> = (0..3).map(|_| replica(patient(&store))).collect();
        replicas.iter().for_each(used);
        let tries = (0..12).map(|task| {
            let rate = replicas[task % replicas.len()].clone();
            tokio::spawn(async move {
                let mut passed = 0;
                for _ in 0..40 {
                    match rate.spend(key("exact"), slow()).await {
                        SharedVerdict::Allow => passed += 1,
                        SharedVerdict::Deny { wait } => assert!(wait > Duration::ZERO && wait <= SLOW),
                        SharedVerdict::Unknown => panic!("no answer: {:?}", rate.report()),
                    }
                }
                passed
            })
        });
        let mut passed = 0;
        for tried in tries.collect::<Vec<_>>() {
            passed += tried.await.unwrap();
        }
        assert_eq!(passed, 20, "{name}");
    });
}

/// There must be one call for each allowed request, and one for the first denied request.
#[test]
fn a_crawler_over_its_rate_does_not_cause_a_store_call_per_request() {
    each_store(async |name, store| {
        let rate = replica(patient(&store));
        used(&rate);
        for request in 0..1000 {
            let said = rate.spend(key("over"), slow()).await;
            assert_eq!(matches!(said, SharedVerdict::Allow), request < 20, "{name}: {request}, {said:?}");
        }
        let counts = rate.report().counts;
        let counted = [StoreCount::Calls, StoreCount::Allowed, StoreCount::Denied, StoreCount::KnownDenied];
        assert_eq!(counted.map(|count| counts.of(count)), [21, 20, 1, 979], "{name}: {counts:?}");
        // The store must be asked again once a request may pass.
        let short = SharedBucket::new(Duration::from_millis(50), 1);
        for _ in 0..3 {
            let asked = Instant::now();
            while rate.spend(key("again"), short).await != SharedVerdict::Allow {
                assert!(asked.elapsed() < PATIENCE, "{name}: {:?}", rate.report());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    });
}

#[test]
fn recorded_requests_are_counted_in_the_store_without_waiting_for_it() {
    each_store(async |name, store| {
        let [one, other] = [(); 2].map(|()| replica(patient(&store)));
        used(&one);
        used(&other);
        for _ in 0..20 {
            let said = one.note(key("noted"), slow());
            assert!(!matches!(said, SharedVerdict::Deny { .. }), "{name}: {said:?}");
        }
        let is_denied = |rate: &SharedRate| matches!(rate.note(key("noted"), slow()), SharedVerdict::Deny { .. });
        wait_until("what the other one has let pass", || is_denied(&other));
        store.signal("STOP");
        for at in 0..10 {
            let _ = one.note(key(&at.to_string()), slow());
        }
        // If recording had waited for the store, these counts would include a late or failed call.
        let counts = one.report().counts;
        assert_eq!([StoreCount::Late, StoreCount::Failed].map(|count| counts.of(count)), [0, 0], "{name}");
        store.signal("CONT");
    });
}

/// Sends requests until the store is used again, or no longer used. No request may be denied.
async fn until(rate: &SharedRate, what: &str, name: &str, ends: impl Fn(&SharedRate, SharedVerdict) -> bool) {
    let (start, mut slowest) = (Instant::now(), Duration::ZERO);
    loop {
        let asked = Instant::now();
        let said = tokio::time::timeout(PATIENCE, rate.spend(key(name), wide())).await.expect("a verdict");
        slowest = slowest.max(asked.elapsed());
        assert!(!matches!(said, SharedVerdict::Deny { .. }), "{name}, {what}: denied");
        if ends(rate, said) {
            println!("{name}, {what}: after {:?}; the slowest request took {slowest:?}", start.elapsed());
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{name}, {what}: {:?}", rate.report());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn lost(rate: &SharedRate, name: &str) {
    let is_lost = |rate: &SharedRate, said| {
        let report = rate.report();
        said == SharedVerdict::Unknown
            && report.usage == StoreUsage::Out
            && report.counts.of(StoreCount::Outages) > 0
            && report.problem.is_some()
    };
    until(rate, "lost", name, is_lost).await;
    assert!(rate.report().counts.of(StoreCount::Alone) > 0, "{name}");
}

/// Waits until the store is out of use for this reason. On a busy machine, there may first be
/// another reason, such as a slow connection.
async fn lost_because(rate: &SharedRate, name: &str, part: &str) {
    lost(rate, name).await;
    wait_until(part, || why(rate).contains(part));
}

async fn back(rate: &SharedRate, name: &str) {
    until(rate, "back", name, |rate, said| said == SharedVerdict::Allow && is_used(rate)).await;
}

/// Starts a replica, and waits until its store responds.
async fn using(settings: StoreSettings, name: &str) -> SharedRate {
    let rate = replica(settings);
    back(&rate, name).await;
    rate
}

#[test]
fn requests_do_not_wait_for_a_hanging_store_and_it_is_used_again_later() {
    each_store(async |name, store| {
        let rate = using(settings(&store.url()), name).await;
        store.signal("STOP");
        lost(&rate, name).await;
        // Each of these requests must get its verdict although the store does not respond.
        assert!(rate.report().counts.of(StoreCount::Late) >= 3, "{name}: {:?}", rate.report());
        store.signal("CONT");
        back(&rate, name).await;
    });
}

#[test]
fn a_store_that_dies_is_used_again_once_it_is_back() {
    each_store(async |name, mut store| {
        let rate = using(settings(&store.url()), name).await;
        store.kill();
        lost(&rate, name).await;
        store.start_again();
        back(&rate, name).await;
    });
}

/// The status must be correct even if there are no requests.
#[test]
fn an_unused_store_is_probed() {
    each_store(async |name, mut store| {
        let rate = replica(settings(&store.url()));
        used(&rate);
        let is_out = || wait_until("a store that is out", || rate.report().usage == StoreUsage::Out);
        store.signal("STOP");
        is_out();
        store.signal("CONT");
        used(&rate);
        store.kill();
        is_out();
        store.start_again();
        used(&rate);
        let report = rate.report();
        let counts = (report.counts.of(StoreCount::Calls), report.counts.of(StoreCount::Alone));
        assert_eq!(counts, (0, 0), "{name}: probes are not counted: {report:?}");
        // If the store gets no processor time, it may be out of use more often.
        assert!(report.counts.of(StoreCount::Outages) >= 2, "{name}: {report:?}");
    });
}

#[tokio::test]
async fn a_store_that_starts_later_is_used_once_it_is_available() {
    let Some(mut store) = any_store() else { return };
    store.kill();
    let rate = replica(settings(&store.url()));
    lost_because(&rate, "absent", "no server listens at this address (Connection refused").await;
    store.start_again();
    back(&rate, "absent").await;
}

#[test]
fn a_store_that_has_lost_its_scripts_gets_them_again() {
    each_store(async |name, store| {
        let rate = using(patient(&store), name).await;
        assert_eq!(store.send("SCRIPT FLUSH"), "+OK");
        back(&rate, name).await;
        let report = rate.report();
        let want = (0, 0, StoreUsage::Used);
        let found = (report.counts.of(StoreCount::Failed), report.counts.of(StoreCount::Outages), report.usage);
        assert_eq!(found, want, "{name}: {report:?}");
    });
}

#[test]
fn a_replica_of_a_store_is_not_used_until_it_is_promoted() {
    each_store(async |name, store| {
        let rate = using(settings(&store.url()), name).await;
        // Another server takes over, and this one becomes its replica.
        let other = StoreServer::start(&store.program).ready();
        assert!(store.send(&format!("REPLICAOF 127.0.0.1 {}", other.port)).starts_with("+OK"));
        lost_because(&rate, name, "the server is a replica and accepts no writes: write the address of the primary")
            .await;
        assert!(store.send("REPLICAOF NO ONE").starts_with("+OK"));
        back(&rate, name).await;
    });
}

#[tokio::test]
async fn an_invalid_response_of_a_store_denies_no_request() {
    // On each connection, the first responses are for the commands that name the client. The later
    // ones are invalid for the script.
    let answers: [(&[u8], bool); 8] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", true),
        (b":9999999999999\r\n", false),
        (b":-5\r\n", false),
        (b"*2\r\n:0\r\n:0\r\n", false),
        (b"+OK\r\n", false),
        (b"-ERR \x1b[2Jno\r\n", false),
        (b"$100000\r\nabc", false),
        (b"", false),
    ];
    let playing = answers.into_iter().map(|(answer, closes)| async move {
        let rate = replica(settings(&format!("redis://{}", played(answer, closes))));
        lost(&rate, "garbage").await;
        let why = why(&rate);
        println!("{:?}: {why}", String::from_utf8_lossy(answer));
        assert!(!why.is_empty() && why.len() < 1000 && !why.contains('\x1b'), "{why}");
    });
    for played in playing.map(tokio::spawn).collect::<Vec<_>>() {
        played.await.unwrap();
    }
}

/// Changes the stored data as if the server's clock had been this many seconds ahead when it was
/// written. If a value consists of several numbers, only the first `numbers` are changed.
fn move_clock(store: &StoreServer, numbers: usize, seconds: u64) {
    let key = store.key();
    let written = store.send(&format!("GET {key}"));
    let mut left = numbers;
    let moved = written.split(' ').map(|number| {
        let by = if left > 0 { seconds * 1_000_000 } else { 0 };
        left = left.saturating_sub(1);
        (number.parse::<u64>().expect("a time") + by).to_string()
    });
    let moved = moved.collect::<Vec<_>>().join(" ");
    assert_eq!(store.send(&format!("SET {key} \"{moved}\" EX 1000")), "+OK");
}

/// Creates a bucket, the only one in the store. A replica has taken this many requests from it.
async fn spent(store: &StoreServer, name: &str, bucket: SharedBucket, requests: u32) {
    store.send("FLUSHALL");
    let rate = replica(patient(store));
    used(&rate);
    store.send("FLUSHALL");
    for request in 0..requests {
        assert_eq!(rate.spend(key(name), bucket).await, SharedVerdict::Allow, "{name}: request {request}");
    }
}

/// Returns the verdict for a replica that has not queried the bucket before.
async fn heard(store: &StoreServer, name: &str, bucket: SharedBucket) -> SharedVerdict {
    let rate = replica(patient(store));
    used(&rate);
    let said = rate.spend(key(name), bucket).await;
    assert_ne!(said, SharedVerdict::Unknown, "{name}: {:?}", rate.report());
    said
}

#[test]
fn a_store_whose_clock_is_set_back_denies_no_request() {
    each_store(async |name, store| {
        // One bucket is empty, and one has one request left, which a wrong clock could take away.
        for requests in [20, 19] {
            spent(&store, name, slow(), requests).await;
            move_clock(&store, usize::MAX, SLOW.as_secs() * 2 / 3);
            assert_eq!(heard(&store, name, slow()).await, SharedVerdict::Allow, "{name} {requests}");
            lives_until_it_is_full(&store, name);
        }
    });
}

/// Checks how long the only bucket stays in the store. The bucket is a slow one.
fn lives_until_it_is_full(store: &StoreServer, name: &str) {
    let life: i64 = store.send(&format!("PTTL {}", store.key()))[1..].parse().unwrap();
    assert!(life > 0 && u128::try_from(life).is_ok_and(|life| life <= SLOW.as_millis()), "{name}: {life}");
}

#[test]
fn an_impossible_bucket_time_denies_no_request() {
    each_store(async |name, store| {
        // This bucket was written just now, and its time is further in the future than possible.
        spent(&store, name, slow(), 20).await;
        move_clock(&store, 1, 20 * 20 * SLOW.as_secs());
        assert_eq!(heard(&store, name, slow()).await, SharedVerdict::Allow, "{name}");
        for stored in ["9007199254740993", "4000000000000000", "inf", "nan", "-1", "zero", "1.5"] {
            spent(&store, name, slow(), 20).await;
            assert_eq!(store.send(&format!("SET {} {stored} EX 1000", store.key())), "+OK");
            assert_eq!(heard(&store, name, slow()).await, SharedVerdict::Allow, "{name} {stored}");
            lives_until_it_is_full(&store, name);
        }
    });
}

#[test]
fn a_stored_value_of_another_type_resets_its_bucket_and_affects_no_other() {
    each_store(async |name, store| {
        for write in ["RPUSH {} a", "HSET {} a b", "SADD {} a", "ZADD {} 1 a", "XADD {} * a b"] {
            spent(&store, name, slow(), 20).await;
            let held = store.key();
            assert_eq!(store.send(&format!("DEL {held}")), ":1");
            assert!(!store.send(&write.replace("{}", &held)).starts_with('-'), "{name} {write}");
            let rate = replica(patient(&store));
            used(&rate);
            // The bucket must be full again, and then count requests.
            for request in 0..20 {
                assert_eq!(rate.spend(key(name), slow()).await, SharedVerdict::Allow, "{name} {write}: {request}");
            }
            let said = rate.spend(key(name), slow()).await;
            assert!(matches!(said, SharedVerdict::Deny { .. }), "{name} {write}: {said:?}");
            assert_eq!(rate.spend(key("another"), slow()).await, SharedVerdict::Allow, "{name} {write}");
            let counts = rate.report().counts;
            assert_eq!((counts.of(StoreCount::Outages), counts.of(StoreCount::Alone)), (0, 0), "{name} {write}");
        }
    });
}

/// Even with a store, no client may have to wait longer than one interval.
#[test]
fn no_denied_request_waits_longer_than_an_interval_if_a_clock_jumps() {
    each_store(async |name, store| {
        for seconds in [0, 1, 150] {
            spent(&store, name, slow(), 20).await;
            move_clock(&store, 1, seconds);
            match heard(&store, name, slow()).await {
                SharedVerdict::Deny { wait } => assert!(wait > Duration::ZERO && wait <= SLOW, "{name}: {wait:?}"),
                said => assert!(seconds > 0 && said == SharedVerdict::Allow, "{name} {seconds}: {said:?}"),
            }
        }
    });
}

#[tokio::test]
async fn the_store_password_is_sent_and_never_shown() {
    let Some(program) = any() else { return };
    let port = free_ports(1)[0];
    let port_argument = port.to_string();
    let store = StoreServer::start_with(&program, port, &["--port", &port_argument, "--requirepass", "swordfish"]);
    let right = replica(StoreSettings { password: Some("swordfish".to_owned()), ..settings(&store.url()) });
    back(&right, "password").await;
    let wrong = replica(settings(&format!("redis://default:hunter2@127.0.0.1:{port}")));
    lost_because(&wrong, "a wrong password", "the server refuses the login: check the user").await;
    let none = replica(settings(&store.url()));
    lost_because(&none, "no password", "the server requires a password: set password_file to the path of a file").await;
    let shown = format!("{wrong:?} {:?} {right:?} {:?}", wrong.report(), right.report());
    assert!(!shown.contains("hunter2") && !shown.contains("swordfish"), "{shown}");
}

#[test]
fn the_error_for_a_store_user_without_rights_lists_the_missing_rights() {
    each_store(async |name, store| {
        assert_eq!(store.send("ACL SETUSER robotsd on >hunter2 ~* +get"), "+OK");
        let rate = replica(settings(&format!("redis://robotsd:hunter2@127.0.0.1:{}", store.port)));
        lost_because(&rate, name, "allow EVAL, EVALSHA, TIME, GET and SET for keys that begin with the prefix").await;
        assert_lacks(why(&rate), &["hunter2"]);
        // The permissions in the handbook must be sufficient.
        assert_eq!(
            store.send("ACL SETUSER robotsd resetkeys ~robotsd:rate:* -@all +eval +evalsha +time +get +set"),
            "+OK"
        );
        back(&rate, name).await;
    });
}

/// This server echoes what it receives, including the login.
#[tokio::test]
async fn a_password_that_the_server_repeats_does_not_appear_in_the_status() {
    let address = repeated();
    let rate = replica(settings(&format!("redis://robotsd:hunter2@{address}")));
    lost(&rate, "a server that repeats").await;
    let shown = format!("{} {:?}", why(&rate), rate.report());
    println!("a server that repeats: {}", why(&rate));
    assert!(!why(&rate).is_empty() && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn requests_are_counted_in_a_cluster() {
    each_program(async |name, program| {
        let port = free_ports(1)[0];
        let (port_argument, bus) = (port.to_string(), free_ports(1)[0].to_string());
        let arguments = ["--port", &*port_argument, "--cluster-enabled", "yes", "--cluster-port", &*bus];
        let store = StoreServer::start_with(program, port, &arguments).ready();
        assert_eq!(store.send("CLUSTER ADDSLOTSRANGE 0 16383"), "+OK");
        let rate = replica(StoreSettings { nodes: StoreNodes::Cluster, ..patient(&store) });
        back(&rate, name).await;
        for number in 0..20 {
            let said = rate.spend(key(&number.to_string()), slow()).await;
            assert_eq!(said, SharedVerdict::Allow, "{name}: {:?}", rate.report());
        }
        assert!(rate.report().counts.of(StoreCount::Allowed) >= 20, "{name}: {:?}", rate.report());
    });
}

#[test]
fn a_single_server_configured_as_a_cluster_is_reported() {
    each_store(async |name, store| {
        let rate = replica(StoreSettings { nodes: StoreNodes::Cluster, ..settings(&store.url()) });
        lost_because(&rate, name, "the server is not a node of a cluster: leave out cluster = true").await;
    });
}

/// The server of Debian supports TLS.
#[tokio::test]
async fn a_store_with_tls_is_used_if_its_certificate_is_trusted() {
    let Some((_, program)) = programs().into_iter().find(|(name, _)| *name == "Redis") else { return };
    let authority = Authority::new();
    let (certificate, key) = authority.sign(&certificate_for(&["localhost", "127.0.0.1"]));
    let files = [("chain.pem", &*certificate.pem()), ("key.pem", &key.serialize_pem()), ("ca.pem", &authority.pem())];
    let folder = folder(&files);
    let [chain, key_file, ca] = files.map(|(name, _)| folder.at(name).display().to_string());
    let port = free_ports(1)[0];
    let port_argument = port.to_string();
    let arguments = [
        ["--port", "0"],
        ["--tls-port", &port_argument],
        ["--tls-cert-file", &chain],
        ["--tls-key-file", &key_file],
        ["--tls-ca-cert-file", &ca],
        ["--tls-auth-clients", "no"],
    ];
    let arguments = [arguments.as_flattened(), &["--bind", "127.0.0.1", "127.0.0.2"]].concat();
    let _store = StoreServer::start_with(&program, port, &arguments);
    let url = format!("rediss://127.0.0.1:{port}");
    let trusted = replica(StoreSettings { ca: Some(authority.pem().into_bytes()), ..settings(&url) });
    back(&trusted, "TLS").await;
    for (what, url, ca, expected) in [
        (
            "TLS that is not trusted",
            &url,
            false,
            "the certificate of the server is from an untrusted authority: add the",
        ),
        (
            "TLS for another name",
            &format!("rediss://127.0.0.2:{port}"),
            true,
            "the certificate of the server is for another name",
        ),
        // The client must not continue without TLS.
        (
            "no TLS",
            &format!("redis://127.0.0.1:{port}"),
            false,
            "if the server requires TLS, write the URL with \"rediss://\"",
        ),
    ] {
        let ca = ca.then(|| authority.pem().into_bytes());
        let rate = replica(StoreSettings { ca, ..settings(url) });
        lost_because(&rate, what, expected).await;
    }
    // The server may mistake a TLS handshake for an incomplete command.
    let plain = StoreServer::start(&program).ready();
    let encrypted = replica(settings(&plain.url().replace("redis:", "rediss:")));
    lost(&encrypted, "TLS to a server that has none").await;
}
