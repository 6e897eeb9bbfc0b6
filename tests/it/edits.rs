//! Edits of real files. Their effects are checked with the matcher, not with the proof that the
//! edit itself uses.

use base64::Engine;
use tower_robots::agent::{Agent, Category, Registry};
use tower_robots::check::EditedFile;
use tower_robots::rules::{Access, Group, Reading, RequestPath, RobotsTxt, RuleSet, Selection};

use crate::shared::cases;

/// One in this many files is edited; with `ROBOTSD_LONG`, one in `LONG_STEP`.
const STEP: usize = 389;
const LONG_STEP: usize = 97;

fn compiled(robots: &RobotsTxt) -> RuleSet {
    robots.compile_with(Reading::Standard, |name| Registry::builtin().stands_for(name.value()))
}

fn select<'r>(rules: &'r RuleSet, agent: &Agent) -> Selection<'r> {
    rules.select(agent.tokens(), agent.fallback())
}

/// Returns paths that the rules of a file mention, and other paths.
fn paths(robots: &RobotsTxt) -> Vec<Vec<u8>> {
    let of_rules = robots.groups().flat_map(Group::rules).map(|rule| {
        let text = rule.pattern().strip_suffix(b"$").unwrap_or(rule.pattern());
        let path = text.split(|byte| *byte == b'*').collect::<Vec<_>>().join(&b"q"[..]);
        [&b"/"[..], path.strip_prefix(b"/").unwrap_or(&path)].concat()
    });
    [&b"/"[..], b"/wq3-named-by-no-rule", b"/Xk7/page?x=1"]
        .into_iter()
        .map(<[u8]>::to_vec)
        .chain(of_rules)
        .take(400)
        .collect()
}

#[test]
fn edits_of_real_files_block_or_allow_only_the_named_crawlers() {
    let registry = Registry::builtin();
    let (mut edits, mut refused) = (0, Vec::new());
    let step = if crate::is_long() { LONG_STEP } else { STEP };
    for case in cases("robots_files.jsonl.gz").iter().step_by(step) {
        let body = case["body_base64"].as_str().expect("a body");
        let before = RobotsTxt::parse(base64::engine::general_purpose::STANDARD.decode(body).expect("base64"));
        let of = |is_meant: &dyn Fn(&tower_robots::agent::Crawler) -> bool| -> Vec<Agent> {
            registry.crawlers().filter(|crawler| is_meant(crawler)).map(Agent::from).collect()
        };
        for (access, meant) in [
            (Access::Disallow, of(&|crawler| crawler.category == Category::AiTraining)),
            (Access::Disallow, of(&|crawler| crawler.operator == "Google")),
            (Access::Disallow, of(&|crawler| crawler.name == "Googlebot")),
            (Access::Disallow, of(&|crawler| crawler.name == "AdsBot-Google")),
            (Access::Allow, of(&|crawler| crawler.category == Category::AiTraining)),
            (Access::Allow, of(&|crawler| crawler.name == "Googlebot")),
        ] {
            let wanted: Vec<_> = meant.iter().map(|agent| (agent.clone(), access)).collect();
            edits += 1;
            let edited = match EditedFile::of_while(&before, &wanted, registry, &|| true) {
                Ok(edited) => edited.robots,
                Err(error) => {
                    refused.push(format!("{} {access:?}: {error}", case["robots"]));
                    continue;
                }
            };
            let (old, new) = (compiled(&before), compiled(&edited));
            let paths = paths(&before);
            for crawler in registry.crawlers() {
                let agent = Agent::from(crawler);
                let (old, new) = (select(&old, &agent), select(&new, &agent));
                let is_meant = meant.iter().any(|other| other.tokens()[0] == agent.tokens()[0]);
                // Most crawlers obey the same lines as before, so only some of them are compared.
                let lines =
                    |selection: Selection<'_>| selection.groups().map(|group| group.rules().len()).collect::<Vec<_>>();
                if !is_meant && lines(old) == lines(new) && crawler.name.len() % 8 != 0 {
                    continue;
                }
                for path in &paths {
                    let path = RequestPath::new(path);
                    let (was, is) = (old.verdict(&path).access(), new.verdict(&path).access());
                    let about = || {
                        format!(
                            "{} {access:?} {} {:?}",
                            case["robots"],
                            crawler.name,
                            path.as_bytes().escape_ascii().to_string()
                        )
                    };
                    match (is_meant, access) {
                        (true, Access::Disallow) => assert_eq!(is, Access::Disallow, "{}", about()),
                        (true, Access::Allow) => assert!(was == Access::Disallow || is == Access::Allow, "{}", about()),
                        (false, _) => assert_eq!(was, is, "{}", about()),
                    }
                }
            }
            let again = EditedFile::of_while(&edited, &wanted, registry, &|| true).expect("as wanted");
            assert_eq!(again.robots.bytes(), edited.bytes(), "{}", case["robots"]);
        }
    }
    assert!(edits > 20 && refused.len() * 50 <= edits, "{} of {edits} refused: {refused:#?}", refused.len());
}
