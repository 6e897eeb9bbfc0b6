//! Exceptions to the mode of a site: `[site.modes]`. The key of an exception selects crawlers or a
//! rule. If several exceptions match a request, the last one counts.

use std::time::{Duration, SystemTime};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use toml::Spanned;
use toml::de::DeValue;
use toml::value::{Datetime, Offset};
use tower_robots::policy::{Mode, Override, PolicyBuilder, RateMode};
use tower_robots::rules::ValueError;

use crate::config::{Fault, Faults, Kind, Place, Placed, Reader, Table as _, Value, tables};
use crate::selector::Selector;

const DAY: Duration = Duration::from_secs(24 * 3600);

tables! {
    /// The long form of a mode.
    RawMode {
        /// Mode for disallowed requests. Set `mode`, `rate` or both.
        mode: Option<Mode>,
        /// Mode for requests that exceed a crawl delay.
        rate: Option<Spanned<RateMode>>,
        /// Last day of the exception (UTC), or an exact time.
        until: Option<Spanned<Datetime>>,
    }
}

/// Exceptions to the mode of a site, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct RawModes(pub(crate) Vec<Exception>);

/// An exception to the mode of a site. Exceptions with the same key are written as a list.
#[derive(Debug)]
pub(crate) struct Exception {
    /// The key as written, such as `agent:GPTBot`.
    pub(crate) key: Spanned<String>,
    scope: Scope,
    pub(crate) modes: Spanned<RawMode>,
}

#[derive(Debug)]
enum Scope {
    Crawlers(Selector),
    /// The pattern of a rule, as written in robots.txt.
    Pattern(String),
}

impl Value for RawModes {
    fn kind() -> Kind {
        let one = || Kind::Either(vec![Mode::kind(), RawMode::kind()]);
        Kind::Named(Box::new(Kind::Either(vec![Mode::kind(), RawMode::kind(), Kind::List(Box::new(one()))])))
    }

    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self> {
        let DeValue::Table(written) = value.get_ref() else { return reader.wrong::<Self>(place, value) };
        let (table, mut exceptions) = (place.path(), Vec::new());
        // The order of exceptions matters, but the order in the parsed table may differ from the
        // order in the file.
        let mut entries: Vec<_> = written.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let key = Spanned::new(key.span(), key.get_ref().to_string());
            let place = Place { table: &table, key: key.get_ref() };
            let items: Vec<_> = match value.get_ref() {
                DeValue::Array(items) => items.iter().collect(),
                _ => vec![value],
            };
            if items.is_empty() {
                let help = format!("write {key:?} = \"tag\", or remove this key", key = key.get_ref());
                reader.faults.push(Fault::new(value.span(), "the list contains no mode").help(help));
            }
            for item in items {
                let scope = Scope::read(reader, &key);
                if let (Some(scope), Some(modes)) = (scope, RawMode::either(reader, place, item)) {
                    exceptions.push(Exception { key: key.clone(), scope, modes });
                }
            }
        }
        Some(Self(exceptions))
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

impl RawMode {
    fn either(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Spanned<Self>> {
        let modes = match value.get_ref() {
            DeValue::Table(table) => Self::read_table(reader, &place.path(), table, &value.span())?,
            _ => Self { mode: Some(Mode::read(reader, place, value)?), rate: None, until: None },
        };
        Some(Spanned::new(value.span(), modes))
    }
}

impl Scope {
    fn read(reader: &mut Reader<'_>, key: &Spanned<String>) -> Option<Self> {
        let is_word = |word: &str| key.get_ref().split(':').next() == Some(word);
        match (key.get_ref().split_once(':'), key.get_ref().parse()) {
            (Some(("pattern", pattern)), _) => return Some(Self::Pattern(pattern.to_owned())),
            (Some(("agent" | "category", _)), Ok(crawlers)) => return Some(Self::Crawlers(crawlers)),
            (None, Ok(Selector::Index)) => return Some(Self::Crawlers(Selector::Index)),
            (_, Err(error)) if is_word("agent") || is_word("category") => reader.faults.push(key.fault(error)),
            _ => {
                let message = format!("{key:?} is not a key of [site.modes]", key = key.get_ref());
                let help = "write \"agent:NAME\", \"category:WORD\", \"pattern:/PATH\" or \"index\"".to_owned();
                reader.faults.push(key.fault(message).help(help));
            }
        }
        None
    }
}

impl Exception {
    /// Returns the name of the crawler; `None` if the exception is not for a single crawler.
    pub(crate) fn agent(&self) -> Option<Spanned<String>> {
        match &self.scope {
            Scope::Crawlers(Selector::Agent(name)) => Some(Spanned::new(self.key.span(), name.clone())),
            _ => None,
        }
    }

    fn overrides(&self) -> Result<(Option<Override>, Option<Override<RateMode>>), Fault> {
        let RawMode { mode, rate, until } = self.modes.get_ref();
        if mode.is_none() && rate.is_none() {
            let message = "an override requires \"mode\" (for disallowed requests), \"rate\" (for requests that \
                exceed a crawl delay) or both";
            return Err(self.modes.fault(message));
        }
        if let (Some(_), Scope::Pattern(_)) = (rate, &self.scope) {
            let message = "\"rate\" applies to crawlers and cannot be set for a rule: write \"category:WORD\", \
                \"agent:NAME\" or \"index\" instead of the pattern";
            return Err(self.key.fault(message));
        }
        if let (Some(rate), Scope::Crawlers(Selector::Index)) = (rate, &self.scope)
            && *rate.get_ref() == RateMode::Refuse
        {
            let message =
                "rate = \"refuse\" is allowed only for a single search engine, not for all of them (\"index\")";
            let help = "write \"agent:bingbot\" instead of \"index\", and add a group for bingbot with a Crawl-delay to robots.txt";
            return Err(rate.fault(message).help(help.to_owned()));
        }
        let end = until.as_ref().map(end).transpose()?;
        let mode = mode.map(|mode| match &self.scope {
            Scope::Pattern(pattern) => self.of_value(Override::pattern(pattern, mode)),
            _ => self.of_crawlers(mode),
        });
        let rate = rate.as_ref().map(|rate| self.of_crawlers(*rate.get_ref()));
        Ok((
            mode.transpose()?.map(|over| end.into_iter().fold(over, Override::until)),
            rate.transpose()?.map(|over| end.into_iter().fold(over, Override::until)),
        ))
    }

    fn of_crawlers<M: Copy>(&self, mode: M) -> Result<Override<M>, Fault> {
        match &self.scope {
            Scope::Crawlers(selector) => {
                self.of_value(selector.crawlers().map(|crawlers| Override::crawlers(crawlers, mode)))
            }
            Scope::Pattern(_) => Err(self
                .key
                .fault(format!("{key:?} is not a crawler, a category or \"index\"", key = self.key.get_ref()))),
        }
    }

    fn of_value<T>(&self, made: Result<T, ValueError>) -> Result<T, Fault> {
        made.map_err(|error| self.key.fault(error.to_string()))
    }
}

impl RawModes {
    /// Adds the exceptions to a policy. If an exception has errors, adds them to `faults` and
    /// returns `None`.
    pub(super) fn add_to(&self, policy: Option<PolicyBuilder>, faults: &mut Faults) -> Option<PolicyBuilder> {
        let overrides = faults.keep_all(self.0.iter().map(Exception::overrides))?;
        Some(overrides.into_iter().fold(policy?, |policy, (mode, rate)| {
            let policy = mode.into_iter().fold(policy, PolicyBuilder::with_override);
            rate.into_iter().fold(policy, PolicyBuilder::with_rate_override)
        }))
    }
}

/// Returns the end of an exception: an exact time, or the end of a day in UTC.
pub(in crate::config) fn end(until: &Spanned<Datetime>) -> Result<SystemTime, Fault> {
    let wrong = || {
        let message = format!(
            "{until} is not a valid value of \"until\": write a day (UTC) such as 2027-03-31, or an exact time such \
             as 2027-03-31T12:00:00Z",
            until = until.get_ref()
        );
        until.fault(message)
    };
    let date = until.get_ref();
    let text = match (date.date, date.time, date.offset) {
        (Some(day), None, None) => format!("{day}T00:00:00Z"),
        (Some(day), Some(time), Some(Offset::Z)) => format!("{day}T{time}Z"),
        _ => return Err(wrong()),
    };
    let moment = humantime::parse_rfc3339(&text).map_err(|_| wrong())?;
    Ok(if date.time.is_none() { moment + DAY } else { moment })
}

/// Serializes all exceptions in the short form if this is possible for each of them, otherwise all
/// in the long form. If both forms were used, the long forms would come last in the TOML output.
/// The different order would change the meaning of the exceptions.
impl Serialize for RawModes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut by_key: Vec<(&str, Vec<&RawMode>)> = Vec::new();
        for Exception { key, modes, .. } in &self.0 {
            match by_key.iter_mut().find(|(other, _)| other == key.get_ref()) {
                Some((_, all)) => all.push(modes.get_ref()),
                None => by_key.push((key.get_ref(), vec![modes.get_ref()])),
            }
        }
        let is_short = |modes: &[&RawMode]| matches!(modes, [RawMode { mode: Some(_), rate: None, until: None }]);
        let are_short = by_key.iter().all(|(_, modes)| is_short(modes));
        let mut map = serializer.serialize_map(None)?;
        for (key, modes) in &by_key {
            match &modes[..] {
                [one] if are_short => map.serialize_entry(key, &one.mode)?,
                [one] => map.serialize_entry(key, one)?,
                several => map.serialize_entry(key, several)?,
            }
        }
        map.end()
    }
}
