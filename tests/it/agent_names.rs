//! Names of crawlers: the registry contains them, and a group with a crawler's name applies to that
//! crawler's requests.
//!
//! `tests/cases/ai_agents.txt` contains the names of a public list of AI agents, one per line.

use tower_robots::agent::{Recognizer, Registry};
use tower_robots::rules::{Fallback, ProductToken, Reading, RequestPath, RobotsTxt};

const AI_AGENTS: &str = include_str!("../cases/ai_agents.txt");

/// Reports whether a file whose only group has this name disallows a request with this header.
fn is_held(name: &str, header: &str) -> bool {
    let registry = Registry::builtin();
    let file = RobotsTxt::parse(format!("User-agent: {name}\nDisallow: /\n").into_bytes());
    let rules = file.compile_with(Reading::Standard, |name| registry.stands_for(name.value()));
    let agent = Recognizer::new(registry.clone(), &file).identify(header.as_bytes());
    let selection = rules.select(agent.tokens(), Fallback::Nothing);
    selection.applies() && selection.verdict(&RequestPath::new(b"/")).group().is_some()
}

fn headers(name: &str) -> [String; 3] {
    let product = if name.contains('/') { name.to_owned() } else { format!("{name}/1.0") };
    [
        product.clone(),
        format!("Mozilla/5.0 (compatible; {product}; +https://example.test/)"),
        format!(
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; {product}) Chrome/141.0.0.0 Safari/537.36"
        ),
    ]
}

#[test]
fn every_listed_ai_agent_has_a_registry_row_and_obeys_a_group_of_its_name() {
    let mut failures = Vec::new();
    for name in AI_AGENTS.lines() {
        let token = ProductToken::from_name(name.as_bytes()).unwrap();
        if !Registry::builtin().knows(&token) {
            failures.push(format!("{name} has no row"));
        }
        failures.extend(headers(name).into_iter().filter(|header| !is_held(name, header)));
    }
    assert_eq!(AI_AGENTS.lines().count(), 166);
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_renamed_crawler_obeys_groups_of_its_old_name() {
    for (old, new) in [
        ("Google-NotebookLM", "Google-GeminiNotebook"),
        ("google-speakr", "Google-Read-Aloud"),
        ("Qwantify", "Qwantbot"),
        ("omgili", "omgilibot"),
    ] {
        let crawler = Registry::builtin().crawler(new).unwrap();
        assert!(crawler.tokens.contains(&ProductToken::new(old)), "{old}");
        for header in headers(old).into_iter().chain(headers(new)) {
            assert!(is_held(old, &header) && is_held(new, &header), "{header}");
        }
    }
}

#[test]
fn a_crawler_obeys_a_group_of_each_name_it_sends() {
    let names = Registry::builtin().crawlers().flat_map(|row| row.header_names.iter().map(move |name| (row, name)));
    let failures: Vec<_> = names
        // No group can have such a name, because the name would end at this character.
        .filter(|(_, name)| !name.contains(['(', '/']))
        .flat_map(|(row, name)| {
            let required = row.requires.first().map(|text| format!(" {text}")).unwrap_or_default();
            headers(name).map(|header| (name, format!("{header}{required}")))
        })
        .filter(|(name, header)| !is_held(name, header))
        .map(|(name, header)| format!("{name}: {header}"))
        .collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Tests every framework, and every way to combine its name with the name of a product that uses
/// it.
#[test]
fn a_crawler_built_with_a_framework_obeys_its_own_group_and_then_the_frameworks() {
    let frameworks: Vec<_> = Registry::builtin().crawlers().filter(|row| row.is_framework).collect();
    for name in ["Nutch", "heritrix", "Scrapy", "colly", "crawler4j", "Crawl4AI"] {
        assert!(frameworks.iter().any(|row| row.name == name), "{name}");
    }
    let both = |first: &str, second: &str| {
        RobotsTxt::parse(format!("User-agent: {first}\nDisallow: /\n\nUser-agent: {second}\nAllow: /\n").into_bytes())
    };
    for framework in frameworks.iter().map(|row| row.name.as_str()) {
        for header in [
            format!("FooBot/{framework}-1.10"),
            format!("FooBot/{framework}-1.10 (a crawler; http://foo.test; crawl at foo dot test)"),
            format!("FooBot/1.0 {framework}/2.11"),
            format!("FooBot/1.0 ({framework} 2.11; +http://foo.test)"),
            format!("FooBot {framework}/1.4"),
            format!("Mozilla/5.0 (compatible; FooBot/1.0; {framework}/3.4.0 +http://foo.test)"),
            format!("Mozilla/5.0 (compatible; FooBot/{framework}-3.4.0 +http://foo.test)"),
        ] {
            assert!(is_held("FooBot", &header) && is_held(framework, &header), "{header}");
            let agent =
                |file: &RobotsTxt| Recognizer::new(Registry::builtin().clone(), file).identify(header.as_bytes());
            for file in [both("FooBot", framework), both(framework, "FooBot")] {
                let agent = agent(&file);
                assert_eq!(agent.crawler(), Some("FooBot"), "{header}");
                assert_eq!(agent.tokens().first(), Some(&ProductToken::new("foobot")), "{header}");
            }
        }
        for header in [
            format!("{framework}/1.10 (+http://foo.test)"),
            format!("Mozilla/5.0 (compatible; {framework}/3.4.0 +http://foo.test)"),
            format!("Mozilla/5.0 (compatible; {framework}/3.4.0; Foo Archive +http://foo.test)"),
        ] {
            let agent =
                Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..])).identify(header.as_bytes());
            assert_eq!(agent.crawler(), Some(framework), "{header}");
        }
        // A registered crawler obeys only the tokens that its operator documents, not the
        // framework's name.
        let header = format!("GPTBot/1.2 ({framework}/2.0)");
        assert!(is_held("GPTBot", &header) && !is_held(framework, &header), "{header}");
    }
}

/// Tests words that are names of agents, and that programs on people's computers also send.
#[test]
fn a_crawler_named_by_an_everyday_word_is_recognised_only_in_its_operators_header() {
    let chrome = "AppleWebKit/537.36 (KHTML, like Gecko)";
    for (name, header) in [
        (
            "Code",
            format!("Mozilla/5.0 (X11; Linux x86_64) {chrome} Code/1.96.2 Chrome/128.0 Electron/32.2 Safari/537.36"),
        ),
        (
            "Cursor",
            format!("Mozilla/5.0 (Windows NT 10.0) {chrome} Cursor/0.45 Chrome/128.0 Electron/32.2 Safari/537.36"),
        ),
        ("Trae", format!("Mozilla/5.0 (Windows NT 10.0) {chrome} Trae/1.2 Chrome/128.0 Electron/32.2 Safari/537.36")),
        (
            "Operator",
            format!("Mozilla/5.0 (Linux; Android 14; Operator X1) {chrome} Chrome/128.0 Mobile Safari/537.36"),
        ),
        ("Spider", "Acme Spider/2.0".to_owned()),
        ("Devin", "Mozilla/5.0 (X11; Linux) Gecko/20100101 Firefox/128.0 Devin".to_owned()),
    ] {
        let agent =
            Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..])).identify(header.as_bytes());
        assert!(!agent.is_registered() && !is_held(name, &header), "{header}");
    }
    for (name, header) in [
        ("Spider", "Mozilla/5.0 (compatible; Spider/2.0; +https://spider.cloud)"),
        ("LCC", "LCC (+http://corpora.informatik.uni-leipzig.de/crawler_faq.html)"),
        ("Claude-Code", "Claude-User (claude-code/2.1.86; +https://support.anthropic.com/)"),
        ("Claude-User", "Claude-User (claude-code/2.1.86; +https://support.anthropic.com/)"),
    ] {
        assert!(is_held(name, header), "{header}");
    }
}
