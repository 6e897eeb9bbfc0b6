//! The crawlers that exist.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::sync::{Arc, LazyLock};

use super::header::{Header, Word};
use super::index::{Index, Named, WordHash};
use super::names;
use super::row::{Crawler, Row};
use super::toml::{self, RegistryError, RegistryErrorKind};
use crate::rules::ProductToken;

/// The crawlers that are known: their names in headers and in robots.txt, and what they obey.
///
/// Immutable; one for the whole process is enough, however many files are served.
#[derive(Clone, Debug)]
pub struct Registry {
    crawlers: Vec<Arc<Crawler>>,
    tokens: HashSet<ProductToken>,
    /// Header names, each standing for the position of its crawler.
    index: Index,
}

impl Registry {
    /// The crawlers this version of the library knows.
    #[must_use]
    pub fn builtin() -> &'static Arc<Self> {
        static BUILTIN: LazyLock<Arc<Registry>> = LazyLock::new(|| {
            #[expect(clippy::expect_used, reason = "a test reads the same file, so it reads here too")]
            Arc::new(Registry::parse(include_str!("crawlers.toml")).expect("the file that the tests read"))
        });
        &BUILTIN
    }

    /// Reads a registry file.
    ///
    /// # Errors
    ///
    /// With the line, what is wrong and what would be right: not the TOML this file uses, an unknown key, a wrong
    /// value, two crawlers of one name or with one header name.
    pub fn parse(text: &str) -> Result<Self, RegistryError> {
        Self::default().extended(text)
    }

    /// This registry with the rows of an override file: a new name adds a crawler, a known one replaces it, and
    /// `remove = true` beside a known name removes it.
    ///
    /// # Errors
    ///
    /// As [`Registry::parse`], and where a crawler to remove does not exist. The registry itself is untouched.
    ///
    /// ```
    /// use tower_robots::agent::Registry;
    ///
    /// let mine = "[[crawler]]\nname = \"OurBot\"\ncategory = \"search\"\nstar = \"yes\"\n";
    /// let registry = Registry::builtin().extended(mine)?;
    /// assert!(registry.crawler("OurBot").is_some());
    /// # Ok::<(), tower_robots::agent::RegistryError>(())
    /// ```
    pub fn extended(&self, text: &str) -> Result<Self, RegistryError> {
        let mut crawlers = self.crawlers.clone();
        let mut lines: HashMap<String, usize> = HashMap::new();
        for table in toml::read(text, "crawler")? {
            let line = table.line;
            let row = Row::read(table)?;
            let name = row.name().to_ascii_lowercase();
            if let Some(first) = lines.insert(name.clone(), line) {
                let message = format!("\"{}\" is in line {first} already: join the two", row.name());
                return Err(RegistryError::new(line, RegistryErrorKind::Clash, message));
            }
            let known = crawlers.iter().position(|crawler| crawler.name().eq_ignore_ascii_case(&name));
            match (row, known) {
                (Row::Crawler(crawler), Some(at)) => crawlers[at] = Arc::new(*crawler),
                (Row::Crawler(crawler), None) => crawlers.push(Arc::new(*crawler)),
                (Row::Remove(_), Some(at)) => drop(crawlers.remove(at)),
                (Row::Remove(name), None) => {
                    let message = format!("there is no crawler \"{name}\" to remove");
                    return Err(RegistryError::new(line, RegistryErrorKind::NotFound, message));
                }
            }
        }
        refuse_shared_header_names(&crawlers, &lines)?;
        Ok(Self::with(crawlers))
    }

    fn with(crawlers: Vec<Arc<Crawler>>) -> Self {
        let tokens = crawlers.iter().flat_map(|crawler| crawler.tokens().iter().cloned()).collect();
        let names = crawlers.iter().zip(0..).flat_map(|(crawler, at)| {
            crawler.header_names().map(move |name| (name.as_bytes(), at)).collect::<Vec<_>>()
        });
        let index = Index::new(names);
        Self { index, tokens, crawlers }
    }

    /// Every crawler, in the order of the files.
    pub fn crawlers(&self) -> impl ExactSizeIterator<Item = &Crawler> {
        self.crawlers.iter().map(AsRef::as_ref)
    }

    /// The crawler listed under this name, whatever the case.
    #[must_use]
    pub fn crawler(&self, name: &str) -> Option<&Crawler> {
        self.crawlers().find(|crawler| crawler.name().eq_ignore_ascii_case(name))
    }

    /// Whether a crawler obeys this token.
    #[must_use]
    pub fn knows(&self, token: &ProductToken) -> bool {
        self.tokens.contains(token)
    }

    /// The tokens a name in a robots.txt stands for besides [`ProductToken::from_name`]; for
    /// [`RobotsTxt::compile_with`](crate::rules::RobotsTxt::compile_with).
    ///
    /// A name that is not registered as it stands is read as crawlers read it, cut to `[A-Za-z_-]*`, where that is a
    /// registered token. A pasted `User-Agent` header stands for the products it declares.
    ///
    /// ```
    /// use tower_robots::agent::Registry;
    /// use tower_robots::rules::ProductToken;
    ///
    /// let registry = Registry::builtin();
    /// assert_eq!(registry.stands_for(b"Googlebot 2.1"), [ProductToken::new("googlebot")]);
    /// assert_eq!(registry.stands_for(b"Mozilla/4.0 (compatible; BullsEye; Windows 95)"), [ProductToken::new("bullseye")]);
    /// assert!(registry.stands_for(b"Googlebot-Image").is_empty());
    /// assert!(registry.stands_for(b"Mozilla/5.0").is_empty());
    /// ```
    #[must_use]
    pub fn stands_for(&self, name_value: &[u8]) -> Vec<ProductToken> {
        names::further_tokens(self, name_value)
    }

    /// The crawler that a header names first.
    pub(super) fn find(&self, header: &Header<'_>) -> Option<&Arc<Crawler>> {
        // A crawler that lacks what its name requires is not asked again: the text would be searched for every mention.
        let mut refused = Vec::new();
        let words = header.words().filter(|word| word.may_name_a_crawler());
        words.into_iter().find_map(|word| self.named_at(word, header, &mut refused))
    }

    /// The crawler whose name begins at a word; of two, the longer name's.
    fn named_at(&self, word: &Word, header: &Header<'_>, refused: &mut Vec<u32>) -> Option<&Arc<Crawler>> {
        let stem = word.stem(header.bytes()).map(WordHash::of);
        let mut best: Option<&Named> = None;
        for name in iter::once(word.hash).chain(stem).flat_map(|hash| self.index.with_first_word(hash)) {
            let is_better = best.is_none_or(|best| best.len() < name.len());
            if is_better && name.ends(header.bytes(), word.start).is_some() && self.accepts(name.value, header, refused)
            {
                best = Some(name);
            }
        }
        self.crawlers.get(best?.value as usize)
    }

    /// Whether a header with this name is always recognised by it.
    pub(super) fn finds(&self, name: &[u8]) -> bool {
        let crawler = self.index.exact(name).and_then(|at| self.crawlers.get(at as usize));
        crawler.is_some_and(|crawler| crawler.requires().len() == 0)
    }

    /// Whether the header holds what the crawler's name requires.
    fn accepts(&self, crawler: u32, header: &Header<'_>, refused: &mut Vec<u32>) -> bool {
        let mut required = self.crawlers[crawler as usize].requires().peekable();
        if required.peek().is_none() {
            return true;
        }
        if refused.contains(&crawler) {
            return false;
        }
        let accepted = required.any(|text| header.contains(text.as_bytes()));
        if !accepted {
            refused.push(crawler);
        }
        accepted
    }
}

impl Default for Registry {
    /// A registry of nobody.
    fn default() -> Self {
        Self::with(Vec::new())
    }
}

fn refuse_shared_header_names(crawlers: &[Arc<Crawler>], lines: &HashMap<String, usize>) -> Result<(), RegistryError> {
    let mut owners: HashMap<String, &str> = HashMap::new();
    for crawler in crawlers {
        for name in crawler.header_names() {
            let Some(other) = owners.insert(name.to_ascii_lowercase(), crawler.name()) else { continue };
            if other == crawler.name() {
                continue;
            }
            // At least one of the two is of this text: the others were checked before.
            let line = [crawler.name(), other].iter().filter_map(|name| lines.get(&name.to_ascii_lowercase())).max();
            let message = format!(
                "the header name \"{name}\" belongs to \"{other}\" and to \"{}\": leave it to one of them",
                crawler.name()
            );
            return Err(RegistryError::new(line.copied().unwrap_or(0), RegistryErrorKind::Clash, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Category, Obeys};

    const TWO: &str = r#"
[[crawler]]
name = "OneBot"
header = ["OneBot", "One Bot"]
tokens = ["OneBot", "One"]
category = "search"
star = "yes"
robots = "yes"

[[crawler]]
name = "OneBot-Image"
category = "ads"
"#;

    fn found<'r>(registry: &'r Registry, header: &str) -> Option<&'r str> {
        registry.find(&Header::read(header.as_bytes())).map(|crawler| crawler.name())
    }

    #[test]
    fn the_built_in_file_reads() {
        let registry = Registry::parse(include_str!("crawlers.toml")).unwrap();
        assert!(registry.crawlers().len() > 500);
        let googlebot = registry.crawler("googlebot-image").unwrap();
        assert_eq!(googlebot.tokens(), [ProductToken::new("Googlebot-Image"), ProductToken::new("Googlebot")]);
        assert_eq!(googlebot.operator(), "Google");
    }

    #[test]
    fn what_nobody_confirmed_refuses_nothing_by_a_yes() {
        for crawler in Registry::builtin().crawlers() {
            let documented = crawler.is_checked() || crawler.source().is_some();
            assert!(documented || crawler.obeys_star() != Obeys::Yes, "{}", crawler.name());
            assert!(!crawler.is_checked() || crawler.source().is_some(), "{} has no source", crawler.name());
        }
    }

    #[test]
    fn probes_validators_and_hooks_are_not_held_to_star() {
        let mut services = Registry::builtin().crawlers().filter(|row| row.category() == Category::Infrastructure);
        assert!(services.all(|row| row.obeys_star() == Obeys::No));
    }

    #[test]
    fn control_tokens_are_never_found() {
        let registry = Registry::builtin();
        assert!(registry.crawler("Google-Extended").unwrap().is_control());
        assert!(registry.knows(&ProductToken::new("google-extended")));
        assert_eq!(found(registry, "Google-Extended/1.0"), None);
    }

    #[test]
    fn the_first_product_and_its_longest_name_win() {
        let registry = Registry::parse(TWO).unwrap();
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
    fn an_override_adds_replaces_and_removes() {
        let registry = Registry::parse(TWO).unwrap();
        let text = "[[crawler]]\nname = \"onebot\"\ncategory = \"seo\"\n[[crawler]]\nname = \"OneBot-Image\"\nremove = true\n\
                    [[crawler]]\nname = \"Two\"\ncategory = \"feed\"\n";
        let changed = registry.extended(text).unwrap();
        let rows: Vec<_> = changed.crawlers().map(|row| (row.name(), row.category())).collect();
        assert_eq!(rows, [("onebot", Category::Seo), ("Two", Category::Feed)]);
        assert!(!changed.knows(&ProductToken::new("one")));
        assert_eq!(registry.crawlers().len(), 2);
    }

    #[test]
    fn a_clash_is_told_with_its_line() {
        let registry = Registry::parse(TWO).unwrap();
        for (text, line, kind) in [
            ("[[crawler]]\nname = \"Nobody\"\nremove = true\n", 1, RegistryErrorKind::NotFound),
            ("[[crawler]]\nname = \"A\"\nheader = [\"One Bot\"]\ncategory = \"seo\"\n", 1, RegistryErrorKind::Clash),
            (
                "[[crawler]]\nname = \"A\"\ncategory = \"seo\"\n\n[[crawler]]\nname = \"a\"\ncategory = \"seo\"\n",
                5,
                RegistryErrorKind::Clash,
            ),
        ] {
            let error = registry.extended(text).unwrap_err();
            assert_eq!((error.line(), error.kind()), (line, kind), "{error}");
        }
    }
}
