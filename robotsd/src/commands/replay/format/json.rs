//! Parses JSON objects as requests, and extracts log lines that a collector has put into JSON
//! objects.

use std::borrow::Cow;

use serde_json_borrow::{ObjectAsVec, Value};

use super::clf::{self, LoggedRequest, any_time, numbered_time};
use super::json_keys::{JsonField, JsonKeys};
use super::w3c::percent_decoded;
use crate::log::LogEvent;

pub(super) fn read<'a>(line: &'a [u8], keys: &JsonKeys) -> Option<LoggedRequest<'a>> {
    let Value::Object(object) = serde_json::from_slice(line).ok()? else { return None };
    keys.note(&object);
    let texts = |field| keys.values(&object, field, text_of);
    let text = |field| texts(field).next();
    let is_of_robotsd = object.get("event").and_then(Value::as_str) == Some(LogEvent::Request.as_str());
    let site = object.get("site").filter(|_| is_of_robotsd).and_then(text_of);
    let (method, target) = match text(JsonField::Request) {
        Some(line) => {
            let (method, target) = clf::request_line(line.as_bytes())?;
            (Cow::Owned(method.to_vec()), Cow::Owned(target.into_owned()))
        }
        None => (text(JsonField::Method).map(bytes)?, text(JsonField::Path).map(bytes)?),
    };
    // In robotsd's own log, `agent` is the name of the crawler or class, not a header.
    let agent = match is_of_robotsd && !keys.has_key_for(JsonField::Agent) {
        true => object.get("user_agent").and_then(text_of),
        false => text(JsonField::Agent),
    };
    if agent.is_none() && !keys.has_key_for(JsonField::Agent) && has_agent(&object) {
        return None;
    }
    let mut hosts = texts(JsonField::Host).peekable();
    let is_logged = hosts.peek().is_some();
    let entry = LoggedRequest {
        host: hosts.find(|host| !matches!(&**host, "" | "-")).map(bytes).or(is_logged.then(Cow::default)),
        site: site.map(bytes),
        address: text(JsonField::Address).map(address_of_socket).map(bytes).unwrap_or_default(),
        time: keys.values(&object, JsonField::Time, time_of).next(),
        method,
        target,
        status: keys.values(&object, JsonField::Status, status_of).next(),
        referer: value(text(JsonField::Referer)),
        agent: agent_of(agent),
    };
    clf::is_request(&entry.method, &entry.target).then_some(entry)
}

/// Reports whether an object has a User-Agent under an unknown key, such as
/// `req.headers.user-agent`. Without the User-Agent, the request would be judged incorrectly.
fn has_agent(object: &ObjectAsVec<'_>) -> bool {
    let is_key = |key: &str| {
        let letters = key.to_ascii_lowercase().replace(|char: char| !char.is_ascii_alphabetic(), "");
        letters.ends_with("useragent")
            || key.rsplit(['.', '_']).next().is_some_and(|word| word.eq_ignore_ascii_case("ua"))
    };
    object.iter().any(|(key, value)| match value {
        Value::Object(inner) => has_agent(inner),
        value => is_key(key) && text_of(value).is_some_and(|text| !matches!(&*text, "" | "-")),
    })
}

/// Reports whether a line belongs to robotsd's event log. Lines of the event log are not counted,
/// because their requests are also in robotsd's access log.
pub(super) fn is_event(line: &[u8]) -> bool {
    // Every event begins with these bytes. Lines that begin with other bytes are not parsed here,
    // because they are parsed later.
    if !line.starts_with(br#"{"ts":"#) {
        return false;
    }
    let Ok(Value::Object(line)) = serde_json::from_slice(line) else { return false };
    let is_known = |word: &str| LogEvent::ALL.iter().any(|event| *event != LogEvent::Request && event.as_str() == word);
    line.contains_key("level") && line.get("event").and_then(Value::as_str).is_some_and(is_known)
}

/// Returns the strings in an object and its nested objects that may be log lines. Collectors such
/// as Docker put each line of a program's output into an object.
pub(super) fn wrapped_lines(line: &[u8], keys: &JsonKeys) -> Vec<Vec<u8>> {
    let mut wrapped_lines = Vec::new();
    if let Ok(object) = serde_json::from_slice(line) {
        add_wrapped_lines(&object, keys, &mut wrapped_lines);
    }
    // A log line with a request contains quotes, so strings without quotes are skipped. A string of
    // several lines is skipped, because it is not clear which line is the log line.
    let is_line = |text: &[u8]| memchr::memchr(b'"', text).is_some() && memchr::memchr(b'\n', text).is_none();
    wrapped_lines.retain(|text| is_line(text));
    wrapped_lines
}

fn add_wrapped_lines(value: &Value<'_>, keys: &JsonKeys, wrapped_lines: &mut Vec<Vec<u8>>) {
    match value {
        Value::Str(text) => wrapped_lines.push(text.trim().as_bytes().to_vec()),
        // The systemd journal writes a string with special characters as an array of its bytes.
        Value::Array(items) => {
            let byte = |item: &Value<'_>| u8::try_from(item.as_u64()?).ok();
            wrapped_lines.extend(items.iter().map(byte).collect::<Option<Vec<u8>>>());
        }
        Value::Object(object) if !is_about_request(object, keys) => {
            object.iter().for_each(|(_, value)| add_wrapped_lines(value, keys, wrapped_lines));
        }
        _ => {}
    }
}

/// Reports whether an object describes a request. The client chose some of the strings in such an
/// object, so these strings could be forged log lines. An object with only a path does not count as
/// a request, because Fluentd and Logstash write the path of the log file under the key `path`.
fn is_about_request(object: &ObjectAsVec<'_>, keys: &JsonKeys) -> bool {
    let fields = [JsonField::Request, JsonField::Method, JsonField::Agent, JsonField::Referer];
    has_agent(object) || fields.into_iter().any(|field| keys.values(object, field, text_of).next().is_some())
}

fn text_of<'a>(value: &Value<'a>) -> Option<Cow<'a, str>> {
    match value {
        Value::Str(text) => Some(text.clone()),
        Value::Array(items) => text_of(items.first()?),
        _ => None,
    }
}

fn time_of(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Str(text) => any_time(text.as_bytes()),
        value => numbered_time(value.as_f64()?),
    }
}

fn status_of(value: &Value<'_>) -> Option<u16> {
    match value {
        Value::Str(text) => clf::status(Some(text.as_bytes())),
        value => value.as_f64().map(|number| number as u16),
    }
}

/// Removes the port from an address such as `192.0.2.1:1234` or `[2001:db8::1]:1234`.
fn address_of_socket(socket: Cow<'_, str>) -> Cow<'_, str> {
    let address = socket.parse::<std::net::SocketAddr>();
    address.map_or(socket, |address| Cow::Owned(address.ip().to_string()))
}

fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// Decodes a percent-encoded User-Agent. CloudFront encodes it even in JSON objects.
fn agent_of(text: Option<Cow<'_, str>>) -> Cow<'_, [u8]> {
    let agent = value(text);
    let is_escaped = memchr::memmem::find(&agent, b"%20").is_some() && !agent.contains(&b' ');
    if is_escaped { Cow::Owned(percent_decoded(&agent).into_owned()) } else { agent }
}

fn value(text: Option<Cow<'_, str>>) -> Cow<'_, [u8]> {
    text.filter(|text| *text != "-").map(bytes).unwrap_or_default()
}
