//! One attempt: a connection, a request, the status of its answer; and when the next one is due.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::settings::{BodyValues, HookHeader, HookSettings};
use crate::files;
use crate::socket::Socket;
use crate::upstream::secured;

/// Octets of a secret.
const MOST_SECRET: u64 = 8 * 1024;

const AGENT: &str = concat!("robotsd/", env!("CARGO_PKG_VERSION"));

/// Sends the request once, within the time that the hook has.
pub(super) async fn attempt(hook: &HookSettings, values: &BodyValues<'_>) -> Attempt {
    match timeout(hook.timeout, send(hook, values)).await {
        Ok(Ok(status)) => Attempt::of(status),
        Ok(Err(why)) => Attempt::Failed(why),
        Err(_) => Attempt::Failed(format!("no answer within {}", seconds(hook.timeout))),
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

async fn send(hook: &HookSettings, values: &BodyValues<'_>) -> Result<StatusCode, String> {
    let request = request(hook, values).await?;
    let (host, port) = (hook.target.host(), hook.target.port());
    let connected = TcpStream::connect((host, port)).await;
    let socket = connected.map_err(|error| format!("no connection to {host} port {port}: {error}"))?;
    let socket = if hook.target.is_secure {
        let secured = secured(&hook.trust, host, socket).await;
        let stream = secured.map_err(|error| format!("no TLS with {host} port {port}: {error}"))?;
        Socket::Tls(Box::new(stream.into()))
    } else {
        Socket::Tcp(socket)
    };
    let failed = |error: hyper::Error| match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.map_err(failed)?;
    let driver = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(failed);
    // The answer besides its status is of no use.
    driver.abort();
    Ok(answer?.status())
}

async fn request(hook: &HookSettings, values: &BodyValues<'_>) -> Result<Request<Full<Bytes>>, String> {
    let mut request = Request::builder().method(hook.method.clone()).uri(hook.target.path.clone());
    let has = |name: &http::HeaderName| hook.headers.iter().any(|(own, _)| own == name);
    if !has(&HOST) {
        request = request.header(HOST, hook.target.authority());
    }
    if !has(&USER_AGENT) {
        request = request.header(USER_AGENT, AGENT);
    }
    if let Some(body) = hook.body.as_ref().filter(|_| !has(&CONTENT_TYPE)) {
        request = request.header(CONTENT_TYPE, body.content_type());
    }
    for (name, value) in &hook.headers {
        let value = match value {
            HookHeader::Text(value) => value.clone(),
            HookHeader::File(path) => {
                let path = path.clone();
                // A file system may hang; the time of the attempt is bounded all the same.
                let read = spawn_blocking(move || secret(&path)).await.map_err(|error| error.to_string())?;
                read.map_err(|why| format!("the header {name} cannot be sent: {why}"))?
            }
        };
        request = request.header(name, value);
    }
    let body = hook.body.as_ref().map(|body| body.render(values)).unwrap_or_default();
    request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())
}

/// The value in a file, without the line end behind it. Messages say nothing of what it holds.
fn secret(path: &Path) -> Result<HeaderValue, String> {
    let shown = path.display();
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    let (octets, _) = files::read_at_most(path, MOST_SECRET).map_err(failed)?;
    if octets.len() as u64 > MOST_SECRET {
        return Err(format!("{shown}: the file is longer than {MOST_SECRET} octets"));
    }
    // An editor's byte order mark is no part of it.
    let text = octets.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&octets).trim_ascii();
    if text.is_empty() {
        return Err(format!("{shown}: the file is empty"));
    }
    if text.iter().any(|octet| matches!(octet, b'\r' | b'\n')) {
        return Err(format!("{shown}: the file holds more than one line"));
    }
    let mut value = HeaderValue::from_bytes(text)
        .map_err(|_| format!("{shown}: the file holds a control character, which no header may"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// How often a request is tried, and the pauses between.
#[derive(Clone, Debug)]
pub(crate) struct RetryPlan {
    /// One fewer than attempts.
    pub(super) pauses: Vec<Duration>,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(super) enum Attempt {
    Delivered(StatusCode),
    /// It may be answered later.
    Failed(String),
    /// It will be answered so again.
    Refused(String),
}

impl Default for RetryPlan {
    /// Five attempts within ten minutes, time-outs included.
    fn default() -> Self {
        Self { pauses: [2, 15, 60, 180].map(Duration::from_secs).to_vec() }
    }
}

impl RetryPlan {
    /// The pause behind the so-many-th attempt, from 1, less up to half of it at random; `None` where it was the last.
    pub(super) fn pause(&self, attempt: usize, roll: u32) -> Option<Duration> {
        let whole = *self.pauses.get(attempt.checked_sub(1)?)?;
        Some(whole.mul_f64(1.0 - f64::from(roll) / f64::from(u32::MAX) / 2.0))
    }
}

impl Attempt {
    pub(super) fn of(status: StatusCode) -> Self {
        let text = match status.canonical_reason() {
            Some(reason) => format!("the answer is {} {reason}", status.as_u16()),
            None => format!("the answer is {}", status.as_u16()),
        };
        match status {
            status if status.is_success() => Self::Delivered(status),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Self::Failed(text),
            status if status.is_server_error() => Self::Failed(text),
            status if status.is_redirection() => Self::Refused(format!("{text}, and redirects are not followed")),
            _ => Self::Refused(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_pauses_are_bounded() {
        let plan = RetryPlan::default();
        let longest: Duration = (1..).map_while(|attempt| plan.pause(attempt, 0)).sum();
        assert_eq!((1..).map_while(|attempt| plan.pause(attempt, 7)).count(), 4);
        assert!(longest + 5 * Duration::from_secs(60) < Duration::from_secs(600), "{longest:?}");
        assert_eq!(plan.pause(1, u32::MAX), Some(Duration::from_secs(1)));
    }

    #[test]
    fn what_will_not_change_is_not_tried_again() {
        let kind = |status: u16| match Attempt::of(StatusCode::from_u16(status).expect("a status")) {
            Attempt::Delivered(_) => 'd',
            Attempt::Failed(_) => 'f',
            Attempt::Refused(_) => 'r',
        };
        let kinds: String = [200, 204, 301, 400, 401, 404, 408, 429, 500, 503, 599].map(kind).into_iter().collect();
        assert_eq!(kinds, "ddrrrrfffff");
    }
}
