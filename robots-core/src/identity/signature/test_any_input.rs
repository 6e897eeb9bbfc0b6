//! Properties of structured fields and signature bases that must hold for arbitrary bytes.

use std::time::{Duration, SystemTime};

use sfv::{Dictionary, FieldType, Item, ListEntry};

use super::check::SignatureCandidate;
use super::directory_url::DirectoryUrl;
use super::message_head::MessageHead;
use super::structured_field::{as_received, read};

/// Checks that the serialized form of a parsed field parses to the same value. Also checks that the
/// received bytes of each dictionary member parse to the same member.
pub fn structured_field(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(dictionary) = read::<Dictionary>(text) {
        let form = dictionary.serialize().unwrap_or_default();
        assert_eq!(read::<Dictionary>(&form).as_ref(), Some(&dictionary), "{text:?}");
        for (key, member) in &dictionary {
            match as_received(text, key.as_str()) {
                Some(value) => {
                    let alone = read::<Dictionary>(&format!("x={value}"));
                    let alone = alone.as_ref().map(|alone| (alone.len(), alone.get("x")));
                    assert_eq!(alone, Some((1, Some(member))), "{text:?}");
                }
                // The member has the form `key;parameters`, so its value is the Boolean true.
                None => assert!(
                    matches!(member, ListEntry::Item(item) if item.bare_item.as_boolean() == Some(true)),
                    "{text:?}"
                ),
            }
        }
    }
    if let Some(item) = read::<Item>(text) {
        assert_eq!(read::<Item>(&item.serialize()).as_ref(), Some(&item), "{text:?}");
    }
}

/// Checks that a signature base has exactly one line per component, even if a client sends
/// arbitrary bytes.
///
/// The first five lines of the input are `Signature-Input`, `Signature`, `Signature-Agent`, the
/// authority and the target. All other lines are lines of the field `x`.
pub fn signature_base(bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (input, signature, agent) = (line(), line(), line());
    let (authority, target) = (String::from_utf8_lossy(line()), String::from_utf8_lossy(line()));
    let mut fields = vec![("signature-input", input), ("signature", signature), ("signature-agent", agent)];
    fields.extend(lines.map(|line| ("x", line)));
    let fields = fields.as_slice();
    let message = MessageHead::new("GET", "https", Some(&authority), &target, &fields);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_735_689_660);
    let candidates = SignatureCandidate::all(&message, now);
    assert!(candidates.len() <= 2);
    for candidate in candidates.into_iter().flatten() {
        let lines: Vec<&str> = candidate.base.split('\n').collect();
        let (parameters, components) = lines.split_last().map_or(("", &lines[..]), |(last, rest)| (*last, rest));
        let list = parameters.strip_prefix("\"@signature-params\": ").unwrap_or_default();
        let covered = read::<Dictionary>(&format!("a={list}")).and_then(|dictionary| match dictionary.get("a") {
            Some(ListEntry::InnerList(list)) => Some(list.items.len()),
            _ => None,
        });
        assert_eq!(covered, Some(components.len()), "{:?}", candidate.base);
        assert!(components.iter().all(|line| line.starts_with('"') && line.contains("\": ") || line.contains("\";")));
        assert!(candidate.base.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~')));
        assert_eq!(DirectoryUrl::parse(candidate.directory.as_str()).as_ref(), Ok(&candidate.directory));
        assert!(candidate.until() >= now);
    }
}
