//! The crawlers that exist.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use super::header::Header;
use super::index::{End, Index, WordHash};
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

    /// The crawler that a header names first; of two that begin at one word, the longer.
    pub(super) fn find(&self, header: &Header<'_>) -> Option<&Arc<Crawler>> {
        // A crawler that lacks what its name requires is not asked again: the text would be searched for every mention.
        let mut refused: Vec<u32> = Vec::new();
        for word in header.words().filter(|word| word.may_name_a_crawler()) {
            let stem = word.stem(header.bytes()).map(WordHash::of);
            if stem.is_none() && self.index.with_first_word(word.hash).next().is_none() {
                continue;
            }
            let hit = std::iter::once(word.hash)
                .chain(stem)
                .flat_map(|hash| self.index.with_first_word(hash).map(move |name| (name, hash == word.hash)))
                .filter(|(name, whole)| match name.ends(header.bytes(), word.start) {
                    Some(End::Whole) => true,
                    Some(End::Versioned) => !whole,
                    None => false,
                })
                .filter(|(name, _)| {
                    if refused.contains(&name.value) {
                        return false;
                    }
                    let accepted = self.accepts(name.value, header);
                    if !accepted {
                        refused.push(name.value);
                    }
                    accepted
                })
                .max_by_key(|(name, whole)| (name.len(), *whole));
            if let Some((name, _)) = hit {
                return self.crawlers.get(name.value as usize);
            }
        }
        None
    }

    /// The crawler with exactly this header name.
    pub(super) fn has_header_name(&self, name: &[u8]) -> bool {
        self.index.exact(name).is_some()
    }

    fn accepts(&self, crawler: u32, header: &Header<'_>) -> bool {
        let mut needles = self.crawlers[crawler as usize].requires().peekable();
        needles.peek().is_none() || needles.any(|needle| header.contains(needle.as_bytes()))
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
