//! Names in messages: lists of names, suggestions for misspelled words, and errors about unknown
//! crawler names.

use std::fmt;

use tower_robots::agent::{Crawler, NamedAs, Recognizer, Registry};
use tower_robots::internals::first_few;
use tower_robots::rules::{ProductToken, RobotsTxt};

/// Returns the known word that is most similar to `word`, ignoring case; `None` if no known word is
/// similar enough.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // The time to compare two words grows with the product of their lengths. Nobody types words
    // that are longer than this limit.
    const MAX_WORD_LENGTH: usize = 128;
    if word.is_empty() || word.len() > MAX_WORD_LENGTH {
        return None;
    }
    let word = word.to_lowercase();
    // The names of most crawlers have one of these endings, so the ending does not identify a
    // crawler.
    let ending = ["bot", "spider", "crawler"].iter().find(|ending| word.ends_with(**ending)).map_or(0, |one| one.len());
    let distance = |known: &'k str| (strsim::damerau_levenshtein(&word, &known.to_lowercase()), known);
    // A third of the letters before the ending may differ; in short words, one letter may differ.
    let allowed = |known: &str| (known.len().min(word.len()).saturating_sub(ending) / 3).max(1);
    let is_near = |(distance, known): &(usize, &str)| *distance <= allowed(known);
    known
        .into_iter()
        .filter(|known| known.len() <= MAX_WORD_LENGTH)
        .map(distance)
        .filter(is_near)
        .min()
        .map(|(_, known)| known)
}

/// Returns a suggestion such as `did you mean "tag"?`.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(word, known).map(|known| format!("did you mean {known:?}?"))
}

/// Maximum number of names that a message lists.
const MAX_LISTED: usize = 8;

/// Lists names for a message, shortened if there are many: `"a", "b" and 3 more`.
pub(crate) fn quoted_list<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> String {
    let names: Vec<N> = names.into_iter().collect();
    first_few(names.iter().map(|name| format!("{:?}", name.as_ref())), MAX_LISTED)
}

/// A name that is neither in the registry nor in a robots.txt, with a suggestion. Most unknown
/// names are misspelled, so commands report an unknown name instead of treating it as a crawler.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownName<'n> {
    name: &'n str,
    hint: Option<String>,
}

impl<'n> UnknownName<'n> {
    /// Looks up a name that a person has written. Returns `None` for the names of crawlers and
    /// groups, for `*`, and for `User-Agent` headers.
    pub(crate) fn of(name: &'n str, recognizer: &Recognizer, files: &[&RobotsTxt]) -> Option<Self> {
        let (named_as, agents) = recognizer.resolve(name);
        let token = agents.first().tokens().first().filter(|_| named_as == NamedAs::Unregistered)?;
        let groups = || files.iter().flat_map(|file| file.groups()).flat_map(|group| group.names());
        let is_named = || groups().any(|group| ProductToken::from_name(group.value()).as_ref() == Some(token));
        if recognizer.registry().knows(token) || is_named() {
            return None;
        }
        let of_files = groups().map(|group| String::from_utf8_lossy(group.value()).into_owned());
        let hint = match name.contains(':') {
            true => Some(
                "write the name of each crawler; `robotsd agents` lists the crawlers of a category or of an operator."
                    .to_owned(),
            ),
            false => crawler_hint(name.trim(), recognizer.registry(), of_files),
        };
        Some(Self { name: name.trim(), hint })
    }

    pub(crate) fn hint(&self) -> Option<String> {
        self.hint.clone()
    }

    pub(crate) fn fault(&self) -> String {
        format!("no crawler in the registry and no group in the robots.txt has the name {name:?}", name = self.name)
    }
}

/// Minimum length of an unknown name, in bytes. Shorter names are not compared with the beginnings
/// of crawlers' names.
const MIN_WORD_LENGTH: usize = 4;

/// Returns a suggestion for an unknown name: the crawler or group that was probably meant, or the
/// command that lists an operator's crawlers.
pub(crate) fn crawler_hint(name: &str, registry: &Registry, groups: impl Iterator<Item = String>) -> Option<String> {
    if let Some(meant) = registry.meant(name, &RobotsTxt::parse(&b""[..])) {
        return Some(format!("did you mean {meant}?"));
    }
    let lower = name.to_lowercase();
    let is_operator = |crawler: &&Crawler| crawler.operator.to_lowercase() == lower;
    let is_begun =
        |crawler: &&Crawler| lower.len() >= MIN_WORD_LENGTH && crawler.name.to_lowercase().starts_with(&lower);
    if let Some(begun) = registry.crawlers().filter(is_begun).min_by_key(|crawler| crawler.name.len()) {
        return Some(format!("did you mean {:?}?", begun.name));
    }
    if let Some(crawler) = registry.crawlers().find(is_operator) {
        return Some(format!("`robotsd agents {lower}` lists the crawlers of {}.", crawler.operator));
    }
    let known: Vec<String> = registry.crawlers().map(|crawler| crawler.name.clone()).chain(groups).collect();
    did_you_mean(name, known.iter().map(String::as_str))
}

/// Formats, for example, `no crawler … has the name "Googelbot": did you mean "Googlebot"? The name
/// is treated …`.
impl fmt::Display for UnknownName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let assumed = "as a crawler that obeys the group with this name or, if there is no such group, the group for \
            \"*\"";
        match self.hint() {
            Some(hint) => write!(f, "{fault}: {hint} The name is treated {assumed}", fault = self.fault()),
            None => write!(
                f,
                "{fault}: the name is treated {assumed}; `robotsd agents` lists the crawlers",
                fault = self.fault()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_finds_the_nearest_known_name_and_a_different_name_finds_none() {
        let known = ["Googlebot", "GPTBot", "tag", "bytespider", "DotBot", "WARDBot"];
        for (word, want) in [
            ("Gogglebot", Some("Googlebot")),
            ("gptbot", Some("GPTBot")),
            ("GTPBot", Some("GPTBot")),
            ("tga", Some("tag")),
            ("strict", None),
            // A common ending alone does not make names similar.
            ("FooBot", None),
            ("Barbot", None),
            ("DtoBot", Some("DotBot")),
            ("", None),
            ("a", None),
        ] {
            assert_eq!(nearest(word, known), want, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }

    #[test]
    fn a_list_quotes_eight_names_and_counts_the_rest() {
        let list = |count: usize| quoted_list((0..count).map(|number| format!("s\u{1b}{number}")));
        assert_eq!(list(0), "");
        assert_eq!(list(2), r#""s\u{1b}0", "s\u{1b}1""#);
        assert!(list(8).ends_with(r#", "s\u{1b}7""#), "{}", list(8));
        assert!(list(11).ends_with(r#", "s\u{1b}7" and 3 more"#), "{}", list(11));
    }

    #[test]
    fn unknown_names_get_suggestions_and_names_in_the_file_or_registry_are_known() {
        let file = RobotsTxt::parse(&b"User-agent: HouseBot\nUser-agent: Foo Bar\nDisallow: /\n"[..]);
        let recognizer = Recognizer::new(Registry::builtin().clone(), &file);
        let unknown = |name: &'static str| UnknownName::of(name, &recognizer, &[&file]);
        for name in ["Googlebot", "googlebot", "Yandex", "HOUSEBOT", "housebot", "*", "Googlebot/2.1", "curl", "Stripe"]
        {
            assert_eq!(unknown(name), None, "{name}");
        }
        for (name, want) in [
            ("Googelbot", Some("did you mean \"Googlebot\"?")),
            ("HuoseBot", Some("did you mean \"HouseBot\"?")),
            ("Google", Some("did you mean \"Googlebot\"?")),
            ("bing", Some("did you mean \"bingbot\"?")),
            ("claudeb", Some("did you mean \"ClaudeBot\"?")),
            ("perplexity", Some("did you mean \"PerplexityBot\" or \"Perplexity-User\"?")),
            ("bytedance", Some("did you mean \"Bytespider\" or \"TikTokSpider\" or \"ToutiaoSpider\"?")),
            ("majestic", Some("`robotsd agents majestic` lists the crawlers of Majestic.")),
            ("qqqqqqqqq", None),
        ] {
            let unknown = unknown(name).expect(name);
            assert_eq!(unknown.hint().as_deref(), want);
            assert!(unknown.to_string().contains("the name is treated as a crawler") || want.is_some(), "{unknown}");
        }
    }
}
