//! Tests clients that connect and send requests all the time, while new processes are killed before
//! they serve. The times of the kills are random but reproducible.

use std::io::ErrorKind;

use super::{ASK, Upgraded};
use crate::harness::*;

/// Latest moment at which a new process is stopped, in milliseconds. Most new processes do not
/// serve by then.
const LATEST: u64 = 120;

/// Time for the previous process to read what a new process has sent before it was stopped.
const HEARD: Duration = Duration::from_millis(300);

/// What the clients have experienced.
#[derive(Debug, Default)]
struct Tally {
    connects: AtomicUsize,
    answered: AtomicUsize,
    /// Connections that could not be opened.
    refused: AtomicUsize,
    /// Connections that were cut off when their process died, after they had sent a request.
    /// `died_without` counts those without a request.
    died_with_request: AtomicUsize,
    died_without: AtomicUsize,
    /// Connections that were cut off although no process died that could have accepted them.
    cut: AtomicUsize,
    /// Longest time that a client has waited for a connection or response, in milliseconds.
    longest: AtomicUsize,
    /// Times immediately before the last kill and after the process was dead.
    death: Mutex<Option<(Instant, Instant)>>,
}

/// How much of a request the client has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    No,
    Yes,
}

impl Tally {
    fn counts(&self) -> [usize; 6] {
        [&self.connects, &self.answered, &self.refused, &self.died_with_request, &self.died_without, &self.cut]
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// Records that a connection was cut off, which was opened at this time.
    fn note(&self, opened: Instant, sent: Sent) {
        let now = Instant::now();
        // If a kill is in progress, its end is not known yet, but a client may already have noticed
        // it.
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
                // For a while, no process may be running.
                thread::sleep(Duration::from_millis(5));
                None
            }
        }
    }

    fn answered(&self, since: Instant) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let waited = usize::try_from(since.elapsed().as_millis()).unwrap();
        self.longest.fetch_max(waited, Ordering::Relaxed);
    }

    /// Opens connections one after another, and sends a request on each.
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

    /// Sends requests on one connection after another. Each connection is used until its last
    /// response.
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
                thread::sleep(Duration::from_millis(2));
            }
        })
    }
}

/// Reads a whole response. Returns whether it is the last one on its connection.
fn read_page(reader: &mut BufReader<TcpStream>) -> Option<bool> {
    if let Err(error) = reader.fill_buf() {
        assert_ne!(error.kind(), ErrorKind::WouldBlock, "no answer within {PATIENCE:?}");
    }
    let answer = Answer::read(reader, "GET")?;
    assert_eq!((answer.status, &*answer.body), (200, "a page"));
    Some(answer.is_last())
}

/// Returns how long after its start a new process is killed.
fn moment(seed: u64) -> u64 {
    let mut state = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (state ^ (state >> 31)) % LATEST
}

/// Upgrades, and kills the new process after a time that the seed determines, unless the process
/// serves by then. Returns the ID of the remaining process, and a row for the printed table.
fn die(upgraded: &Upgraded, current: u32, seed: u64, tally: &Tally) -> (u32, String) {
    let before = tally.counts();
    tally.longest.store(0, Ordering::Relaxed);
    let started = upgraded.started().len();
    signal("USR2", current);
    let new = wait_for("the new process", || upgraded.started().get(started).copied());
    let has_served = || {
        let served = format!("process {new} has replaced");
        upgraded.running.has_event("upgrade", |line| message(line).starts_with(&served))
    };
    let moment = moment(seed);
    thread::sleep(Duration::from_millis(moment));
    // The messages of the new process show whether it is killed before it serves.
    stop(new);
    thread::sleep(HEARD);
    let has_served = has_served();
    let left = if has_served {
        signal("CONT", new);
        new
    } else {
        let begin = Instant::now();
        *tally.death.lock().unwrap() = Some((begin, begin + PATIENCE));
        signal("KILL", new);
        wait_until("the death of the new process", || !is_alive(new));
        *tally.death.lock().unwrap() = Some((begin, Instant::now()));
        upgraded.running.wait_for_event("upgrade", |line| {
            let message = message(line);
            line["level"] == "error" && message.contains(&format!("process {new} did not take over"))
        });
        current
    };
    assert_eq!(upgraded.process(), left, "after the start of {new}");
    let answered = tally.counts()[1];
    wait_until("requests again", || tally.counts()[1] >= answered + 50);
    let [connects, answered, refused, with, without, cut] = std::array::from_fn(|at| tally.counts()[at] - before[at]);
    let longest = tally.longest.load(Ordering::Relaxed);
    let end = if has_served { "served" } else { "killed" };
    let row = format!(
        "{seed:>4}  {moment:>5} ms  {end:<6}  {left:>7}  {connects:>8}  {answered:>8}  {refused:>7}  {with:>9}  {without:>7}  \
         {cut:>5}  {longest:>6} ms"
    );
    (left, row)
}

#[test]
fn connections_that_a_dead_process_had_not_accepted_are_neither_refused_nor_cut_off() {
    let deaths = if is_long() { 20 } else { 4 };
    let upgraded = Upgraded::start("");
    let (address, tally) = (upgraded.running.address, Tally::default());
    let connecting = || -> Client<'_> { Box::new(|| tally.keep_connecting(address)) };
    let clients = [connecting(), connecting(), tally.keep_asking(address), tally.keep_asking(address)];
    while_asking(clients, |_| {
        println!("seed  moment    end      served  connects  answered  refused  died, sent  not sent  cut  longest");
        let mut current = upgraded.process();
        for seed in 0..deaths {
            let (left, row) = die(&upgraded, current, seed, &tally);
            println!("{row}");
            current = left;
            if seed % 4 == 3 {
                // It must be possible to upgrade the remaining process again.
                upgraded.upgraded();
                let next = upgraded.process();
                assert_ne!(next, current);
                current = next;
            }
        }
        assert_eq!(upgraded.get("/private/x"), 403);
        assert_eq!(upgraded.json(&["status"])["problems"], json!([]));
    });
    let [connects, answered, refused, with, without, cut] = tally.counts();
    println!("connects {connects}, answered {answered}, refused {refused}, died {with} and {without}, cut off {cut}");
    assert_eq!((refused, cut), (0, 0));
}
