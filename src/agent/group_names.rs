//! The meaning of group names: a registered crawler, or the products of a pasted header.

use super::claim::Testimony;
use super::header::{Header, Word};
use super::registry::Registry;
use super::words::Kinds;
use crate::rules::ProductToken;

impl Registry {
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
        let Some(whole) = ProductToken::from_name(name_value) else { return Vec::new() };
        if self.knows(&whole) {
            return Vec::new();
        }
        let header = Header::read(name_value);
        if header.words().next().is_some_and(|first| first.kinds.has(Kinds::BROWSER)) {
            return self.pasted(&header);
        }
        let cut = ProductToken::cut(name_value);
        if cut != whole && self.knows(&cut) { vec![cut] } else { Vec::new() }
    }

    /// The products that a pasted header declares.
    fn pasted(&self, header: &Header<'_>) -> Vec<ProductToken> {
        if let Some(crawler) = self.find(header).next() {
            return crawler.tokens().first().cloned().into_iter().collect();
        }
        let mut tokens = Vec::new();
        for part in Testimony::of(header).declared_parts() {
            let Some(first) = header.words_of(part).iter().find(|word: &&Word| word.may_name_a_crawler()) else {
                continue;
            };
            if first.kinds.is_costume() || first.kinds.has(Kinds::ENGINE) || first.kinds.has(Kinds::GENERIC) {
                continue;
            }
            tokens.extend(ProductToken::from_name(header.product(part).as_bytes()));
        }
        tokens
    }
}
