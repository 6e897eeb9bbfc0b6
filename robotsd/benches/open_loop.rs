//! Sends requests at a constant rate, without waiting for earlier responses: `cargo bench -p
//! robotsd --bench open_loop -- ADDRESS TARGET RATE SECONDS [FIELD: VALUE…]`.
//!
//! The duration of a request begins at its scheduled time. If slow requests delay others, the
//! durations therefore include the delay, which a client that waits for each response would not
//! measure. Each request in progress has its own connection. Prints one line of JSON: the number of
//! requests, the number of responses other than 200, and the durations in µs. `proxy/latency.py`
//! uses this program.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// Maximum number of connections. If the limit is reached, further requests wait, and their
/// durations include the wait.
const CONNECTIONS: usize = 12_000;

enum Event {
    /// A request is scheduled for this time.
    Due(Instant),
    /// A connection has received a response.
    Answered { connection: usize, took: Duration, status: u16 },
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [address, target, rate, seconds, fields @ ..] = &arguments[..] else {
        // `cargo test --benches` passes no arguments, to check only that the program starts.
        println!("usage: open_loop ADDRESS TARGET RATE SECONDS [FIELD: VALUE…]");
        return Ok(());
    };
    let mut request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n");
    fields.iter().for_each(|field| request.push_str(&format!("{field}\r\n")));
    request.push_str("\r\n");
    let (rate, seconds): (f64, f64) = (rate.parse()?, seconds.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut times, wrong) = runtime.block_on(play(address.parse()?, request.into_bytes(), rate, seconds));
    times.sort_unstable();
    let of =
        |share: f64| times.get((times.len() as f64 * share) as usize).or(times.last()).copied().unwrap_or_default();
    println!(
        "{{\"requests\":{},\"wrong\":{wrong},\"p50\":{},\"p99\":{},\"p999\":{},\"max\":{}}}",
        times.len(),
        of(0.5),
        of(0.99),
        of(0.999),
        of(1.0)
    );
    Ok(())
}

/// Generates the load. Returns the duration of every request in microseconds, and the number of
/// responses other than 200.
async fn play(address: SocketAddr, request: Vec<u8>, rate: f64, seconds: f64) -> (Vec<u64>, usize) {
    let (events, mut happened) = mpsc::unbounded_channel();
    let count = (rate * seconds) as usize;
    // A separate thread schedules the requests, because the timers of the runtime have a resolution
    // of a millisecond.
    let due = events.clone();
    std::thread::spawn(move || {
        let start = Instant::now();
        for number in 0..count {
            let at = start + Duration::from_secs_f64(number as f64 / rate);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if due.send(Event::Due(at)).is_err() {
                return;
            }
        }
    });
    let request: &'static [u8] = Box::leak(request.into_boxed_slice());
    let (mut connections, mut idle) = (Vec::<mpsc::UnboundedSender<Instant>>::new(), Vec::new());
    let mut waiting = VecDeque::new();
    let (mut times, mut wrong) = (Vec::with_capacity(count), 0);
    while times.len() < count {
        match happened.recv().await {
            Some(Event::Due(at)) => waiting.push_back(at),
            Some(Event::Answered { connection, took, status }) => {
                times.push(took.as_micros() as u64);
                wrong += usize::from(status != 200);
                idle.push(connection);
            }
            None => break,
        }
        while idle.len() + CONNECTIONS > connections.len()
            && let Some(at) = waiting.pop_front()
        {
            let connection = idle.pop().unwrap_or_else(|| {
                let (questions, asked) = mpsc::unbounded_channel();
                tokio::spawn(connect(address, request, connections.len(), asked, events.clone()));
                connections.push(questions);
                connections.len() - 1
            });
            let _ = connections[connection].send(at);
        }
    }
    (times, wrong)
}

/// Runs one connection. Opens it again if the server closes it.
async fn connect(
    address: SocketAddr,
    request: &'static [u8],
    connection: usize,
    mut asked: mpsc::UnboundedReceiver<Instant>,
    events: mpsc::UnboundedSender<Event>,
) {
    let mut socket = None;
    while let Some(at) = asked.recv().await {
        let status = exchange(&mut socket, address, request).await.unwrap_or_else(|_| {
            socket = None;
            0
        });
        if events.send(Event::Answered { connection, took: at.elapsed(), status }).is_err() {
            return;
        }
    }
}

async fn exchange(socket: &mut Option<TcpStream>, address: SocketAddr, request: &[u8]) -> io::Result<u16> {
    let open = match socket {
        Some(open) => open,
        None => {
            let open = TcpStream::connect(address).await?;
            open.set_nodelay(true)?;
            socket.insert(open)
        }
    };
    open.write_all(request).await?;
    let mut answer = Vec::with_capacity(2048);
    let mut whole = None;
    while whole.is_none_or(|whole| answer.len() < whole) {
        if open.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        whole = whole.or_else(|| length(&answer));
    }
    answer
        .get(9..12)
        .and_then(|status| std::str::from_utf8(status).ok()?.parse().ok())
        .ok_or(io::ErrorKind::InvalidData.into())
}

/// Returns the length of a response in bytes; `None` if its head is incomplete.
fn length(answer: &[u8]) -> Option<usize> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&answer[..end]).ok()?.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    Some(end + length.unwrap_or(0))
}
