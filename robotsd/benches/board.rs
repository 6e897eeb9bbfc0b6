//! The memory of the board: `cargo bench -p robotsd --bench board`.
//!
//! Starts `robotsd` with 10,000 sites, once with and once without the board. In both runs, 200
//! crawlers send an allowed and a disallowed request to every site. The difference between the two
//! peaks of memory is the memory of the board. Requires Linux, because it reads `/proc`.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tower_robots::agent::Registry;

const SITES: usize = 10_000;
const CRAWLERS: usize = 200;

/// Maximum memory of the board, in MiB.
const BAR: f64 = 200.0;

/// Number of requests that are sent before their responses are read.
const PIPELINED: usize = 20;

type Measured<T> = Result<T, Box<dyn Error>>;

fn main() -> Measured<()> {
    // `cargo test --benches` uses few sites, to check only that the benchmark runs.
    let sites = if std::env::args().any(|argument| argument == "--bench") { SITES } else { 20 };
    let [without, with] = [measure("off", sites)?, measure("on", sites)?];
    println!("board of {sites} sites with {CRAWLERS} crawlers each, in MiB at most:");
    println!("| without the board | with it | the board | bar |\n| --- | --- | --- | --- |");
    println!("| {without:.0} | {with:.0} | {:.0} | {BAR:.0} |", with - without);
    Ok(())
}

/// Runs a `robotsd` with this mode of the board and number of sites, and returns its peak memory,
/// in MiB.
fn measure(mode: &str, sites: usize) -> Measured<f64> {
    let folder = std::env::temp_dir().join(format!("bench-board-{}-{mode}", std::process::id()));
    fs::create_dir_all(folder.join("pages"))?;
    let is_enabled = mode == "on";
    let mut config = format!(
        "state_dir = \"state\"\nworkers = 2\n[admin]\nenabled = false\n[board]\nenabled = {is_enabled}\nsize = \"8GiB\"\n\
         [[listener]]\naddress = \"127.0.0.1:0\"\n"
    );
    for site in 0..sites {
        write!(
            config,
            "[[site]]\nname = \"shop{site}\"\nhosts = [\"shop{site}.test\"]\nroot = \"pages\"\nrobots.source = \"inline\"\n\
             robots.text = \"User-agent: *\\nDisallow: /private/\\n\"\n"
        )?;
    }
    fs::write(folder.join("robotsd.toml"), config)?;
    let result = run(&folder, sites);
    fs::remove_dir_all(&folder)?;
    result
}

fn run(folder: &Path, sites: usize) -> Measured<f64> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_robotsd"));
    command.args(["serve", "--config"]).arg(folder.join("robotsd.toml")).env("RUNTIME_DIRECTORY", folder);
    let mut serving = Serving(command.stdout(Stdio::piped()).spawn()?);
    let mut log = BufReader::new(serving.0.stdout.take().ok_or("no log")?);
    let address = loop {
        let mut line = String::new();
        if log.read_line(&mut line)? == 0 {
            return Err("robotsd ended before it listened".into());
        }
        let listens = line.contains("\"listening\"").then(|| line.split("http://").nth(1)).flatten();
        if let Some(address) = listens.and_then(|rest| rest.split(['"', ' ', ',']).next()) {
            break address.trim_end_matches('/').parse()?;
        }
    };
    // The log must be read to its end, because robotsd would block if the pipe were full.
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    crawl(address, sites)?;
    // The last counts are written within a minute.
    std::thread::sleep(Duration::from_secs(if sites == SITES { 70 } else { 1 }));
    peak(serving.0.id())
}

/// Sends the requests of every crawler to every site.
fn crawl(address: SocketAddr, sites: usize) -> Measured<()> {
    let registry = Registry::builtin();
    let agents: Vec<&str> = registry.crawlers().map(|crawler| crawler.name.as_str()).take(CRAWLERS).collect();
    assert_eq!(agents.len(), CRAWLERS);
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut bytes = vec![0; 1 << 16];
    for site in 0..sites {
        for agents in agents.chunks(PIPELINED / 2) {
            let mut requests = String::new();
            for (agent, path) in agents.iter().flat_map(|agent| [(agent, "page"), (agent, "private/page")]) {
                let fields = format!("Host: shop{site}.test\r\nUser-Agent: {agent}/1.0\r\n");
                write!(requests, "HEAD /{path} HTTP/1.1\r\n{fields}\r\n")?;
            }
            stream.write_all(requests.as_bytes())?;
            // Responses are counted by the ends of their heads, because responses to HEAD have no
            // content.
            let (mut answers, mut tail) = (0, Vec::new());
            while answers < 2 * agents.len() {
                let read = stream.read(&mut bytes)?;
                if read == 0 {
                    return Err("robotsd closed the connection".into());
                }
                tail.extend_from_slice(&bytes[..read]);
                answers += tail.windows(4).filter(|four| four == b"\r\n\r\n").count();
                // If the end of a head has arrived only partly, it is counted after the next read.
                let keep = tail.windows(4).rposition(|four| four == b"\r\n\r\n").map_or(0, |at| at + 4);
                tail.drain(..keep);
            }
        }
    }
    Ok(())
}

/// Returns the peak memory of a process, in MiB.
fn peak(id: u32) -> Measured<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib / 1024.0)
}

/// A process that is stopped when this value is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
