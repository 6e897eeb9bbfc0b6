//! The JSON object that most operators publish, and JAFAR.

use serde_json::{Map, Value};

use super::entries::{Entries, MOST_PREFIXES};
use super::media_type;
use super::range_list_error::{RangeListError, RangeListErrorKind};
use super::text::CONVERT;
use crate::agent::Network;

/// How much of a time is kept.
const LONGEST_TIME: usize = 64;

pub(super) fn read(octets: &[u8]) -> Result<Entries, RangeListError> {
    let value: Value = serde_json::from_slice(octets).map_err(|error| {
        let message = format!("the list is no JSON: {}", without_place(&error));
        RangeListError::new(RangeListErrorKind::InvalidJson, message).at(error.line(), error.column())
    })?;
    let object = value.as_object().ok_or_else(|| no_prefixes("an object", "it is another value"))?;
    if let Some(version) = object.get("formatVersion") {
        media_type::check_version(&version.as_str().map_or_else(|| version.to_string(), str::to_owned))?;
    }
    let entries = object.get("prefixes").and_then(Value::as_array).ok_or_else(|| {
        let keys: Vec<_> = object.keys().take(4).map(|key| key.chars().take(32).collect::<String>()).collect();
        no_prefixes("a `prefixes` array", &format!("its keys are {keys:?}"))
    })?;
    if entries.len() > MOST_PREFIXES {
        let message = format!("the list has {} prefixes: at most {MOST_PREFIXES} are read", entries.len());
        return Err(RangeListError::new(RangeListErrorKind::TooMany, message));
    }
    let mut read = Entries::default();
    for entry in entries {
        match entry.as_object().and_then(prefix) {
            Some(prefix) => read.prefixes.push(prefix),
            None => read.skipped += 1,
        }
    }
    read.created = object
        .get("creationTime")
        .and_then(Value::as_str)
        .map(|time| time.chars().filter(|char| !char.is_control()).take(LONGEST_TIME).collect());
    Ok(read)
}

/// The one prefix of an entry; `None` if it has both kinds, neither, or one that is none of its kind. JAFAR has consumers
/// ignore such entries.
fn prefix(entry: &Map<String, Value>) -> Option<Network> {
    let (text, is_v4) = match (entry.get("ipv4Prefix"), entry.get("ipv6Prefix")) {
        (Some(text), None) => (text, true),
        (None, Some(text)) => (text, false),
        _ => return None,
    };
    let text = text.as_str()?;
    // By the address as written: IPv4 mapped into IPv6 is an IPv6 prefix here.
    let prefix: Network = text.parse().ok()?;
    (text.contains(':') != is_v4).then_some(prefix)
}

fn no_prefixes(wanted: &str, found: &str) -> RangeListError {
    let message = format!("the list is JSON and not {wanted}: {found}; {CONVERT}");
    RangeListError::new(RangeListErrorKind::NoPrefixes, message)
}

/// The message without its ` at line 1 column 2`, which is the place of the error.
fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.clone(), |(message, _)| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::RangeList;

    fn error(text: &str) -> RangeListError {
        RangeList::parse(text.as_bytes()).expect_err(text)
    }

    #[test]
    fn published_lists_are_read() {
        let google = r#"{"creationTime": "2026-09-02T14:46:00.000000", "prefixes": [
            {"ipv4Prefix": "66.249.64.0/27"}, {"ipv6Prefix": "2001:4860:4801:10::/64"}]}"#;
        let list = RangeList::parse(google.as_bytes()).expect("a list");
        assert_eq!((list.prefixes(), list.skipped()), (2, 0));
        assert_eq!(list.created(), Some("2026-09-02T14:46:00.000000"));
        let jafar = r#"{"formatVersion": "1.3", "synctoken": "x", "creationTime": 7, "notes": {}, "prefixes": [
            {"ipv4Prefix": "66.249.64.0/27", "service": ["a"], "services": 4, "more": null}]}"#;
        let list = RangeList::parse(jafar.as_bytes()).expect("a list");
        assert_eq!((list.prefixes(), list.created()), (1, None));
        let marked = [b"\xEF\xBB\xBF \n".as_slice(), google.as_bytes()].concat();
        assert!(RangeList::parse(&marked).is_ok());
    }

    #[test]
    fn entries_that_are_no_prefix_of_their_kind_are_skipped() {
        let text = r#"{"prefixes": [{"ipv4Prefix": "8.8.8.0/24"}, {"ipv6Prefix": "::ffff:9.9.9.9"},
            {"ipv4Prefix": "1.1.1.0/24", "ipv6Prefix": "2a00::/32"}, {"ipv4Prefix": null, "ipv6Prefix": "2a00::/32"},
            {}, {"service": "x"}, null, 7, "1.1.1.1", [], {"ipv4Prefix": "2a00::/32"}, {"ipv6Prefix": "1.1.1.1"},
            {"ipv4Prefix": 16843009}, {"ipv4Prefix": "1.1.1.1/33"}, {"ipv4Prefix": " 1.1.1.1"}, {"ipv4Prefix": "1.1.1.1/24"},
            {"ipv6Prefix": "fe80::1%eth0"}, {"ipv4prefix": "1.1.1.1"}]}"#;
        let list = RangeList::parse(text.as_bytes()).expect("a list");
        assert_eq!((list.prefixes(), list.skipped()), (2, 16));
        for (address, is_listed) in [("8.8.8.8", true), ("9.9.9.9", true), ("1.1.1.1", false), ("2a00::1", false)] {
            assert_eq!(list.set().contains(address.parse().expect(address)), is_listed, "{address}");
        }
    }

    #[test]
    fn json_that_is_no_list_is_refused() {
        use RangeListErrorKind::{Empty, InvalidJson, NewerFormat, NoPrefixes, TooMany};
        let many = format!(r#"{{"prefixes":[{}null]}}"#, "null,".repeat(MOST_PREFIXES));
        for (text, kind) in [
            (r#"{"Action needed":"update the location you're fetching from to https://a.example/"}"#, NoPrefixes),
            ("{}", NoPrefixes),
            (r#"{"prefixes": {"ipv4Prefix": "8.8.8.8"}}"#, NoPrefixes),
            (r#"{"prefixes": null}"#, NoPrefixes),
            (r#"["8.8.8.8"]"#, NoPrefixes),
            (r#"{"prefixes": []}"#, Empty),
            (r#"{"prefixes": [{"ipv4Prefix": "8.8.8.8/24"}]}"#, Empty),
            (r#"{"prefixes": [{"ipv4Prefix": "8.8.8.8"}], "prefixes": []}"#, Empty),
            (r#"{"prefixes": [{"ipv4Prefix": "8.8.8.8"}"#, InvalidJson),
            (r#"{"prefixes": [{"ipv4Prefix": "8.8.8.8"}]} x"#, InvalidJson),
            (r#"{"formatVersion": "2.0", "prefixes": [{"ipv4Prefix": "8.8.8.8"}]}"#, NewerFormat),
            (r#"{"formatVersion": 2, "prefixes": [{"ipv4Prefix": "8.8.8.8"}]}"#, NewerFormat),
            (r#"{"formatVersion": {}, "prefixes": [{"ipv4Prefix": "8.8.8.8"}]}"#, NewerFormat),
            (&many, TooMany),
        ] {
            assert_eq!(error(text).kind(), kind, "{}", &text[..text.len().min(80)]);
        }
        assert_eq!(error("{\"prefixes\":\n  [}").to_string(), "2:4: the list is no JSON: expected value");
        let moved = error(r#"{"Action needed":"update"}"#).to_string();
        assert!(
            moved.starts_with("the list is JSON and not a `prefixes` array: its keys are [\"Action needed\"]; "),
            "{moved}"
        );
        // As deep as a parser can be made to go.
        let deep = format!("{{\"prefixes\":{}", "[".repeat(500_000));
        assert_eq!(error(&deep).kind(), InvalidJson);
    }
}
