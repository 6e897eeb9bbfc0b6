//! Forwards connections to a store. It can cut them, redirect them, or slow them down.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Forwarder {
    pub(crate) address: SocketAddr,
    way: Arc<Mutex<Way>>,
    /// Response time, in milliseconds.
    answer: Arc<AtomicU64>,
}

struct Way {
    to: Option<SocketAddr>,
    answer: Arc<AtomicU64>,
    open: Vec<TcpStream>,
}

impl Forwarder {
    pub(crate) fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = Arc::<AtomicU64>::default();
        let way = Arc::new(Mutex::new(Way { to: Some(to), answer: Arc::clone(&answer), open: Vec::new() }));
        let led = Arc::clone(&way);
        std::thread::spawn(move || {
            listener.incoming().flatten().for_each(|stream| drop(led.lock().unwrap().lead(stream)))
        });
        Self { address, way, answer }
    }

    /// Sets how long the store seems to take for each response.
    pub(crate) fn takes(&self, time: Duration) {
        self.answer.store(time.as_millis().try_into().unwrap(), Ordering::Relaxed);
    }

    pub(crate) fn cut(&self) {
        self.turn(None);
    }

    pub(crate) fn lead_to(&self, to: SocketAddr) {
        self.turn(Some(to));
    }

    fn turn(&self, to: Option<SocketAddr>) {
        let mut way = self.way.lock().unwrap();
        way.to = to;
        way.open.drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

impl Way {
    fn lead(&mut self, client: TcpStream) -> io::Result<()> {
        let Some(to) = self.to else { return Ok(()) };
        let server = TcpStream::connect(to)?;
        for (from, to, time) in [(&client, &server, None), (&server, &client, Some(&self.answer))] {
            let (mut from, mut to, time) = (from.try_clone()?, to.try_clone()?, time.cloned());
            std::thread::spawn(move || {
                let mut bytes = [0; 1 << 16];
                while let Ok(read @ 1..) = from.read(&mut bytes) {
                    let time = time.as_ref().map_or(0, |time| time.load(Ordering::Relaxed));
                    std::thread::sleep(Duration::from_millis(time));
                    if to.write_all(&bytes[..read]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
            });
        }
        self.open.extend([client, server]);
        Ok(())
    }
}
