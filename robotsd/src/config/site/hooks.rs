//! Hooks: requests that are sent when a version goes live (`[[site.robots.on_publish]]`) or when an
//! event occurs (`[[notify]]`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use http::{Method, Uri};
use serde::Serialize;
use toml::Spanned;
use toml::de::DeValue;
use tower_robots::internals::{is_of_connection, plain_name};

use crate::config::published::authorities;
use crate::config::{Fault, Faults, Kind, Place, Placed, Reader, Span, Value, bound, tables, unplaced, word_values};
use crate::webhooks::{self, BodyFormat, BodyTemplate, HookHeader, HookScope, HookSettings, HookTarget, NotifyEvent};

tables! {
    /// A request that is sent when a version goes live, or for an event.
    RawHook {
        /// Only in `[[notify]]`: the events that the request is sent for.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        on: Vec<Spanned<NotifyEvent>>,
        url: Spanned<String>,
        method: Option<Spanned<String>>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, Spanned<RawHeader>>,
        body: Option<Spanned<String>>,
        /// The format that values in the body are escaped for.
        format: Option<Spanned<BodyFormat>>,
        timeout: Spanned<Span> = unplaced(Span(webhooks::DEFAULT_TIMEOUT)) => bound(
            Span::seconds(1)..=Span::seconds(60),
            "\"timeout\" is {}: write a duration from \"1s\" to \"60s\"",
        ),
        ca: Option<Spanned<PathBuf>>,
        /// The secret for signing the request.
        secret: Option<Spanned<RawSecret>>,
    }

    RawSecret {
        file: PathBuf,
    }
}

word_values! {
    None => NotifyEvent, BodyFormat;
}

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
                let message =
                    "the value of a header must be a string: write \"…\", or { file = \"…\" } if a file contains it";
                reader.fault(value, message)
            }
        }
    }
}

const MAX_HOOKS: usize = 16;

const MAX_HEADERS: usize = 32;

/// Header fields that hooks cannot set, because robotsd sets them. The admin interface refuses
/// requests with robotsd's `User-Agent`, so hooks cannot use the admin interface.
const RESERVED_FIELDS: [&str; 3] = ["expect", "host", "user-agent"];

/// A header field is secret if its name contains one of these words. Exceptions are the fields in
/// [`PUBLIC_FIELDS`], which mostly identify cache entries.
const SECRET_WORDS: [&str; 7] = ["auth", "token", "secret", "key", "cookie", "password", "credential"];
const PUBLIC_FIELDS: [&str; 4] = ["surrogate-key", "cache-key", "xkey", "idempotency-key"];

/// The purpose of a hook, which determines the placeholders that the hook's body may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum HookUse {
    /// Reports new versions of sites with at least one concrete host.
    Hosts,
    /// Reports new versions of sites that have only host patterns.
    Patterns,
    Events,
}

pub(in crate::config) fn resolve(
    written: &[Spanned<RawHook>],
    of: HookUse,
    scope: &Arc<HookScope>,
    faults: &mut Faults,
) -> Option<Vec<Arc<HookSettings>>> {
    if let Some(further) = written.get(MAX_HOOKS) {
        faults.push(further.fault(format!("at most {MAX_HOOKS} requests of this kind are allowed: remove one")));
        return None;
    }
    let hooks: Vec<_> = written.iter().map(|hook| resolve_hook(hook.get_ref(), of, scope, faults)).collect();
    let hooks: Vec<Arc<HookSettings>> = hooks.into_iter().collect::<Option<_>>()?;
    for (at, hook) in hooks.iter().enumerate() {
        if hooks[..at].iter().any(|before| before.fingerprint() == hook.fingerprint()) {
            faults.push(written[at].fault("the same request is configured twice: remove one of the two entries"));
            return None;
        }
    }
    Some(hooks)
}

fn resolve_hook(hook: &RawHook, of: HookUse, scope: &Arc<HookScope>, faults: &mut Faults) -> Option<Arc<HookSettings>> {
    let (target, folder) = (faults.keep(target(&hook.url)), scope.folder());
    let method = faults.keep(hook.method.as_ref().map_or(Ok(Method::POST), method));
    let usual = (of == HookUse::Events).then(|| unplaced(webhooks::DEFAULT_BODY.to_owned()));
    let body = faults.keep(hook.body.as_ref().or(usual.as_ref()).map(|written| body(written, hook, of)).transpose());
    match (of, hook.on.first()) {
        (HookUse::Events, None) => {
            let events = NotifyEvent::ALL.map(NotifyEvent::as_str).join("\", \"");
            let message = format!(
                "this notification has no events, so it would never be sent: write on = [\"{events}\"], or some of \
                 these events"
            );
            faults.push(hook.url.fault(message));
        }
        (HookUse::Hosts | HookUse::Patterns, Some(event)) => {
            let message = "\"on\" has no effect here, because this request is sent when a version goes live: write a [[notify]] for events";
            faults.push(event.fault(message));
        }
        _ => {}
    }
    if let (None, Some(format)) = (&hook.body, &hook.format) {
        faults.push(format.fault("\"format\" requires a body: write one such as body = '{\"text\": \"{{message}}\"}'"));
    }
    if let Some((_, value)) = hook.headers.iter().nth(MAX_HEADERS) {
        faults.push(value.fault(format!("at most {MAX_HEADERS} headers are allowed in a request: remove one")));
    }
    let headers = faults.keep_all(hook.headers.iter().map(|(name, value)| header(name, value, folder)));
    let trust = match (&hook.ca, &target) {
        (Some(ca), Some(target)) if !target.is_secure() => {
            faults.push(ca.fault("\"ca\" requires a url that begins with \"https://\""));
            None
        }
        (ca, _) => faults.keep(ca.as_ref().map(|ca| authorities(ca, folder)).transpose()),
    };
    let (target, method, headers) = (target?, method?, headers?);
    Some(Arc::new(HookSettings {
        target,
        method,
        headers,
        body: body?,
        timeout: hook.timeout.get_ref().0,
        trust: trust?,
        on: hook.on.iter().map(|event| *event.get_ref()).collect(),
        secret: hook.secret.as_ref().map(|secret| folder.join(&secret.get_ref().file)),
        scope: Arc::clone(scope),
    }))
}

fn target(url: &Spanned<String>) -> Result<HookTarget, Fault> {
    let fault = |why: &str| {
        // The message does not contain the URL, because any part of the URL may be secret.
        url.fault(format!(
            "this is not a valid URL for a request: {why}; write one such as \"https://api.example.net/purge\""
        ))
    };
    if url.get_ref().contains("{{") {
        return Err(fault("values in braces ({{…}}) are replaced only in the body, not here"));
    }
    let uri: Uri = url.get_ref().parse().map_err(|error: http::uri::InvalidUri| fault(&error.to_string()))?;
    HookTarget::new(uri).map_err(fault)
}

/// Parses the method. All methods except `CONNECT` are allowed, because caches define their own,
/// such as `PURGE`.
fn method(written: &Spanned<String>) -> Result<Method, Fault> {
    let text = written.get_ref();
    let method = Method::from_bytes(text.as_bytes()).ok().filter(|method| *method != Method::CONNECT);
    method.filter(|_| text.len() <= 32 && text.bytes().all(|byte| !byte.is_ascii_lowercase())).ok_or_else(|| {
        written.fault(format!("{text:?} is not a valid method: write one such as \"POST\", \"PURGE\" or \"DELETE\""))
    })
}

fn body(written: &Spanned<String>, hook: &RawHook, of: HookUse) -> Result<BodyTemplate, Fault> {
    let format = hook.format.as_ref().map(|format| *format.get_ref());
    let body = BodyTemplate::parse(written.get_ref(), format).map_err(|message| written.fault(message))?;
    let unknown = match of {
        HookUse::Patterns => {
            "the site has no host that could replace {{host}}, {{url}} and {{urls}}: write a host without \"*\" in \
             \"hosts\""
        }
        HookUse::Events => {
            "{{host}}, {{url}} and {{urls}} are available only in [[site.robots.on_publish]]: write {{site}} instead"
        }
        HookUse::Hosts => return Ok(body),
    };
    if body.needs_host() { Err(written.fault(unknown)) } else { Ok(body) }
}

fn header(name: &str, value: &Spanned<RawHeader>, folder: &Path) -> Result<(HeaderName, HookHeader), Fault> {
    let fault = |message: String| value.fault(message);
    let known = HeaderName::from_bytes(name.as_bytes());
    let field = known
        .map_err(|_| fault(format!("{name:?} is not a valid header name: write one such as \"Authorization\"")))?;
    let plain = plain_name(&field);
    if is_of_connection(&plain) || RESERVED_FIELDS.contains(&&*plain) || plain.starts_with("webhook-") {
        return Err(fault(format!("robotsd sets the header {name:?} itself: remove it")));
    }
    if plain.starts_with("robotsd-") {
        return Err(fault(format!("the header {name:?} is reserved for the commands of robotsd: remove it")));
    }
    match value.get_ref() {
        RawHeader::Secret(secret) if secret.file.as_os_str().is_empty() => {
            Err(fault("the path is empty: write the path of a file".to_owned()))
        }
        RawHeader::Secret(secret) => Ok((field, HookHeader::File(folder.join(&secret.file)))),
        RawHeader::Text(_) if is_secret(field.as_str()) => Err(fault(format!(
            "the header {name:?} contains a secret, which `config show` and the log would show: write the secret \
             into a file, and {{ file = \"…\" }} here"
        ))),
        RawHeader::Text(text) => match HeaderValue::from_str(text) {
            Ok(value) => Ok((field, HookHeader::Text(value))),
            Err(_) => Err(fault(format!(
                "{text:?} is not a valid header value: it contains a line break or a control character"
            ))),
        },
    }
}

fn is_secret(field: &str) -> bool {
    let has = |parts: &[&str]| parts.iter().any(|part| field.contains(part));
    has(&SECRET_WORDS) && !has(&PUBLIC_FIELDS)
}
