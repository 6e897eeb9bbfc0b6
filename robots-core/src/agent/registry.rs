//! The registry of known crawlers, and the detection of changes that are probably mistakes.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::builtin;
use super::crawler::{Crawler, RegistryError, RegistryRow};
use super::header::{Header, Word};
use super::name_index::{NameIndex, Named, WordHash};
use super::referrer::{Referrer, ReferrerIndex};
use crate::rules::ProductToken;

#[cfg(feature = "signatures")]
use super::agents::Agent;

/// The known crawlers: their names in headers and in robots.txt, and the groups that they obey.
///
/// A registry is immutable. One registry per process is enough for any number of files.
#[derive(Clone, Debug)]
pub struct Registry {
    pub(super) crawlers: Vec<Arc<Crawler>>,
    tokens: HashSet<ProductToken>,
    /// Maps the header names of all crawlers to the indexes of the crawlers.
    index: NameIndex,
    referrers: ReferrerIndex,
}

impl Registry {
    /// Returns the registry that is built into this version of the library.
    pub fn builtin() -> &'static Arc<Self> {
        static BUILTIN: LazyLock<Arc<Registry>> = LazyLock::new(|| {
            let registry = builtin::rows()
                .and_then(|rows| Registry::default().extended_with(rows).map_err(|error| error.to_string()));
            #[expect(clippy::expect_used, reason = "a test checks that this file can be read")]
            Arc::new(registry.expect("the file that the tests read"))
        });
        &BUILTIN
    }

    /// Returns a copy of this registry with the changes in `rows`. A row with a new name adds a
    /// crawler, a row with a known name replaces a crawler, and [`RegistryRow::Remove`] removes a
    /// crawler.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid, if two rows have the same name, if two crawlers have
    /// the same header name, or if a row removes an unknown crawler.
    ///
    /// ```
    /// use robots_core::agent::{Category, Crawler, Registry, RegistryRow};
    ///
    /// let rows: [RegistryRow; 2] = [Crawler::new("OurBot", Category::Search).into(), RegistryRow::Remove("GPTBot".into())];
    /// let registry = Registry::builtin().extended_with(rows)?;
    /// assert!(registry.crawler("ourbot").is_some() && registry.crawler("gptbot").is_none());
    /// # Ok::<(), robots_core::agent::RegistryError>(())
    /// ```
    pub fn extended_with<R: Into<RegistryRow>>(
        &self,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Self, RegistryError> {
        // A removed crawler is replaced by `None`, so that the positions in `places` stay valid.
        let mut crawlers: Vec<Option<Arc<Crawler>>> = self.crawlers.iter().cloned().map(Some).collect();
        let places: HashMap<String, usize> =
            self.crawlers.iter().enumerate().map(|(at, crawler)| (crawler.name.to_ascii_lowercase(), at)).collect();
        // Maps the name of each row, in lower case, to the row's index in `rows`.
        let mut named: HashMap<String, usize> = HashMap::new();
        for (at, row) in rows.into_iter().enumerate() {
            let change = row.into();
            let name = change.name().to_ascii_lowercase();
            let known = places.get(&name).copied();
            if named.insert(name, at).is_some() {
                let message =
                    format!("two rows have the name \"{name}\": merge them into one row", name = change.name());
                return Err(RegistryError { row: at, field: "name", message });
            }
            match (change, known) {
                (RegistryRow::Put(crawler), known) => {
                    let wrong = |(field, message)| RegistryError { row: at, field, message };
                    let crawler = Arc::new(crawler.checked().map_err(wrong)?);
                    match known {
                        Some(known) => crawlers[known] = Some(crawler),
                        None => crawlers.push(Some(crawler)),
                    }
                }
                (RegistryRow::Remove(_), Some(known)) => crawlers[known] = None,
                (RegistryRow::Remove(name), None) => {
                    let message = format!("there is no crawler \"{name}\" to remove: write a name from the registry");
                    return Err(RegistryError { row: at, field: "name", message });
                }
            }
        }
        let crawlers: Vec<_> = crawlers.into_iter().flatten().collect();
        refuse_shared_header_names(&crawlers, &named)?;
        Ok(Self::with(crawlers))
    }

    fn with(crawlers: Vec<Arc<Crawler>>) -> Self {
        let tokens = crawlers.iter().flat_map(|crawler| crawler.tokens.iter().cloned()).collect();
        let names = crawlers.iter().zip(0..).flat_map(|(crawler, at)| {
            crawler.header_names.iter().map(move |name| (name.as_bytes(), at)).collect::<Vec<_>>()
        });
        let index = NameIndex::new(names);
        let referrers = ReferrerIndex::new(crawlers.iter().map(|row| (&*row.operator, &*row.referers)));
        Self { index, tokens, referrers, crawlers }
    }

    /// Iterates over all crawlers, in the order of the registry's rows.
    pub fn crawlers(&self) -> impl ExactSizeIterator<Item = &Crawler> {
        self.crawlers.iter().map(AsRef::as_ref)
    }

    #[cfg(feature = "signatures")]
    pub(crate) fn agents(&self) -> impl Iterator<Item = Agent> {
        self.crawlers.iter().cloned().map(Agent::of)
    }

    /// Returns the crawler with this name, ignoring case.
    pub fn crawler(&self, name: &str) -> Option<&Crawler> {
        self.crawlers().find(|crawler| crawler.name.eq_ignore_ascii_case(name))
    }

    /// Removes the spaces from `name`, and returns the crawler with the resulting name. `None` if
    /// there is no such crawler, or if `name` contains no inner spaces.
    pub(crate) fn crawler_without_spaces(&self, name: &str) -> Option<&Crawler> {
        let joined: String = name.split_whitespace().collect();
        if joined == name.trim() { None } else { self.crawler(&joined) }
    }

    /// Returns the service that sent a person to the site, recognised by the host in the request's
    /// `Referer`. `None` if the host is unknown.
    ///
    /// ```
    /// let registry = robots_core::agent::Registry::builtin();
    /// let service = registry.referrer(b"https://www.google.co.uk/").expect("a service");
    /// assert_eq!((&*service.operator, &*service.host), ("Google", "google.*"));
    /// assert!(registry.referrer(b"https://www.example.com/").is_none());
    /// ```
    #[doc(hidden)]
    pub fn referrer(&self, referer: &[u8]) -> Option<&Arc<Referrer>> {
        self.referrers.of_url(referer)
    }

    /// Reports whether a crawler of the registry obeys groups for this token.
    #[doc(hidden)]
    pub fn knows(&self, token: &ProductToken) -> bool {
        self.tokens.contains(token)
    }

    /// Returns the crawler with exactly this header name. Does not check [`Crawler::requires`].
    pub(super) fn with_header_name(&self, name: &[u8]) -> Option<&Arc<Crawler>> {
        self.crawlers.get(self.index.exact(name)? as usize)
    }

    /// Finds the crawlers in a header, in the order of the header, each with the range of its name.
    /// The names do not overlap: words inside a name are not searched for further names.
    pub(super) fn find<'r>(&'r self, header: &Header<'_>) -> impl Iterator<Item = (&'r Arc<Crawler>, Range<usize>)> {
        let mut searched = Vec::new();
        let mut end_of_name = 0;
        header.words().filter(|word| word.may_name_a_crawler()).filter_map(move |word| {
            if word.start < end_of_name {
                return None;
            }
            let (crawler, end) = self.named_at(word, header, &mut searched)?;
            end_of_name = end;
            Some((crawler, word.start..end))
        })
    }

    /// Returns the crawler whose name begins at a word, and the end of the name. If several names
    /// begin at the word, uses the longest name.
    ///
    /// `searched` contains the results of earlier calls for the same header: for each crawler that
    /// requires other strings, whether the header contains one of these strings. So the strings of
    /// each crawler are searched only once in the header.
    pub(super) fn named_at(
        &self,
        word: &Word,
        header: &Header<'_>,
        searched: &mut Vec<(u32, bool)>,
    ) -> Option<(&Arc<Crawler>, usize)> {
        let stems = word.stems(header.bytes).map(WordHash::of);
        let mut best: Option<(&Named, usize)> = None;
        for name in iter::once(word.hash).chain(stems).flat_map(|hash| self.index.with_first_word(hash)) {
            if best.is_some_and(|(best, _)| best.len() >= name.len()) {
                continue;
            }
            if let Some((_, end)) = name.end(header.bytes, word.start)
                && self.accepts(name.value, header, searched)
            {
                best = Some((name, end));
            }
        }
        let (name, end) = best?;
        Some((self.crawlers.get(name.value as usize)?, end))
    }

    /// Reports whether the header contains one of the strings that the crawler requires in addition
    /// to its name. Also returns true if the crawler requires none.
    fn accepts(&self, crawler: u32, header: &Header<'_>, searched: &mut Vec<(u32, bool)>) -> bool {
        let mut required = self.crawlers[crawler as usize].requires.iter().peekable();
        if required.peek().is_none() {
            return true;
        }
        if let Some((_, accepted)) = searched.iter().find(|(known, _)| *known == crawler) {
            return *accepted;
        }
        let accepted = required.any(|text| header.contains(text.as_bytes()));
        searched.push((crawler, accepted));
        accepted
    }

    /// Returns the changes from this registry to `next` that are probably mistakes: many crawlers
    /// are missing, or a search engine has changed. Each change is a clause that the caller puts
    /// into a message. If there are none, `next` can replace this registry without confirmation.
    ///
    /// ```
    /// use robots_core::agent::{Registry, RegistryRow};
    ///
    /// let next = Registry::builtin().extended_with([RegistryRow::Remove("Googlebot".into())])?;
    /// assert_eq!(Registry::builtin().drastic_changes(&next), ["the search engine \"Googlebot\" is missing from the new registry"]);
    /// assert!(next.drastic_changes(&next).is_empty());
    /// # Ok::<(), robots_core::agent::RegistryError>(())
    /// ```
    #[doc(hidden)]
    pub fn drastic_changes(&self, next: &Self) -> Vec<String> {
        let mut rows: HashMap<String, &Crawler> =
            next.crawlers().map(|crawler| (crawler.name.to_ascii_lowercase(), crawler)).collect();
        let (mut gone, of) = (0, self.crawlers().len());
        let engine = |name: &str, what: &str| format!("the search engine {name:?} {what}");
        let mut found = Vec::new();
        for before in self.crawlers() {
            let after = rows.remove(&before.name.to_ascii_lowercase());
            gone += usize::from(after.is_none());
            found.extend(change_of_engine(before, after).map(|what| engine(&before.name, what)));
        }
        let mut new: Vec<_> = rows.into_values().filter(|crawler| crawler.is_index_engine).collect();
        new.sort_unstable_by_key(|crawler| &crawler.name);
        found.extend(new.iter().map(|crawler| engine(&crawler.name, NEW_ENGINE)));
        if gone * 10 > of {
            found.insert(0, format!("{gone} of {of} crawlers are missing from the new registry"));
        }
        found
    }
}

impl Default for Registry {
    /// Returns a registry without crawlers.
    fn default() -> Self {
        Self::with(Vec::new())
    }
}

fn refuse_shared_header_names(crawlers: &[Arc<Crawler>], rows: &HashMap<String, usize>) -> Result<(), RegistryError> {
    let mut owners: HashMap<String, &str> = HashMap::new();
    for crawler in crawlers {
        for name in &crawler.header_names {
            let Some(other) = owners.insert(name.to_ascii_lowercase(), &crawler.name) else { continue };
            if other == crawler.name {
                continue;
            }
            // At least one of the two crawlers is from the new rows, because no two crawlers of the
            // original registry have the same header name.
            let row = [&crawler.name, other].iter().filter_map(|name| rows.get(&name.to_ascii_lowercase())).max();
            let message = format!(
                "both \"{other}\" and \"{owner}\" have the header name \"{name}\": remove it from one of the two",
                owner = &crawler.name
            );
            let row = row.copied().unwrap_or(0);
            return Err(RegistryError { row, field: "header", message });
        }
    }
    Ok(())
}

const NEW_ENGINE: &str = "would only be tagged, not refused, by default";

fn change_of_engine(before: &Crawler, after: Option<&Crawler>) -> Option<&'static str> {
    let Some(after) = after else { return before.is_index_engine.then_some("is missing from the new registry") };
    match (before.is_index_engine, after.is_index_engine) {
        (false, false) => None,
        (false, true) => Some(NEW_ENGINE),
        (true, false) => Some("would be refused by default, not only tagged"),
        (true, true) if before.tokens != after.tokens => Some("obeys groups with different names than before"),
        (true, true) if before.category != after.category => Some("has a different category than before"),
        (true, true) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Category, Obeys, RegistryRow};

    fn two() -> Registry {
        let one = Crawler {
            header_names: vec!["OneBot".into(), "One Bot".into()],
            tokens: ["OneBot", "One"].map(ProductToken::new).into(),
            obeys_star: Obeys::Yes,
            obeys_robots: Obeys::Yes,
            ..Crawler::new("OneBot", Category::Search)
        };
        Registry::default().extended_with([one, Crawler::new("OneBot-Image", Category::Ads)]).unwrap()
    }

    fn removed(name: &str) -> RegistryRow {
        RegistryRow::Remove(name.to_owned())
    }

    fn with_header_names(name: &str, names: &[&str]) -> Crawler {
        let header_names = names.iter().map(ToString::to_string).collect();
        Crawler { header_names, ..Crawler::new(name, Category::Seo) }
    }

    fn found<'r>(registry: &'r Registry, header: &str) -> Option<&'r str> {
        let header = Header::read(header.as_bytes());
        registry.find(&header).next().map(|(crawler, _)| crawler.name.as_str())
    }

    #[test]
    fn the_built_in_rows_form_a_valid_registry() {
        let registry = Registry::builtin();
        assert!(registry.crawlers().len() > 500);
        let googlebot = registry.crawler("googlebot-image").unwrap();
        assert_eq!(googlebot.tokens, [ProductToken::new("Googlebot-Image"), ProductToken::new("Googlebot")]);
        assert_eq!(&googlebot.operator, "Google");
    }

    #[test]
    fn a_row_claims_obedience_to_star_or_crawl_delay_only_with_a_source() {
        for crawler in Registry::builtin().crawlers() {
            let documented = crawler.checked_on.is_some() || crawler.source.is_some();
            assert!(documented || crawler.obeys_star != Obeys::Yes, "{}", crawler.name);
            assert!(crawler.checked_on.is_none() || crawler.source.is_some(), "{} has no source", &crawler.name);
            assert!(documented || crawler.obeys_crawl_delay == Obeys::Unknown, "{}", crawler.name);
        }
    }

    #[test]
    fn infrastructure_rows_do_not_obey_star() {
        let mut services = Registry::builtin().crawlers().filter(|row| row.category == Category::Infrastructure);
        assert!(services.all(|row| row.obeys_star == Obeys::No));
    }

    #[test]
    fn control_tokens_are_known_but_never_found_in_a_header() {
        let registry = Registry::builtin();
        assert!(registry.crawler("Google-Extended").unwrap().is_control);
        assert!(registry.knows(&ProductToken::new("google-extended")));
        assert_eq!(found(registry, "Google-Extended/1.0"), None);
    }

    #[test]
    fn the_first_product_and_its_longest_name_win() {
        let registry = two();
        for (header, name) in [
            ("onebot-image/1.0 OneBot/2.0", Some("OneBot-Image")),
            ("One Bot (OneBot-Image)", Some("OneBot")),
            ("OneBot2", Some("OneBot")),
            ("OneBot-v2.1", Some("OneBot")),
            ("OneBot-Video", None),
            ("xOneBot", None),
            ("foo/OneBot", None),
        ] {
            assert_eq!(found(&registry, header), name, "{header}");
        }
    }

    #[test]
    fn the_longest_of_several_names_with_the_same_start_wins() {
        let row = |name: &str| Crawler::new(name, Category::Seo);
        let registry = Registry::default().extended_with([row("Foo"), row("Foo Bar"), row("Foo2 Baz")]).unwrap();
        for (header, name) in
            [("Foo Bar/1.0", "Foo Bar"), ("Foo Qux/1.0", "Foo"), ("Foo2 Baz/1.0", "Foo2 Baz"), ("Foo2 Qux", "Foo")]
        {
            assert_eq!(found(&registry, header), Some(name), "{header}");
        }
    }

    #[test]
    fn a_word_inside_a_registered_name_is_not_another_name() {
        let row = |name: &str| Crawler::new(name, Category::Seo);
        let registry = Registry::default().extended_with([row("Foo Bar"), row("Bar")]).unwrap();
        for (header, names) in [("Foo Bar/1.0", &["Foo Bar"][..]), ("Foo Bar Bar/1.0", &["Foo Bar", "Bar"])] {
            let header = Header::read(header.as_bytes());
            assert_eq!(registry.find(&header).map(|(crawler, _)| &crawler.name).collect::<Vec<_>>(), names);
        }
    }

    #[test]
    fn overrides_add_replace_and_remove_rows() {
        let registry = two();
        let changed = registry
            .extended_with([
                Crawler::new("onebot", Category::Seo).into(),
                removed("OneBot-Image"),
                Crawler::new("Two", Category::Feed).into(),
            ])
            .unwrap();
        let rows: Vec<_> = changed.crawlers().map(|row| (row.name.as_str(), row.category)).collect();
        assert_eq!(rows, [("onebot", Category::Seo), ("Two", Category::Feed)]);
        assert!(!changed.knows(&ProductToken::new("one")));
        assert_eq!(registry.crawlers().len(), 2);
    }

    #[test]
    fn conflicting_rows_are_refused_with_the_row_and_the_field() {
        let row = |name: &str| Crawler::new(name, Category::Seo);
        for (rows, at, field, said) in [
            (vec![removed("Two")], 0, "name", "there is no crawler \"Two\""),
            (vec![with_header_names("A", &["One Bot"]).into()], 0, "header", "the header name \""),
            (vec![row("A").into(), with_header_names("B", &["b", "a"]).into()], 1, "header", "the header name \""),
            (vec![row("A").into(), row("B").into(), row("a").into()], 2, "name", "two rows have the name \"a\""),
            (
                vec![row("A").into(), with_header_names("B", &["!"]).into()],
                1,
                "header",
                "contains neither a letter nor a digit",
            ),
        ] {
            let error = two().extended_with(rows).unwrap_err();
            assert_eq!((error.row, error.field), (at, field), "{error}");
            assert!(error.message.contains(said), "{error}");
            assert_eq!(error.to_string(), format!("row {}, {field}: {}", at + 1, error.message));
        }
        // If a replaced row no longer has a header name, another row may use it.
        let taken = [row("OneBot"), with_header_names("A", &["One Bot"])];
        assert_eq!(found(&two().extended_with(taken).unwrap(), "One Bot/1"), Some("A"));
    }

    fn with(rows: impl IntoIterator<Item = RegistryRow>) -> Registry {
        Registry::builtin().extended_with(rows).expect("a registry")
    }

    fn drastic_changes(rows: impl IntoIterator<Item = RegistryRow>) -> Vec<String> {
        Registry::builtin().drastic_changes(&with(rows))
    }

    #[test]
    fn removing_more_than_a_tenth_of_the_rows_is_a_drastic_change() {
        let rows = Registry::builtin().crawlers().len();
        let others = || Registry::builtin().crawlers().filter(|crawler| !crawler.is_index_engine);
        let removed = |count| others().take(count).map(|crawler| removed(&crawler.name)).collect::<Vec<_>>();
        assert_eq!(drastic_changes(removed(rows / 10)), [""; 0]);
        assert_eq!(
            drastic_changes(removed(rows / 10 + 1)),
            [format!("{} of {rows} crawlers are missing from the new registry", rows / 10 + 1)]
        );
        assert_eq!(Registry::default().drastic_changes(&Registry::default()), [""; 0]);
    }

    #[test]
    fn changes_to_the_tokens_or_the_status_of_search_engines_are_drastic() {
        let google = || Registry::builtin().crawler("Googlebot").expect("a row").clone();
        let other = || Crawler::new("HouseBot", Category::Search);
        let none = Crawler::new("Googlebot", Category::Search);
        let engine = |category| Crawler { is_index_engine: true, ..Crawler::new("HouseBot", category) };
        for (row, want) in [
            (
                Crawler { tokens: vec![ProductToken::new("Otherbot")], ..google() },
                Some("the search engine \"Googlebot\" obeys groups with different names than before"),
            ),
            (none, Some("the search engine \"Googlebot\" would be refused by default, not only tagged")),
            (Crawler { operator: "Another".into(), ..google() }, None),
            (other(), None),
            (
                engine(Category::Search),
                Some("the search engine \"HouseBot\" would only be tagged, not refused, by default"),
            ),
        ] {
            assert_eq!(drastic_changes([row.into()]), want.into_iter().map(str::to_owned).collect::<Vec<_>>());
        }
        assert_eq!(
            drastic_changes([removed("bingbot")]),
            ["the search engine \"bingbot\" is missing from the new registry"]
        );
        let training = with([engine(Category::AiTraining).into()]);
        let search = with([engine(Category::Search).into()]);
        assert_eq!(
            search.drastic_changes(&training)[0],
            "the search engine \"HouseBot\" has a different category than before"
        );
    }
}
