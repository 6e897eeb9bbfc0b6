//! Clients that connect and ask throughout, while new processes are killed at seeded moments.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::deaths::held;
use super::{ASK, LONG_DRAIN, Upgraded};
use crate::harness::*;

/// New processes are killed no later than this after they were started, or served.
const LATEST: u64 = 2000;

/// Most have not served by then.
const EARLY: u64 = 120;

/// The results that clients met.
#[derive(Debug, Default)]
struct Tally {
    connects: AtomicUsize,
    answered: AtomicUsize,
    /// No connection was made.
    refused: AtomicUsize,
    /// Cut off by the death of the process that had accepted them, behind a request or before one.
    died_with_request: AtomicUsize,
    died_without: AtomicUsize,
    /// Cut off although no process that could have accepted them has died.
    cut: AtomicUsize,
    /// The longest wait for a connection or an answer, in milliseconds.
    longest: AtomicUsize,
    /// From before the last kill until the process was dead.
    death: Mutex<Option<(Instant, Instant)>>,
}

/// How far a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    No,
    Yes,
}

impl Tally {
    /// The numbers so far, those aside that are no count.
    fn counts(&self) -> [usize; 6] {
        [&self.connects, &self.answered, &self.refused, &self.died_with_request, &self.died_without, &self.cut]
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// A connection was cut off that was opened at this moment.
    fn note(&self, opened: Instant, sent: Sent) {
        let now = Instant::now();
        // A kill that is under way has no end yet, and its client may notice it first.
        let death = wait_for("the end of a kill", || {
            let death = *self.death.lock().unwrap();
            death.is_none_or(|(_, end)| end <= Instant::now()).then_some(death)
        });
        let is_of_death = death.is_some_and(|(begin, end)| opened <= end && now >= begin);
        let count = match (is_of_death, sent) {
            (false, _) => &self.cut,
            (true, Sent::Yes) => &self.died_with_request,
            (true, Sent::No) => &self.died_without,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn connect(&self, address: SocketAddr) -> Option<(TcpStream, Instant)> {
        let began = Instant::now();
        match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                self.connects.fetch_add(1, Ordering::Relaxed);
                Some((stream, began))
            }
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                // There may be no process for long.
                std::thread::sleep(Duration::from_millis(5));
                None
            }
        }
    }

    fn answered(&self, since: Instant) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let waited = usize::try_from(since.elapsed().as_millis()).unwrap();
        self.longest.fetch_max(waited, Ordering::Relaxed);
    }

    /// A request on a connection of its own, again and again.
    fn keep_connecting(&self, address: SocketAddr) {
        let Some((mut stream, opened)) = self.connect(address) else { return };
        if stream.write_all(ASK).is_err() {
            return self.note(opened, Sent::No);
        }
        let mut answer = String::new();
        match stream.read_to_string(&mut answer) {
            Ok(_) if answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("a page") => self.answered(opened),
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer within {PATIENCE:?}"),
            _ => self.note(opened, Sent::Yes),
        }
    }

    /// Requests on one connection after another, each used until an answer says that it is the last.
    fn keep_asking(&self, address: SocketAddr) -> Client<'_> {
        let mut open = None;
        Box::new(move || {
            let Some((mut reader, opened)) =
                open.take().or_else(|| self.connect(address).map(|(stream, opened)| (BufReader::new(stream), opened)))
            else {
                return;
            };
            let began = Instant::now();
            if reader.get_mut().write_all(b"GET /a.html HTTP/1.1\r\nHost: a\r\n\r\n").is_err() {
                return self.note(opened, Sent::No);
            }
            let Some(is_last) = read_page(&mut reader) else { return self.note(opened, Sent::Yes) };
            self.answered(began);
            if !is_last {
                open = Some((reader, opened));
                std::thread::sleep(Duration::from_millis(2));
            }
        })
    }
}

/// Reads an answer whole; whether it is the last one on its connection.
fn read_page(reader: &mut BufReader<TcpStream>) -> Option<bool> {
    if let Err(error) = reader.fill_buf() {
        assert_ne!(error.kind(), ErrorKind::WouldBlock, "no answer within {PATIENCE:?}");
    }
    let answer = Answer::read(reader, "GET")?;
    assert_eq!((answer.status, &*answer.body), (200, "a page"));
    Some(answer.is_last())
}

/// A moment of a death: how long after the new process was started, or served. Some are early, while it opens everything.
fn moment(seed: u64) -> u64 {
    let latest = if seed % 4 == 2 { EARLY } else { LATEST };
    let mut state = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (state ^ (state >> 31)) % latest
}

/// Upgrades, and kills the new process at the moment of the seed. Returns a row of the table.
fn die(upgraded: &Upgraded, current: u32, seed: u64, tally: &Tally) -> String {
    let before = tally.counts();
    tally.longest.store(0, Ordering::Relaxed);
    let started = upgraded.started().len();
    // The process before stays, however late this one kills the new one.
    let _held = held(upgraded);
    signal("USR2", current);
    let new = wait_for("the new process", || upgraded.started().get(started).copied());
    let has_served = || {
        let served = format!("process {new} has taken the place");
        upgraded.running.has_event("upgrade", |line| line["message"].to_string().contains(&served))
    };
    let after = if seed.is_multiple_of(2) { "start" } else { "serving" };
    if after == "serving" {
        wait_until("the new process to serve", has_served);
    }
    let (moment, by) = (moment(seed), ["KILL", "ABRT", "ILL"][(seed % 3) as usize]);
    std::thread::sleep(Duration::from_millis(moment));
    let stage = if has_served() { "serving" } else { "opening" };
    let begin = Instant::now();
    *tally.death.lock().unwrap() = Some((begin, begin + PATIENCE));
    signal(by, new);
    wait_until("the death of the new process", || !is_alive(new));
    *tally.death.lock().unwrap() = Some((begin, Instant::now()));
    upgraded.running.wait_for_event("upgrade", |line| {
        let message = line["message"].to_string();
        line["level"] == "error" && message.contains(&format!("process {new}")) && message.contains("this process")
    });
    let left = upgraded.process();
    assert_eq!(left, current, "after the death of {new}");
    let answered = tally.counts()[1];
    wait_until("requests again", || tally.counts()[1] >= answered + 50);
    let [connects, answered, refused, with, without, cut] = std::array::from_fn(|at| tally.counts()[at] - before[at]);
    let longest = tally.longest.load(Ordering::Relaxed);
    format!(
        "{seed:>4}  {moment:>5} ms after {after:<7}  {by:<4}  {stage:<7}  {left:>7}  {connects:>8}  {answered:>8}  {refused:>7}  \
         {with:>9}  {without:>7}  {cut:>5}  {longest:>6} ms"
    )
}

#[test]
fn no_connection_is_refused_or_cut_off_that_the_process_which_died_had_not_accepted() {
    let deaths = if is_long() { 20 } else { 4 };
    let upgraded = Upgraded::start(LONG_DRAIN);
    let (address, tally) = (upgraded.running.address, Tally::default());
    let connecting = || -> Client<'_> { Box::new(|| tally.keep_connecting(address)) };
    let clients = [connecting(), connecting(), tally.keep_asking(address), tally.keep_asking(address)];
    while_asking(clients, |_| {
        println!(
            "seed  killed                by    stage      served  connects  answered  refused  died, sent  not sent  cut  longest"
        );
        let mut current = upgraded.process();
        for seed in 0..deaths {
            println!("{}", die(&upgraded, current, seed, &tally));
            if seed % 4 == 3 {
                // The process that is left can be followed.
                upgraded.upgraded();
                let next = upgraded.process();
                assert_ne!(next, current);
                current = next;
            }
        }
    });
    let [connects, answered, refused, with, without, cut] = tally.counts();
    println!("connects {connects}, answered {answered}, refused {refused}, died {with} and {without}, cut off {cut}");
    assert_eq!((refused, cut), (0, 0));
}
