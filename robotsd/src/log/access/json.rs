//! A JSON object a line, by the names the log of events uses.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::status::status;
use crate::date;
use crate::edge::{AccessRecord, AccessValue};
use crate::log::LogEvent;
use crate::log::entry::escaped;
use crate::log::privacy::LogPrivacy;

pub(super) fn line(record: &AccessRecord, privacy: LogPrivacy, out: &mut Vec<u8>) {
    let json = serde_json::to_string(&Line { record, privacy }).unwrap_or_default();
    out.extend_from_slice(escaped(json).as_bytes());
    out.push(b'\n');
}

struct Line<'a> {
    record: &'a AccessRecord,
    privacy: LogPrivacy,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { record, privacy } = self;
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("ts", &date::rfc3339_millis(record.at))?;
        line.serialize_entry("level", LogEvent::Request.level().as_str())?;
        line.serialize_entry("event", LogEvent::Request.as_str())?;
        line.serialize_entry("request_id", record.id.as_str())?;
        if let Some(trace) = &record.trace_id {
            line.serialize_entry("trace_id", trace)?;
        }
        for (name, value) in &record.notes {
            match value {
                AccessValue::Text(text) => line.serialize_entry(name, text)?,
                AccessValue::Number(number) => line.serialize_entry(name, number)?,
            }
        }
        line.serialize_entry("method", record.method.as_str())?;
        if let Some(host) = &record.host {
            line.serialize_entry("host", &text(host))?;
        }
        line.serialize_entry("path", &privacy.target(&record.target))?;
        line.serialize_entry("protocol", &format!("{:?}", record.version))?;
        line.serialize_entry("status", &status(record))?;
        line.serialize_entry("octets", &record.sent)?;
        line.serialize_entry("whole", &record.is_whole)?;
        line.serialize_entry("seconds", &(record.took.as_micros() as f64 / 1e6))?;
        if let Some(address) = privacy.address(record.peer.ip()) {
            line.serialize_entry("address", &address)?;
        }
        if let Some(referer) = &record.referer {
            line.serialize_entry("referer", &privacy.target(&text(referer)))?;
        }
        if let Some(agent) = &record.user_agent {
            line.serialize_entry("user_agent", &text(agent))?;
        }
        line.end()
    }
}
