//! Logs with a JSON object a line, by the keys that servers use.
//!
//! nginx as the examples of its documentation name them, Traefik, Envoy, and Caddy, whose request is an object of its
//! own. Of several keys for one value, the first of ours counts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

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
    let Node::Map(mut line) = serde_json::from_slice(line).ok()? else { return None };
    let is_of_robotsd =
        take(&mut line, "event").and_then(text_of).is_some_and(|event| event == LogEvent::Request.as_str());
    let site = take(&mut line, "site").and_then(text_of).filter(|_| is_of_robotsd).map(octets);
    // Caddy: the request is an object; its keys count before those around it.
    let (mut request, request_line) = match take(&mut line, "request") {
        Some(Node::Map(request)) => (request, None),
        other => (Vec::new(), other.and_then(text_of)),
    };
    let mut headers = match take(&mut request, "headers") {
        Some(Node::Map(headers)) => headers,
        _ => Vec::new(),
    };
    let time = TIME.iter().find_map(|key| match take(&mut line, key)? {
        Node::Text(text) => any_time(text.as_bytes()),
        // Some write milliseconds.
        Node::Number(seconds) if seconds > 1e11 => Some((seconds / 1000.0) as i64),
        Node::Number(seconds) => Some(seconds as i64),
        _ => None,
    });
    let status = STATUS.iter().find_map(|key| match take(&mut line, key)? {
        Node::Number(number) => Some(number as u16),
        Node::Text(text) => clf::status(Some(text.as_bytes())),
        _ => None,
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
    let Ok(Node::Map(line)) = serde_json::from_slice(line) else { return false };
    let value = |key: &str| line.iter().find(|(known, _)| known == key).map(|(_, value)| value);
    let is_known = |word: &str| LogEvent::ALL.iter().any(|event| *event != LogEvent::Request && event.as_str() == word);
    value("level").is_some() && matches!(value("event"), Some(Node::Text(event)) if is_known(event))
}

/// A JSON value as far as it matters; of a list the first item.
enum Node<'a> {
    Text(Cow<'a, str>),
    Number(f64),
    Map(Vec<(Cow<'a, str>, Node<'a>)>),
    Nothing,
}

fn take<'a>(map: &mut Vec<(Cow<'a, str>, Node<'a>)>, key: &str) -> Option<Node<'a>> {
    let at = map.iter().position(|(known, _)| known.eq_ignore_ascii_case(key))?;
    Some(map.swap_remove(at).1)
}

fn text_of(node: Node<'_>) -> Option<Cow<'_, str>> {
    match node {
        Node::Text(text) => Some(text),
        _ => None,
    }
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node<'de>, E> {
        Ok(Node::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node<'de>, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node<'de>, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node<'de>, E> {
        Ok(Node::Nothing)
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node<'de>, A::Error> {
        let first = list.next_element()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first.unwrap_or(Node::Nothing))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry()? {
            if let Node::Text(key) = key {
                entries.push((key, value));
            }
        }
        Ok(Node::Map(entries))
    }
}

/// `192.0.2.1:1234`, `[2001:db8::1]:1234`
fn address_of_socket(socket: Cow<'_, str>) -> Cow<'_, str> {
    match socket.parse::<std::net::SocketAddr>() {
        Ok(address) => Cow::Owned(address.ip().to_string()),
        Err(_) => socket,
    }
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
