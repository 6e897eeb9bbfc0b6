//! The properties of structured fields and signature bases, whatever the octets.

use std::time::{Duration, SystemTime};

use super::check::SignatureCandidate;
use super::directory_url::DirectoryUrl;
use super::message_head::MessageHead;
use super::structured_field::{BareItem, Dictionary, Item, Member};

/// A field that is read has one written form, and that form is read as the same.
pub fn structured_field(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    if let Ok(dictionary) = Dictionary::parse(text) {
        let form = written(&dictionary);
        let again = Dictionary::parse(&form).map(|dictionary| written(&dictionary));
        assert_eq!(again.as_deref(), Ok(form.as_str()), "{text:?}");
    }
    if let Ok(item) = Item::parse(text) {
        let form = item.to_string();
        let again = Item::parse(&form).map(|item| item.to_string());
        assert_eq!(again.as_deref(), Ok(form.as_str()), "{text:?}");
    }
}

/// A signature base has a line for each component, and nothing that a client sends adds one.
///
/// The input is `Signature-Input`, `Signature`, `Signature-Agent`, authority and target, one a line; further lines are those of
/// a field `x`.
pub fn signature_base(octets: &[u8]) {
    let mut lines = octets.split(|octet| *octet == b'\n');
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
        let covered = Dictionary::parse(&format!("a={list}")).ok().and_then(|dictionary| match dictionary.get("a") {
            Some(Member::InnerList(list)) => Some(list.items.len()),
            _ => None,
        });
        assert_eq!(covered, Some(components.len()), "{:?}", candidate.base);
        assert!(components.iter().all(|line| line.starts_with('"') && line.contains("\": ") || line.contains("\";")));
        assert!(candidate.base.bytes().all(|octet| matches!(octet, b'\n' | b'\t' | b' '..=b'~')));
        assert_eq!(DirectoryUrl::parse(candidate.directory.as_str()).as_ref(), Ok(&candidate.directory));
        assert!(candidate.until() >= now);
    }
}

/// RFC 9651, section 4.1.2: of a repeated key the last value, in the place of the first.
pub(super) fn written(dictionary: &Dictionary<'_>) -> String {
    let mut form = String::new();
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in dictionary.iter() {
        let Some(member) = dictionary.get(key).filter(|_| !keys.contains(&key)) else { continue };
        if !keys.is_empty() {
            form.push_str(", ");
        }
        keys.push(key);
        form.push_str(key);
        match member {
            Member::Item(Item { value: BareItem::Boolean(true), parameters }) => {
                form.push_str(&parameters.to_string());
            }
            member => form.push_str(&format!("={member}")),
        }
    }
    form
}
