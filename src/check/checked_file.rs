//! The file that lints look at, with what several of them need to know of it.

use std::cell::OnceCell;

use super::crawlers::CrawlersByToken;
use super::site_context::SiteContext;
use crate::rules::{Name, Reading, RobotsTxt, RuleSet};

/// A file that is checked.
pub(super) struct CheckedFile<'a> {
    pub(super) robots: &'a RobotsTxt,
    pub(super) site: &'a SiteContext,
    /// The codes of all lints.
    pub(super) codes: &'a [&'static str],
    /// The first user-agent line: rules before it belong to no group.
    pub(super) first_name: Option<Name<'a>>,
    pub(super) crawlers: CrawlersByToken<'a>,
    rules: OnceCell<RuleSet>,
}

impl<'a> CheckedFile<'a> {
    pub(super) fn new(robots: &'a RobotsTxt, site: &'a SiteContext, codes: &'a [&'static str]) -> Self {
        let first_name = robots.groups().next().and_then(|group| group.names().next());
        let crawlers = CrawlersByToken::new(&site.registry);
        Self { robots, site, codes, first_name, crawlers, rules: OnceCell::new() }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.robots.bytes()
    }

    /// The file as it is enforced, compiled on first use.
    pub(super) fn rules(&self) -> &RuleSet {
        self.rules.get_or_init(|| {
            let registry = &self.site.registry;
            self.robots.compile_with(Reading::Standard, |name| registry.stands_for(name.value()))
        })
    }
}
