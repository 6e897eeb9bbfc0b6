//! A DNS server whose names the test sets, over UDP.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

const A: u16 = 1;
const PTR: u16 = 12;

/// NXDOMAIN for what was not set.
#[derive(Clone)]
pub(super) struct PlayedNames {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// What answers hold, by name and type.
    records: HashMap<(String, u16), Vec<u8>>,
    asked: Vec<String>,
    is_silent: bool,
}

impl PlayedNames {
    pub(super) fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let played = state.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
                if let Some(answer) = played.lock().unwrap().answer(&buffer[..length]) {
                    let _ = socket.send_to(&answer, peer);
                }
            }
        });
        Self { address, state }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// An address with this name.
    pub(super) fn named(&self, address: &str, name: &str) -> &Self {
        let mut octets = address.parse::<Ipv4Addr>().unwrap().octets();
        octets.reverse();
        let reverse = format!("{}.in-addr.arpa", IpAddr::from(octets));
        self.state.lock().unwrap().records.insert((reverse, PTR), encoded(name));
        self
    }

    /// An address with this name, which leads back to it.
    pub(super) fn confirmed(&self, address: &str, name: &str) -> &Self {
        let octets = address.parse::<Ipv4Addr>().unwrap().octets();
        self.state.lock().unwrap().records.insert((name.to_owned(), A), octets.to_vec());
        self.named(address, name)
    }

    /// From now on nothing is answered.
    pub(super) fn is_silent(&self) {
        self.state.lock().unwrap().is_silent = true;
    }

    /// The names that were asked for.
    pub(super) fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }
}

impl State {
    fn answer(&mut self, question: &[u8]) -> Option<Vec<u8>> {
        let (name, end) = decoded(question, 12)?;
        let kind = u16::from_be_bytes([*question.get(end)?, *question.get(end + 1)?]);
        self.asked.push(name.clone());
        if self.is_silent {
            return None;
        }
        let data = self.records.get(&(name, kind));
        // A response with recursion, and NXDOMAIN where there is nothing.
        let code = if data.is_some() { 0x80 } else { 0x83 };
        let counts = [0, 1, 0, u8::from(data.is_some()), 0, 0, 0, 0];
        let mut answer = [&question[..2], &[0x81, code], &counts, &question[12..end + 4]].concat();
        if let Some(data) = data {
            // The name of the question, its type and class, and a minute.
            answer.extend([0xC0, 12]);
            answer.extend_from_slice(&question[end..end + 4]);
            answer.extend([0, 0, 0, 60]);
            answer.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            answer.extend_from_slice(data);
        }
        Some(answer)
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let label = |label: &str| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat();
    name.split('.').map(label).chain([vec![0]]).collect::<Vec<_>>().concat()
}

/// A name, and where it ends.
fn decoded(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        labels.push(String::from_utf8_lossy(message.get(at..at + length)?).to_ascii_lowercase());
        at += length;
    }
}
