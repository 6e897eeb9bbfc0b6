//! The registry of crawlers. A published registry (`registry_url`) and a file (`registry_extra`)
//! add, change and remove rows of the built-in registry.
//!
//! Rows have the same keys as the built-in registry (`robots-core/src/agent/crawlers.toml`), and
//! also the key `remove`.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use toml::Spanned;
use tower_robots::agent::{Category, Crawler, Obeys, Registry, RegistryRow};
use tower_robots::internals::FollowedDocument;
use tower_robots::live::VersionHashPrefix;
use tower_robots::rules::ProductToken;
use tower_robots::source::fetch::FetchUrl;

use super::{ConfigError, Document, DocumentSettings, Fault, Faults, Placed, RawAgents, parsed, reader, tables};
use crate::input::{self, place};
use crate::names::did_you_mean;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegistrySources {
    /// File with rows that add, change or remove crawlers.
    pub(crate) extra: Option<PathBuf>,
    pub(crate) published: Option<DocumentSettings>,
}

impl fmt::Display for RegistrySources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.published, &self.extra) {
            (Some(published), Some(extra)) => write!(f, "{} with {}", published.url, extra.display()),
            (Some(published), None) => published.url.fmt(f),
            (None, Some(extra)) => extra.display().fmt(f),
            (None, None) => f.write_str("the built-in registry"),
        }
    }
}

tables! {
    RegistryFile {
        crawler: Vec<Spanned<CrawlerTable>>,
    }

    /// A `[[crawler]]` table of a registry.
    CrawlerTable {
        name: Option<Spanned<String>>,
        header: Option<Spanned<Vec<String>>>,
        tokens: Option<Spanned<Vec<String>>>,
        operator: Option<String>,
        category: Option<Spanned<String>>,
        supplies: Vec<Spanned<String>>,
        robots: Option<Spanned<String>>,
        star: Option<Spanned<String>>,
        crawl_delay: Option<Spanned<String>>,
        control: bool,
        index: bool,
        requires: Vec<String>,
        ranges: Vec<String>,
        rdns: Vec<String>,
        referers: Option<Spanned<Vec<String>>>,
        signature: Option<String>,
        source: Option<String>,
        checked: Option<Spanned<String>>,
        weak: bool,
        framework: bool,
        examples: Vec<String>,
        /// Removes the crawler with this name; the other keys are ignored.
        remove: bool,
    }
}

impl Document for RegistryFile {
    const NAME: &'static str = "the file";
}

/// Returns the registry of a config without fetching anything. Uses the published registry that a
/// server last saved. If the saved registry cannot be read, uses the built-in one without an error,
/// because the server already reports the error.
pub(crate) fn load_registry(sources: &RegistrySources) -> Result<Arc<Registry>, ConfigError> {
    let published = sources.published.as_ref().and_then(saved).map(Arc::new);
    let base = published.as_ref().unwrap_or_else(|| Registry::builtin());
    extended_registry(base, sources.extra.as_deref())
}

pub(crate) fn extended_registry(base: &Arc<Registry>, extra: Option<&Path>) -> Result<Arc<Registry>, ConfigError> {
    let Some(path) = extra else { return Ok(base.clone()) };
    let bytes = input::read_configured(path).map_err(ConfigError::without_place)?;
    extended(base, path, &reader::as_utf8(path, bytes)?).map(Arc::new)
}

/// Returns the built-in registry, extended by the rows in `text`, which was fetched from `url`.
pub(crate) fn read_published(url: &FetchUrl, text: &str) -> Result<Registry, String> {
    extended(Registry::builtin(), Path::new(&url.to_string()), text).map_err(|error| error.to_string())
}

/// Reads the published registry that a server last saved; `None` if it does not exist or cannot be
/// read.
fn saved(settings: &DocumentSettings) -> Option<Registry> {
    let folder = settings.saved_in.as_ref()?;
    let of = settings.url.clone();
    let published = FollowedDocument::<Registry>::builder(of.clone(), move |text| read_published(&of, text));
    published.saved_in(folder).saved().ok().flatten()
}

fn extended(base: &Registry, path: &Path, text: &str) -> Result<Registry, ConfigError> {
    let at = |faults| ConfigError::at(path, text, faults);
    let file: RegistryFile = reader::read(text).map_err(at)?;
    let tables = &file.crawler;
    let mut faults = Faults::default();
    let Some(rows) = faults.keep_all(tables.iter().map(row)) else { return Err(at(faults.0)) };
    base.extended_with(rows).map_err(|error| {
        let Some(table) = tables.get(error.row) else { return Fault::new(0..0, error.message).at(path, text) };
        let mut message = error.message.to_owned();
        // A repeated name is reported at its second occurrence.
        let first = first_with_name(tables, table.get_ref()).filter(|first| !std::ptr::eq(*first, table));
        if let Some(first) = first {
            message = format!(
                "{message}; the first row with this name is in line {line}",
                line = place(text, first.span().start).0
            );
        }
        let span = table.get_ref().span(error.field).unwrap_or_else(|| table.span());
        Fault::new(span, message).at(path, text)
    })
}

fn row(table: &Spanned<CrawlerTable>) -> Result<RegistryRow, Fault> {
    let (span, table) = (table.span(), table.get_ref());
    let Some(name) = &table.name else { return Err(missing(span, "name")) };
    if table.remove {
        return Ok(RegistryRow::Remove(name.get_ref().clone()));
    }
    let Some(category) = &table.category else { return Err(missing(span, "category")) };
    let category = word("category", category, Category::ALL)?;
    let supplies = table.supplies.iter().map(|written| word("supplies", written, Category::ALL));
    let obeys = |key: &str, written: &Option<Spanned<String>>, all: &[Obeys]| {
        written.as_ref().map_or(Ok(Obeys::Unknown), |written| word(key, written, all))
    };
    let new = if table.control { Crawler::control_token } else { Crawler::new };
    let mut row = Crawler {
        operator: table.operator.clone().unwrap_or_default(),
        supplies: supplies.collect::<Result<_, _>>()?,
        obeys_robots: obeys("robots", &table.robots, Obeys::ALL)?,
        obeys_star: obeys("star", &table.star, Obeys::ALL)?,
        obeys_crawl_delay: obeys("crawl_delay", &table.crawl_delay, &[Obeys::Yes, Obeys::No, Obeys::Unknown])?,
        is_index_engine: table.index,
        requires: table.requires.clone(),
        ranges: table.ranges.clone(),
        reverse_dns: table.rdns.clone(),
        is_reverse_dns_weak: table.weak,
        is_framework: table.framework,
        referers: table.referers.as_ref().map(|hosts| hosts.get_ref().clone()).unwrap_or_default(),
        signature: table.signature.clone(),
        source: table.source.clone(),
        checked_on: table.checked.as_ref().map(|day| day.get_ref().clone()),
        examples: table.examples.clone(),
        ..new(name.get_ref(), category)
    };
    if let Some(header) = &table.header {
        row.header_names.clone_from(header.get_ref());
    }
    if let Some(tokens) = &table.tokens {
        row.tokens = tokens.get_ref().iter().map(ProductToken::new).collect();
    }
    Ok(row.into())
}

fn missing(span: Range<usize>, key: &str) -> Fault {
    Fault::new(span, format!("this [[crawler]] lacks the key {key:?}")).help(format!("write {key} = \"…\""))
}

fn word<T: FromStr + ToString>(key: &str, word: &Spanned<String>, all: &[T]) -> Result<T, Fault> {
    word.get_ref().parse().map_err(|_| {
        let all: Vec<_> = all.iter().map(ToString::to_string).collect();
        let message = format!(
            "{word:?} is not a value of {key:?}: write one of {known}",
            word = word.get_ref(),
            known = all.join(", ")
        );
        word.fault(message).help(did_you_mean(word.get_ref(), all.iter().map(String::as_str)))
    })
}

fn first_with_name<'t>(tables: &'t [Spanned<CrawlerTable>], of: &CrawlerTable) -> Option<&'t Spanned<CrawlerTable>> {
    let name = of.name.as_ref()?.get_ref();
    tables.iter().find(|table| {
        let other = table.get_ref().name.as_ref();
        other.is_some_and(|other| other.get_ref().eq_ignore_ascii_case(name))
    })
}

impl CrawlerTable {
    fn span(&self, key: &str) -> Option<Range<usize>> {
        let written = match key {
            "header" => self.header.as_ref().map(Spanned::span),
            "tokens" => self.tokens.as_ref().map(Spanned::span),
            "checked" => self.checked.as_ref().map(Spanned::span),
            "referers" => self.referers.as_ref().map(Spanned::span),
            _ => None,
        };
        // If the key is absent, its value is derived from the name, so the error has the position
        // of the name.
        written.or_else(|| self.name.as_ref().map(Spanned::span))
    }
}

impl RegistrySources {
    pub(super) fn resolve(
        agents: &RawAgents,
        state_dir: Option<&Path>,
        folder: &Path,
        faults: &mut Faults,
    ) -> Option<Self> {
        let extra = faults.keep(extra(agents, folder));
        let published = faults.keep(published(agents, state_dir, folder));
        Some(Self { extra: extra?, published: published? })
    }
}

/// Returns the path of the file with additional crawlers. The file is read later, when the sites
/// are opened.
fn extra(agents: &RawAgents, folder: &Path) -> Result<Option<PathBuf>, Fault> {
    let Some(written) = &agents.registry_extra else { return Ok(None) };
    let path = folder.join(written.get_ref());
    let wrong = |why: &dyn fmt::Display| written.fault(format!("{}: {why}", path.display()));
    if std::fs::metadata(&path).map_err(|error| wrong(&error))?.is_dir() {
        return Err(wrong(&"this is a folder, not a file with crawlers"));
    }
    Ok(Some(path))
}

const FOLDER: &str = "registry";

fn published(agents: &RawAgents, state_dir: Option<&Path>, folder: &Path) -> Result<Option<DocumentSettings>, Fault> {
    let Some(written) = &agents.registry_url else {
        let stray = agents.registry_ca.as_ref().map(|ca| ("registry_ca", ca.span()));
        let accept = || agents.registry_accept.first().map(|hash| ("registry_accept", hash.span()));
        return match stray.or_else(accept) {
            Some((key, span)) => {
                Err(Fault::new(span, format!("{key:?} has no effect without \"registry_url\", which is not set")))
            }
            None => Ok(None),
        };
    };
    let url: FetchUrl = parsed(written)?;
    if !url.to_string().starts_with("https://") {
        let message =
            "a registry decides which clients are refused, so it is fetched only with TLS: write an \"https://\" URL";
        return Err(written.fault(message));
    }
    DocumentSettings::resolve(url, agents.registry_ca.as_ref(), state_dir, FOLDER, folder).map(Some)
}

pub(super) fn accepted(agents: &RawAgents) -> Result<Vec<VersionHashPrefix>, Fault> {
    agents.registry_accept.iter().map(parsed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_cases::check_cases;

    fn read(text: &str) -> Result<Registry, String> {
        extended(Registry::builtin(), Path::new("c.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn every_form_of_toml_is_read() {
        for text in [
            "[[crawler]]\nname = \"\"\"\nHouse\\\n   Bot\"\"\"\noperator = '''\nTwo\nlines'''\ncategory = 'seo'\n",
            "crawler = [{ name = \"HouseBot\", category = \"seo\", operator = \"Two\\u000Alines\" }]\n",
            "crawler = [\n  { name = \"GPTBot\", remove = true },\n  { name = \"HouseBot\", operator = \"Two\\nlines\", category = \"seo\" },\n]",
            "[[crawler]]\n\"name\" = \"Ho\\u0075seBot\"\ncategory=\"seo\"#x\noperator = \"Two\\nlines\"\r\n",
        ] {
            let registry = read(text).expect(text);
            let crawler = registry.crawler("housebot").expect(text);
            assert_eq!((crawler.operator.as_str(), crawler.category), ("Two\nlines", Category::Seo), "{text}");
        }
        assert_eq!(read("").expect("no rows").crawlers().len(), Registry::builtin().crawlers().len());
    }

    #[test]
    fn every_key_of_a_row_reaches_the_registry() {
        let text = "[[crawler]]\nname = \"HouseBot\"\nheader = [\"HouseBot\", \"House Bot\"]\ntokens = [\"HouseBot\", \"House\"]\n\
                    operator = \"House\"\ncategory = \"archive\"\nsupplies = [\"seo\"]\nrobots = \"partial\"\nstar = \"no\"\ncrawl_delay = \"yes\"\nrequires = [\"house.test\"]\n\
                    ranges = [\"https://house.test/ranges\"]\nrdns = [\".house.test\"]\nreferers = [\"house.test\"]\nsignature = \"https://house.test/keys\"\n\
                    source = \"https://house.test/bot\"\nchecked = \"2026-11-22\"\nweak = true\nframework = true\nindex = true\nexamples = [\"HouseBot/1 house.test\"]\n\n\
                    [[crawler]]\nname = \"House-Extended\"\ncategory = \"ai-training\"\ncontrol = true\n\n\
                    [[crawler]]\nname = \"GPTBot\"\nremove = true\n";
        let registry = read(text).expect("a registry");
        let crawler = registry.crawler("HouseBot").expect("a row");
        let row = Crawler {
            header_names: vec!["HouseBot".into(), "House Bot".into()],
            tokens: ["HouseBot", "House"].map(ProductToken::new).into(),
            operator: "House".into(),
            supplies: vec![Category::Seo],
            obeys_robots: Obeys::Partial,
            obeys_star: Obeys::No,
            obeys_crawl_delay: Obeys::Yes,
            requires: vec!["house.test".into()],
            ranges: vec!["https://house.test/ranges".into()],
            reverse_dns: vec![".house.test".into()],
            referers: vec!["house.test".into()],
            signature: Some("https://house.test/keys".into()),
            source: Some("https://house.test/bot".into()),
            checked_on: Some("2026-11-22".into()),
            is_reverse_dns_weak: true,
            is_framework: true,
            is_index_engine: true,
            examples: vec!["HouseBot/1 house.test".into()],
            ..Crawler::new("HouseBot", Category::Archive)
        };
        let same = Registry::default().extended_with([row]).expect("a registry");
        assert_eq!(format!("{crawler:?}"), format!("{:?}", same.crawler("HouseBot").expect("a row")));
        assert!(registry.crawler("House-Extended").is_some_and(|row| row.is_control));
        assert!(registry.crawler("GPTBot").is_none());
    }

    #[test]
    fn errors_in_a_registry_contain_line_and_column() {
        check_cases("registry_mistakes.txt", |text| read(text).expect_err(text) + "\n");
    }

    #[test]
    fn invalid_utf_8_is_refused_with_its_position() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.toml");
        std::fs::write(&path, b"# one\n# \xff\n").expect("a file");
        let sources = RegistrySources { extra: Some(path.clone()), published: None };
        let error = load_registry(&sources).expect_err("an error").to_string();
        assert!(error.contains("c.toml:2:3: the file is not valid UTF-8"), "{error}");
        std::fs::remove_file(&path).expect("removed");
        let error = load_registry(&sources).expect_err("an error").to_string();
        assert!(error.contains("c.toml: "), "{error}");
    }
}
