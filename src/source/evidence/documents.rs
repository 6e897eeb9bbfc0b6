//! The kinds of documents that contain evidence: lists of addresses, key directories, and
//! registries. A registry contains the URLs of the other documents, so a fetched registry must pass
//! additional checks. Also contains [`ListCopy`], a list of addresses that is available without a
//! fetch.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::verification_plan::VerificationPlan;
use super::verified_claims::EvidenceVersion;
use crate::agent::{Crawler, Recognizer, Registry};
use crate::identity::{EmbeddedList, KeySet, RangeList};
use crate::rules::RobotsTxt;
use crate::source::fetch::{FetchMode, FetchUrl, Schedule};
use crate::source::file;
use crate::source::follow::{
    Demand, Document, DocumentSettings, EMBEDDED, FollowBuilder, FollowError, FollowedDocument, HOUR, MINUTE, OWN_FILE,
    SAVED, SavedDocuments,
};

impl Document for RangeList {
    const NOUN: &'static str = "list";
    const GAP: Duration = HOUR;
    type Reading = EvidenceVersion;

    /// Returns a schedule with about one fetch per day, and at most one fetch per hour
    /// (draft-illyes-webbotauth-jafar).
    fn schedule() -> Schedule {
        let day = 24 * HOUR;
        Schedule { every: day, least: HOUR, most: day, retry_first: MINUTE, retry_most: HOUR, ..Schedule::default() }
    }

    fn read(_: &EvidenceVersion, bytes: &[u8]) -> Result<Self, String> {
        Self::parse(bytes).map_err(|error| error.to_string())
    }

    fn check_media_type(media_type: &str) -> Result<(), String> {
        RangeList::check_media_type(media_type).map_err(|error| error.to_string())
    }

    fn check_after(&self, before: &Self) -> Result<(), String> {
        Self::check_after(self, &before.set).map_err(|error| error.to_string())
    }

    fn entries(&self) -> usize {
        self.prefixes
    }

    fn created(&self) -> Option<String> {
        self.created.as_deref().map(str::to_owned)
    }

    fn renewed(version: &EvidenceVersion) {
        version.change();
    }
}

impl Document for KeySet {
    const NOUN: &'static str = "key directory";
    const MODE: FetchMode = FetchMode::Direct;
    const MAX_BYTES: u64 = 64 * 1024;
    const DEMAND: Demand = Demand::OnRequest;
    const GAP: Duration = Duration::from_secs(5 * 60);
    type Reading = ();

    fn schedule() -> Schedule {
        let (retry_first, retry_most) = (MINUTE / 2, 5 * MINUTE);
        Schedule { least: 5 * MINUTE, retry_first, retry_most, ..Schedule::default() }
    }

    fn read((): &(), bytes: &[u8]) -> Result<Self, String> {
        Self::parse(bytes).map_err(|error| error.to_string())
    }

    fn check_media_type(_: &str) -> Result<(), String> {
        Ok(())
    }

    fn entries(&self) -> usize {
        self.len()
    }
}

impl FollowedDocument<Registry> {
    /// Returns a builder for keeping the registry at an `https` URL up to date. `read` parses the
    /// registry. If the registry is invalid, the error that `read` returns should contain the line
    /// and column of the problem.
    ///
    /// A fetched registry is untrusted, so it is rejected if it is not UTF-8, has more than 10,000
    /// crawlers, contains control characters or URLs without TLS, or would identify common browsers
    /// as crawlers.
    pub fn builder(
        url: FetchUrl,
        read: impl Fn(&str) -> Result<Registry, String> + Send + Sync + 'static,
    ) -> FollowBuilder<DocumentSettings<Registry>> {
        let read: <Registry as Document>::Reading = Box::new(read);
        FollowBuilder::of(url, read)
    }
}

impl Document for Registry {
    const NOUN: &'static str = "registry";
    const ONLY_HTTPS: bool = true;
    const GAP: Duration = HOUR;
    type Reading = Box<dyn Fn(&str) -> Result<Self, String> + Send + Sync>;

    fn schedule() -> Schedule {
        RangeList::schedule()
    }

    fn read(reading: &Self::Reading, bytes: &[u8]) -> Result<Self, String> {
        let registry = reading(check_text(bytes)?)?;
        check_use(&registry)?;
        Ok(registry)
    }

    fn entries(&self) -> usize {
        self.crawlers().len()
    }

    /// Compares the registry with the previous version or, if there is none, with the built-in
    /// registry.
    fn objection(&self, before: Option<&Self>) -> Option<String> {
        let drastic_changes = before.unwrap_or_else(|| Self::builtin()).drastic_changes(self);
        let named = drastic_changes.iter().take(MAX_NAMED).map(ToString::to_string).collect::<Vec<_>>().join("; ");
        match drastic_changes.len().saturating_sub(MAX_NAMED) {
            0 => (!named.is_empty()).then_some(named),
            more => Some(format!("{named}; and {more} more")),
        }
    }
}

/// A copy of a published list of addresses.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListCopy {
    /// The parsed list.
    pub list: RangeList,
    /// The origin of the copy: `saved` (by a process that fetched the list), `file` (the operator's
    /// own file) or `embedded` (part of this crate).
    pub origin: &'static str,
    /// When the list's server last confirmed that this copy is current; `None` for a copy that was
    /// not fetched.
    pub confirmed: Option<SystemTime>,
    /// When an embedded copy was fetched, as a date such as `2026-09-02`.
    pub fetched: Option<&'static str>,
}

impl ListCopy {
    /// Returns the copies of the list at a URL in the order of preference: the copy that a
    /// [`Verifier`](super::Verifier) saved in the folder `saved`, the operator's file `own`, and
    /// the embedded copy. A `Verifier` that has not fetched the list yet prefers the copies in the
    /// same order.
    ///
    /// If a copy cannot be read, the result contains an error instead of the copy, and the caller
    /// should use the next copy.
    pub fn all(url: &str, saved: Option<&Path>, own: Option<&Path>) -> Vec<Result<Self, FollowError>> {
        let saved = saved.and_then(|folder| Self::saved(folder, url).transpose());
        [saved, own.map(Self::of_file), Self::embedded(url).map(Ok)].into_iter().flatten().collect()
    }

    /// Reads the copy of a list that a [`Verifier`](super::Verifier) saved in a folder. Returns
    /// `None` if no copy was saved or if the folder does not exist.
    fn saved(folder: &Path, url: &str) -> Result<Option<Self>, FollowError> {
        let url: FetchUrl = url.parse().map_err(|error| FollowError::new(format!("list {url:?}: {error}")))?;
        let Some(saved) = SavedDocuments::new(folder.to_owned()).read(&url)? else { return Ok(None) };
        let list = RangeList::parse(&saved.bytes)
            .map_err(|error| FollowError::new(format!("the saved copy of the list {url} cannot be used: {error}")))?;
        let confirmed = Some(saved.confirmed);
        Ok(Some(Self { list, origin: SAVED, confirmed, fetched: None }))
    }

    pub(super) fn of_file(path: &Path) -> Result<Self, FollowError> {
        let wrong = |why: &dyn std::fmt::Display| FollowError::new(format!("{}: {why}", path.display()));
        let bytes = file::read(path).map_err(|error| wrong(&error))?;
        let list = RangeList::parse(&bytes).map_err(|error| match error.position {
            Some(_) => FollowError::new(format!("{}:{error}", path.display())),
            None => wrong(&error),
        })?;
        Ok(Self { list, origin: OWN_FILE, confirmed: None, fetched: None })
    }

    pub(super) fn embedded(url: &str) -> Option<Self> {
        let list = EmbeddedList::all().iter().find(|list| list.url == url)?;
        let fetched = Some(list.fetched);
        Some(Self { list: list.list.clone(), origin: EMBEDDED, confirmed: None, fetched })
    }
}

/// Maximum number of drastic changes that a message lists.
const MAX_NAMED: usize = 5;

/// Maximum number of crawlers in a registry. The built-in registry has about 720.
const MAX_CRAWLERS: usize = 10_000;

/// Maximum length of a value in the registry, in bytes. The longest values in the registry are
/// `User-Agent` headers.
const MAX_VALUE_LENGTH: usize = 512;

/// `User-Agent` headers of the most common browsers. A registry that identifies any of them as a
/// crawler is rejected.
const BROWSERS: &[&str] = &[
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
    "Mozilla/5.0 (X11; Ubuntu; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 OPR/124.0.0.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (iPad; CPU OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.0.0 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0",
];

/// Converts a fetched registry to a string. Rejects a registry that is not UTF-8, or that is an
/// HTML or XML page.
fn check_text(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        format!("line {line} is not UTF-8")
    })?;
    if text.trim_start().starts_with('<') {
        return Err("the document is an HTML or XML page, not a registry".to_owned());
    }
    Ok(text)
}

fn check_use(registry: &Registry) -> Result<(), String> {
    let rows = registry.crawlers().len();
    if rows > MAX_CRAWLERS {
        return Err(format!("the registry has {rows} crawlers, but at most {MAX_CRAWLERS} are allowed"));
    }
    registry.crawlers().try_for_each(check_crawler)?;
    VerificationPlan::of(registry, &[]).map_err(|error| error.to_string())?;
    let recognizer = Recognizer::new(Arc::new(registry.clone()), &RobotsTxt::parse(&b""[..]));
    for browser in BROWSERS {
        if let Some(crawler) = recognizer.identify(browser.as_bytes()).registered() {
            return Err(format!("crawler {:?} would also match browsers that send {browser:?}", &crawler.name));
        }
    }
    Ok(())
}

fn check_crawler(crawler: &Crawler) -> Result<(), String> {
    let name = &crawler.name;
    let Crawler { header_names, requires, ranges, reverse_dns, examples, signature, source, .. } = crawler;
    let texts = [name, &crawler.operator].into_iter();
    let texts = texts.chain(header_names).chain(requires).chain(reverse_dns);
    for text in texts.chain(source).chain(examples).chain(ranges).chain(signature) {
        if text.len() > MAX_VALUE_LENGTH {
            return Err(format!(
                "crawler {:?}: a value has {} bytes, but at most {MAX_VALUE_LENGTH} are allowed",
                short(name),
                text.len()
            ));
        }
        if let Some(character) = text.chars().find(|character| character.is_control() || is_bidirectional(*character)) {
            return Err(format!(
                "crawler {:?}: {:?} contains {character:?}, which cannot be displayed",
                short(name),
                short(text)
            ));
        }
    }
    for address in ranges.iter().chain(signature) {
        if !address.starts_with("https://") {
            return Err(format!("crawler {name:?}: {address:?} is fetched without TLS: write an https URL"));
        }
    }
    Ok(())
}

const fn is_bidirectional(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::header::CACHE_CONTROL;
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::agent::Category;
    use crate::source::fetch::Validators;
    use crate::source::fetch::freshness::Freshness;

    fn interval<D: Document>(cache_control: &'static str) -> Duration {
        let mut headers = HeaderMap::new();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache_control));
        D::schedule().interval(Freshness::of(&headers))
    }

    #[test]
    fn lists_are_fetched_daily_or_at_most_hourly_and_keys_hourly_or_at_most_every_five_minutes() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        assert_eq!(interval::<RangeList>(""), 24 * hour);
        assert_eq!(interval::<RangeList>("max-age=1"), hour);
        assert_eq!(RangeList::GAP, hour);
        assert_eq!(RangeList::schedule().pause(99, None, u32::MAX), hour);
        assert_eq!(interval::<KeySet>(""), hour);
        assert_eq!(interval::<KeySet>("max-age=1"), 5 * minute);
        assert_eq!(KeySet::GAP, 5 * minute);
        assert_eq!(KeySet::schedule().pause(99, None, u32::MAX), 5 * minute);
    }

    fn wrong(change: impl FnOnce(Crawler) -> Crawler) -> Option<String> {
        let row = change(Crawler::new("HouseBot", Category::Seo));
        check_use(&Registry::builtin().extended_with([row]).expect("a registry")).err()
    }

    #[test]
    fn the_builtin_registry_passes_the_checks_for_a_fetched_registry() {
        assert_eq!(check_use(Registry::builtin()), Ok(()));
        assert_eq!(
            wrong(|row| Crawler {
                source: Some("https://house.example/bot".into()), operator: "Häuser".into(), ..row
            }),
            None
        );
    }

    #[test]
    fn a_fetched_registry_with_invalid_or_oversized_values_is_refused() {
        for (wrong, want) in [
            (wrong(|row| Crawler { operator: "a\u{1b}[2Jb".into(), ..row }), "which cannot be displayed"),
            (wrong(|row| Crawler { operator: "a\nb".into(), ..row }), "'\\n', which cannot be displayed"),
            (wrong(|row| Crawler { operator: "a\u{202e}b".into(), ..row }), "which cannot be displayed"),
            (wrong(|row| Crawler { examples: vec!["x".repeat(513)], ..row }), "a value has 513 bytes, but at most 512"),
            (
                wrong(|row| Crawler { ranges: vec!["http://house.example/list".into()], ..row }),
                "is fetched without TLS: write an https URL",
            ),
            (
                wrong(|row| Crawler { signature: Some("http://house.example".into()), ..row }),
                "\"http://house.example\" is fetched without TLS",
            ),
            (wrong(|row| Crawler { reverse_dns: vec!["*.*".into()], ..row }), "rdns"),
            (
                wrong(|row| Crawler { header_names: vec!["Safari".into()], ..row }),
                "would also match browsers that send",
            ),
            (
                wrong(|row| Crawler { header_names: vec!["Firefox".into()], ..row }),
                "crawler \"HouseBot\" would also match browsers",
            ),
        ] {
            assert!(wrong.as_deref().is_some_and(|wrong| wrong.contains(want)), "{wrong:?}, not {want}");
        }
        let many = (0..10_000).map(|number| Crawler::new(format!("House{number}Bot"), Category::Seo));
        let many = Registry::builtin().extended_with(many).expect("a registry");
        assert!(check_use(&many).is_err_and(|error| error.contains("at most 10000 are allowed")));
    }

    #[test]
    fn a_document_that_is_not_utf_8_is_refused_with_the_line_number() {
        assert_eq!(check_text(b"# one\n# \xff\n"), Err("line 2 is not UTF-8".to_owned()));
        assert!(check_text(b"\n<!DOCTYPE html>").is_err() && check_text(b"# rows\n").is_ok());
    }

    const GPTBOT: &str = "https://openai.com/gptbot.json";

    #[test]
    fn a_saved_list_is_preferred_to_the_operators_file_and_the_embedded_list() {
        let folder = tempfile::tempdir().expect("a folder");
        let lists = folder.path();
        let own = folder.path().join("own.txt");
        let origins = |saved: Option<&Path>, own: Option<&Path>| -> Vec<_> {
            let copies = ListCopy::all(GPTBOT, saved, own).into_iter();
            copies.map(|copy| copy.map(|copy| copy.origin).map_err(|error| error.to_string())).collect()
        };
        let embedded = || Ok("embedded");
        assert_eq!(origins(None, None), [embedded()]);
        assert_eq!(origins(Some(lists), None), [embedded()]);
        let why = |error: &str| Err(format!("{}{error}", own.display()));
        assert_eq!(origins(None, Some(&own)), [why(": No such file or directory (os error 2)"), embedded()]);
        std::fs::write(&own, "8.8.8.0/24\n").expect("written");
        // The saved copy is preferred to the operator's own file, even if the saved copy is old.
        let confirmed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let documents = SavedDocuments::new(folder.path().to_owned());
        documents
            .save(&GPTBOT.parse().expect("a URL"), b"9.9.9.0/24\n", confirmed, &Validators::default())
            .expect("saved");
        let all = origins(Some(lists), Some(&own));
        assert_eq!(all, [Ok("saved"), Ok("file"), embedded()]);
        let copies = ListCopy::all(GPTBOT, Some(lists), Some(&own));
        let confirmed_at: Vec<_> = copies.into_iter().map(|copy| copy.expect("a list").confirmed).collect();
        assert_eq!(confirmed_at, [Some(confirmed), None, None]);
    }

    const URL: &str = "https://lists.test/one.json";

    #[test]
    fn a_saved_list_is_read_with_the_date_of_its_confirmation() {
        let folder = tempfile::tempdir().expect("a folder");
        let lists = folder.path().join("evidence");
        let documents = SavedDocuments::new(lists.clone());
        assert!(ListCopy::saved(&lists, URL).expect("no folder yet").is_none());
        let confirmed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let url = URL.parse().expect("a URL");
        let save = |bytes: &[u8]| documents.save(&url, bytes, confirmed, &Validators::default()).expect("saved");
        save(b"8.8.8.0/24\n");
        let saved = ListCopy::saved(&lists, URL).expect("a list").expect("saved");
        assert_eq!((saved.list.prefixes, saved.confirmed), (1, Some(confirmed)));
        save(b"<html>");
        let error = ListCopy::saved(&lists, URL).expect_err("no list").to_string();
        assert!(
            error.starts_with("the saved copy of the list https://lists.test/one.json cannot be used: "),
            "{error}"
        );
        assert!(ListCopy::saved(&lists, "ftp://lists.test/").is_err());
    }
}
