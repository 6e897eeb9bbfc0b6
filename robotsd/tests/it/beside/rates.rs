//! Tests that three processes with one store, each behind a real nginx, together allow the same
//! rate as one process.

use super::super::shared_rate::counted;
use super::super::shared_rate::server::{StoreServer, any_store};
use super::server::{SERVERS, Stage};
use crate::harness::*;

const BURST: usize = 5;

/// Allows one request per tenth of a second.
const ROBOTS: &str = "robots.text = \"User-agent: GPTBot\\nCrawl-delay: 0.1\\n\"";

fn stage(store: &StoreServer) -> Option<Stage> {
    let server = &SERVERS[0];
    let config = format!(
        "\n[site.rate]\nmode = \"refuse\"\nburst = {BURST}\n[rate]\nstore = \"{}\"\n[admin]\nsocket = \"admin.sock\"\n",
        store.url()
    );
    let adapt = |text: String| text.replace("robots.path = \"robots.txt\"", ROBOTS);
    let stage = Stage::set(server, &crate::programs::present(server.find())?, &config, &adapt);
    stage.robotsd.wait_for_event("rate-store", |line| line["level"] == "info");
    Some(stage)
}

/// Runs until as many requests have passed as one process allows in two seconds. With
/// `ROBOTSD_LONG`, as in the long suite, the time is one minute.
#[test]
fn three_nginx_servers_with_one_store_together_allow_the_rate_of_one_process() {
    let wanted = BURST + if is_long() { 600 } else { 20 };
    let Some(store) = any_store() else { return };
    let Some(stages) = (0..3).map(|_| stage(&store)).collect::<Option<Vec<_>>>() else { return };
    let (passed, asked, is_over) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let began = Instant::now();
    thread::scope(|scope| {
        for stage in stages.iter().chain(&stages) {
            scope.spawn(|| {
                while passed.load(Ordering::Relaxed) < wanted && !is_over.load(Ordering::Relaxed) {
                    asked.fetch_add(1, Ordering::Relaxed);
                    match stage.ask("GET", b"/a", &[("User-Agent", GPTBOT.as_bytes())], "").status {
                        200 => drop(passed.fetch_add(1, Ordering::Relaxed)),
                        429 => {}
                        status => panic!("{status}: {}", stage.log()),
                    }
                    // This is several times the allowed rate: six clients, one request every 3 ms.
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
        let stopping = StopAtEnd(&is_over);
        let patience = PATIENCE + Duration::from_millis(100) * u32::try_from(wanted).unwrap();
        while passed.load(Ordering::Relaxed) < wanted && began.elapsed() < patience {
            thread::sleep(Duration::from_millis(10));
        }
        drop(stopping);
    });
    let allowed = BURST + usize::try_from(began.elapsed().as_millis() / 100).unwrap();
    // The store does not limit these requests: a process decides alone if the store does not
    // respond in time, and nginx lets a request pass if robotsd does not respond in time.
    let alone: usize = stages.iter().map(|stage| counted(&stage.robotsd_folder, "requests", "alone")).sum();
    let unanswered: usize = stages.iter().map(|stage| stage.log().matches("upstream timed out").count()).sum();
    let (passed, asked) = (passed.into_inner(), asked.into_inner());
    println!("{passed} of {allowed} passed, {asked} asked, {alone} alone, {unanswered} unanswered");
    assert!(passed <= allowed + alone + unanswered, "{passed} of {allowed}, {alone} alone, {unanswered} unanswered");
    // On a slow machine, this many requests may take longer, but they must pass in the end.
    assert!(passed >= wanted, "{passed} of {wanted}");
    // Requests of browsers must not be counted.
    for stage in &stages {
        assert_eq!(stage.ask("GET", b"/a", &[("User-Agent", FIREFOX.as_bytes())], "").status, 200);
    }
}
