//! What ten thousand sites cost: `cargo run --release --example many_sites`.
//!
//! Makes a folder of 10,000 different files, 5 MB in all, with bad ones among them, opens it and says how long that
//! took, what it takes of memory (also under traffic to every site), what finding a site takes, and what the watching
//! takes while nothing happens. Linux only: it reads `/proc/self`.

#![expect(clippy::print_stdout, reason = "an example prints what it measures")]

use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use tower_robots::source::{Directory, HostMap};

const SITES: usize = 10_000;
const BYTES: usize = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("many-sites-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = measure(&folder);
    fs::remove_dir_all(&folder)?;
    result
}

fn measure(folder: &Path) -> Result<(), Box<dyn Error>> {
    for number in 0..SITES {
        fs::write(folder.join(format!("shop{number}.example.com.txt")), file(number))?;
    }
    fs::write(folder.join("html.example.com.txt"), "<!doctype html><title>404</title>")?;
    File::create(folder.join("sparse.example.com.txt"))?.set_len(2 << 30)?;
    fs::create_dir(folder.join("folder.example.com.txt"))?;
    let _ = std::process::Command::new("mkfifo").arg(folder.join("fifo.example.com.txt")).status()?;
    println!("before: {} MiB", resident()?);

    let start = Instant::now();
    let directory = Directory::new(folder).open()?;
    let took = start.elapsed();
    let sites = directory.sites().load();
    let good = sites.values().filter(|live| live.with(|snapshot| snapshot.content().is_some())).count();
    println!("start: {took:?} for {} sites, {good} of them good; {} MiB", sites.len(), resident()?);

    for (what, host) in
        [("exact", "shop{}.example.com"), ("with port", "shop{}.example.com:443"), ("unknown", "a{}.example.org")]
    {
        let hosts: Vec<String> = (0..SITES).map(|number| host.replace("{}", &number.to_string())).collect();
        println!("lookup, {what}: {:?}", lookup(&sites, &hosts));
    }
    let mut wild = HostMap::new();
    for number in 0..SITES {
        wild.insert(&format!("*.shop{number}.example.com"), number)?;
    }
    let hosts: Vec<String> = (0..SITES).map(|number| format!("www.shop{number}.example.com")).collect();
    println!("lookup, wildcard: {:?}", lookup(&wild, &hosts));

    idle("idle")?;
    for round in 0..200 {
        let header = format!(
            "Mozilla/5.0 (X11; Linux x86_64; rv:{round}.0) Gecko/20100101 Firefox/{round}.0 and some more of the kind"
        );
        for live in sites.values() {
            live.with(|snapshot| {
                snapshot.content().map(|content| content.with_agent(header.as_bytes(), |agent| agent.class()))
            });
        }
    }
    println!("after 200 headers to every site: {} MiB", resident()?);
    idle("idle after that")?;
    Ok(())
}

fn file(number: usize) -> String {
    let mut text = format!("# shop {number}\nUser-agent: GPTBot\nDisallow: /\n\nUser-agent: *\n");
    while text.len() < BYTES - 40 {
        text.push_str(&format!("Disallow: /private/{number}/{}\n", text.len()));
    }
    text.push_str(&format!("Allow: /private/{number}/public/\n"));
    text
}

fn lookup<T>(hosts: &HostMap<T>, names: &[String]) -> Duration {
    const ROUNDS: u32 = 50;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        for name in names {
            black_box(hosts.get(black_box(name)));
        }
    }
    start.elapsed() / ROUNDS / u32::try_from(names.len()).unwrap_or(u32::MAX)
}

fn idle(what: &str) -> Result<(), Box<dyn Error>> {
    // The first looks after the start are spent.
    std::thread::sleep(Duration::from_secs(6));
    let (start, before) = (Instant::now(), processor()?);
    std::thread::sleep(Duration::from_secs(20));
    let used = processor()? - before;
    println!("{what}: {:.2} % of a core", used / start.elapsed().as_secs_f64() * 100.0);
    Ok(())
}

/// Resident memory in MiB.
fn resident() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    let kib: u64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib / 1024)
}

/// Seconds of processor time.
fn processor() -> Result<f64, Box<dyn Error>> {
    let mut nanoseconds = 0_u64;
    for task in fs::read_dir("/proc/self/task")? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        nanoseconds += text.split_whitespace().next().ok_or("no number")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds).as_secs_f64())
}
