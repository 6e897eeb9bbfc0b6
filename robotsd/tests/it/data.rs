//! Tests that by default, the disk contains neither a client's full address nor any query value.

use crate::harness::*;

const ADDRESSES: [&str; 2] = ["203.0.113.77", "2001:db8:77:66:55:44:33:22"];
const SECRET: &str = "s3cr3t-of-a-query";

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn is_in_a_file(folder: &Path, what: &str) -> bool {
    let holds = |path: PathBuf| fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(what));
    files(folder).into_iter().any(holds)
}

#[test]
fn no_full_address_and_no_query_value_is_stored_on_disk() {
    const CONFIG: &str = "mode = \"refuse\"\nworkers = 2\nstate_dir = \"state\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                          trusted_proxies = [\"127.0.0.0/8\"]\n[admin]\nsocket = \"admin.sock\"\n\
                          [[site]]\nname = \"a\"\nroot = \"pages\"\nrobots.path = \"robots.txt\"\n\
                          [log]\naccess = \"json\"\naccess_path = \"access.log\"\n";
    const ROBOTS: &str = "User-agent: GPTBot\nUser-agent: Googlebot\nDisallow: /private/\n";
    let folder = folder(&[("robotsd.toml", CONFIG), ("robots.txt", ROBOTS)]);
    fs::create_dir(folder.at("pages")).unwrap();
    let mut running = folder.start();
    for address in ADDRESSES {
        let forwarded = format!("for=\"[{address}]\"").replace("[203.0.113.77]", "203.0.113.77");
        for agent in [GPTBOT, GOOGLEBOT, FIREFOX] {
            for path in ["/robots.txt", "/page", "/private/x", "//private/%", "/private/"] {
                let path = format!("{path}?token={SECRET}");
                for field in [("X-Forwarded-For", address), ("Forwarded", forwarded.as_str())] {
                    running.request("GET", &path, &[("User-Agent", agent), field]);
                }
            }
        }
        // A request that is refused before its site is known must be logged in the same way.
        running.request("GET", "/", &[("Host", "a b"), ("X-Forwarded-For", address)]);
    }
    // The logs contain the networks of clients, so a search in them would also find full addresses.
    let log = folder.at("access.log");
    wait_for("the log of requests", || {
        fs::read_to_string(&log)
            .ok()
            .filter(|text| text.contains("203.0.113.0/24") && text.contains("2001:db8:77::/48"))
    });
    wait_until("a refusal", || running.has_event("refused", |line| line["address"] == "203.0.113.0/24"));
    // The board writes its counts immediately when a version is published.
    folder.replace("robots.txt", format!("{ROBOTS}Disallow: /more/\n"));
    wait_until("the board", || is_in_a_file(&folder.at("state"), "GPTBot\",\"identity"));
    running.signal("TERM");
    running.wait_for_end();
    for what in ADDRESSES.into_iter().chain([SECRET]) {
        assert!(!is_in_a_file(folder.path(), what), "{what} is in a file");
        let events = running.event_names();
        let logged = events.iter().flat_map(|event| running.all(event)).find(|line| line.to_string().contains(what));
        assert_eq!(logged, None, "{what} is in the log of events");
    }
}
