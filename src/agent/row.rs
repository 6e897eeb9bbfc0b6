//! A crawler as a registry file describes it.

use super::kind::{Category, Obeys};
use super::toml::{Entry, RegistryError, RegistryErrorKind, Table, Value};
use crate::rules::ProductToken;

/// A crawler that exists, and what is known of it.
#[derive(Clone, Debug)]
pub struct Crawler {
    name: Box<str>,
    header: Vec<Box<str>>,
    tokens: Box<[ProductToken]>,
    operator: Box<str>,
    category: Category,
    robots: Obeys,
    star: Obeys,
    control: bool,
    requires: Vec<Box<str>>,
    ranges: Vec<Box<str>>,
    rdns: Vec<Box<str>>,
    signature: Option<Box<str>>,
    source: Option<Box<str>>,
    checked: bool,
    examples: Vec<Box<str>>,
}

/// One table of a registry file: a crawler, or the name of one to remove.
#[derive(Debug)]
pub(super) enum Row {
    Crawler(Box<Crawler>),
    Remove(String),
}

impl Crawler {
    /// The name it is listed under.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names found in its `User-Agent` headers; none for a control token.
    pub fn header_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.header.iter().map(AsRef::as_ref)
    }

    /// The product tokens it obeys, the first that a file names first; never empty.
    #[must_use]
    pub fn tokens(&self) -> &[ProductToken] {
        &self.tokens
    }

    /// Who runs it.
    #[must_use]
    pub fn operator(&self) -> &str {
        &self.operator
    }

    /// What it fetches pages for.
    #[must_use]
    pub const fn category(&self) -> Category {
        self.category
    }

    /// Whether it obeys groups that name it.
    #[must_use]
    pub const fn obeys_robots(&self) -> Obeys {
        self.robots
    }

    /// Whether it obeys the groups of `*`.
    #[must_use]
    pub const fn obeys_star(&self) -> Obeys {
        self.star
    }

    /// Whether its token appears in robots.txt only, never in a request: it cannot be enforced.
    #[must_use]
    pub const fn is_control(&self) -> bool {
        self.control
    }

    /// Texts of which a header must hold one besides the name, because the name is also a word.
    pub fn requires(&self) -> impl ExactSizeIterator<Item = &str> {
        self.requires.iter().map(AsRef::as_ref)
    }

    /// Where its operator publishes the address ranges it uses.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = &str> {
        self.ranges.iter().map(AsRef::as_ref)
    }

    /// What the reverse DNS names of its addresses end with or, where they hold a `*`, look like.
    pub fn reverse_dns(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rdns.iter().map(AsRef::as_ref)
    }

    /// Where the keys of its HTTP message signatures are.
    #[must_use]
    pub fn signature(&self) -> Option<&str> {
        self.signature.as_deref()
    }

    /// The documentation these facts come from.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Whether the operator's documentation was read for these facts. Otherwise they are general knowledge, and flags
    /// that could refuse what should pass are [`Obeys::Unknown`].
    #[must_use]
    pub const fn is_checked(&self) -> bool {
        self.checked
    }

    /// Headers it sends.
    pub fn examples(&self) -> impl ExactSizeIterator<Item = &str> {
        self.examples.iter().map(AsRef::as_ref)
    }
}

impl Row {
    pub(super) fn read(table: Table) -> Result<Self, RegistryError> {
        let mut draft = Draft { line: table.line, ..Draft::default() };
        for entry in table.entries {
            draft.set(entry)?;
        }
        draft.finish()
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Crawler(crawler) => crawler.name(),
            Self::Remove(name) => name,
        }
    }
}

#[derive(Default)]
struct Draft {
    line: usize,
    name: Option<String>,
    header: Option<Vec<String>>,
    tokens: Vec<String>,
    operator: Option<String>,
    category: Option<Category>,
    robots: Option<Obeys>,
    star: Option<Obeys>,
    control: bool,
    requires: Vec<String>,
    ranges: Vec<String>,
    rdns: Vec<String>,
    signature: Option<String>,
    source: Option<String>,
    checked: bool,
    examples: Vec<String>,
    remove: bool,
}

const KEYS: &str = "name, header, tokens, operator, category, robots, star, control, requires, ranges, rdns, signature, \
                    source, checked, examples, remove";

impl Draft {
    fn set(&mut self, entry: Entry) -> Result<(), RegistryError> {
        match entry.key.as_str() {
            "name" => self.name = Some(text(entry)?),
            "header" => self.header = Some(list(entry)?),
            "tokens" => self.tokens = list(entry)?,
            "operator" => self.operator = Some(text(entry)?),
            "category" => self.category = Some(word(entry, Category::parse, Category::ALL)?),
            "robots" => self.robots = Some(word(entry, Obeys::parse, Obeys::ALL)?),
            "star" => self.star = Some(word(entry, Obeys::parse, Obeys::ALL)?),
            "control" => self.control = switch(entry)?,
            "requires" => self.requires = list(entry)?,
            "ranges" => self.ranges = list(entry)?,
            "rdns" => self.rdns = list(entry)?,
            "signature" => self.signature = Some(text(entry)?),
            "source" => self.source = Some(text(entry)?),
            "checked" => self.checked = switch(entry)?,
            "examples" => self.examples = list(entry)?,
            "remove" => self.remove = switch(entry)?,
            key => {
                let message = format!("\"{key}\" is not a key of a crawler: those are {KEYS}");
                return Err(RegistryError::new(entry.line, RegistryErrorKind::UnknownKey, message));
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Row, RegistryError> {
        let missing = |key: &str| {
            let message = format!("this crawler has no {key}: add {key} = …");
            RegistryError::new(self.line, RegistryErrorKind::MissingKey, message)
        };
        let wrong = |message: &str| RegistryError::new(self.line, RegistryErrorKind::WrongValue, message);
        let Some(name) = self.name.filter(|name| !name.trim().is_empty()) else {
            return Err(missing("name"));
        };
        if self.remove {
            return Ok(Row::Remove(name));
        }
        let header = match (self.header, self.control) {
            (Some(header), true) if !header.is_empty() => {
                return Err(wrong("a control token is never sent in a header: drop control or header"));
            }
            (_, true) => Vec::new(),
            (Some(header), false) => header,
            (None, false) => vec![name.clone()],
        };
        if header.iter().any(|name| !name.bytes().any(|byte| byte.is_ascii_alphanumeric())) {
            return Err(wrong("a name in header holds neither letter nor digit: nothing could find it"));
        }
        let tokens = if self.tokens.is_empty() { vec![name.clone()] } else { self.tokens };
        let category = self.category.ok_or_else(|| missing("category"))?;
        Ok(Row::Crawler(Box::new(Crawler {
            name: name.into(),
            header: boxed(header),
            tokens: tokens.iter().map(ProductToken::new).collect(),
            operator: self.operator.unwrap_or_default().into(),
            category,
            robots: self.robots.unwrap_or(Obeys::Unknown),
            star: self.star.unwrap_or(Obeys::Unknown),
            control: self.control,
            requires: boxed(self.requires),
            ranges: boxed(self.ranges),
            rdns: boxed(self.rdns),
            signature: self.signature.map(Into::into),
            source: self.source.map(Into::into),
            checked: self.checked,
            examples: boxed(self.examples),
        })))
    }
}

fn boxed(list: Vec<String>) -> Vec<Box<str>> {
    list.into_iter().map(Into::into).collect()
}

fn text(entry: Entry) -> Result<String, RegistryError> {
    match entry.value {
        Value::Text(text) => Ok(text),
        _ => Err(wrong_type(&entry, "\"text\"")),
    }
}

fn list(entry: Entry) -> Result<Vec<String>, RegistryError> {
    match entry.value {
        Value::List(list) => Ok(list),
        _ => Err(wrong_type(&entry, "[\"text\", …]")),
    }
}

fn switch(entry: Entry) -> Result<bool, RegistryError> {
    match entry.value {
        Value::Bool(value) => Ok(value),
        _ => Err(wrong_type(&entry, "true or false")),
    }
}

fn word<T: Copy + std::fmt::Display>(
    entry: Entry,
    parse: fn(&str) -> Option<T>,
    all: &[T],
) -> Result<T, RegistryError> {
    let (line, key) = (entry.line, entry.key.clone());
    let text = text(entry)?;
    parse(&text).ok_or_else(|| {
        let all: Vec<_> = all.iter().map(ToString::to_string).collect();
        let message = format!("\"{text}\" is not a value of {key}: write one of {}", all.join(", "));
        RegistryError::new(line, RegistryErrorKind::WrongValue, message)
    })
}

fn wrong_type(entry: &Entry, right: &str) -> RegistryError {
    let message = format!("the value of {} has the wrong type: write {} = {right}", entry.key, entry.key);
    RegistryError::new(entry.line, RegistryErrorKind::WrongValue, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Registry;

    fn error(line: &str) -> RegistryError {
        Registry::parse(&format!("[[crawler]]\nname = \"A\"\ncategory = \"seo\"\n{line}\n")).unwrap_err()
    }

    #[test]
    fn defaults_follow_from_the_name() {
        let registry = Registry::parse("[[crawler]]\nname = \"A Bot\"\ncategory = \"seo\"\n").unwrap();
        let crawler = registry.crawler("a bot").unwrap();
        assert_eq!(crawler.header_names().collect::<Vec<_>>(), ["A Bot"]);
        assert_eq!(crawler.tokens(), [ProductToken::new("a bot")]);
        assert_eq!((crawler.obeys_robots(), crawler.obeys_star()), (Obeys::Unknown, Obeys::Unknown));
        assert!(!crawler.is_control() && !crawler.is_checked());
    }

    #[test]
    fn what_is_wrong_is_told_with_what_would_be_right() {
        for (line, kind, right) in [
            ("colour = \"red\"", RegistryErrorKind::UnknownKey, "those are name, header"),
            ("star = \"maybe\"", RegistryErrorKind::WrongValue, "yes, no, partial, unknown"),
            ("star = true", RegistryErrorKind::WrongValue, "star = \"text\""),
            ("tokens = \"A\"", RegistryErrorKind::WrongValue, "tokens = [\"text\", …]"),
            ("control = \"yes\"", RegistryErrorKind::WrongValue, "true or false"),
            ("header = [\"!\"]", RegistryErrorKind::WrongValue, "nothing could find it"),
        ] {
            let error = error(line);
            assert_eq!(error.kind(), kind, "{line}");
            assert!(error.to_string().contains(right), "{line}: {error}");
        }
        assert_eq!(error("control = true\nheader = [\"A\"]").kind(), RegistryErrorKind::WrongValue);
        let error = Registry::parse("\n[[crawler]]\nname = \"A\"\n").unwrap_err();
        assert_eq!((error.line(), error.kind()), (2, RegistryErrorKind::MissingKey));
    }
}
