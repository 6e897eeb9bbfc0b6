//! The line that names the search engines which sites tag where they refuse other crawlers.

use std::time::SystemTime;
use tower_robots::agent::{Agent, Crawler, Registry};
use tower_robots::policy::{Mode, Policy, Reason};

use super::site_list::Sites;
use crate::quoted_list::QuotedList;

impl Sites {
    /// The search engines that sites with the mode `refuse` only tag, for people; none where no site does.
    pub(crate) fn spared_engines(&self) -> Option<String> {
        let registry = self.opener().registry;
        let sites = self.iter().map(|site| (&*site.name, &site.settings.policy));
        spared(&registry, sites.filter(|(_, policy)| policy.mode() == Mode::Refuse))
    }
}

fn spared<'a>(registry: &Registry, refusing: impl Iterator<Item = (&'a str, &'a Policy)>) -> Option<String> {
    let engines: Vec<(&Crawler, Agent)> =
        registry.crawlers().filter(|crawler| crawler.is_index_engine()).map(|engine| (engine, engine.into())).collect();
    let now = SystemTime::now();
    let mut is_spared = vec![false; engines.len()];
    let mut sites = Vec::new();
    for (name, policy) in refusing {
        let mut any = false;
        for ((_, agent), is_spared) in engines.iter().zip(&mut is_spared) {
            if policy.action_for_rule(agent, None, now).1 == Reason::SearchEngine {
                (any, *is_spared) = (true, true);
            }
        }
        if any {
            sites.push(name);
        }
    }
    if sites.is_empty() {
        return None;
    }
    let engines = engines.iter().zip(is_spared).filter(|(_, is_spared)| *is_spared);
    let names: Vec<_> = engines.map(|((engine, _), _)| engine.name()).collect();
    Some(format!(
        "tagged, not refused, because a refused page leaves the index: {}; an override with index = true says otherwise; \
         sites: {}",
        names.join(", "),
        QuotedList::of(sites)
    ))
}

#[cfg(test)]
mod tests {
    use tower_robots::agent::Category;
    use tower_robots::policy::Override;

    use super::*;

    #[test]
    fn engines_that_a_refusing_site_tags_are_named_with_the_site() {
        let refusing = || Policy::builder().mode(Mode::Refuse);
        let (plain, none) =
            (refusing().build(), refusing().with_override(Override::index_engines(Mode::Refuse)).build());
        let few = refusing().with_override(Override::category(Category::Search, Mode::Refuse)).build();
        let line = |sites: &[(&'static str, &Policy)]| spared(Registry::builtin(), sites.iter().copied());
        let all = line(&[("a", &plain), ("b", &none)]).expect("a line");
        assert!(all.starts_with("tagged, not refused, because a refused page leaves the index: Googlebot, "), "{all}");
        assert!(all.contains(", bingbot, ") && !all.contains("Wotbox") && all.ends_with("; sites: \"a\""), "{all}");
        let testers = line(&[("a", &few)]).expect("a line");
        assert!(testers.contains("Google-InspectionTool") && !testers.contains("Googlebot"), "{testers}");
        assert_eq!((line(&[("b", &none)]), line(&[])), (None, None));
    }
}
