//! `search-engine-refused`: the policy refuses a search engine's requests for disallowed pages.

use std::collections::BTreeMap;

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "search-engine-refused",
    severity: Severity::Warning,
    summary: "search engines are refused access to disallowed pages",
    why: "A search engine that obeys robots.txt requests a disallowed page only by mistake, or if its copy of the file \
          is old. If the answer is 403, the search engine removes the page from its index. Therefore, the mode \
          \"refuse\" only tags disallowed requests of search engines that people use. An override in [site.modes], \
          such as \"index\" = \"refuse\", can refuse these requests, too; this lint then reports the rules. In the \
          examples, an override refuses bingbot. To only tag these requests, change the override to \"tag\". If the \
          override also applies to other crawlers, keep it, and write \"index\" = \"tag\" below it.",
    bad: Example::new(b"User-agent: bingbot\nDisallow: /private/\n").where_refused(&["bingbot"]),
    good: Example::new(b"User-agent: GPTBot\nDisallow: /private/\n").where_refused(&["bingbot"]),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let registry = file.crawlers.registry;
    // Each search engine is reported at the first rule that makes the policy refuse its requests.
    // Search engines with the same first rule share one finding.
    let mut found: BTreeMap<usize, Refusals<'_>> = BTreeMap::new();
    for refused in &file.site.refused {
        let Some(crawler) = registry.crawler(&refused.name) else { continue };
        if !crawler.is_index_engine || crawler.obeys_robots == Obeys::No {
            continue;
        }
        let fallback = if crawler.obeys_star == Obeys::No { Fallback::Nothing } else { refused.fallback };
        let selection = file.rules().select(&crawler.tokens, fallback);
        if !selection.applies() {
            continue;
        }
        let is_for = |group: &Group<'_>| {
            let of = |name: Name<'_>| file.crawlers.named(name).filter(|_| !name.is_star())?.tokens.first();
            let named = group.names().filter_map(of).any(|token| crawler.tokens.contains(token));
            named || (selection.is_star() && group.is_global())
        };
        let refusing = |rule: &Rule<'_>| {
            rule.access() == Access::Disallow
                && matches!(rule.pattern(), [b'/' | b'*', ..])
                && refused.is_refused_by(*rule)
        };
        let mut rules = file.robots.groups().filter(is_for).flat_map(Group::rules).filter(refusing);
        let Some(rule) = rules.next() else { continue };
        let refusals =
            found.entry(rule.range().start).or_insert_with(|| Refusals { rule, others: 0, engines: Vec::new() });
        refusals.others = refusals.others.max(rules.count());
        refusals.engines.push(&crawler.name);
    }
    for Refusals { rule, others, engines } in found.into_values() {
        let Some(name) = engines.first().map(|name| name.as_bytes()) else { continue };
        let first = Quoted(name);
        let refused = match engines.len() {
            1 => format!("{first} gets refusals"),
            count => format!("{count} search engine crawlers, including {first}, get refusals"),
        };
        let rules = match others {
            0 => "this rule disallows".to_owned(),
            1 => "this rule and one more disallow".to_owned(),
            others => format!("this rule and {others} more disallow"),
        };
        sink.report(
            rule.range(),
            format_args!("{refused} for the pages that {rules}; search engines remove such pages from their index"),
        )
        .of_agent(name)
        .help(
            "in [site.modes], change the override that refuses these crawlers to \"tag\"; or, if the override also \
               applies to other crawlers, leave it, and write \"index\" = \"tag\" below it",
        );
    }
}

struct Refusals<'a> {
    rule: Rule<'a>,
    /// Number of later rules that also make the policy refuse requests. If this number differs
    /// between the search engines, the largest one.
    others: usize,
    engines: Vec<&'a str>,
}

#[cfg(test)]
mod tests {
    use crate::agent::Registry;
    use crate::check::{Finding, Options, RefusedCrawler, check};
    use crate::rules::RobotsTxt;

    fn findings(file: &str, refused: impl IntoIterator<Item = RefusedCrawler>) -> Vec<Finding> {
        let report = check(&RobotsTxt::parse(file.as_bytes()), &Options::new().refused_crawlers(refused));
        report.findings.iter().filter(|finding| finding.code == "search-engine-refused").cloned().collect()
    }

    fn lines(file: &str, refused: &[&str]) -> Vec<usize> {
        findings(file, refused.iter().map(|name| RefusedCrawler::new(*name)))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    fn every_crawler() -> impl Iterator<Item = RefusedCrawler> {
        Registry::builtin().crawlers().map(|crawler| crawler.name.as_str().into())
    }

    #[test]
    fn only_refused_search_engines_with_a_disallow_rule_are_reported() {
        let file = "User-agent: Googlebot\nAllow: /\nDisallow: /x\n\nUser-agent: *\nDisallow: /y\n";
        assert_eq!(lines(file, &["Googlebot"]), [3]);
        assert_eq!(lines(file, &["bingbot", "GPTBot", "Wotbox", "nobody"]), [6]);
        assert_eq!(lines("User-agent: bingbot\nDisallow:\n\nUser-agent: *\nDisallow: /\n", &["bingbot"]), [0; 0]);
        assert_eq!(lines(file, &[]), [0; 0]);
        assert_eq!(lines(file, &["Wotbox", "Nutch"]), [0; 0], "no index that people use is behind these");
    }

    #[test]
    fn all_search_engines_refused_by_the_same_group_share_one_finding() {
        let file =
            "User-agent: *\nDisallow: /search\nDisallow: /cart\nDisallow: /tmp\n\nUser-agent: bingbot\nDisallow: /b\n";
        let found = findings(file, every_crawler());
        let [star, bing] = &found[..] else { panic!("{found:?}") };
        assert_eq!((star.line, star.agent.as_deref()), (2, Some("Googlebot")));
        let (count, rest) = star.message.split_once(' ').expect("a count");
        assert!(count.parse::<usize>().is_ok_and(|count| count > 20), "{}", star.message);
        let want = "search engine crawlers, including \"Googlebot\", get refusals for the pages that this rule and 2 \
                    more disallow; search engines remove such pages from their index";
        assert_eq!(rest, want);
        let want = "in [site.modes], change the override that refuses these crawlers to \"tag\"; or, if the override \
                    also applies to other crawlers, leave it, and write \"index\" = \"tag\" below it";
        assert_eq!(star.help.as_deref(), Some(want));
        assert_eq!(bing.line, 7);
    }

    #[test]
    fn only_rules_that_apply_to_a_search_engine_and_refuse_it_are_reported() {
        let file = "User-agent: *\nDisallow: /old\nDisallow: /%40x\n";
        let bing = || RefusedCrawler::new("bingbot");
        let line = |crawler: RefusedCrawler| findings(file, [crawler]).first().map(|finding| finding.line);
        assert_eq!(line(bing()), Some(2));
        assert_eq!(line(bing().ignore_wildcard_group()), None);
        assert_eq!(line(bing().only_rules(["/@x"]).expect("a pattern")), Some(3));
        assert_eq!(line(bing().only_rules(["/else"]).expect("a pattern")), None);
        assert_eq!(line(bing().except_rules(["/old"]).expect("a pattern")), Some(3));
        assert_eq!(line(bing().except_rules(["/old", "/@x"]).expect("patterns")), None);
        assert!(bing().except_rules(["old"]).is_err() && bing().only_rules(["old"]).is_err());
    }
}
