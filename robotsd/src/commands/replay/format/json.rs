//! Logs with a JSON object a line, by the keys that servers use.
//!
//! nginx as the examples of its documentation name them, Traefik, Envoy, and Caddy, whose request is an object of its
//! own. Of several keys for one value, the first of ours counts.

use std::borrow::Cow;

use serde_json_borrow::Value;

use super::clf::{self, LoggedRequest, any_time};
use crate::log::LogEvent;

const ADDRESS: &[&str] = &["client_ip", "remote_addr", "ClientHost", "remote_ip", "client", "address"];
const SOCKET: &[&str] = &["downstream_remote_address", "ClientAddr"];
const TIME: &[&str] =
    &["time_iso8601", "StartUTC", "start_time", "time", "time_local", "timestamp", "@timestamp", "ts", "msec"];
const METHOD: &[&str] = &["request_method", "RequestMethod", "method"];
const TARGET: &[&str] = &["request_uri", "RequestPath", "uri", "path", "target"];
/// Those with a port before those without.
const HOST: &[&str] = &["http_host", "RequestAddr", "authority", "host", "RequestHost", "server_name", "vhost"];
const STATUS: &[&str] = &["status", "DownstreamStatus", "response_code", "status_code"];
const AGENT: &[&str] = &["http_user_agent", "user_agent", "request_User-Agent", "user-agent", "agent"];
const REFERER: &[&str] = &["http_referer", "referer", "request_Referer", "http_referrer", "referrer"];

pub(super) fn read(line: &[u8]) -> Option<LoggedRequest<'_>> {
    let Value::Object(line) = serde_json::from_slice(line).ok()? else { return None };
    let mut line = line.into_vec();
    let is_of_robotsd =
        take(&mut line, "event").and_then(text_of).is_some_and(|event| event == LogEvent::Request.as_str());
    let site = take(&mut line, "site").and_then(text_of).filter(|_| is_of_robotsd).map(octets);
    // Caddy: the request is an object; its keys count before those around it.
    let (mut request, request_line) = match take(&mut line, "request") {
        Some(Value::Object(request)) => (request.into_vec(), None),
        other => (Vec::new(), other.and_then(text_of)),
    };
    let mut headers = match take(&mut request, "headers") {
        Some(Value::Object(headers)) => headers.into_vec(),
        _ => Vec::new(),
    };
    let time = TIME.iter().find_map(|key| match take(&mut line, key)? {
        Value::Str(text) => any_time(text.as_bytes()),
        // Some write milliseconds.
        value => value.as_f64().map(|time| (if time > 1e11 { time / 1000.0 } else { time }) as i64),
    });
    let status = STATUS.iter().find_map(|key| match take(&mut line, key)? {
        Value::Str(text) => clf::status(Some(text.as_bytes())),
        value => value.as_f64().map(|number| number as u16),
    });
    let mut text = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| text_of(take(&mut request, key)?))
            .or_else(|| keys.iter().find_map(|key| text_of(take(&mut line, key)?)))
    };
    let (method, target) = match request_line {
        Some(line) => {
            let (method, target) = clf::request_line(line.as_bytes())?;
            (Some(Cow::Owned(method.to_vec())), Some(Cow::Owned(target.into_owned())))
        }
        None => (text(METHOD).map(octets), text(TARGET).map(octets)),
    };
    let address = text(ADDRESS).or_else(|| text(SOCKET).map(address_of_socket));
    let mut hosts = HOST.iter().filter_map(|key| text(&[key])).peekable();
    let is_logged = hosts.peek().is_some();
    let host = hosts.find(|host| !matches!(&**host, "" | "-")).map(octets).or(is_logged.then(Cow::default));
    let agent = take(&mut headers, "User-Agent").and_then(text_of).or_else(|| text(AGENT));
    let referer = take(&mut headers, "Referer").and_then(text_of).or_else(|| text(REFERER));
    let entry = LoggedRequest {
        host,
        site,
        address: address.map(octets).unwrap_or_default(),
        time,
        method: method?,
        target: target?,
        status,
        referer: value(referer),
        agent: value(agent),
    };
    (!entry.method.is_empty() && !entry.target.is_empty()).then_some(entry)
}

/// Whether a line is one of robotsd's log of events, some of which are about requests that its log of requests has too.
pub(super) fn is_event(line: &[u8]) -> bool {
    // As the log begins each of its lines: other lines are not parsed twice.
    if !line.starts_with(br#"{"ts":"#) {
        return false;
    }
    let Ok(Value::Object(line)) = serde_json::from_slice(line) else { return false };
    let is_known = |word: &str| LogEvent::ALL.iter().any(|event| *event != LogEvent::Request && event.as_str() == word);
    line.contains_key("level") && line.get("event").and_then(Value::as_str).is_some_and(is_known)
}

/// The value of a key; of a list the first item.
fn take<'a>(map: &mut Vec<(Cow<'a, str>, Value<'a>)>, key: &str) -> Option<Value<'a>> {
    let at = map.iter().position(|(known, _)| known.eq_ignore_ascii_case(key))?;
    match map.swap_remove(at).1 {
        Value::Array(items) => items.into_iter().next(),
        value => Some(value),
    }
}

fn text_of(value: Value<'_>) -> Option<Cow<'_, str>> {
    match value {
        Value::Str(text) => Some(text),
        _ => None,
    }
}

/// `192.0.2.1:1234`, `[2001:db8::1]:1234`
fn address_of_socket(socket: Cow<'_, str>) -> Cow<'_, str> {
    let address = socket.parse::<std::net::SocketAddr>();
    address.map_or(socket, |address| Cow::Owned(address.ip().to_string()))
}

fn octets(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn value(text: Option<Cow<'_, str>>) -> Cow<'_, [u8]> {
    text.filter(|text| *text != "-").map(octets).unwrap_or_default()
}
