//! The requests that are sent when a version goes live: `[[site.robots.on_publish]]`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use http::{Method, Uri};
use serde::Serialize;
use toml::Spanned;
use toml::de::DeValue;

use crate::config::published::trusted;
use crate::config::{Fault, Faults, Kind, Place, Placed, Reader, Span, Value, bound, tables, unplaced};
use crate::publish_hook::{self, BodyTemplate, HookHeader, HookSettings, HookTarget};
use crate::upstream::Trust;

tables! {
    /// A request that is sent when a version goes live.
    RawPublishHook {
        url: Spanned<String>,
        method: Option<Spanned<String>>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, Spanned<RawHeader>>,
        body: Option<Spanned<String>>,
        timeout: Spanned<Span> = unplaced(Span(publish_hook::DEFAULT_TIMEOUT)) => bound(
            Span::seconds(1)..=Span::seconds(60),
            "timeout may be from \"1s\" to \"60s\"",
        ),
        ca: Option<Spanned<PathBuf>>,
    }

    RawSecret {
        file: PathBuf,
    }
}

/// The value of a field, or the file that holds it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum RawHeader {
    Text(String),
    Secret(RawSecret),
}

impl Value for RawHeader {
    fn kind() -> Kind {
        Kind::Either(vec![Kind::Text, RawSecret::kind()])
    }

    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self> {
        match value.get_ref() {
            DeValue::String(text) => Some(Self::Text(text.to_string())),
            DeValue::Table(secret) if secret.keys().all(|key| key.get_ref() == "file") && !secret.is_empty() => {
                RawSecret::read(reader, place, value).map(Self::Secret)
            }
            _ => {
                let message = "the value of a header is a text, or names the file that holds it: { file = \"…\" }";
                reader.fault(value, message)
            }
        }
    }
}

/// Hooks of one site.
const MOST: usize = 16;

/// Header fields of one hook.
const MOST_HEADERS: usize = 32;

/// Fields that framing needs as it is.
const OURS: [&str; 6] = ["connection", "content-length", "transfer-encoding", "te", "upgrade", "expect"];

/// Parts of names of fields that hold a secret, and of those that do not although they have one: they say what is to be dropped.
const SECRET: [&str; 7] = ["auth", "token", "secret", "key", "cookie", "password", "credential"];
const NO_SECRET: [&str; 4] = ["surrogate-key", "cache-key", "xkey", "idempotency-key"];

/// The requests of a site, which may know the hosts that they are about.
pub(super) fn resolve(
    written: &[Spanned<RawPublishHook>],
    knows_hosts: bool,
    folder: &Path,
    faults: &mut Faults,
) -> Option<Vec<Arc<HookSettings>>> {
    if let Some(further) = written.get(MOST) {
        faults.push(further.fault(format!("a site has at most {MOST} requests to send on publishing")));
        return None;
    }
    let hooks: Vec<_> = written
        .iter()
        .map(|hook| {
            let settings = resolve_hook(hook.get_ref(), folder, faults)?;
            if let (Some(body), false) = (&hook.get_ref().body, knows_hosts)
                && settings.body.as_ref().is_some_and(BodyTemplate::needs_host)
            {
                let message = "the site names no host for {{host}}, {{url}} and {{urls}}: list one without * in hosts";
                faults.push(body.fault(message));
                return None;
            }
            Some(settings)
        })
        .collect();
    let hooks: Vec<Arc<HookSettings>> = hooks.into_iter().collect::<Option<_>>()?;
    for (at, hook) in hooks.iter().enumerate() {
        if hooks[..at].iter().any(|before| before.fingerprint() == hook.fingerprint()) {
            faults.push(written[at].fault("this request is sent already: leave one of the two out"));
            return None;
        }
    }
    Some(hooks)
}

fn resolve_hook(hook: &RawPublishHook, folder: &Path, faults: &mut Faults) -> Option<Arc<HookSettings>> {
    let target = faults.keep(target(&hook.url));
    let method = faults.keep(hook.method.as_ref().map_or(Ok(Method::POST), method));
    let body = faults.keep(hook.body.as_ref().map(body).transpose());
    if let Some((_, value)) = hook.headers.iter().nth(MOST_HEADERS) {
        faults.push(value.fault(format!("a request has at most {MOST_HEADERS} headers of its own")));
    }
    let headers = faults.keep_all(hook.headers.iter().map(|(name, value)| header(name, value, folder)));
    let trust = match (&hook.ca, &target) {
        (Some(ca), Some(target)) if !target.is_secure => {
            faults.push(ca.fault("this is for TLS, and the url does not begin with \"https://\""));
            None
        }
        (ca, _) => faults.keep(ca.as_ref().map(|ca| trusted(ca, folder)).transpose()),
    };
    let (target, method, headers) = (target?, method?, headers?);
    Some(Arc::new(HookSettings {
        target,
        method,
        headers,
        body: body?,
        timeout: hook.timeout.get_ref().0,
        trust: trust?.unwrap_or(Trust::System),
    }))
}

fn target(url: &Spanned<String>) -> Result<HookTarget, Fault> {
    let fault = |why: &str| {
        // The whole of it may hold a secret, and the place is shown beside the message.
        url.fault(format!("this is no URL for a request: {why}; write one such as \"https://api.example.net/purge\""))
    };
    if url.get_ref().contains("{{") {
        return Err(fault("{{…}} is filled in in the body alone"));
    }
    let uri: Uri = url.get_ref().parse().map_err(|error: http::uri::InvalidUri| fault(&error.to_string()))?;
    HookTarget::new(uri).map_err(fault)
}

/// Any method that has a body or needs none: caches have some of their own.
fn method(written: &Spanned<String>) -> Result<Method, Fault> {
    let text = written.get_ref();
    let method = Method::from_bytes(text.as_bytes()).ok().filter(|method| *method != Method::CONNECT);
    method.filter(|_| text.len() <= 32 && text.bytes().all(|byte| !byte.is_ascii_lowercase())).ok_or_else(|| {
        written.fault(format!("{text:?} is no method for this: write one such as \"POST\", \"PURGE\" or \"DELETE\""))
    })
}

fn body(written: &Spanned<String>) -> Result<BodyTemplate, Fault> {
    BodyTemplate::parse(written.get_ref()).map_err(|message| written.fault(message))
}

fn header(name: &str, value: &Spanned<RawHeader>, folder: &Path) -> Result<(HeaderName, HookHeader), Fault> {
    let fault = |message: String| value.fault(message);
    let known = HeaderName::from_bytes(name.as_bytes());
    let field =
        known.map_err(|_| fault(format!("{name:?} is no name of a header: write one such as \"Authorization\"")))?;
    if OURS.contains(&field.as_str()) {
        return Err(fault(format!("{name} is set by robotsd: leave it out")));
    }
    match value.get_ref() {
        RawHeader::Secret(secret) if secret.file.as_os_str().is_empty() => {
            Err(fault("the path of the file is empty".to_owned()))
        }
        RawHeader::Secret(secret) => Ok((field, HookHeader::File(folder.join(&secret.file)))),
        RawHeader::Text(_) if is_secret(field.as_str()) => Err(fault(format!(
            "{name} holds a secret, which `config show` and the log would show: write it to a file, and here {{ file = \"…\" }}"
        ))),
        RawHeader::Text(text) => match HeaderValue::from_str(text) {
            Ok(value) => Ok((field, HookHeader::Text(value))),
            Err(_) => {
                Err(fault(format!("{text:?} is no value of a header: it holds a line end or a control character")))
            }
        },
    }
}

fn is_secret(field: &str) -> bool {
    let has = |parts: &[&str]| parts.iter().any(|part| field.contains(part));
    has(&SECRET) && !has(&NO_SECRET)
}
