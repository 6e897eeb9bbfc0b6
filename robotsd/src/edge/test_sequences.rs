//! Fuzzing entry point for whole connections. It sends the same bytes through the edge and through
//! hyper alone. It needs a runtime with a paused clock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::sleep;

use super::connection;
use super::connection::settings::{ConnectionSettings, EdgeLimits};
use super::connection_state::ConnectionState;
use super::http1_fast::{Handover, request};
use super::request::service::{ConnectionInfo, RequestService};
use super::request::trusted::ForwardedFields;
use crate::http_common::{EdgeService, Peer, RequestBody};
use crate::socket::Socket;

/// Separator between two writes of the client.
const SEPARATOR: &[u8] = b"\n--\n";

/// Maximum number of writes of a connection.
const WRITES: usize = 6;

/// Time to wait after each write. By then, the server has sent all of its answers.
const PAUSE: Duration = Duration::from_millis(2);

/// Duration of each deadline of the server. It is longer than all pauses together, so that no
/// deadline passes early.
const DEADLINE: Duration = Duration::from_millis(40);

/// The requests that have arrived at the service.
type Arrived = Arc<Mutex<Vec<String>>>;

#[derive(Clone)]
struct Recorder(Arrived);

impl EdgeService for Recorder {
    type Body = Full<Bytes>;

    async fn answer(self, request: Box<Request<RequestBody>>) -> Response<Self::Body> {
        let (head, body) = request.into_parts();
        let begin = format!("{} {} {:?}", head.method, head.uri, head.version);
        let mut fields: Vec<_> = head.headers.iter().filter(|(name, _)| *name != "x-request-id").collect();
        fields.sort_by_key(|(name, _)| name.as_str().to_owned());
        // The request is recorded before its body is read, because the body may end early.
        self.0.lock().push(format!("{begin} {fields:?}"));
        match body.collect().await {
            Ok(body) => {
                let trailers = body.trailers().cloned();
                self.0.lock().push(format!("{trailers:?} {:?}", body.to_bytes()));
            }
            Err(_) => self.0.lock().push("broken".to_owned()),
        }
        let mut response = Response::new(Full::new(Bytes::from_static(b"a page")));
        match head.uri.path() {
            "/204" => *response.status_mut() = http::StatusCode::NO_CONTENT,
            "/304" => *response.status_mut() = http::StatusCode::NOT_MODIFIED,
            "/close" => drop(response.headers_mut().insert("connection", http::HeaderValue::from_static("close"))),
            _ => {}
        }
        response
    }
}

/// The two servers to compare.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Server {
    Edge,
    Hyper,
}

impl Server {
    pub(crate) async fn serve(self, socket: Socket, service: impl EdgeService, limits: EdgeLimits) {
        let settings = Arc::new(ConnectionSettings::new(limits, None));
        let (_stop, stopped) = watch::channel(false);
        let peer = Peer::at(SocketAddr::from(([127, 0, 0, 1], 1)), None);
        let info = ConnectionInfo { forwarded: ForwardedFields::new(peer, "http", Arc::default()), secured: None };
        let state = Arc::new(ConnectionState::new(&settings.limits));
        let service = RequestService::new(service, Arc::clone(&settings), state, info, 0).into();
        let _ = match self {
            Self::Edge => connection::serve(socket, service, settings, Arc::default(), stopped, None).await,
            Self::Hyper => {
                let handover = Handover { socket, bytes: Bytes::new(), protocol: None, service };
                connection::serve_handover(handover, settings, Arc::default(), stopped).await
            }
        };
    }
}

/// Sends the writes to a server. Returns the requests that arrived at the service, and the status
/// lines and `Connection: close` lines that the server sent.
async fn served(by: Server, writes: &[Bytes]) -> (Vec<String>, Vec<Vec<u8>>) {
    let limits = EdgeLimits {
        first_byte: DEADLINE,
        header_read: DEADLINE,
        keep_alive: DEADLINE,
        body_idle: DEADLINE,
        ..EdgeLimits::default()
    };
    let (Ok((mut client, server)), arrived) = (UnixStream::pair(), Arrived::default()) else {
        return Default::default();
    };
    let serving = by.serve(Socket::Unix(server), Recorder(Arc::clone(&arrived)), limits);
    let asking = async {
        for bytes in writes {
            // Writing fails if the server has already closed the connection.
            let _ = client.write_all(bytes).await;
            sleep(PAUSE).await;
        }
        let mut answers = Vec::new();
        let _ = client.read_to_end(&mut answers).await;
        answers
    };
    let ((), answers) = tokio::join!(serving, asking);
    let lines = answers.split(|byte| *byte == b'\n');
    let told = lines.filter(|line| line.starts_with(b"HTTP/1.1 ") || line.eq_ignore_ascii_case(b"connection: close\r"));
    let told = told.map(<[u8]>::to_ascii_lowercase).collect();
    let arrived = std::mem::take(&mut *arrived.lock());
    (arrived, told)
}

/// Checks an HTTP/1 or HTTP/2 connection with several requests in several writes. The connection
/// must end without a panic. The service must receive the same requests as with hyper alone, and
/// the client the same statuses. Returns the number of heads and bodies that arrived at the
/// service.
///
/// # Panics
///
/// Panics if the edge and hyper alone behave differently.
pub fn connection(bytes: &[u8], runtime: &Runtime) -> usize {
    let mut writes = Vec::new();
    let mut left = bytes;
    while !left.is_empty() && writes.len() < WRITES {
        let end = left.windows(SEPARATOR.len()).position(|window| window == SEPARATOR).unwrap_or(left.len());
        let (write, rest) = left.split_at(end);
        let write = Bytes::copy_from_slice(write);
        // Without the edge, hyper would reject targets that the edge escapes. So both servers get
        // the escaped form.
        writes.push(request::escaped(&write).unwrap_or(write));
        left = rest.get(SEPARATOR.len()..).unwrap_or_default();
    }
    let by_edge = runtime.block_on(served(Server::Edge, &writes));
    let by_hyper = runtime.block_on(served(Server::Hyper, &writes));
    assert_eq!(by_edge, by_hyper, "{writes:?}");
    by_edge.0.len()
}
