//! Searches `User-Agent` headers for names that occur in a robots.txt but not in the registry.

use super::claim::ClaimReader;
use super::header::{Header, Word};
use super::name_index::{Kinds, NameEnd, NameIndex, WordHash, is_blank, is_joint, kinds};
use super::registry::Registry;
use crate::rules::{ProductToken, RobotsTxt};

#[derive(Debug)]
pub(super) struct FileNames {
    tokens: Box<[ProductToken]>,
    index: NameIndex,
}

impl FileNames {
    pub(super) fn new(registry: &Registry, file: &RobotsTxt) -> Self {
        let mut tokens = Vec::new();
        // The registry already finds the names of registered crawlers, with or without a version.
        // So this index leaves out registered names, except names that require another string in
        // the header (`Crawler::requires`).
        let is_found = |token: &ProductToken| {
            registry.with_header_name(token.as_bytes()).is_some_and(|crawler| crawler.requires.is_empty())
        };
        for name in file.groups().flat_map(|group| group.names()).filter(|name| !name.is_star()) {
            let named = ProductToken::from_name(name.value()).into_iter().chain(registry.stands_for(name.value()));
            tokens.extend(named.filter(|token| !is_common_to_browsers(token) && !is_found(token)));
        }
        tokens.sort();
        tokens.dedup();
        let index = NameIndex::new(tokens.iter().map(ProductToken::as_bytes).zip(0..));
        Self { tokens: tokens.into(), index }
    }

    /// Returns the longest name that consists of whole words of the header. If no name consists of
    /// whole words, returns the longest name that is followed by a version in the same word
    /// (`FooBot2`).
    pub(super) fn find(&self, header: &Header<'_>, reader: &ClaimReader<'_, '_>) -> Option<&ProductToken> {
        if self.index.is_empty() {
            return None;
        }
        let leading = reader.leading_word().map(|word| word.start);
        let mut best: Option<((NameEnd, usize), u32)> = None;
        for part in reader.declared_parts() {
            for word in header.words_of(part).iter().filter(|word| word.may_name_a_crawler()) {
                let leads = leading == Some(word.start);
                self.starting_at(header.bytes, word.start, word.end, |name, end, length| {
                    let general = is_general(&self.tokens[name as usize]);
                    let alone = || leads && end == NameEnd::Whole && is_whole_product(header.bytes, word.end);
                    if general && !alone() || end == NameEnd::Versioned && length < 4 {
                        return;
                    }
                    let rank = (end, length);
                    if best.is_none_or(|(best, _)| rank > best) {
                        best = Some((rank, name));
                    }
                });
            }
        }
        best.map(|(_, name)| &self.tokens[name as usize])
    }

    /// Calls `report` for every name whose first word is the header word at `start..end`. Ignores a
    /// version at the end of the header word.
    fn starting_at(&self, bytes: &[u8], start: usize, end: usize, mut report: impl FnMut(u32, NameEnd, usize)) {
        let limit = end.min(start.saturating_add(self.index.longest_word));
        for at in start..limit {
            let next = bytes.get(at + 1).copied().unwrap_or(b' ');
            let may_end = at + 1 == end || is_joint(next) || next.is_ascii_digit();
            if !may_end || is_joint(bytes[at]) {
                continue;
            }
            for name in self.index.with_first_word(WordHash::of(&bytes[start..=at])) {
                if let Some((end, _)) = name.end(bytes, start) {
                    report(name.value, end, name.len());
                }
            }
        }
    }
}

/// Reports whether unregistered agents obey groups with this name: the name has more than three
/// bytes, and is neither an ordinary word nor a word that all browsers send.
pub(super) fn may_claim(token: &ProductToken) -> bool {
    !is_common_to_browsers(token) && !is_general(token)
}

/// Reports whether no other word follows `end`, so that the product's name ends at `end`.
fn is_whole_product(bytes: &[u8], end: usize) -> bool {
    let blanks = bytes[end..].iter().take_while(|byte| is_blank(**byte)).count();
    blanks == 0 || !bytes.get(end + blanks).is_some_and(|next| next.is_ascii_alphabetic())
}

/// Reports whether a name consists only of words that all browsers send, with or without a version,
/// as in `MSIE 6.0`.
fn is_common_to_browsers(token: &ProductToken) -> bool {
    token.as_bytes().split(|byte| *byte == b' ').all(|word| {
        let kinds = kinds(word, WordHash::of(word));
        kinds.is_common_to_browsers() || kinds.has(Kinds::APP) || word.first().is_some_and(u8::is_ascii_digit)
    }) && !token.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// Reports whether a name is an everyday word, or has at most three bytes. In a header, a string of
/// three bytes may have another meaning, such as a language code.
fn is_general(token: &ProductToken) -> bool {
    let bytes = token.as_bytes();
    bytes.len() <= 3 || !bytes.contains(&b' ') && kinds(bytes, WordHash::of(bytes)).has(Kinds::GENERIC)
}

impl Registry {
    /// Returns the product tokens that a group with this name applies to, in addition to the token
    /// from [`ProductToken::from_name`]. Callers pass this function to
    /// [`RobotsTxt::compile_with`](crate::rules::RobotsTxt::compile_with).
    ///
    /// Many crawlers read a name only up to the first byte that is not in `[A-Za-z_-]`. So if a
    /// name is not registered, but the part before this byte is a registered token, returns this
    /// token. If the name is a whole `User-Agent` header, returns the tokens of the header's
    /// products.
    ///
    /// ```
    /// use robots_core::agent::Registry;
    /// use robots_core::rules::ProductToken;
    ///
    /// let registry = Registry::builtin();
    /// assert_eq!(registry.stands_for(b"Googlebot 2.1"), [ProductToken::new("googlebot")]);
    /// assert_eq!(registry.stands_for(b"Mozilla/4.0 (compatible; BullsEye; Windows 95)"), [ProductToken::new("bullseye")]);
    /// assert!(registry.stands_for(b"Googlebot-Image").is_empty());
    /// assert!(registry.stands_for(b"Mozilla/5.0").is_empty());
    /// ```
    #[doc(hidden)]
    pub fn stands_for(&self, name_value: &[u8]) -> Vec<ProductToken> {
        let Some(whole) = ProductToken::from_name(name_value) else { return Vec::new() };
        if self.knows(&whole) {
            return Vec::new();
        }
        let header = Header::read(name_value);
        if header.words().next().is_some_and(|first| first.kinds.has(Kinds::BROWSER)) {
            return self.tokens_of_pasted_header(&header);
        }
        let cut = ProductToken::cut(name_value);
        if cut != whole && self.knows(&cut) { vec![cut] } else { Vec::new() }
    }

    fn tokens_of_pasted_header(&self, header: &Header<'_>) -> Vec<ProductToken> {
        if let Some((crawler, _)) = self.find(header).next() {
            return crawler.tokens.first().cloned().into_iter().collect();
        }
        let mut tokens = Vec::new();
        for part in ClaimReader::of(header).declared_parts() {
            let Some(first) = header.words_of(part).iter().find(|word: &&Word| word.may_name_a_crawler()) else {
                continue;
            };
            if first.kinds.is_common_to_browsers() || first.kinds.has(Kinds::ENGINE) || first.kinds.has(Kinds::GENERIC)
            {
                continue;
            }
            tokens.extend(ProductToken::from_name(header.product(part).as_bytes()));
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str], header: &str) -> Option<String> {
        let text: String = names.iter().map(|name| format!("user-agent: {name}\nallow: /\n")).collect();
        let names = FileNames::new(Registry::builtin(), &RobotsTxt::parse(text.into_bytes()));
        let header = Header::read(header.as_bytes());
        names.find(&header, &ClaimReader::of(&header)).map(ToString::to_string)
    }

    #[test]
    fn the_longest_whole_name_wins_over_a_name_with_a_version_suffix() {
        assert_eq!(found(&["Foo", "Foo Bar"], "Foo Bar/1.0").as_deref(), Some("foo bar"));
        assert_eq!(found(&["Quux", "Foobar"], "Foobar2 Quux").as_deref(), Some("quux"));
        assert_eq!(found(&["Foobar"], "Foobar-2.1").as_deref(), Some("foobar"));
        assert_eq!(found(&["Foobar"], "Foobar-Baz"), None);
    }

    #[test]
    fn an_everyday_word_is_a_name_only_if_it_is_the_leading_product() {
        for name in ["bot", "es", "008", "Java"] {
            assert_eq!(found(&[name], &format!("{name}/1.0")), Some(name.to_ascii_lowercase()));
            assert_eq!(found(&[name], &format!("Foo/1.0 ({name}/1.0)")), None);
            assert_eq!(found(&[name], &format!("{name} Foo/1.0")), None);
        }
    }

    #[test]
    fn browser_and_platform_names_are_not_crawler_names() {
        for name in ["Mozilla", "Mozilla/5.0", "Opera", "MSIE 6.0", "Windows", "CFNetwork"] {
            assert_eq!(found(&[name], &format!("{name}/1.0")), None, "{name}");
        }
    }

    #[test]
    fn names_from_the_file_that_the_registry_recognizes_are_not_kept() {
        let file = RobotsTxt::parse(&b"user-agent: Googlebot\nuser-agent: Expanse\nuser-agent: Foo\nallow: /\n"[..]);
        let names = FileNames::new(Registry::builtin(), &file);
        assert_eq!(*names.tokens, [ProductToken::new("expanse"), ProductToken::new("foo")]);
    }
}
