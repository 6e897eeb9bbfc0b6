//! The server side of a TLS connection. It sends close_notify when dropped, as TLS servers should.

use std::io::{Read, Result, Write};
use std::net::TcpStream;
use std::sync::Arc;

use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

pub(crate) struct Closing(StreamOwned<ServerConnection, TcpStream>);

impl Closing {
    pub(crate) fn over(socket: TcpStream, config: Arc<ServerConfig>) -> Option<Self> {
        Some(Self(StreamOwned::new(ServerConnection::new(config).ok()?, socket)))
    }
}

impl Read for Closing {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Closing {
    fn write(&mut self, buffer: &[u8]) -> Result<usize> {
        self.0.write(buffer)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.conn.send_close_notify();
        let _ = self.0.flush();
    }
}
