//! Measures how well crawlers are recognised in a set of labelled `User-Agent` headers.
//!
//! ```sh
//! cargo run --release -p tower-robots --no-default-features --example score -- labelled.jsonl.gz [robots_names.jsonl.gz]
//! ```
//!
//! - `labelled`: one object per line with `ua`, `bot`, `kind` and, if known, `tokens`. The
//!   preferred token is first.
//! - `robots_names`: one object per line with `file` and `names`. The names are the user-agent
//!   names in that robots.txt.
//!
//! Both may be gzipped. The program prints three tables:
//!
//! - which headers are recognised as automated;
//! - the headers that the default policy applies `*` to;
//! - the named group that applies, for every pair of a header and a file. The result is correct if
//!   the group is for the first token of the header that occurs in the file.
//!
//! With `--list`, the program prints three values for every header instead: the class, the
//! category, and whether `*` applies.
#![allow(clippy::print_stdout, reason = "a program that prints tables")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::error::Error;
use std::io::Read;
use std::sync::Arc;

use serde_json::Value;
use tower_robots::agent::{Agent, Category, Class, Obeys, Recognizer, Registry};
use tower_robots::rules::{ProductToken, RobotsTxt};

struct Labelled {
    ua: String,
    bot: bool,
    kind: String,
    tokens: Vec<ProductToken>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::builtin().clone();
    let (mut paths, mut list) = (Vec::new(), false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--list" => list = true,
            _ => paths.push(argument),
        }
    }
    let labelled = paths.first().ok_or("usage: score labelled.jsonl[.gz] [robots_names.jsonl[.gz]]")?;
    let labelled: Vec<Labelled> = objects(labelled)?.iter().map(Labelled::from).collect();

    let nobody = Recognizer::new(registry.clone(), &RobotsTxt::parse(&b""[..]));
    let agents: Vec<Agent> = labelled.iter().map(|header| nobody.identify(header.ua.as_bytes())).collect();
    let both: Vec<(&Labelled, &Agent)> = labelled.iter().zip(&agents).collect();
    if list {
        for (header, agent) in both {
            let category = agent.category().map_or("-", Category::as_str);
            let held = if is_held(agent) { "held" } else { "-" };
            let name = agent.crawler().unwrap_or("-");
            println!("{}\t{}\t{category}\t{held}\t{name}\t{}", header.kind, agent.class(), header.ua);
        }
        return Ok(());
    }
    table("recognised as automated", &both, is_automated);
    table("held to * by default", &both, is_held);
    if let Some(names) = paths.get(1) {
        named_groups(&registry, &both, &objects(names)?);
    }
    Ok(())
}

fn objects(path: &str) -> Result<Vec<Value>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let text = if bytes.starts_with(&[0x1F, 0x8B]) {
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text)?;
        text
    } else {
        String::from_utf8(bytes)?
    };
    let objects: Result<Vec<_>, _> = text.lines().filter(|line| !line.is_empty()).map(serde_json::from_str).collect();
    Ok(objects?)
}

impl From<&Value> for Labelled {
    fn from(object: &Value) -> Self {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let tokens = object["tokens"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Self {
            ua: text("ua"),
            bot: object["bot"].as_bool().unwrap_or_default(),
            kind: text("kind"),
            tokens: tokens.filter_map(|token| ProductToken::from_name(token.as_bytes())).collect(),
        }
    }
}

fn is_automated(agent: &Agent) -> bool {
    matches!(
        agent.class(),
        Class::Registered | Class::Declared | Class::Infrastructure | Class::Headless | Class::Library
    )
}

/// Reports whether the default policy applies `*` to an agent. It applies `*` to crawlers that are
/// registered or declare themselves, except for some categories, such as crawlers that a user
/// triggers.
fn is_held(agent: &Agent) -> bool {
    let exempt = |category| {
        matches!(
            category,
            Category::Infrastructure | Category::Monitoring | Category::Preview | Category::Feed | Category::UserFetch
        )
    };
    matches!(agent.class(), Class::Registered | Class::Declared)
        && !agent.category().is_some_and(exempt)
        && agent.obeys_star() != Obeys::No
}

/// Counts how often `says` returns true for each kind. Prints the headers whose label contradicts
/// the result of `says`.
fn table(title: &str, both: &[(&Labelled, &Agent)], says: fn(&Agent) -> bool) {
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let (mut right, mut wrong, mut missed) = (0, Vec::new(), HashMap::<&str, Vec<&str>>::new());
    for (header, agent) in both {
        let yes = says(agent);
        let counts = kinds.entry(&header.kind).or_default();
        counts.0 += usize::from(yes);
        counts.1 += 1;
        match (header.bot, yes) {
            (true, true) => right += 1,
            (true, false) => missed.entry(agent.class().as_str()).or_default().push(&header.ua),
            (false, true) => wrong.push((*header, *agent)),
            (false, false) => {}
        }
    }
    println!("== {title}");
    for (kind, (yes, all)) in &kinds {
        println!("  {kind:10} {yes:5} of {all:5}  {:.3}", ratio(*yes, *all));
    }
    let bots = both.iter().filter(|(header, _)| header.bot).count();
    println!("  precision {:.4}  recall {:.4}", ratio(right, right + wrong.len()), ratio(right, bots));
    let published = ["crawler", "monitor", "preview", "feed"];
    let of = |pick: fn(&(usize, usize)) -> usize| published.iter().filter_map(|kind| kinds.get(kind)).map(pick).sum();
    println!("  recall over crawlers, monitors, previews and feeds {:.4}", ratio(of(|kind| kind.0), of(|kind| kind.1)));
    for (header, agent) in wrong.iter().take(15) {
        println!("  wrong: {} [{} {:?}] {}", header.kind, agent.class(), agent.crawler(), header.ua);
    }
    let mut missed: Vec<_> = missed.into_iter().collect();
    missed.sort_by_key(|(_, headers)| std::cmp::Reverse(headers.len()));
    for (class, headers) in missed {
        println!("  missed as {class}: {}, such as", headers.len());
        for header in spread(&headers, 4) {
            println!("      {header}");
        }
    }
}

/// Measures how often the right group applies, for all pairs of a header and a file with named
/// groups.
fn named_groups(registry: &Arc<Registry>, both: &[(&Labelled, &Agent)], files: &[Value]) {
    let (mut right, mut wrong, mut lost, mut people) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut confusions: HashMap<(String, String, &str), usize> = HashMap::new();
    let mut touched: HashSet<&str> = HashSet::new();
    for file in files {
        let names: Vec<&str> = file["names"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let text: String = names.iter().map(|name| format!("user-agent: {name}\ndisallow: /\n")).collect();
        let file = RobotsTxt::parse(text.into_bytes());
        let named: HashSet<ProductToken> = file
            .groups()
            .flat_map(|group| group.names())
            .filter(|name| !name.is_star())
            .flat_map(|name| registry.stands_for(name.value()).into_iter().chain(ProductToken::from_name(name.value())))
            .collect();
        if named.is_empty() {
            continue;
        }
        let recognizer = Recognizer::new(registry.clone(), &file);
        for (header, agent) in both {
            // There is no right group for a crawler whose tokens are unknown.
            if header.bot && header.tokens.is_empty() {
                continue;
            }
            let own;
            let agent = if agent.is_registered() {
                *agent
            } else {
                own = recognizer.identify(header.ua.as_bytes());
                &own
            };
            let got = agent.tokens().iter().find(|token| named.contains(*token));
            let gold = header.tokens.iter().find(|token| named.contains(*token));
            people += usize::from(got.is_some() && !header.bot);
            if got.is_some() && !header.bot {
                touched.insert(&header.ua);
            }
            if got == gold {
                right += usize::from(got.is_some());
                continue;
            }
            wrong += usize::from(got.is_some());
            lost += usize::from(gold.is_some());
            let show = |token: Option<&ProductToken>| token.map_or("-".to_owned(), ToString::to_string);
            *confusions.entry((show(gold), show(got), &header.ua)).or_default() += 1;
        }
    }
    println!("== which named group, over pairs of headers and files");
    println!("  pairs right {right}, wrong group {wrong}, group lost {lost}");
    println!("  precision {:.4}  recall {:.4}", ratio(right, right + wrong), ratio(right, right + lost));
    println!("  no crawler, yet in a group: {people} pairs, {} headers", touched.len());
    let mut touched: Vec<_> = touched.into_iter().collect();
    touched.sort_unstable();
    for ua in touched.iter().take(15) {
        println!("      {ua}");
    }
    let mut confusions: Vec<_> = confusions.into_iter().collect();
    confusions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for ((gold, got, ua), count) in confusions.iter().take(60) {
        println!("  {count:5} x {gold} got {got}: {}", ua.chars().take(150).collect::<String>());
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of headers")]
    let ratio = part as f64 / whole.max(1) as f64;
    ratio
}

fn spread<'h>(headers: &[&'h str], count: usize) -> Vec<&'h str> {
    let step = headers.len().div_ceil(count).max(1);
    headers.iter().step_by(step).copied().collect()
}
