//! Measures what ten thousand sites cost, and how soon a new version is live: `cargo bench -p
//! tower-robots --bench sites`.
//!
//! Creates a folder of 10,000 different files, 5 MB in total, some of them invalid, and opens it.
//! Prints how long opening takes, how much memory is needed (also with requests to every site), how
//! long finding a site takes, and how much processor time watching takes while nothing happens.
//! Then starts with a gate and a state directory, and replaces one file in several ways. Each part
//! runs in a separate process. The bench works only on Linux, because it reads `/proc/self`.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]

use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tower_robots::live::{Gate, LiveRobots, Rejection, ReloadOutcome, StateDir, VersionHash};
use tower_robots::source::{Directory, HostMap};

type Measured = Result<(), Box<dyn Error>>;

type Part = fn(&Path) -> Measured;

const SITES: usize = 10_000;
const BYTES: usize = 500;

/// How often a file is replaced in each way.
const REPLACED: usize = 50;

const PARTS: [(&str, Part); 3] = [("sites", sites), ("state", state), ("reload", reload)];

fn main() -> Measured {
    if let Some(folder) = std::env::args().skip_while(|asked| asked != "start").nth(1) {
        return start(Path::new(&folder));
    }
    let asked = std::env::args().skip(1).find_map(|asked| PARTS.into_iter().find(|(name, _)| *name == asked));
    let Some((name, part)) = asked else {
        for (name, _) in PARTS {
            Command::new(std::env::current_exe()?).arg(name).status()?;
        }
        return Ok(());
    };
    println!("\n{name}");
    let folder = std::env::temp_dir().join(format!("bench-sites-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = part(&folder);
    fs::remove_dir_all(&folder)?;
    result
}

/// Creates the files. Their content is different in each round.
fn fill(folder: &Path, round: usize) -> Measured {
    fs::create_dir_all(folder)?;
    for number in 0..SITES {
        fs::write(folder.join(format!("shop{number}.example.com.txt")), file(number + round * SITES))?;
    }
    // root can read every file. A loop of links is therefore used as the unreadable file.
    let _ = symlink("denied.example.com.txt", folder.join("denied.example.com.txt"));
    fs::write(folder.join("html.example.com.txt"), "<!doctype html><title>404</title>")?;
    File::create(folder.join("sparse.example.com.txt"))?.set_len(2 << 30)?;
    let _ = fs::create_dir(folder.join("folder.example.com.txt"));
    let _ =
        Command::new("mkfifo").arg(folder.join("fifo.example.com.txt")).stderr(std::process::Stdio::null()).status()?;
    Ok(())
}

fn sites(folder: &Path) -> Measured {
    fill(folder, 0)?;
    println!("before: {} MiB", resident()?);

    let start = Instant::now();
    let directory = Directory::new(folder).open()?;
    let took = start.elapsed();
    let sites = directory.sites().load();
    let good = sites.values().filter(|live| live.with(|snapshot| snapshot.content.is_some())).count();
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
                snapshot
                    .content
                    .as_ref()
                    .map(|content| content.with_agents(header.as_bytes(), |agents| agents.first().class()))
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

fn idle(what: &str) -> Measured {
    // The checks that follow a start are not measured, so the bench waits for them.
    std::thread::sleep(Duration::from_secs(6));
    let (start, before) = (Instant::now(), processor()?);
    std::thread::sleep(Duration::from_secs(20));
    let used = processor()? - before;
    println!("{what}: {:.2} % of a core", used / start.elapsed().as_secs_f64() * 100.0);
    Ok(())
}

fn state(folder: &Path) -> Measured {
    for (what, round) in [("first start", 0), ("start again", 0), ("start with every file changed", 1)] {
        fill(&folder.join("files"), round)?;
        print!("{what}: ");
        std::io::stdout().flush()?;
        Command::new(std::env::current_exe()?).arg("start").arg(folder).status()?;
    }
    Ok(())
}

fn start(folder: &Path) -> Measured {
    let (start, before) = (Instant::now(), processor()?);
    let state = StateDir::open(folder.join("state"))?;
    let directory = open_with(&folder.join("files"), &state)?;
    let (took, used) = (start.elapsed(), processor()? - before);
    state.flush();
    let (all, all_used) = (start.elapsed(), processor()? - before);
    let sites = directory.sites().load();
    let good = sites.values().filter(|live| live.with(|snapshot| snapshot.content.is_some())).count();
    println!(
        "{took:?} and {used:.2} s of a core; {all:?} and {all_used:.2} s until written down; {good} good; {} MiB",
        resident()?
    );
    Ok(())
}

fn open_with(files: &Path, state: &StateDir) -> Result<Directory, Rejection> {
    let state = state.clone();
    let gate = Gate::new();
    Directory::new(files).each(move |host, site| site.gate(gate.clone()).state(&state, host)).open()
}

fn reload(folder: &Path) -> Measured {
    let path = folder.join("robots.txt");
    let aside = folder.join("aside");
    fs::write(&path, file(0))?;
    let (live, published) = open(&path)?;
    replaced("atomic rename", &published, |text| {
        fs::write(&aside, text)?;
        fs::rename(&aside, &path)
    })?;
    replaced("close after writing", &published, |text| fs::write(&path, text))?;
    replaced("asked for after a rename", &published, |text| {
        fs::write(&aside, text)?;
        fs::rename(&aside, &path)?;
        let _ = live.reload_blocking();
        Ok(())
    })?;
    // Kubernetes updates a ConfigMap in this way.
    let mount = folder.join("mount");
    fs::create_dir_all(mount.join("..0"))?;
    fs::write(mount.join("..0/robots.txt"), file(0))?;
    symlink("..0", mount.join("..data"))?;
    symlink("..data/robots.txt", mount.join("robots.txt"))?;
    let (_live, published) = open(&mount.join("robots.txt"))?;
    let mut round = 0;
    replaced("ConfigMap swap", &published, |text| {
        let before = mount.join(format!("..{round}"));
        round += 1;
        fs::create_dir(mount.join(format!("..{round}")))?;
        fs::write(mount.join(format!("..{round}/robots.txt")), text)?;
        symlink(format!("..{round}"), mount.join("..data_tmp"))?;
        fs::rename(mount.join("..data_tmp"), mount.join("..data"))?;
        fs::remove_dir_all(before)
    })
}

fn open(path: &Path) -> Result<(LiveRobots, Receiver<VersionHash>), Box<dyn Error>> {
    let (tell, published) = channel();
    let live = LiveRobots::file(path).on_reload(move |reload, _| {
        if let ReloadOutcome::Published { hash, .. } = reload.outcome {
            let _ = tell.send(hash);
        }
    });
    Ok((live.open()?, published))
}

/// Measures the time from when a file has been replaced until its new version is live.
fn replaced(
    what: &str,
    published: &Receiver<VersionHash>,
    mut replace: impl FnMut(&str) -> std::io::Result<()>,
) -> Measured {
    let mut took = Vec::new();
    for number in 1..=REPLACED {
        let text = file(number);
        let hash = VersionHash::of(text.as_bytes());
        let start = Instant::now();
        replace(&text)?;
        loop {
            match published.recv_timeout(Duration::from_secs(10)) {
                Ok(live) if live == hash => break,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err(format!("{what}: not live after ten seconds").into()),
                Err(error) => return Err(error.into()),
            }
        }
        took.push(start.elapsed());
        // Waits, so that this change and the next one are separate.
        std::thread::sleep(Duration::from_millis(30));
    }
    took.sort_unstable();
    println!("live after {what}: median {:?}, longest {:?}", took[took.len() / 2], took[took.len() - 1]);
    Ok(())
}

/// Returns the resident memory in MiB.
fn resident() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    let kib: u64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib / 1024)
}

/// Returns the processor time of all threads in seconds, including threads that have ended.
fn processor() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/stat")?;
    // The name at the beginning may contain spaces, so it is skipped. utime and stime are fields 14
    // and 15, in hundredths of a second.
    let (_, fields) = text.rsplit_once(')').ok_or("no name")?;
    let ticks: Vec<u64> = fields.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(Duration::from_millis(ticks.iter().sum::<u64>() * 10).as_secs_f64())
}
