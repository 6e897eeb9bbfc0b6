//! Header fields that are added to responses: `[site.signals]` states how their content may be
//! used, and `[[site.field]]` adds other fields.

use toml::Spanned;
use tower_robots::agent::Registry;
use tower_robots::layer::{FieldRule, Signals, UsageField};
use tower_robots::rules::{Access, Fallback, RequestPath, RobotsTxt, RuleSet};

use crate::config::{Fault, Faults, Placed, tables, word_values};
use crate::selector::Selector;

tables! {
    /// What responses say about the use of their content.
    RawSignals {
        content_usage: Option<Spanned<UsageField>>,
        license_link: bool,
    }

    /// A header field that is added to responses by path.
    RawField {
        path: Spanned<String>,
        name: Spanned<String>,
        value: Spanned<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        crawlers: Vec<Spanned<String>>,
    }
}

word_values! {
    Some(Self::default()) => UsageField;
}

/// Maximum number of `[[site.field]]` tables per site. The path of each request is compared with
/// the paths of all these tables.
const MAX_FIELDS: usize = 100;

pub(super) fn resolve(signals: &RawSignals, fields: &[Spanned<RawField>], faults: &mut Faults) -> Option<Signals> {
    if let Some(further) = fields.get(MAX_FIELDS) {
        faults.push(further.fault(format!("a site may add at most {MAX_FIELDS} fields: merge some of the paths")));
        return None;
    }
    let rules = faults.keep_all(fields.iter().map(rule))?;
    let usage = signals.content_usage.as_ref().map_or_else(UsageField::default, |usage| *usage.get_ref());
    let resolved = rules.into_iter().fold(Signals::default().usage(usage), Signals::field);
    Some(if signals.license_link { resolved.license_links() } else { resolved })
}

fn rule(field: &Spanned<RawField>) -> Result<FieldRule, Fault> {
    let RawField { path, name, value, crawlers } = field.get_ref();
    let rule = FieldRule::new(path.get_ref(), name.get_ref(), value.get_ref()).map_err(|error| {
        let texts = [name, value].into_iter().find(|text| text.get_ref().trim() == error.text());
        texts.unwrap_or(path).fault(error.to_string())
    })?;
    Ok(if crawlers.is_empty() { rule } else { rule.for_crawlers(super::refusal::crawlers(crawlers)?) })
}

/// Returns the settings of a site that make responses differ by client, so that caches store more
/// copies of a page.
pub(in crate::config) fn vary_notes<'r>(
    signals: &'r RawSignals,
    fields: &'r [Spanned<RawField>],
) -> impl Iterator<Item = Fault> + 'r {
    let usage = signals.content_usage.iter().filter(|usage| *usage.get_ref() == UsageField::ByAgent);
    let usage = usage.map(|usage| {
        let message = "\"by-agent\" adds \"Vary: User-Agent\" to responses, so a cache keeps a copy for each User-Agent, \
                       and most CDNs cache nothing";
        usage.fault(message).help("write \"unanimous\": responses then need no Vary field".to_owned())
    });
    let fields = fields.iter().filter(|field| !field.get_ref().crawlers.is_empty());
    usage.chain(fields.map(|field| {
        let message = "a field for some crawlers adds \"Vary: User-Agent\" to responses for its path, so a cache keeps a \
                       copy for each User-Agent";
        field.fault(message).help("if every client may get the field, leave out \"crawlers\": responses then need no \
                                   Vary field".to_owned())
    }))
}

/// Returns the fields with `noindex` whose path the robots.txt disallows. A crawler that may not
/// fetch a page cannot see the header fields of the page.
pub(in crate::config) fn unseen_noindex(
    fields: &[Spanned<RawField>],
    robots: &RobotsTxt,
    registry: &Registry,
) -> Vec<Fault> {
    let rules = robots.compile_with(Default::default(), |name| registry.stands_for(name.value()));
    let is_noindex = |value: &str| {
        let words = value.to_ascii_lowercase();
        words.split([',', ':']).any(|word| matches!(word.trim(), "noindex" | "none"))
    };
    let fields = fields.iter().filter(|field| {
        let RawField { name, value, .. } = field.get_ref();
        name.get_ref().eq_ignore_ascii_case("x-robots-tag") && is_noindex(value.get_ref())
    });
    let unseen_noindex = fields.filter(|field| may_not_read(field.get_ref(), &rules, registry));
    let fault = |field: &Spanned<RawField>| {
        let path = &field.get_ref().path;
        let message = format!("crawlers never see this noindex, because robots.txt disallows {:?}", path.get_ref());
        path.fault(message).help("allow the path in robots.txt, so that crawlers can read the field".to_owned())
    };
    unseen_noindex.map(fault).collect()
}

/// Reports whether all crawlers of a field are disallowed from fetching a page with the field's
/// path. If the field has no `crawlers`, the result is about a crawler that is not named in any
/// group.
fn may_not_read(field: &RawField, rules: &RuleSet, registry: &Registry) -> bool {
    // Replacing each `*` by `x` gives the path of one possible page.
    let page = field.path.get_ref().trim_end_matches('$').replace('*', "x");
    let page = if page.starts_with('/') { page } else { format!("/{page}") };
    let path = RequestPath::new(&page);
    let selectors: Vec<Selector> = field.crawlers.iter().filter_map(|text| text.get_ref().parse().ok()).collect();
    let is_disallowed =
        |tokens: &[_], fallback| rules.select(tokens, fallback).verdict(&path).access() == Access::Disallow;
    if selectors.is_empty() {
        return is_disallowed(&[], Fallback::Star);
    }
    let mut crawlers = registry.crawlers().filter(|crawler| selectors.iter().any(|one| one.has(crawler))).peekable();
    crawlers.peek().is_some() && crawlers.all(|crawler| is_disallowed(&crawler.tokens, Fallback::Star))
}
