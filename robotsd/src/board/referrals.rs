//! Compares two numbers for each operator: the pages that its crawlers fetched, and the visitors
//! that its services referred.
//!
//! The pages of all crawlers of an operator are added up, because it is unknown which crawler
//! fetched the page that led to a visit. Operators without a known service are left out, because
//! their referrals cannot be counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tower_robots::agent::Registry;

use super::recorder::cut;
use super::visitors::Service;
use crate::html::{counted, grouped};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct OperatorBalance {
    pub(crate) operator: String,
    pub(crate) purposes: Vec<String>,
    pub(crate) pages: u64,
    pub(crate) visitors: u64,
    /// Pages per referred visitor; `None` if there are no visitors.
    pub(crate) pages_per_visitor: Option<f64>,
    /// Crawlers of the operator, most pages first.
    pub(crate) crawlers: Vec<TakenPages>,
    /// Services of the operator, most visitors first.
    pub(crate) services: Vec<ServiceVisitors>,
}

/// The pages that a crawler fetched. Pages that impostors fetched are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakenPages {
    pub(crate) crawler: String,
    pub(crate) purpose: String,
    pub(crate) pages: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServiceVisitors {
    pub(crate) host: String,
    pub(crate) visitors: u64,
}

impl OperatorBalance {
    /// Returns one balance for each operator whose crawlers fetched pages or whose services
    /// referred visitors, the operator with the most pages first. `taken` contains the operator and
    /// the pages of each crawler.
    pub(crate) fn all<'c>(
        taken: impl IntoIterator<Item = (&'c str, TakenPages)>,
        sent: impl IntoIterator<Item = (Service, u64)>,
        registry: &Registry,
    ) -> Vec<Self> {
        let mut all: BTreeMap<String, Self> = BTreeMap::new();
        let known = registry.crawlers().filter(|crawler| !crawler.referers.is_empty());
        let known: BTreeSet<&str> = known.map(|crawler| cut(&crawler.operator)).collect();
        let taken = taken.into_iter().map(|(operator, taken)| (cut(operator), taken));
        for (operator, crawler) in taken.filter(|(of, taken)| known.contains(of) && taken.pages > 0) {
            let balance = all.entry(operator.to_owned()).or_default();
            balance.pages = balance.pages.saturating_add(crawler.pages);
            match balance.crawlers.iter_mut().find(|own| own.crawler == crawler.crawler) {
                Some(own) => own.pages = own.pages.saturating_add(crawler.pages),
                None => balance.crawlers.push(crawler),
            }
        }
        for (Service { operator, host }, visitors) in sent {
            let balance = all.entry(operator).or_default();
            balance.visitors = balance.visitors.saturating_add(visitors);
            match balance.services.iter_mut().find(|own| own.host == host) {
                Some(own) => own.visitors = own.visitors.saturating_add(visitors),
                None => balance.services.push(ServiceVisitors { host, visitors }),
            }
        }
        let finish = |(operator, mut balance): (String, Self)| {
            balance.crawlers.sort_by(|a, b| b.pages.cmp(&a.pages).then_with(|| a.crawler.cmp(&b.crawler)));
            balance.services.sort_by(|a, b| b.visitors.cmp(&a.visitors).then_with(|| a.host.cmp(&b.host)));
            let purposes: BTreeSet<&String> = balance.crawlers.iter().map(|crawler| &crawler.purpose).collect();
            let purposes = purposes.into_iter().cloned().collect();
            let ratio = (balance.visitors > 0).then(|| balance.pages as f64 / balance.visitors as f64);
            Self { operator, purposes, pages_per_visitor: ratio, ..balance }
        };
        let mut all: Vec<Self> = all.into_iter().map(finish).collect();
        all.sort_by(|a, b| (b.pages, b.visitors).cmp(&(a.pages, a.visitors)).then_with(|| a.operator.cmp(&b.operator)));
        all
    }

    /// Formats the balance, for example `GPTBot (ai-training) fetched 4,210 pages; chatgpt.com sent
    /// 12 visitors: 351 pages per visitor`.
    pub(crate) fn sentence(&self) -> String {
        let crawler = |taken: &TakenPages| {
            let TakenPages { crawler, purpose, pages } = taken;
            format!("{crawler} ({purpose}) fetched {}", counted(*pages, "page"))
        };
        let service = |sent: &ServiceVisitors| format!("{} sent {}", sent.name(), counted(sent.visitors, "visitor"));
        let joined = |parts: Vec<String>, none: &str| if parts.is_empty() { none.to_owned() } else { parts.join(", ") };
        let taken = joined(self.crawlers.iter().map(crawler).collect(), "its crawlers fetched no pages");
        let sent = joined(self.services.iter().map(service).collect(), "its services sent no visitors");
        format!(
            "{taken}; {sent}{}",
            self.ratio().map(|ratio| format!(": {ratio} pages per visitor")).unwrap_or_default()
        )
    }

    /// Formats the pages per visitor; `None` if there are no pages or no visitors.
    pub(crate) fn ratio(&self) -> Option<String> {
        Some(match self.pages_per_visitor.filter(|_| self.pages > 0)? {
            ratio if ratio < 0.995 => format!("{ratio:.2}"),
            ratio if ratio < 9.95 => format!("{ratio:.1}"),
            ratio => grouped(ratio.round() as u64),
        })
    }
}

impl ServiceVisitors {
    /// Returns the host without a leading dot. In the registry, a leading dot means that subdomains
    /// are included.
    pub(crate) fn name(&self) -> &str {
        self.host.trim_start_matches('.')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_visitors_are_added_up_per_operator() {
        let taken = |crawler: &str, purpose: &str, pages| TakenPages {
            crawler: crawler.into(),
            purpose: purpose.into(),
            pages,
        };
        let service = |operator: &str, host: &str| Service { operator: operator.into(), host: host.into() };
        let all = OperatorBalance::all(
            [
                ("OpenAI", taken("OAI-SearchBot", "ai-search", 10)),
                ("OpenAI", taken("GPTBot", "ai-training", 4_200)),
                ("OpenAI", taken("OAI-SearchBot", "ai-search", 2)),
                ("Anthropic", taken("ClaudeBot", "ai-training", 7)),
                ("Semrush", taken("SemrushBot", "seo", 9)),
                ("Google", taken("Googlebot", "search", 0)),
            ],
            [
                (service("OpenAI", "chatgpt.com"), 11),
                (service("OpenAI", "chat.openai.com"), 1),
                (service("Kagi", ".kagi.com"), 3),
            ],
            Registry::builtin(),
        );
        let sentences: Vec<String> = all.iter().map(OperatorBalance::sentence).collect();
        let want = [
            "GPTBot (ai-training) fetched 4,200 pages, OAI-SearchBot (ai-search) fetched 12 pages; chatgpt.com sent \
             11 visitors, chat.openai.com sent 1 visitor: 351 pages per visitor",
            "ClaudeBot (ai-training) fetched 7 pages; its services sent no visitors",
            "its crawlers fetched no pages; kagi.com sent 3 visitors",
        ];
        assert_eq!(sentences, want);
        assert_eq!(all[0].purposes, ["ai-search", "ai-training"]);
        assert_eq!((all[1].pages_per_visitor, all[2].ratio()), (None, None));
        let few = OperatorBalance { pages: 1, pages_per_visitor: Some(0.25), ..OperatorBalance::default() };
        assert_eq!(few.ratio().as_deref(), Some("0.25"));
    }
}
