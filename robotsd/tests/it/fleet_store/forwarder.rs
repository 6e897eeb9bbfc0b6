//! The way to a store, which can be cut, or lead to another store.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(super) struct Forwarder {
    pub(super) address: SocketAddr,
    way: Arc<Mutex<Way>>,
}

struct Way {
    to: Option<SocketAddr>,
    open: Vec<TcpStream>,
}

impl Forwarder {
    pub(super) fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let way = Arc::new(Mutex::new(Way { to: Some(to), open: Vec::new() }));
        let led = Arc::clone(&way);
        std::thread::spawn(move || {
            listener.incoming().flatten().for_each(|stream| drop(led.lock().unwrap().lead(stream)))
        });
        Self { address, way }
    }

    pub(super) fn cut(&self) {
        self.turn(None);
    }

    pub(super) fn lead_to(&self, to: SocketAddr) {
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
        for (from, to) in [(&client, &server), (&server, &client)] {
            let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
            std::thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
        self.open.extend([client, server]);
        Ok(())
    }
}
