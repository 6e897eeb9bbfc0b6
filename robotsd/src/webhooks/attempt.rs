//! Makes one attempt to send a notice, and defines the delays between attempts.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac_sha256::HMAC;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::Full;
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tower_robots::internals;

use super::destination::{NoDestination, look_up};
use super::lane::Permits;
use super::settings::{HookHeader, HookSettings, Notice};
use crate::date::seconds as seconds_of;
use crate::files;
use crate::socket::Socket;
use crate::upstream::secured;

const AGENT: &str = concat!("robotsd/", env!("CARGO_PKG_VERSION"));

/// Sends the request once, within the hook's timeout. The request is never sent to the addresses in
/// `admin`, which are the addresses of this process's admin interface.
pub(super) async fn attempt(
    hook: &Arc<HookSettings>,
    notice: &Notice,
    admin: Vec<SocketAddr>,
    permits: &Permits,
) -> AttemptOutcome {
    match timeout(hook.timeout, send(hook, notice, admin, permits)).await {
        Ok(Ok(status)) => AttemptOutcome::of(status),
        Ok(Err(outcome)) => outcome,
        Err(_) => AttemptOutcome::Unanswered(format!(
            "the receiver did not answer within {limit} s",
            limit = hook.timeout.as_secs_f64()
        )),
    }
}

async fn send(
    hook: &Arc<HookSettings>,
    notice: &Notice,
    admin: Vec<SocketAddr>,
    permits: &Permits,
) -> Result<StatusCode, AttemptOutcome> {
    let request = request(hook, notice, permits).await.map_err(AttemptOutcome::Failed)?;
    let (host, port) = (hook.target.host(), hook.target.port());
    let of = Arc::clone(hook);
    let addresses =
        blocking(permits, move || of.scope.destinations((of.target.host(), of.target.port()), &admin, look_up));
    let addresses = addresses.await.map_err(AttemptOutcome::Failed)?.map_err(|why| match why {
        NoDestination::Refused(why) => AttemptOutcome::Refused(why),
        NoDestination::Unknown(why) => AttemptOutcome::Failed(why),
    })?;
    let unreached =
        |error: io::Error| AttemptOutcome::Unanswered(format!("cannot connect to {host} port {port}: {error}"));
    let socket = TcpStream::connect(&*addresses).await.map_err(unreached)?;
    let socket = if hook.target.is_secure() {
        let secured = secured(hook.trust.as_ref(), host, socket).await;
        let insecure =
            |error| AttemptOutcome::Unanswered(format!("the TLS handshake with {host} port {port} failed: {error}"));
        Socket::Tls(Box::new(secured.map_err(insecure)?.into()))
    } else {
        Socket::Tcp(socket)
    };
    let status = internals::send(socket, request, |head, _| async move { Ok(head.status) }).await;
    status.map_err(|error| AttemptOutcome::Unanswered(error.to_string()))
}

async fn request(hook: &HookSettings, notice: &Notice, permits: &Permits) -> Result<Request<Full<Bytes>>, String> {
    let mut request = Request::builder().method(hook.method.clone()).uri(hook.target.path());
    let has = |name: &http::HeaderName| hook.headers.iter().any(|(own, _)| own == name);
    request = request.header(HOST, hook.target.authority()).header(USER_AGENT, AGENT);
    if let Some(body) = hook.body.as_ref().filter(|_| !has(&CONTENT_TYPE)) {
        request = request.header(CONTENT_TYPE, body.content_type());
    }
    for (name, value) in &hook.headers {
        let value = match value {
            HookHeader::Text(value) => value.clone(),
            HookHeader::File(path) => {
                let value = read(permits, path.clone(), secret).await;
                value.map_err(|why| format!("the header {name} cannot be sent: {why}"))?
            }
        };
        request = request.header(name, value);
    }
    let body = hook.body.as_ref().map(|body| body.render(notice)).unwrap_or_default();
    if notice.event.is_some() || hook.secret.is_some() {
        let (id, time) = (notice.id(), seconds_of(SystemTime::now()).to_string());
        if let Some(path) = hook.secret.clone() {
            let key = read(permits, path, signing_key).await;
            let key = key.map_err(|why| format!("the request cannot be signed: {why}"))?;
            request = request.header("webhook-signature", signature(&key, &id, &time, &body));
        }
        request = request.header("webhook-id", id).header("webhook-timestamp", time);
    }
    request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())
}

async fn read<T: Send + 'static>(
    permits: &Permits,
    path: PathBuf,
    read: fn(&Path) -> Result<T, String>,
) -> Result<T, String> {
    blocking(permits, move || read(&path)).await?
}

/// Does work that may hang (reading files, resolving names) on a blocking thread. The caller may
/// stop waiting, but the thread keeps `permits` until the work ends.
async fn blocking<T: Send + 'static>(
    permits: &Permits,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let kept_permits = Arc::clone(permits);
    let work = move || {
        let done = work();
        drop(kept_permits);
        done
    };
    spawn_blocking(work).await.map_err(|error| error.to_string())
}

/// Returns the signature of a body according to <https://www.standardwebhooks.com>.
fn signature(key: &[u8], id: &str, time: &str, body: &str) -> String {
    format!("v1,{}", STANDARD.encode(HMAC::mac(format!("{id}.{time}.{body}"), key)))
}

/// Reads a secret for signatures from its file. Error messages do not quote the content of the
/// file.
pub(crate) fn signing_key(path: &Path) -> Result<Vec<u8>, String> {
    let secret = secret(path)?;
    let key = secret.as_bytes().strip_prefix(b"whsec_").and_then(|text| STANDARD.decode(text).ok());
    key.filter(|key| (24..=64).contains(&key.len())).ok_or_else(|| {
        format!(
            "{}: the file does not contain a valid secret for signatures: write \"whsec_\" followed by 24 to 64 \
             random bytes in Base64, for example the output of `echo whsec_$(openssl rand -base64 32)`",
            path.display()
        )
    })
}

fn secret(path: &Path) -> Result<HeaderValue, String> {
    let line = files::read_line(path)?;
    let mut value = HeaderValue::from_bytes(line.trim_ascii_start()).map_err(|_| {
        format!("{}: the file contains a control character, which is not allowed in a header", path.display())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[derive(Clone, Debug)]
pub(crate) struct RetryPlan {
    /// Delays between attempts. There is one delay fewer than there are attempts.
    pub(super) pauses: Vec<Duration>,
}

#[derive(Debug)]
pub(super) enum AttemptOutcome {
    Delivered(StatusCode),
    /// The attempt failed, but a later attempt may succeed.
    Failed(String),
    /// The attempt failed because the receiver did not respond. A later attempt may succeed.
    Unanswered(String),
    /// The attempt failed, and every later attempt would fail as well.
    Refused(String),
}

impl Default for RetryPlan {
    /// Returns a plan with five attempts, which take at most ten minutes, including their timeouts.
    fn default() -> Self {
        Self { pauses: [2, 15, 60, 180].map(Duration::from_secs).to_vec() }
    }
}

impl RetryPlan {
    /// Returns the delay after attempt number `attempt` (counted from 1), reduced by up to 50 %,
    /// depending on `roll`. Returns `None` after the last attempt.
    pub(super) fn pause(&self, attempt: usize, roll: u32) -> Option<Duration> {
        let whole = *self.pauses.get(attempt.checked_sub(1)?)?;
        Some(whole.mul_f64(1.0 - f64::from(roll) / f64::from(u32::MAX) / 2.0))
    }
}

impl AttemptOutcome {
    pub(super) fn of(status: StatusCode) -> Self {
        let text = match status.canonical_reason() {
            Some(reason) => format!("the receiver answered {} {reason}", status.as_u16()),
            None => format!("the receiver answered {}", status.as_u16()),
        };
        match status {
            status if status.is_success() => Self::Delivered(status),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Self::Failed(text),
            status if status.is_server_error() => Self::Failed(text),
            status if status.is_redirection() => {
                Self::Refused(format!("{text}, but robotsd does not follow redirects"))
            }
            _ => Self::Refused(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_equals_that_of_the_reference_implementations() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").expect("written");
        let key = signing_key(file.path()).expect("a key");
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "{\"test\": 2432232314}");
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        for wrong in ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_not base64"] {
            std::fs::write(file.path(), wrong).expect("written");
            let why = signing_key(file.path()).expect_err(wrong);
            assert!(why.contains("does not contain a valid secret for signatures") && !why.contains(wrong), "{why}");
        }
    }

    #[test]
    fn attempts_and_pauses_are_bounded() {
        let plan = RetryPlan::default();
        let longest: Duration = (1..).map_while(|attempt| plan.pause(attempt, 0)).sum();
        assert_eq!((1..).map_while(|attempt| plan.pause(attempt, 7)).count(), 4);
        assert!(longest + 5 * Duration::from_secs(60) < Duration::from_secs(600), "{longest:?}");
        assert_eq!(plan.pause(1, u32::MAX), Some(Duration::from_secs(1)));
    }

    #[test]
    fn redirects_and_permanent_client_errors_are_not_retried() {
        let kind = |status: u16| match AttemptOutcome::of(StatusCode::from_u16(status).expect("a status")) {
            AttemptOutcome::Delivered(_) => 'd',
            AttemptOutcome::Failed(_) => 'f',
            AttemptOutcome::Unanswered(_) => 'u',
            AttemptOutcome::Refused(_) => 'r',
        };
        let kinds: String = [200, 204, 301, 400, 401, 404, 408, 429, 500, 503, 599].map(kind).into_iter().collect();
        assert_eq!(kinds, "ddrrrrfffff");
    }
}
