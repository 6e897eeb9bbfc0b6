//! A robots.txt that changes all the time in every way there is, while requests come on kept and on fresh connections.
//!
//! `ROBOTSD_CHURN_REQUESTS` asks for more than the few thousand requests of a usual run.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::harness::{FIREFOX, GPTBOT, Kept, LISTENER, StopAtEnd, folder, replace_file, wait_for, wait_until};

/// Requests a reload, so that a run of a million has a thousand.
const REQUESTS_A_RELOAD: u64 = 1000;

/// The numbers of a version's lines: what a refusal quotes fits one version or none.
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

/// Whether a refusal's body quotes a rule and a line of one version.
fn is_of_one_version(body: &str) -> bool {
    (0..40).any(|version| body.contains(&format!("Disallow: {}        (line {})", rule(version), line(version))))
}

/// What every asker asks, again and again.
fn ask(mut get: impl FnMut(&str, &str) -> (u16, String)) -> u64 {
    let (status, body) = get("/robots.txt", FIREFOX);
    assert_eq!(status, 200, "{body}");
    let version = body.lines().next().and_then(|line| line.strip_prefix("# version ")?.parse().ok());
    assert_eq!(Some(&body), version.map(text).as_ref(), "a version that was never whole");
    let (status, body) = get("/p/x", GPTBOT);
    assert_eq!(status, 403, "{body}");
    assert!(is_of_one_version(&body), "a refusal by two versions: {body}");
    let (status, body) = get("/page.html", FIREFOX);
    assert_eq!((status, &*body), (200, "hello"));
    let (status, body) = get("/page.html", GPTBOT);
    assert_eq!((status, &*body), (200, "hello"));
    4
}

/// Replaces the folder that `..data` leads to, as Kubernetes does with a ConfigMap.
#[cfg(unix)]
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

#[cfg(unix)]
#[test]
fn no_request_fails_and_none_is_judged_by_two_versions_whatever_is_done_to_the_file() {
    let wanted: u64 = std::env::var("ROBOTSD_CHURN_REQUESTS").map_or(20_000, |number| number.parse().unwrap());
    let folder = folder(&[("page.html", "hello")]);
    let volume = folder.at("volume");
    fs::create_dir(&volume).unwrap();
    swap(&volume, 0);
    std::os::unix::fs::symlink("..data/robots.txt", volume.join("robots.txt")).unwrap();
    folder.write("plain.txt", text(0));
    let config = |version: u64| {
        format!(
            "mode = \"refuse\"\n{LISTENER}{}[limits]\nkeep_alive = \"{}s\"\n[[site]]\nname = \"plain\"\n\
             hosts = [\"plain.test\"]\nroot = \".\"\nrobots.path = \"plain.txt\"\n[[site]]\nname = \"volume\"\n\
             hosts = [\"volume.test\"]\nroot = \".\"\nrobots.path = \"volume/robots.txt\"\n[[site]]\n\
             name = \"config {}\"\nhosts = [\"config.test\"]\nroot = \".\"\nrobots.text = \"# config {version}\"\n",
            // Every other time there is a second listener.
            if version.is_multiple_of(2) { "" } else { "[[listener]]\naddress = \"127.0.0.1:0\"\n" },
            60 + version % 10,
            version % 5
        )
    };
    folder.write("robotsd.toml", config(0));
    let running = folder.start();
    let (plain, stop, asked) = (folder.at("plain.txt"), AtomicBool::new(false), AtomicU64::new(0));
    let mut resident = Vec::new();
    std::thread::scope(|scope| {
        let (running, asked, stop) = (&running, &asked, &stop);
        let stopping = StopAtEnd(stop);
        let going_on = || !stop.load(Ordering::Relaxed);
        let mut askers = Vec::new();
        for host in ["plain.test", "volume.test"] {
            askers.push(scope.spawn(move || {
                while going_on() {
                    let mut kept = Kept::open(running.address, host);
                    for _ in 0..500 {
                        asked.fetch_add(ask(|path, agent| kept.get(path, agent)), Ordering::Relaxed);
                    }
                }
            }));
        }
        askers.push(scope.spawn(move || {
            while going_on() {
                let get = |path: &str, agent: &str| Kept::open(running.address, "plain.test").get(path, agent);
                asked.fetch_add(ask(get), Ordering::Relaxed);
            }
        }));
        let serves = |host: &str, version: u64| {
            let (_, body) = Kept::open(running.address, host).get("/robots.txt", FIREFOX);
            (body == text(version)).then_some(())
        };
        let (mut version, mut reloads) = (0, 0);
        while asked.load(Ordering::Relaxed) < wanted {
            // Askers that have failed would never get there.
            assert!(!askers.iter().any(|asker| asker.is_finished()), "an asker has failed");
            version += 1;
            match version % 9 {
                0 => replace_file(&plain, text(version)),
                1 => fs::write(&plain, text(version)).unwrap(),
                2 => swap(&volume, version),
                3 => {
                    // Half of it, and the rest once a watcher could have read that: how long it waits is no event.
                    let whole = text(version);
                    let (first, rest) = whole.split_at(whole.len() / 2);
                    let mut file = fs::File::create(&plain).unwrap();
                    std::io::Write::write_all(&mut file, first.as_bytes()).unwrap();
                    std::thread::sleep(Duration::from_millis(100));
                    std::io::Write::write_all(&mut file, rest.as_bytes()).unwrap();
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
                0 | 1 | 3 => wait_for("a new version", || serves("plain.test", version)),
                2 => wait_for("a new version", || serves("volume.test", version)),
                8 => wait_until("a new config", || {
                    let (_, body) = Kept::open(running.address, "config.test").get("/robots.txt", FIREFOX);
                    body == format!("# config {version}")
                }),
                _ => {}
            }
            let next = (reloads * REQUESTS_A_RELOAD).min(wanted);
            wait_for("requests meanwhile", || {
                (asked.load(Ordering::Relaxed) >= next || askers.iter().any(|asker| asker.is_finished())).then_some(())
            });
            resident.push(running.resident_kib());
        }
        // Back to a good one.
        replace_file(&plain, text(version));
        wait_for("the last version", || serves("plain.test", version));
        drop(stopping);
        askers.into_iter().for_each(|asker| asker.join().unwrap());
        let (first, last) = (resident[resident.len() / 5], resident[resident.len() - 1]);
        println!(
            "{asked:?} requests, {reloads} reloads, {first} KiB resident after a fifth of them, {last} KiB at the end"
        );
        // Far from what any leak would come to in a long run, and from what noise does in a short one.
        assert!(last < first + 48 * 1024, "{resident:?}");
    });
}
