//! Compares the `Content-Usage` field with a slow evaluation of the served file, for real files
//! with added usage lines, many paths, many agents and both modes.

use std::collections::BTreeMap;

use base64::Engine as _;
use http::Method;
use tower_robots::agent::{Agent, Registry};
use tower_robots::layer::{Signals, UsageField};
use tower_robots::policy::Policy;
use tower_robots::rules::{
    Access, Directive, Extension, Fallback, Group, Name, PathPattern, ProductToken, Reading, RequestPath, RobotsTxt,
    RuleSet, Selection,
};

use crate::shared::cases;

/// One in this many files is compared.
const STEP: usize = 32;

/// Values of added lines, with their meaning.
const VALUES: [(&str, &[(&str, &str)]); 6] = [
    ("train-ai=n", &[("train-ai", "n")]),
    ("train-ai=y, search=n", &[("search", "n"), ("train-ai", "y")]),
    ("search=y;x=1,other=n", &[("other", "n"), ("search", "y")]),
    ("train-ai", &[]),
    ("TRAIN-AI=n", &[]),
    ("train-ai=y", &[("train-ai", "y")]),
];

/// Adds usage lines after some rules of a file: for the whole site, and for the path of the rule.
fn with_usage(file: &[u8]) -> String {
    let mut text = String::new();
    for (number, line) in String::from_utf8_lossy(file).lines().enumerate() {
        text.push_str(line);
        text.push('\n');
        let Some((_, path)) = line.split_once(':').filter(|(name, _)| name.trim().ends_with("llow")) else { continue };
        let value = VALUES[(number * 7 + path.len()) % VALUES.len()].0;
        let path = path.split('#').next().unwrap_or_default().trim();
        match number % 4 {
            0 => text.push_str(&format!("Content-Usage: {value}\n")),
            1 | 2 if path.starts_with('/') && path.len() < 1000 && !path.contains(char::is_whitespace) => {
                text.push_str(&format!("Content-Usage: {path} {value}\n"));
            }
            _ => {}
        }
    }
    text
}

/// A usage line of a file.
struct UsageLine {
    /// Line number of the group that contains the usage line.
    group: Option<usize>,
    pattern: PathPattern,
    length: usize,
    pairs: &'static [(&'static str, &'static str)],
}

fn usage_lines(robots: &RobotsTxt) -> Vec<UsageLine> {
    let lines = robots.extensions().filter(|line| line.field.directive == Directive::ContentUsage);
    let line = |line: Extension<'_>| {
        let value = std::str::from_utf8(line.field.value).expect("text");
        let (path, value) = value.split_once(' ').filter(|_| value.starts_with('/')).unwrap_or(("/", value));
        UsageLine {
            group: line.group.map(Group::line),
            pattern: PathPattern::new(path.as_bytes(), Reading::Standard),
            length: path.bytes().map(|byte| if byte < 0x80 { 1 } else { 3 }).sum(),
            pairs: VALUES.iter().find(|(known, _)| *known == value).expect("an added line").1,
        }
    };
    lines.map(line).collect()
}

/// Returns the preferences of the groups for a path, from all lines of the file; `None` if the path
/// is disallowed.
fn slow(
    lines: &[UsageLine],
    groups: Selection<'_>,
    path: &RequestPath<'_>,
) -> Option<BTreeMap<&'static str, &'static str>> {
    if groups.verdict(path).access() == Access::Disallow {
        return None;
    }
    let own: Vec<usize> = groups.groups().map(Group::line).collect();
    let applies =
        |line: &&UsageLine| line.group.is_some_and(|of| own.contains(&of)) && line.pattern.matches(path.as_bytes());
    let longest = lines.iter().filter(applies).map(|line| line.length).max();
    let mut stated = BTreeMap::new();
    for (label, preference) in
        lines.iter().filter(applies).filter(|line| Some(line.length) == longest).flat_map(|line| line.pairs)
    {
        let known = stated.entry(*label).or_insert(*preference);
        if *preference == "n" {
            *known = "n";
        }
    }
    Some(stated)
}

fn shown(stated: &BTreeMap<&str, &str>) -> Option<String> {
    let pairs: Vec<_> = stated.iter().map(|(label, value)| format!("{label}={value}")).collect();
    (!pairs.is_empty()).then(|| pairs.join(", "))
}

fn field(usage: UsageField, rules: &RuleSet, path: &RequestPath<'_>, agent: &Agent) -> Option<String> {
    let policy = Policy::builder().build();
    let signals = Signals::default().usage(usage);
    let fields = signals.fields_of((rules, &policy), path, &Method::GET, std::slice::from_ref(agent))?;
    let fields = fields.for_proxy();
    let value = fields.iter().find(|(name, _)| name == "content-usage").map(|(_, value)| value);
    value.map(|value| value.to_str().expect("ASCII").to_owned())
}

#[test]
fn the_content_usage_field_agrees_with_the_served_file() {
    let registry = Registry::builtin();
    let (mut by_agent, mut unanimous) = (0, 0);
    let step = if crate::is_long() { 1 } else { STEP };
    for case in cases("robots_files.jsonl.gz").iter().step_by(step) {
        let body = case["body_base64"].as_str().expect("a body");
        let body = base64::engine::general_purpose::STANDARD.decode(body).expect("base64");
        // With the added lines, a file of about the maximum size would be cut at another line.
        if body.len() > 100_000 || memchr::memmem::find(&body.to_ascii_lowercase(), b"content-usage").is_some() {
            continue;
        }
        let robots = RobotsTxt::parse(with_usage(&body));
        let lines = usage_lines(&robots);
        // If a crawler has too many usage lines, no preference is derived from them.
        if lines.len() > 1000 {
            continue;
        }
        let rules = robots.compile_with(Reading::Standard, |name| registry.stands_for(name.value()));
        let named = robots.groups().flat_map(|group| group.names()).filter(|name| !name.is_star()).take(50);
        let tokens_of =
            |name: Name<'_>| registry.stands_for(name.value()).into_iter().chain(ProductToken::from_name(name.value()));
        let named: Vec<_> = named.flat_map(tokens_of).collect();
        let crawlers: Vec<_> = registry.crawlers().step_by(41).map(Agent::from).collect();
        let has_star = rules.select(&[], Fallback::Star).applies();
        let patterns = robots.groups().flat_map(|group| group.rules()).map(|rule| rule.pattern().to_vec());
        let patterns = patterns.filter(|pattern| pattern.starts_with(b"/")).step_by(3).take(8);
        for target in patterns.chain([b"/".to_vec(), b"/unknown/page.html?q=1".to_vec()]) {
            let path = RequestPath::new(&target);
            let about = || format!("{} {}", case["robots"], target.escape_ascii());
            for agent in &crawlers {
                let want = slow(&lines, rules.select(agent.tokens(), Fallback::Star), &path);
                let want = want.as_ref().and_then(shown);
                by_agent += usize::from(want.is_some());
                assert_eq!(field(UsageField::ByAgent, &rules, &path, agent), want, "{} {agent:?}", about());
            }
            // Every token of the file, and a crawler that no group names.
            let tokens = named.iter().map(std::slice::from_ref).chain([&[][..]]);
            let stated: Vec<_> =
                tokens.filter_map(|tokens| slow(&lines, rules.select(tokens, Fallback::Star), &path)).collect();
            let first = stated.first().filter(|first| has_star && stated.iter().all(|other| other == *first));
            let want = first.and_then(shown);
            unanimous += usize::from(want.is_some());
            let found = field(UsageField::Unanimous, &rules, &path, &crawlers[0]);
            if robots.groups().map(|group| group.names().len()).sum::<usize>() <= 50 {
                assert_eq!(found, want, "{}", about());
            }
        }
    }
    assert!(by_agent > 1000 && unanimous > 50, "{by_agent} {unanimous}");
}
