//! The client that commands use to reach the running robotsd.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Empty;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_util::io::{InspectReader, InspectWriter};
use tower_robots::internals::{self, Excess};

use super::access_rule::ADMIN_FIELD;
use super::place_file::find_token;
use super::token::token_of_environment;
use crate::authorities::Authorities;
use crate::config::{AdminPlace, is_open};
use crate::socket::Socket;
use crate::upstream::secured;

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for a response. A process needs much less time, unless it is stopped (SIGSTOP).
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout for a reload. robotsd may first read thousands of files, and waits up to a minute for
/// each site whose source hangs.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(300);

/// Timeout for a response if many replicas are queried.
const REPLICA_TIMEOUT: Duration = Duration::from_secs(10);
const REPLICA_RELOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// Timeout for the rows of the board if many replicas are queried. The timeout is short, because a
/// browser waits for the page with these rows.
const ROWS_TIMEOUT: Duration = Duration::from_secs(2);

const ANNOUNCE_DELAY: Duration = Duration::from_secs(1);

/// Environment variable with the path of a PEM file. Its certificate authorities are trusted
/// instead of the system's certificate authorities.
const CA_VARIABLE: &str = "ROBOTSD_ADMIN_CA";

/// Maximum number of connections for one request. robotsd may close the connection of a slow
/// command to free a slot for another client, and the command must connect again.
const MAX_ATTEMPTS: usize = 5;

/// Delay before the local token is read again after a response with status 401: robotsd may have
/// just created a new token.
const TOKEN_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Maximum size of a response, in bytes: enough for the status of a hundred thousand sites.
const MAX_BYTES: u64 = 128 * 1024 * 1024;

/// Maximum size of the board's rows from one replica, in bytes. The limit is low because the rows
/// of all replicas are kept in memory at the same time.
const MAX_ROWS_BYTES: u64 = 8 * 1024 * 1024;

pub(crate) const ROWS_PATH: &str = "/board/rows";

#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error(
        "{0}: no process listens there, so robotsd is not running, its admin interface is off, or the admin interface \
         has another address (give that address with --admin PLACE)"
    )]
    NotRunning(AdminPlace),
    #[error("robotsd answered {status}: {1}", status = .0.as_u16())]
    Refused(StatusCode, String),
    #[error("{0}: {1}")]
    Broken(AdminPlace, String),
}

/// Function that prints that the command is waiting for a response.
pub(crate) type Announce = fn(&dyn fmt::Display);

/// The method of a request, and its path with the query.
pub(crate) type AdminCall<'q> = (&'q Method, &'q str);

/// Sends a request to a running robotsd and parses the JSON response. Calls `announce` if no
/// response arrives within [`ANNOUNCE_DELAY`].
pub(crate) fn ask<T: DeserializeOwned>(
    place: &AdminPlace,
    of: AdminCall<'_>,
    announce: Announce,
) -> Result<T, AskError> {
    ask_within((ANNOUNCE_DELAY, response_timeout(of.1)), place, of, &announce)
}

/// Asks one of several replicas. The timeout is shorter than the timeout of [`ask`], because one
/// slow replica would delay the result for all replicas.
pub(crate) fn ask_replica<T: DeserializeOwned>(place: &AdminPlace, of: AdminCall<'_>) -> Result<T, AskError> {
    let deadline = match response_timeout(of.1) {
        _ if of.1.starts_with(ROWS_PATH) => ROWS_TIMEOUT,
        RESPONSE_TIMEOUT => REPLICA_TIMEOUT,
        _ => REPLICA_RELOAD_TIMEOUT,
    };
    ask_within((deadline, deadline), place, of, &|_| {})
}

/// Returns the timeout for a request: the maximum time until its response is complete.
fn response_timeout(target: &str) -> Duration {
    let opens_files = matches!(target.split('?').next(), Some("/reload" | "/upgrade"));
    if opens_files { RELOAD_TIMEOUT } else { RESPONSE_TIMEOUT }
}

/// Sends a request. Calls `announce` if no response arrives within `announce_delay`. Returns an
/// error if the response is not complete within `total_timeout`.
fn ask_within<T: DeserializeOwned>(
    (announce_delay, total_timeout): (Duration, Duration),
    place: &AdminPlace,
    of: AdminCall<'_>,
    announce: &dyn Fn(&dyn fmt::Display),
) -> Result<T, AskError> {
    let broken = |message: String| AskError::Broken(place.clone(), message);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| broken(format!("the runtime cannot be started: {error}")))?;
    let answered = runtime.block_on(async {
        let mut answering = std::pin::pin!(exchange(place, of));
        if let Ok(answer) = timeout(announce_delay, &mut answering).await {
            return answer;
        }
        announce(&format_args!(
            "{place}: waiting up to {seconds} s for robotsd to answer",
            seconds = total_timeout.as_secs()
        ));
        let late = || {
            let may_be_done = if of.0.is_safe() { "" } else { "; the request may still take effect" };
            broken(format!(
                "robotsd did not answer within {seconds} s: it is stopped (SIGSTOP), or is waiting for a file system \
                 that hangs{may_be_done}",
                seconds = total_timeout.as_secs()
            ))
        };
        timeout(total_timeout.saturating_sub(announce_delay), answering).await.unwrap_or_else(|_| Err(late()))
    });
    let (answer, body) = answered?.into_parts();
    if answer.status != StatusCode::OK {
        #[derive(Deserialize)]
        struct Refused {
            error: String,
        }
        let refused = serde_json::from_slice::<Refused>(&body);
        let text =
            refused.map_or_else(|_| "this response does not come from robotsd".to_owned(), |refused| refused.error);
        return Err(AskError::Refused(answer.status, text));
    }
    serde_json::from_slice(&body).map_err(|error| broken(format!("this response does not come from robotsd: {error}")))
}

#[derive(Debug, Default)]
struct Traffic {
    has_sent: AtomicBool,
    has_received: AtomicBool,
}

impl Traffic {
    fn of<S>(self: &Arc<Self>, stream: S) -> impl AsyncRead + AsyncWrite + Unpin + Send + use<S>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let (sent, received) = (Arc::clone(self), Arc::clone(self));
        let stream = InspectWriter::new(stream, move |_| sent.has_sent.store(true, Ordering::Relaxed));
        InspectReader::new(stream, move |bytes| {
            received.has_received.fetch_or(!bytes.is_empty(), Ordering::Relaxed);
        })
    }

    /// Reports whether a failed request can be sent again. It cannot if a byte of a response was
    /// received, or if a byte of the request was sent and the request is not idempotent.
    fn may_be_repeated(&self, (method, target): AdminCall<'_>) -> bool {
        let path = target.split('?').next();
        let is_idempotent = method.is_safe() || path == Some("/enforce");
        !self.has_received.load(Ordering::Relaxed) && (is_idempotent || !self.has_sent.load(Ordering::Relaxed))
    }
}

async fn exchange(place: &AdminPlace, of: AdminCall<'_>) -> Result<Response<Vec<u8>>, AskError> {
    let mut attempts = 1;
    loop {
        let Connection { socket, host, may_send_token, local } = connect(place).await?;
        let token = may_send_token.then(token_of_environment).transpose();
        let mut token = token.map_err(|why| AskError::Broken(place.clone(), why))?.flatten();
        // Only changes need the local token.
        let read_token = || local.and_then(|address| local_token(place, address));
        let is_local = token.is_none() && !of.0.is_safe();
        if is_local {
            token = read_token();
        }
        let traffic = Arc::new(Traffic::default());
        match send(traffic.of(socket), place, of, (&host, token.as_deref())).await {
            Err(_) if attempts < MAX_ATTEMPTS && traffic.may_be_repeated(of) => attempts += 1,
            // A new process may have written its token file and its place file after this command
            // searched for these files.
            Ok(answer) if attempts < MAX_ATTEMPTS && is_local && answer.status() == StatusCode::UNAUTHORIZED => {
                sleep(TOKEN_RETRY_DELAY).await;
                if read_token() == token {
                    return Ok(answer);
                }
                attempts += 1;
            }
            answer => return answer,
        }
    }
}

fn local_token(place: &AdminPlace, address: SocketAddr) -> Option<String> {
    match place {
        AdminPlace::Local(_, file) => file.read(),
        _ => find_token(address),
    }
}

fn authorities() -> Result<Option<Authorities>, String> {
    let path = std::env::var_os(CA_VARIABLE).filter(|path| !path.is_empty());
    path.map(|path| Authorities::read(path.as_ref())).transpose()
}

struct Connection {
    socket: Socket,
    host: String,
    /// Whether a token may be sent. It may be sent only over TLS or to a loopback address, because
    /// nobody else can read it there. On a Unix socket, no token is needed, because the kernel
    /// identifies the user.
    may_send_token: bool,
    /// The remote address if it is a loopback address, otherwise `None`.
    local: Option<SocketAddr>,
}

async fn connect(place: &AdminPlace) -> Result<Connection, AskError> {
    let broken = |message: &str| AskError::Broken(place.clone(), message.to_owned());
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => AskError::NotRunning(place.clone()),
        ErrorKind::PermissionDenied => broken(
            "permission denied: run the command as the user of robotsd, as root, or as a user with an [[admin.user]] \
             entry",
        ),
        _ => broken(&error.to_string()),
    };
    let connecting = async {
        match place {
            AdminPlace::Tls(host, port) => {
                let name = host.trim_start_matches('[').trim_end_matches(']');
                let stream = TcpStream::connect((name, *port)).await.map_err(failed)?;
                let local = stream.peer_addr().ok().filter(|address| !is_open(*address));
                let trust = authorities().map_err(|why| broken(&why))?;
                let trust_error = |error| {
                    format!(
                        "{error} (to trust another certificate authority, set {CA_VARIABLE} to the path \
                         of its certificate)"
                    )
                };
                let stream =
                    secured(trust.as_ref(), name, stream).await.map_err(|error| broken(&trust_error(error)))?;
                let socket = Socket::Tls(Box::new(stream.into()));
                Ok(Connection { socket, host: format!("{host}:{port}"), may_send_token: true, local })
            }
            AdminPlace::Address(_) | AdminPlace::Local(..) | AdminPlace::Name(..) => {
                let stream = TcpStream::connect(place.to_string()).await.map_err(failed)?;
                // robotsd always accepts the address that the client connects to as `Host`.
                let address = stream.peer_addr().map_err(failed)?;
                let local = Some(address).filter(|address| !is_open(*address));
                let (socket, host) = (Socket::Tcp(stream), address.to_string());
                Ok(Connection { socket, host, may_send_token: local.is_some(), local })
            }
            AdminPlace::Socket(path) => {
                let stream = tokio::net::UnixStream::connect(path).await.map_err(failed)?;
                let (socket, host) = (Socket::Unix(stream), "localhost".to_owned());
                Ok(Connection { socket, host, may_send_token: false, local: None })
            }
        }
    };
    timeout(CONNECT_TIMEOUT, connecting)
        .await
        .unwrap_or_else(|_| Err(broken("the connection could not be established in time")))
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    place: &AdminPlace,
    (method, target): AdminCall<'_>,
    (host, token): (&str, Option<&str>),
) -> Result<Response<Vec<u8>>, AskError> {
    let broken = |error: &dyn fmt::Display| AskError::Broken(place.clone(), format!("no answer: {error}"));
    let mut request = Request::builder()
        .method(method)
        .uri(target)
        .header(HOST, host)
        .header(ADMIN_FIELD, "1")
        .body(Empty::<Bytes>::new())
        .map_err(|error| broken(&error))?;
    if let Some(token) = token {
        let mut field = HeaderValue::try_from(format!("Bearer {token}")).map_err(|error| broken(&error))?;
        field.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, field);
    }
    let most = if target.starts_with(ROWS_PATH) { MAX_ROWS_BYTES } else { MAX_BYTES };
    internals::exchange(stream, request, Excess::Refuse, most).await.map_err(|error| broken(&error))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::config::TokenFile;

    #[test]
    fn the_client_gives_up_after_too_many_interim_responses() {
        const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue";
        let interim = |number| "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(number);
        for (answer, is_answer) in [
            (interim(16) + OK, true),
            (interim(17) + OK, false),
            // This number of interim responses is far above the client's limit.
            (interim(1 << 19), false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let place = AdminPlace::Address(listener.local_addr().unwrap());
            let serving = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]);
                // Writing fails if the client has closed the connection.
                let _ = stream.write_all(answer.as_bytes());
            });
            let answered: Result<bool, AskError> = ask(&place, (&Method::GET, "/status"), |_| {});
            assert_eq!(answered.is_ok(), is_answer, "{answered:?}");
            if let Err(error) = answered {
                assert!(error.to_string().contains("interim answers"), "{error}");
            }
            serving.join().unwrap();
        }
    }

    #[test]
    fn the_client_announces_that_it_waits_and_gives_up_without_a_response() {
        // The kernel establishes the connection, but no process accepts it, as if the process were
        // stopped.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = AdminPlace::Address(listener.local_addr().unwrap());
        let said = std::cell::RefCell::new(Vec::new());
        let patience = (Duration::from_millis(20), Duration::from_millis(60));
        let answer: Result<bool, AskError> =
            ask_within(patience, &place, (&Method::GET, "/status"), &|word| said.borrow_mut().push(word.to_string()));
        let error = answer.unwrap_err().to_string();
        assert!(error.contains("robotsd did not answer within 0 s: it is stopped (SIGSTOP)"), "{error}");
        assert_eq!(*said.borrow(), [format!("{place}: waiting up to 0 s for robotsd to answer")]);
        let cases = [
            ("/status", RESPONSE_TIMEOUT),
            ("/reload", RELOAD_TIMEOUT),
            ("/reload?site=a", RELOAD_TIMEOUT),
            ("/upgrade", RELOAD_TIMEOUT),
        ];
        for (target, total_timeout) in cases {
            assert_eq!(response_timeout(target), total_timeout, "{target}");
        }
    }

    /// Starts a server that closes its connections after it has read a request, and responds only
    /// on connection number `answered`. The thread returns the number of connections.
    fn closing(answered: usize) -> (AdminPlace, std::thread::JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            let mut came = 0;
            for mut stream in listener.incoming().map_while(Result::ok) {
                // To stop the server, the test opens a connection and sends no request.
                if stream.read(&mut [0; 4096]).unwrap_or(0) == 0 {
                    break;
                }
                came += 1;
                if came == answered {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue");
                }
            }
            came
        });
        (AdminPlace::Address(address), serving)
    }

    #[test]
    fn a_repeatable_request_is_sent_again_if_the_connection_closes_before_a_response() {
        for (method, target, answered, is_answer, came) in [
            (Method::GET, "/status", MAX_ATTEMPTS, true, MAX_ATTEMPTS),
            (Method::POST, "/enforce?to=off", MAX_ATTEMPTS, true, MAX_ATTEMPTS),
            (Method::POST, "/enforce?to=off", MAX_ATTEMPTS + 1, false, MAX_ATTEMPTS),
            // Changes except `enforce` are not repeated, because robotsd may have made the change.
            (Method::POST, "/rollback?site=a", 2, false, 1),
            (Method::POST, "/accept?site=enforce&hash=1", 2, false, 1),
        ] {
            let (place, serving) = closing(answered);
            let answer: Result<bool, AskError> = ask(&place, (&method, target), |_| {});
            assert_eq!(answer.is_ok(), is_answer, "{method} {target}: {answer:?}");
            let AdminPlace::Address(address) = place else { unreachable!() };
            drop(std::net::TcpStream::connect(address));
            assert_eq!(serving.join().unwrap(), came, "{method} {target}");
        }
    }

    /// A new process has just replaced the token of its predecessor.
    #[test]
    fn a_request_with_the_token_of_the_previous_process_is_sent_again() {
        let [old, new] = [(); 2].map(|()| crate::admin::new_token().unwrap().0);
        for (token_after, is_answer, came) in [(&new, true, 2), (&old, false, 1)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("admin.token");
            std::fs::write(&path, &old).unwrap();
            let (token_after, accepted) = (token_after.clone(), format!("Bearer {new}"));
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let file = TokenFile { path: path.clone(), owner: rustix::process::geteuid().as_raw() };
            let serving = std::thread::spawn(move || {
                let mut came = 0;
                for mut stream in listener.incoming().map_while(Result::ok) {
                    let mut head = [0; 4096];
                    let read = stream.read(&mut head).unwrap_or(0);
                    if read == 0 {
                        break;
                    }
                    came += 1;
                    std::fs::write(&path, &token_after).unwrap();
                    let is_new = String::from_utf8_lossy(&head[..read]).contains(&accepted);
                    let status = if is_new { "200 OK" } else { "401 Unauthorized" };
                    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 4\r\n\r\ntrue");
                }
                came
            });
            let place = AdminPlace::Local(address, file);
            let answer: Result<bool, AskError> = ask(&place, (&Method::POST, "/upgrade"), |_| {});
            assert_eq!(answer.is_ok(), is_answer, "{answer:?}");
            drop(std::net::TcpStream::connect(address));
            assert_eq!(serving.join().unwrap(), came);
        }
    }

    #[tokio::test]
    async fn an_unsent_request_may_be_repeated_and_a_partly_answered_one_may_not() {
        let place = AdminPlace::Address("127.0.0.1:1".parse().unwrap());
        for (answer, method, is_again) in [
            (None, Method::POST, true),
            (Some(""), Method::POST, false),
            (Some(""), Method::GET, true),
            (Some("H"), Method::GET, false),
        ] {
            let (near, mut far) = tokio::io::duplex(4096);
            let far = match answer {
                None => {
                    drop(far);
                    None
                }
                Some(answer) => Some(tokio::spawn(async move {
                    use tokio::io::{AsyncReadExt, AsyncWriteExt};
                    assert_ne!(far.read(&mut [0; 4096]).await.unwrap(), 0, "a request comes");
                    far.write_all(answer.as_bytes()).await.unwrap();
                })),
            };
            let traffic = Arc::new(Traffic::default());
            let target = "/rollback?site=a";
            send(traffic.of(near), &place, (&method, target), ("localhost", None)).await.unwrap_err();
            assert_eq!(traffic.may_be_repeated((&method, target)), is_again, "{method} {answer:?}");
            if let Some(far) = far {
                far.await.unwrap();
            }
        }
    }
}
