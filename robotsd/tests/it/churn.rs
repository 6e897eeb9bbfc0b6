//! Changes a robots.txt constantly, in every possible way, while requests arrive on kept and on new
//! connections.
//!
//! By default, each kind of change happens twice. `ROBOTSD_LONG` sends four times as many requests
//! per reload, and `ROBOTSD_CHURN_REQUESTS` sets their total number.

use crate::harness::*;

/// Default number of reloads, which is enough for every kind of change to happen twice.
const RELOADS: usize = 20;

/// Number of requests per round.
const ASKED: usize = 4;

/// Returns the line number of the rule in a version. Refusals quote the rule and the line, which
/// identify the version.
fn line(version: u64) -> u64 {
    3 + version % 40
}

fn rule(version: u64) -> String {
    format!("/p/{}", "*".repeat((version % 40 % 7) as usize))
}

fn text(version: u64) -> String {
    let comments = "# not the line you look for\n".repeat((version % 40) as usize);
    let rest: String = (0..200).map(|number| format!("Disallow: /rest/{number}/\n")).collect();
    format!(
        "# version {version}\nUser-agent: GPTBot\n{comments}Disallow: {}\n{rest}# end of {version}\n",
        rule(version)
    )
}

/// Reports whether the rule and the line that a refusal quotes belong to the same version.
fn is_of_one_version(body: &str) -> bool {
    (0..40).any(|version| body.contains(&format!("Disallow: {}        (line {})", rule(version), line(version))))
}

/// Sends one round of requests of every kind of client.
fn ask(mut get: impl FnMut(&str, &str) -> (u16, String)) {
    let (status, body) = get("/robots.txt", FIREFOX);
    assert_eq!(status, 200, "{body}");
    let version = body.lines().next().and_then(|line| line.strip_prefix("# version ")?.parse().ok());
    assert_eq!(Some(&body), version.map(text).as_ref(), "a version that was never whole");
    let (status, body) = get("/p/x", GPTBOT);
    assert_eq!(status, 403, "{body}");
    assert!(is_of_one_version(&body), "a refusal by two versions: {body}");
    for agent in [FIREFOX, GPTBOT] {
        let (status, body) = get("/page.html", agent);
        assert_eq!((status, &*body), (200, "hello"));
    }
}

/// Replaces the folder that `..data` points to, as Kubernetes does for a ConfigMap.
fn swap(volume: &Path, version: u64) {
    let data = format!("..{version}");
    fs::create_dir(volume.join(&data)).unwrap();
    fs::write(volume.join(&data).join("robots.txt"), text(version)).unwrap();
    let before = fs::read_link(volume.join("..data")).ok();
    std::os::unix::fs::symlink(&data, volume.join("..tmp")).unwrap();
    fs::rename(volume.join("..tmp"), volume.join("..data")).unwrap();
    if let Some(before) = before {
        fs::remove_dir_all(volume.join(before)).unwrap();
    }
}

#[test]
fn no_request_fails_or_is_judged_by_two_versions_while_the_file_changes_constantly() {
    let requests_a_reload = if is_long() { 400 } else { 100 };
    let usual = RELOADS * requests_a_reload;
    let wanted = std::env::var("ROBOTSD_CHURN_REQUESTS").map_or(usual, |number| number.parse().unwrap());
    let folder = folder(&[("page.html", "hello")]);
    let volume = folder.at("volume");
    fs::create_dir(&volume).unwrap();
    swap(&volume, 0);
    std::os::unix::fs::symlink("..data/robots.txt", volume.join("robots.txt")).unwrap();
    folder.write("plain.txt", text(0));
    let config = |version: u64| {
        let site = |host: &str, robots: String| format!("hosts = [\"{host}.test\"]\nroot = \".\"\nrobots.{robots}");
        // Every second config has another listener.
        let second = if version.is_multiple_of(2) { "" } else { "[[listener]]\naddress = \"127.0.0.1:0\"" };
        Config::refusing()
            .tables(format!("{second}\n[limits]\nkeep_alive = \"{}s\"", 60 + version % 10))
            .site("plain", site("plain", "path = \"plain.txt\"".to_owned()))
            .site("volume", site("volume", "path = \"volume/robots.txt\"".to_owned()))
            .site(&format!("config {}", version % 5), site("config", format!("text = \"# config {version}\"")))
            .to_string()
    };
    folder.write("robotsd.toml", config(0));
    let running = folder.start();
    let address = running.address;
    let plain = folder.at("plain.txt");
    let mut resident = Vec::new();
    let kept = |host: &'static str| -> Client<'_> {
        let (mut turn, mut kept) = (0, Kept::open(address, host));
        Box::new(move || {
            turn += 1;
            if turn % 500 == 0 {
                kept = Kept::open(address, host);
            }
            ask(|path, agent| kept.get(path, agent));
        })
    };
    let fresh: Client<'_> =
        Box::new(|| ask(|path: &str, agent: &str| Kept::open(address, "plain.test").get(path, agent)));
    while_asking([kept("plain.test"), kept("volume.test"), fresh], |asking| {
        let serves =
            |host: &str, version: u64| Kept::open(address, host).get("/robots.txt", FIREFOX).1 == text(version);
        let (mut version, mut reloads) = (0, 0);
        while asking.turns() * ASKED < wanted {
            version += 1;
            match version % 9 {
                0 => replace_file(&plain, text(version)),
                1 => fs::write(&plain, text(version)).unwrap(),
                2 => swap(&volume, version),
                3 => {
                    // Half of the file is written first. The rest is written after a pause in which
                    // a watcher may read the file. The pause has a fixed length, because no event
                    // reports that a watcher has read the file.
                    let whole = text(version);
                    let (first, rest) = whole.split_at(whole.len() / 2);
                    let mut file = fs::File::create(&plain).unwrap();
                    Write::write_all(&mut file, first.as_bytes()).unwrap();
                    thread::sleep(Duration::from_millis(100));
                    Write::write_all(&mut file, rest.as_bytes()).unwrap();
                }
                4 => replace_file(&plain, "<html>not found</html>"),
                5 => fs::remove_file(&plain).unwrap(),
                6 => {
                    fs::File::create(&plain).unwrap();
                }
                7 => replace_file(&plain, "User-agent: *\nDisallow: /\n"),
                _ => {
                    folder.write("robotsd.toml", config(version));
                    if version.is_multiple_of(2) {
                        running.signal("HUP");
                    }
                }
            }
            reloads += 1;
            match version % 9 {
                0 | 1 | 3 => wait_until("a new version", || serves("plain.test", version)),
                2 => wait_until("a new version", || serves("volume.test", version)),
                8 => wait_until("a new config", || {
                    let (_, body) = Kept::open(address, "config.test").get("/robots.txt", FIREFOX);
                    body == format!("# config {version}")
                }),
                _ => {}
            }
            let next = (reloads * requests_a_reload).min(wanted);
            asking.wait_for_more((next / ASKED).saturating_sub(asking.turns()));
            resident.push(running.resident_kib());
        }
        replace_file(&plain, text(version));
        wait_until("the last version", || serves("plain.test", version));
        let (first, last) = (resident[resident.len() / 5], resident[resident.len() - 1]);
        println!(
            "{} requests, {reloads} reloads, {first} KiB resident after a fifth of them, {last} KiB at the end",
            asking.turns() * ASKED
        );
        // In a long run, a leak would add far more memory than this. In a short run, noise adds
        // less.
        assert!(last < first + 48 * 1024, "{resident:?}");
    });
}
