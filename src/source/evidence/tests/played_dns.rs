//! A simulated DNS server whose records the test sets. The tests of robotsd use it, too.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, PTR};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};

/// The response to a query.
#[derive(Clone)]
pub(crate) enum Played {
    Records(Vec<RData>),
    Chain(&'static str, Vec<RData>),
    Code(ResponseCode),
    Silence,
    /// The response is truncated, even over TCP.
    Truncated,
}

/// A DNS server over UDP and TCP. For names without records, the response is NXDOMAIN, or the
/// response that [`unset`](Self::unset) sets.
#[derive(Clone)]
pub(crate) struct PlayedDns {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    played: HashMap<(String, RecordType), Played>,
    unset: Option<Played>,
    asked: Vec<String>,
}

impl PlayedDns {
    pub(crate) fn start() -> Self {
        // The same port must be free for UDP and TCP. Otherwise, another port is tried.
        let (udp, tcp) = (0..100)
            .find_map(|_| {
                let udp = UdpSocket::bind("127.0.0.1:0").ok()?;
                let tcp = TcpListener::bind(udp.local_addr().ok()?).ok()?;
                Some((udp, tcp))
            })
            .expect("a port");
        let address = udp.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State::default()));
        let over_udp = state.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((length, peer)) = udp.recv_from(&mut buffer) {
                if let Some(answer) = respond(&over_udp, &buffer[..length], 512) {
                    let _ = udp.send_to(&answer, peer);
                }
            }
        });
        let over_tcp = state.clone();
        std::thread::spawn(move || {
            for mut stream in tcp.incoming().map_while(Result::ok) {
                let state = over_tcp.clone();
                std::thread::spawn(move || {
                    let mut length = [0; 2];
                    while stream.read_exact(&mut length).is_ok() {
                        let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
                        if stream.read_exact(&mut question).is_err() {
                            return;
                        }
                        let Some(answer) = respond(&state, &question, 65_535) else { continue };
                        let length = u16::try_from(answer.len()).expect("a message").to_be_bytes();
                        if stream.write_all(&[&length[..], &answer].concat()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, state }
    }

    /// Sets the response to queries for the reverse DNS names of an address.
    pub(crate) fn names(&self, address: &str, played: Played) -> &Self {
        let name = Name::from(address.parse::<std::net::IpAddr>().expect(address));
        self.set(&name, RecordType::PTR, played)
    }

    /// Sets the response to queries for the addresses of a name, for both IP versions.
    pub(crate) fn addresses(&self, name: &str, played: Played) -> &Self {
        let name = absolute(name);
        self.set(&name, RecordType::A, played.clone()).set(&name, RecordType::AAAA, played)
    }

    /// Sets a reverse DNS name of an address, and lets this name resolve to the address.
    pub(crate) fn confirmed(&self, address: &str, name: &str) -> &Self {
        self.names(address, ptr(&[name])).addresses(name, address_records(&[address]))
    }

    /// Sets the response to queries for names without records.
    pub(crate) fn unset(&self, played: Played) {
        self.state.lock().unwrap().unset = Some(played);
    }

    fn set(&self, name: &Name, record: RecordType, played: Played) -> &Self {
        self.state.lock().unwrap().played.insert((key(name), record), played);
        self
    }

    /// Returns the queries so far, as strings such as `PTR 1.2.3.4.in-addr.arpa.`.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }
}

pub(crate) fn ptr(names: &[&str]) -> Played {
    Played::Records(names.iter().map(|name| RData::PTR(PTR(absolute(name)))).collect())
}

pub(crate) fn address_records(addresses: &[&str]) -> Played {
    Played::Records(records(addresses))
}

pub(crate) fn records(addresses: &[&str]) -> Vec<RData> {
    addresses
        .iter()
        .map(|address| match address.parse().expect(address) {
            std::net::IpAddr::V4(address) => RData::A(A(address)),
            std::net::IpAddr::V6(address) => RData::AAAA(AAAA(address)),
        })
        .collect()
}

fn absolute(name: &str) -> Name {
    let mut name = Name::from_ascii(name).expect(name);
    name.set_fqdn(true);
    name
}

fn key(name: &Name) -> String {
    name.to_ascii().to_ascii_lowercase()
}

fn respond(state: &Mutex<State>, question: &[u8], most: usize) -> Option<Vec<u8>> {
    let request = Message::from_vec(question).ok()?;
    let query = request.queries.first()?.clone();
    let (name, kind) = (query.name().clone(), query.query_type());
    let played = {
        let mut state = state.lock().unwrap();
        state.asked.push(format!("{kind} {}", key(&name)));
        state.played.get(&(key(&name), kind)).or(state.unset.as_ref()).cloned()
    };
    let mut answer = Message::response(request.metadata.id, request.metadata.op_code);
    answer.metadata.recursion_available = true;
    answer.add_query(query);
    let add = |answer: &mut Message, name: &Name, records: Vec<RData>| {
        for data in records.into_iter().filter(|data| data.record_type() == kind) {
            answer.add_answer(Record::from_rdata(name.clone(), 300, data));
        }
    };
    match played {
        None => answer.metadata.response_code = ResponseCode::NXDomain,
        Some(Played::Silence) => return None,
        Some(Played::Code(code)) => answer.metadata.response_code = code,
        Some(Played::Truncated) => answer.metadata.truncation = true,
        Some(Played::Records(records)) => add(&mut answer, &name, records),
        Some(Played::Chain(other, records)) => {
            let other = absolute(other);
            answer.add_answer(Record::from_rdata(name, 300, RData::CNAME(CNAME(other.clone()))));
            add(&mut answer, &other, records);
        }
    }
    let bytes = answer.to_vec().ok()?;
    if bytes.len() <= most {
        return Some(bytes);
    }
    answer.answers.clear();
    answer.metadata.truncation = true;
    answer.to_vec().ok()
}
