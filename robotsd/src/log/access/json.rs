//! A JSON object a line, by the names the log of events uses.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::super::escaped;
use super::{AccessRecord, Privacy, status};
use crate::date;
use crate::edge::AccessValue;

pub(super) fn line(visit: &AccessRecord, privacy: Privacy, out: &mut Vec<u8>) {
    let json = serde_json::to_string(&Line { visit, privacy }).unwrap_or_default();
    out.extend_from_slice(escaped(json).as_bytes());
    out.push(b'\n');
}

struct Line<'a> {
    visit: &'a AccessRecord,
    privacy: Privacy,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { visit, privacy } = self;
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("ts", &date::rfc3339_millis(visit.at))?;
        line.serialize_entry("event", "request")?;
        line.serialize_entry("request_id", visit.id.as_str())?;
        for (name, value) in &visit.notes {
            match value {
                AccessValue::Text(text) => line.serialize_entry(name, text)?,
                AccessValue::Number(number) => line.serialize_entry(name, number)?,
            }
        }
        line.serialize_entry("method", visit.method.as_str())?;
        if let Some(host) = &visit.host {
            line.serialize_entry("host", &text(host))?;
        }
        line.serialize_entry("path", &privacy.target(&visit.target))?;
        line.serialize_entry("protocol", &format!("{:?}", visit.version))?;
        line.serialize_entry("status", &status(visit))?;
        line.serialize_entry("octets", &visit.sent)?;
        line.serialize_entry("whole", &visit.is_whole)?;
        line.serialize_entry("seconds", &(visit.took.as_micros() as f64 / 1e6))?;
        if let Some(address) = privacy.address(visit.peer.ip()) {
            line.serialize_entry("address", &address)?;
        }
        if let Some(referer) = &visit.referer {
            line.serialize_entry("referer", &privacy.target(&text(referer)))?;
        }
        if let Some(agent) = &visit.user_agent {
            line.serialize_entry("user_agent", &text(agent))?;
        }
        line.end()
    }
}
