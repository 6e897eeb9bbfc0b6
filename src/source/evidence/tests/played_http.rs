//! A server that answers with what the test has put there.

use crate::live::Mutex;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A server of one answer, which the test changes.
#[derive(Clone)]
pub(crate) struct PlayedHttp {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

struct State {
    answer: Vec<u8>,
    heads: Vec<String>,
}

impl PlayedHttp {
    pub(crate) fn start(answer: impl Into<Vec<u8>>) -> Self {
        Self::listen(answer.into(), |port| format!("http://127.0.0.1:{port}/list.json"), Some)
    }

    /// One that leaves its connections open.
    pub(crate) fn start_stalling(answer: impl Into<Vec<u8>>) -> Self {
        let open = Mutex::new(Vec::new());
        Self::listen(
            answer.into(),
            |port| format!("http://127.0.0.1:{port}/list.json"),
            move |stream: TcpStream| {
                open.lock().push(stream.try_clone().ok()?);
                Some(stream)
            },
        )
    }

    /// One over TLS, and the certificate to trust, as PEM.
    pub(crate) fn start_tls(answer: impl Into<Vec<u8>>) -> (Self, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
        let config = Arc::new(builder.with_single_cert(vec![certificate.der().clone()], key).expect("a key of its"));
        let wrap = move |socket| {
            let connection = ServerConnection::new(config.clone()).ok()?;
            Some(SaysGoodbye(StreamOwned::new(connection, socket)))
        };
        (Self::listen(answer.into(), |port| format!("https://localhost:{port}"), wrap), certificate.pem())
    }

    fn listen<S: Read + Write>(
        answer: Vec<u8>,
        url: impl FnOnce(u16) -> String,
        wrap: impl Fn(TcpStream) -> Option<S> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = url(listener.local_addr().expect("an address").port());
        let state = Arc::new(Mutex::new(State { answer, heads: Vec::new() }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok).filter_map(wrap) {
                let (mut head, mut octet) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut octet), Ok(1)) {
                    head.push(octet[0]);
                }
                let answer = {
                    let mut state = shared.lock();
                    state.heads.push(String::from_utf8_lossy(&head).into_owned());
                    state.answer.clone()
                };
                // A client may have had enough.
                let _ = stream.write_all(&answer);
            }
        });
        Self { url, state }
    }

    pub(crate) fn answers(&self, answer: impl Into<Vec<u8>>) {
        self.state.lock().answer = answer.into();
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.state.lock().heads.clone()
    }
}

/// A TLS connection that ends as TLS has it.
struct SaysGoodbye(StreamOwned<ServerConnection, TcpStream>);

impl Read for SaysGoodbye {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for SaysGoodbye {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        self.0.write(buffer)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for SaysGoodbye {
    fn drop(&mut self) {
        self.0.conn.send_close_notify();
        let _ = self.0.flush();
    }
}

/// An answer with a body.
pub(crate) fn answer(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}
