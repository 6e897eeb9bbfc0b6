//! Rows that change a registry: a crawler to add or replace, or the name of one to remove.

use std::fmt;

use super::crawler::{Crawler, Obeys};
use crate::rules::ProductToken;

/// A change of a [`Registry`](super::Registry).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RegistryRow {
    /// Adds a crawler, or puts it in the place of the one with the same name, whatever the case.
    Put(Box<Crawler>),
    /// Removes the crawler with this name, whatever the case.
    Remove(String),
}

impl RegistryRow {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Put(crawler) => &crawler.name,
            Self::Remove(name) => name,
        }
    }
}

impl From<Crawler> for RegistryRow {
    fn from(crawler: Crawler) -> Self {
        Self::Put(Box::new(crawler))
    }
}

impl Crawler {
    /// The crawler as a registry has it, or the field whose value no crawler can have, and why.
    pub(super) fn checked(mut self) -> Result<Self, (&'static str, String)> {
        let wrong = |field, message: &str| Err((field, message.to_owned()));
        if self.name.trim().is_empty() {
            return wrong("name", "a crawler has a name: add one");
        }
        if self.is_control && !self.header_names.is_empty() {
            return wrong("header", "a control token is never sent in a header: drop control or header");
        }
        let is_findable = |name: &&String| name.bytes().any(|byte| byte.is_ascii_alphanumeric());
        if let Some(name) = self.header_names.iter().find(|name| !is_findable(name)) {
            let message = format!(
                "\"{name}\" holds neither letter nor digit, so no header can be found by it: write a name that does"
            );
            return wrong("header", &message);
        }
        if self.tokens.is_empty() {
            self.tokens.push(ProductToken::new(&self.name));
        }
        if let Some(token) = self.tokens.iter().map(ToString::to_string).find(|token| token.trim().is_empty()) {
            let message =
                format!("\"{token}\" is not a product token: write the name that a group has for this crawler");
            return wrong("tokens", &message);
        }
        if let Some(day) = self.checked_on.as_ref().filter(|day| !is_day(day)) {
            return wrong("checked", &format!("\"{day}\" is no day: write it as \"2026-11-22\""));
        }
        if self.obeys_crawl_delay == Obeys::Partial {
            return wrong("crawl_delay", "\"partial\" is not said of a delay: write \"yes\", \"no\" or \"unknown\"");
        }
        if self.is_reverse_dns_weak && self.reverse_dns.is_empty() {
            return wrong("weak", "the row has no rdns that could be weak: drop weak or add rdns");
        }
        Ok(self)
    }
}

/// Whether a text is a day as `2026-11-22`.
fn is_day(text: &str) -> bool {
    let is_number = |digits: &str, length: usize, range: std::ops::RangeInclusive<u16>| {
        let is_plain = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain && digits.parse().is_ok_and(|number| range.contains(&number))
    };
    let parts: Vec<_> = text.split('-').collect();
    matches!(parts[..], [year, month, day]
        if is_number(year, 4, 0..=9999) && is_number(month, 2, 1..=12) && is_number(day, 2, 1..=31))
}

/// Why a [`Registry`](super::Registry) cannot be extended with the given rows.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryError {
    /// Which of the rows is wrong, from 0.
    pub row: usize,
    /// The field of the row that is wrong, by its key in a registry file: `name`, `header` or `tokens`.
    pub field: &'static str,
    /// The kind of mistake.
    pub kind: RegistryErrorKind,
    /// The mistake and its correction, without the place.
    pub message: String,
}

/// The kind of mistake that a [`RegistryError`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegistryErrorKind {
    /// A field has a value that no crawler can have.
    WrongValue,
    /// Two of the rows have one name.
    RepeatedName,
    /// Two crawlers have one header name.
    SharedHeaderName,
    /// The crawler to remove does not exist.
    NotFound,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}, {}: {}", self.row + 1, self.field, self.message)
    }
}

impl fmt::Debug for RegistryError {
    /// As it is displayed, because that is what the operator sees of an error that `main` returns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RegistryError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Category;

    #[test]
    fn defaults_follow_from_the_name() {
        let crawler = Crawler::new("A Bot", Category::Seo).checked().unwrap();
        assert_eq!(crawler.header_names, ["A Bot"]);
        assert_eq!(crawler.tokens, [ProductToken::new("a bot")]);
        assert_eq!((crawler.obeys_robots, crawler.obeys_star), (Obeys::Unknown, Obeys::Unknown));
        assert!(!crawler.is_control && !crawler.is_index_engine && crawler.checked_on.is_none());
        let without = Crawler { tokens: Vec::new(), ..Crawler::new("A Bot", Category::Seo) }.checked().unwrap();
        assert_eq!(without.tokens, crawler.tokens);
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_field_and_what_would_be_right() {
        let row = || Crawler::new("A", Category::Seo);
        let checked_on = |day: &str| Crawler { checked_on: Some(day.into()), ..row() };
        for (row, field, right) in [
            (Crawler::new(" ", Category::Seo), "name", "add one"),
            (Crawler { header_names: vec!["A".into(), "!".into()], ..row() }, "header", "write a name that does"),
            (Crawler { is_control: true, ..row() }, "header", "drop control or header"),
            (Crawler { tokens: ["A", ""].map(ProductToken::new).into(), ..row() }, "tokens", "write the name"),
            (checked_on("yesterday"), "checked", "2026-11-22"),
            (checked_on("2026-13-01"), "checked", "2026-11-22"),
            (Crawler { is_reverse_dns_weak: true, ..row() }, "weak", "add rdns"),
            (Crawler { obeys_crawl_delay: Obeys::Partial, ..row() }, "crawl_delay", "write \"yes\""),
        ] {
            let (wrong, message) = row.checked().unwrap_err();
            assert_eq!(wrong, field);
            assert!(message.contains(right), "{message}");
        }
        assert!(Crawler::control_token("A", Category::Seo).checked().is_ok());
    }

    #[test]
    fn a_row_with_every_value_is_kept_as_it_is() {
        let row = Crawler {
            header_names: vec!["A".into(), "A Bot".into()],
            tokens: ["a", "b"].map(ProductToken::new).into(),
            operator: "O".into(),
            obeys_robots: Obeys::Yes,
            obeys_star: Obeys::No,
            obeys_crawl_delay: Obeys::Yes,
            is_index_engine: true,
            requires: vec!["r".into()],
            ranges: vec!["https://a.test/ranges".into()],
            reverse_dns: vec![".a.test".into()],
            is_reverse_dns_weak: true,
            is_framework: true,
            signature: Some("https://a.test/keys".into()),
            source: Some("https://a.test".into()),
            checked_on: Some("2026-11-22".into()),
            examples: vec!["A/1".into()],
            ..Crawler::new("A", Category::Ads)
        };
        assert_eq!(format!("{:?}", row.clone().checked().unwrap()), format!("{row:?}"));
    }
}
