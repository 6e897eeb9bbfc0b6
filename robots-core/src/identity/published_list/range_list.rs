//! Parses a list of addresses that an operator publishes.

use serde_json::{Map, Value};

use super::text::{self, FORMAT_ADVICE};
use super::{DocumentError, DocumentErrorKind, MAX_PREFIXES};
use crate::agent::Network;
use crate::identity::range_set::RangeSet;

/// Maximum size of a list, in bytes. The largest published list has 100 KiB.
const MAX_BYTES: usize = 1 << 20;

/// Minimum length of an IPv4 prefix, in bits. The network of a shorter prefix is too large for one
/// operator.
const MIN_PREFIX_V4: u32 = 8;
const MIN_PREFIX_V6: u32 = 19;

/// A list of the addresses that an operator publishes for a crawler.
///
/// Three formats are supported. The first is the JSON object that search engines and AI crawlers
/// publish, including the version in the JAFAR draft (draft-illyes-webbotauth-jafar). The second is
/// text with one prefix per line. The third is the CSV of a geofeed (RFC 8805). Content in any
/// other format is an error. If it were parsed as an empty list, genuine crawlers would be treated
/// as impostors.
///
/// ```
/// use robots_core::identity::{RangeList, DocumentErrorKind};
///
/// let list = RangeList::parse(br#"{"creationTime":"2026-09-02T14:46:00","prefixes":[{"ipv4Prefix":"66.249.64.0/27"}]}"#)?;
/// assert!(list.set.contains("66.249.64.1".parse()?));
///
/// // After a list has moved, its old URL returns this response.
/// let moved = RangeList::parse(br#"{"Action needed":"update the location you're fetching from"}"#).unwrap_err();
/// assert_eq!(moved.kind, DocumentErrorKind::NoPrefixes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RangeList {
    /// All addresses in the valid prefixes of the list.
    pub set: RangeSet,
    /// Number of valid prefixes.
    pub prefixes: usize,
    /// Number of elements of the list that were skipped because they are not valid prefixes.
    pub skipped: usize,
    /// Creation time as the operator wrote it. Few operators use the format of RFC 3339. `None` if
    /// the list has no creation time.
    pub created: Option<Box<str>>,
}

impl RangeList {
    /// Checks the `Content-Type` of a list. Rejects only JAFAR types with a newer version, such as
    /// `application/jafar+json; version=2.0`. All other types are accepted, because operators send
    /// lists with many different types.
    ///
    /// # Errors
    ///
    /// Returns an error if the major version is greater than 1, or not a number. The caller must
    /// then keep the previous list, and not parse the new list.
    #[doc(hidden)]
    pub fn check_media_type(content_type: &str) -> Result<(), DocumentError> {
        let mut parts = content_type.split(';');
        let is_jafar = parts.next().is_some_and(|name| name.trim().eq_ignore_ascii_case("application/jafar+json"));
        let version = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("version").then(|| value.trim().trim_matches('"'))
        });
        version.filter(|_| is_jafar).map_or(Ok(()), check_version)
    }

    /// Parses a list.
    ///
    /// # Errors
    ///
    /// Returns an error in these cases: the format is not supported, the list is larger than 1 MiB,
    /// it has no valid prefix or more than 50,000, or a prefix is shorter than `/8` (IPv4) or `/19`
    /// (IPv6).
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let error = DocumentError::new;
        if bytes.len() > MAX_BYTES {
            let message = format!("the list has {} bytes, but at most {MAX_BYTES} are allowed", bytes.len());
            return Err(error(DocumentErrorKind::TooLarge, message));
        }
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let (prefixes, skipped, created) = match bytes.trim_ascii_start().first() {
            // `read_json` rejects a JSON array with a better error message than `text::read`.
            Some(b'{' | b'[') => read_json(bytes)?,
            _ => (text::read(bytes)?, 0, None),
        };
        if prefixes.is_empty() {
            let message = format!("the list contains no valid prefix: {FORMAT_ADVICE}");
            return Err(error(DocumentErrorKind::Empty, message));
        }
        if let Some(wide) = prefixes.iter().find(|prefix| is_too_wide(prefix)) {
            let message = format!(
                "the prefix {wide} covers a large part of the Internet: write prefixes of at least /{MIN_PREFIX_V4} \
                 (IPv4) or /{MIN_PREFIX_V6} (IPv6)"
            );
            return Err(error(DocumentErrorKind::TooWide, message));
        }
        Ok(Self { prefixes: prefixes.len(), set: prefixes.into_iter().collect(), skipped, created })
    }

    /// Checks whether this list may replace a list that was fetched before.
    ///
    /// Do not pass an embedded list or the user's own list as `before`. These lists may be so old
    /// that the operator has removed most of their addresses.
    ///
    /// # Errors
    ///
    /// Returns an error if more than half of the previous list's IPv4 addresses, or of its IPv6
    /// addresses, are missing. The caller should then keep the previous list.
    #[doc(hidden)]
    pub fn check_after(&self, before: &RangeSet) -> Result<(), DocumentError> {
        if !before.lost_most_in(&self.set) {
            return Ok(());
        }
        let message = format!(
            "the new list lacks more than half of the addresses in the previous list, so the new list ({count} \
             prefixes) is not used",
            count = self.prefixes
        );
        Err(DocumentError::new(DocumentErrorKind::Shrunk, message))
    }
}

fn is_too_wide(prefix: &Network) -> bool {
    prefix.length() < if prefix.first().is_ipv4() { MIN_PREFIX_V4 } else { MIN_PREFIX_V6 }
}

/// Maximum length of a stored creation time, in characters.
const MAX_TIME_LENGTH: usize = 64;

/// The prefixes of a list, the number of skipped elements, and the creation time of the list.
type ListEntries = (Vec<Network>, usize, Option<Box<str>>);

fn read_json(bytes: &[u8]) -> Result<ListEntries, DocumentError> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("the list is not JSON: {problem}", problem = without_place(&error));
        DocumentError::new(DocumentErrorKind::InvalidJson, message).at(error.line(), error.column())
    })?;
    let object = value
        .as_object()
        .ok_or_else(|| no_prefixes("not an object with prefixes", "the document is an array or a single value"))?;
    if let Some(version) = object.get("formatVersion") {
        check_version(&version.as_str().map_or_else(|| version.to_string(), str::to_owned))?;
    }
    let entries = object.get("prefixes").and_then(Value::as_array).ok_or_else(|| {
        let keys: Vec<_> = object.keys().take(4).map(|key| key.chars().take(32).collect::<String>()).collect();
        no_prefixes("without an array `prefixes`", &format!("its keys are {keys:?}"))
    })?;
    if entries.len() > MAX_PREFIXES {
        let message =
            format!("the list has {count} prefixes, but at most {MAX_PREFIXES} are allowed", count = entries.len());
        return Err(DocumentError::new(DocumentErrorKind::TooMany, message));
    }
    let prefixes: Vec<Network> = entries.iter().filter_map(|entry| prefix(entry.as_object()?)).collect();
    let created = object.get("creationTime").and_then(Value::as_str);
    let created = created.map(|time| time.chars().filter(|char| !char.is_control()).take(MAX_TIME_LENGTH).collect());
    let skipped = entries.len() - prefixes.len();
    Ok((prefixes, skipped, created))
}

/// Returns the prefix of an element in `prefixes`. `None` if the element has both an IPv4 and an
/// IPv6 prefix, neither of them, or an invalid prefix. JAFAR requires consumers to ignore such
/// elements.
fn prefix(entry: &Map<String, Value>) -> Option<Network> {
    let (text, is_v4) = match (entry.get("ipv4Prefix"), entry.get("ipv6Prefix")) {
        (Some(text), None) => (text, true),
        (None, Some(text)) => (text, false),
        _ => return None,
    };
    let text = text.as_str()?;
    // The notation decides whether a prefix is IPv4 or IPv6. For example, `::ffff:192.0.2.0/120` is
    // an IPv6 prefix here.
    let prefix: Network = text.parse().ok()?;
    (text.contains(':') != is_v4).then_some(prefix)
}

fn no_prefixes(wanted: &str, found: &str) -> DocumentError {
    let message = format!("the list is JSON, but {wanted} ({found}): {FORMAT_ADVICE}");
    DocumentError::new(DocumentErrorKind::NoPrefixes, message)
}

/// Returns the message of an error without the suffix ` at line 1 column 2`, because
/// `DocumentError` stores the position separately.
fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.clone(), |(message, _)| message.to_owned())
}

/// Maximum supported major version of the list format.
const MAX_MAJOR_VERSION: u64 = 1;

/// Checks that a version of the form `major.minor` is supported. The version is in the media type
/// of JAFAR lists, and in the document of older formats.
fn check_version(version: &str) -> Result<(), DocumentError> {
    let major = version.split('.').next().unwrap_or_default();
    if major.parse::<u64>().is_ok_and(|major| major <= MAX_MAJOR_VERSION) {
        return Ok(());
    }
    let shown: String = version.chars().take(32).collect();
    let message =
        format!("the list has the format version {shown:?}, but only versions up to {MAX_MAJOR_VERSION} are supported");
    Err(DocumentError::new(DocumentErrorKind::NewerFormat, message))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::identity::RangeList;

    fn kind(bytes: impl AsRef<[u8]>) -> DocumentErrorKind {
        RangeList::parse(bytes.as_ref()).expect_err("no list").kind
    }

    #[test]
    fn a_list_with_too_many_prefixes_or_bytes_is_refused() {
        let mut text = String::new();
        for number in 0..MAX_PREFIXES as u32 {
            writeln!(text, "{}", std::net::Ipv4Addr::from_bits(0x0800_0000 + 2 * number)).expect("text");
        }
        let list = RangeList::parse(text.as_bytes()).expect("a list");
        assert_eq!((list.prefixes, list.set.ranges()), (MAX_PREFIXES, MAX_PREFIXES));
        text.push_str("9.9.9.9\n");
        assert_eq!(kind(&text), DocumentErrorKind::TooMany);
        let mut large = b"9.9.9.9\n".to_vec();
        large.resize(MAX_BYTES, b'\n');
        assert!(RangeList::parse(&large).is_ok());
        large.push(b'\n');
        assert_eq!(kind(&large), DocumentErrorKind::TooLarge);
    }

    #[test]
    fn a_prefix_that_holds_a_large_part_of_the_internet_is_refused() {
        for (texts, is_list) in
            [("8.0.0.0/8 2001:4000::/19", true), ("8.0.0.0/7 0.0.0.0/0 ::ffff:0:0/96 2001:4000::/18 ::/0", false)]
        {
            for text in texts.split(' ') {
                assert_eq!(RangeList::parse(text.as_bytes()).is_ok(), is_list, "{text}");
                if !is_list {
                    assert_eq!(kind(format!("9.9.9.9\n{text}\n")), DocumentErrorKind::TooWide);
                }
            }
        }
    }

    #[test]
    fn a_list_that_lost_most_of_its_addresses_does_not_replace_the_previous_list() {
        let list = |text: &str| RangeList::parse(text.as_bytes()).expect(text);
        let before = list("8.8.0.0/24\n8.8.2.0/24\n2a00::/32");
        assert_eq!(list("8.8.0.0/24\n2a00::/32").check_after(&before.set), Ok(()));
        assert_eq!(list("8.8.0.0/16\n2a00::/32").check_after(&before.set), Ok(()));
        let error = list("8.8.0.0/25\n2a00::/32").check_after(&before.set).expect_err("shrunk");
        assert_eq!(error.kind, DocumentErrorKind::Shrunk);
        assert!(list("8.8.0.0/16").check_after(&before.set).is_err());
    }

    fn error(text: &str) -> DocumentError {
        RangeList::parse(text.as_bytes()).expect_err(text)
    }

    #[test]
    fn published_json_lists_are_parsed() {
        let google = r#"{"creationTime": "2026-09-02T14:46:00.000000", "prefixes": [
            {"ipv4Prefix": "66.249.64.0/27"}, {"ipv6Prefix": "2001:4860:4801:10::/64"}]}"#;
        let list = RangeList::parse(google.as_bytes()).expect("a list");
        assert_eq!((list.prefixes, list.skipped), (2, 0));
        assert_eq!(list.created.as_deref(), Some("2026-09-02T14:46:00.000000"));
        let jafar = r#"{"formatVersion": "1.3", "synctoken": "x", "creationTime": 7, "notes": {}, "prefixes": [
            {"ipv4Prefix": "66.249.64.0/27", "service": ["a"], "services": 4, "more": null}]}"#;
        let list = RangeList::parse(jafar.as_bytes()).expect("a list");
        assert_eq!((list.prefixes, list.created.as_deref()), (1, None));
        let marked = [b"\xEF\xBB\xBF \n".as_slice(), google.as_bytes()].concat();
        assert!(RangeList::parse(&marked).is_ok());
    }

    #[test]
    fn invalid_entries_of_a_json_list_are_skipped_and_counted() {
        let text = r#"{"prefixes": [{"ipv4Prefix": "8.8.8.0/24"}, {"ipv6Prefix": "::ffff:9.9.9.9"},
            {"ipv4Prefix": "1.1.1.0/24", "ipv6Prefix": "2a00::/32"}, {"ipv4Prefix": null, "ipv6Prefix": "2a00::/32"},
            {}, {"service": "x"}, null, 7, "1.1.1.1", [], {"ipv4Prefix": "2a00::/32"}, {"ipv6Prefix": "1.1.1.1"},
            {"ipv4Prefix": 16843009}, {"ipv4Prefix": "1.1.1.1/33"}, {"ipv4Prefix": " 1.1.1.1"}, {"ipv4Prefix": "1.1.1.1/24"},
            {"ipv6Prefix": "fe80::1%eth0"}, {"ipv4prefix": "1.1.1.1"}]}"#;
        let list = RangeList::parse(text.as_bytes()).expect("a list");
        assert_eq!((list.prefixes, list.skipped), (2, 16));
        for (address, is_listed) in [("8.8.8.8", true), ("9.9.9.9", true), ("1.1.1.1", false), ("2a00::1", false)] {
            assert_eq!(list.set.contains(address.parse().expect(address)), is_listed, "{address}");
        }
    }

    #[test]
    fn json_without_a_valid_list_is_refused() {
        use DocumentErrorKind::{Empty, InvalidJson, NewerFormat, NoPrefixes, TooMany};
        let many = format!(r#"{{"prefixes":[{}null]}}"#, "null,".repeat(MAX_PREFIXES));
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
            assert_eq!(error(text).kind, kind, "{}", &text[..text.len().min(80)]);
        }
        assert_eq!(error("{\"prefixes\":\n  [}").to_string(), "2:4: the list is not JSON: expected value");
        let moved = error(r#"{"Action needed":"update"}"#).to_string();
        let want = "the list is JSON, but without an array `prefixes` (its keys are [\"Action needed\"]): ";
        assert!(moved.starts_with(want), "{moved}");
        // A deeply nested document must not overflow the stack of the parser.
        let deep = format!("{{\"prefixes\":{}", "[".repeat(500_000));
        assert_eq!(error(&deep).kind, InvalidJson);
    }

    #[test]
    fn a_list_with_a_newer_major_version_is_refused() {
        for (content_type, is_read) in [
            ("", true),
            ("application/json", true),
            ("text/html; version=9", true),
            ("application/jafar+json", true),
            ("application/jafar+json; version=1.10", true),
            ("Application/JAFAR+json;charset=utf-8; Version=\"1.0\"", true),
            ("application/jafar+json; version=2.0", false),
            ("application/jafar+json;version=\"10\"", false),
            ("application/jafar+json; version=", false),
            ("application/jafar+json; version=x", false),
            ("application/jafar+json; version=99999999999999999999999", false),
        ] {
            let checked = RangeList::check_media_type(content_type);
            assert_eq!(checked.is_ok(), is_read, "{content_type}");
            assert!(checked.is_ok() || checked.is_err_and(|error| error.kind == DocumentErrorKind::NewerFormat));
        }
    }
}
