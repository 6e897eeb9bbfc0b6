use std::collections::HashSet;
use std::sync::Arc;

use super::EditedFile;
use crate::agent::{Agent, Category, Recognizer, Registry};
use crate::check::{DiffOptions, diff};
use crate::rules::{Access, ProductToken, RobotsTxt, ValueError};

/// Edits a file. In `crawlers`, such as `-GPTBot +bingbot`, `-` blocks a crawler and `+` allows it.
fn edited(file: &str, crawlers: &str) -> Result<EditedFile, ValueError> {
    let (robots, registry) = (RobotsTxt::parse(file), Registry::builtin());
    let recognizer = Recognizer::new(Arc::clone(registry), &robots);
    let agent = |name: &str| -> Agent { recognizer.resolve(name).1.first().clone() };
    let wanted: Vec<_> = crawlers
        .split(' ')
        .map(|word| match word.strip_prefix('+') {
            Some(name) => (agent(name), Access::Allow),
            None => (agent(word.trim_start_matches('-')), Access::Disallow),
        })
        .collect();
    EditedFile::of_while(&robots, &wanted, registry, &|| true)
}

#[test]
fn the_edit_is_the_smallest_and_the_second_changes_nothing() {
    for (file, crawlers, want) in [
        // The new group is added at the end, with the line ends of the file.
        ("", "-GPTBot", "User-agent: GPTBot\nDisallow: /\n"),
        (
            "# Hi\r\nUser-agent: *\r\nDisallow: /a",
            "-GPTBot",
            "# Hi\r\nUser-agent: *\r\nDisallow: /a\r\n\r\nUser-agent: GPTBot\r\nDisallow: /\r\n",
        ),
        (
            "User-agent: *\nDisallow: /a\n\n",
            "-GPTBot",
            "User-agent: *\nDisallow: /a\n\nUser-agent: GPTBot\nDisallow: /\n",
        ),
        // The last group has no rule. So a rule is added to it, with a comment, because its names
        // would otherwise share the new group.
        (
            "User-agent: a\nCrawl-delay: 2\n",
            "-GPTBot",
            "User-agent: a\nCrawl-delay: 2\nDisallow: # nothing; names without a rule would share the next group\n\n\
             User-agent: GPTBot\nDisallow: /\n",
        ),
        (
            "User-agent: b\nDisallow: /b\n\nUser-agent: a\nCrawl-delay: 2\n\n# Pages\nSitemap: https://a.example/s\n",
            "-GPTBot",
            "User-agent: b\nDisallow: /b\n\nUser-agent: a\nCrawl-delay: 2\n\
             Disallow: # nothing; names without a rule would share the next group\n\n\
             # Pages\nSitemap: https://a.example/s\n\nUser-agent: GPTBot\nDisallow: /\n",
        ),
        // If the names are added to an existing group, no new group is added.
        (
            "User-agent: CCBot\nDisallow: /\n\nUser-agent: a\nCrawl-delay: 2\n",
            "-GPTBot",
            "User-agent: CCBot\nUser-agent: GPTBot\nDisallow: /\n\nUser-agent: a\nCrawl-delay: 2\n",
        ),
        ("User-agent: GPTBot", "-GPTBot -CCBot", "User-agent: GPTBot\nDisallow: /\n\nUser-agent: CCBot\nDisallow: /\n"),
        // Another crawler is added to a group that only blocks, but not to a group with a delay or
        // an exception.
        (
            "User-agent: CCBot # no\nDisallow: /\n\nUser-agent: *\nDisallow: /a\n",
            "-GPTBot",
            "User-agent: CCBot # no\nUser-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /a\n",
        ),
        (
            "User-agent: CCBot\nDisallow: /\nAllow: /x\n",
            "-GPTBot",
            "User-agent: CCBot\nDisallow: /\nAllow: /x\n\nUser-agent: GPTBot\nDisallow: /\n",
        ),
        // A crawler that the group for `*` blocks needs no line, unless it does not obey `*`.
        ("User-agent: *\nDisallow: /\n", "-GPTBot", "User-agent: *\nDisallow: /\n"),
        (
            "User-agent: *\nDisallow: /\n",
            "-AdsBot-Google-Mobile-Apps",
            "User-agent: *\nDisallow: /\n\nUser-agent: AdsBot-Google-Mobile-Apps\nDisallow: /\n",
        ),
        // A group that is only for the crawler is changed in place.
        ("User-agent: gptbot/1.0\nDisallow: # none\n", "-GPTBot", "User-agent: gptbot/1.0\nDisallow: / # none\n"),
        (
            "User-agent: GPTBot\nAllow: /a # why\nDisallow: /b\nAllow: /c\nCrawl-delay: 3\n",
            "-GPTBot",
            "User-agent: GPTBot\nDisallow: / # why\nDisallow: /b\nCrawl-delay: 3\n",
        ),
        ("User-agent: GPTBot\nDisallow: /b\n", "-GPTBot", "User-agent: GPTBot\nDisallow: /b\nDisallow: /\n"),
        ("User-agent: GPTBot\nDisallow: /\nAllow: /a\n", "-GPTBot", "User-agent: GPTBot\nDisallow: /\n"),
        // After a group is removed, one blank line is left there, or none at the end of the file.
        (
            "User-agent: *\nDisallow: /a\n\nUser-agent: GPTBot\nDisallow: /\n\nSitemap: https://a.example/s\n",
            "+GPTBot",
            "User-agent: *\nDisallow: /a\n\nSitemap: https://a.example/s\n",
        ),
        (
            "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /a\n",
            "+GPTBot",
            "User-agent: *\nDisallow: /a\n",
        ),
        (
            "User-agent: *\nDisallow: /a\n\nUser-agent: GPTBot\nDisallow: /\n",
            "+GPTBot",
            "User-agent: *\nDisallow: /a\n",
        ),
        (
            "User-agent: *\nDisallow: /a\n\nUser-agent: GPTBot\nDisallow: /\n",
            "+GPTBot -CCBot",
            "User-agent: *\nDisallow: /a\n\nUser-agent: CCBot\nDisallow: /\n",
        ),
        (
            "User-agent: *\nDisallow: /a\n\nUser-agent: GPTBot # why\nDisallow: /\n\nSitemap: https://a.example/s\n",
            "+GPTBot",
            "User-agent: *\nDisallow: /a\n\n# why\n\nSitemap: https://a.example/s\n",
        ),
        // The group stays for its other crawlers.
        (
            "User-agent: GPTBot\nUser-agent: *\nDisallow: /a\n",
            "-GPTBot",
            "User-agent: *\nDisallow: /a\n\nUser-agent: GPTBot\nDisallow: /\n",
        ),
        (
            "User-agent: GPTBot\nUser-agent: CCBot\nAllow: /\n",
            "-GPTBot -CCBot",
            "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n",
        ),
        // An allowed crawler keeps its rules for parts of the site. Without such rules, it obeys
        // the rules for all others.
        (
            "User-agent: GPTBot\nDisallow: /\n\n# All\nUser-agent: *\nDisallow: /a\n",
            "+GPTBot",
            "# All\nUser-agent: *\nDisallow: /a\n",
        ),
        ("User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n", "+GPTBot", "User-agent: CCBot\nDisallow: /\n"),
        ("User-agent: GPTBot\nDisallow: /\nDisallow: /b\n", "+GPTBot", "User-agent: GPTBot\nDisallow: /b\n"),
        (
            "User-agent: *\nDisallow: /\nAllow: /p\nDisallow: /cart/\nCrawl-delay: 2\n",
            "+GPTBot",
            "User-agent: *\nDisallow: /\nAllow: /p\nDisallow: /cart/\nCrawl-delay: 2\n\n\
             User-agent: GPTBot\nAllow: /p\nDisallow: /cart/\nCrawl-delay: 2\n",
        ),
        (
            "User-agent: *\nDisallow: /\n",
            "+GPTBot +CCBot",
            "User-agent: *\nDisallow: /\n\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow:\n",
        ),
        ("User-agent: *\nDisallow: /a\n", "+GPTBot", "User-agent: *\nDisallow: /a\n"),
        // An allowed crawler keeps the other lines of its group, and gets the rules for all others.
        (
            "User-agent: GPTBot\nCrawl-delay: 5\nDisallow: /\nContent-Signal: ai-train=no\n\nUser-agent: *\nDisallow: /a\n",
            "+GPTBot",
            "User-agent: GPTBot\nCrawl-delay: 5\nDisallow: /a\nContent-Signal: ai-train=no\n\nUser-agent: *\nDisallow: /a\n",
        ),
        (
            "User-agent: GPTBot\nUser-agent: CCBot\nCrawl-delay: 5\nDisallow: /\n",
            "+GPTBot",
            "User-agent: CCBot\nCrawl-delay: 5\nDisallow: /\n\nUser-agent: GPTBot\nDisallow:\nCrawl-delay: 5\n",
        ),
        // A robots.txt cannot distinguish two crawlers with the same token.
        ("", "-Slurp -Slurp", "User-agent: Slurp\nDisallow: /\n"),
        (
            "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n",
            "+GPTBot -bingbot -msnbot -msnbot-media -adidxbot -BingPreview -MicrosoftPreview",
            "User-agent: CCBot\nUser-agent: bingbot\nUser-agent: msnbot\nUser-agent: msnbot-media\nUser-agent: adidxbot\n\
             User-agent: BingPreview\nUser-agent: MicrosoftPreview\nDisallow: /\n",
        ),
    ] {
        let after = edited(file, crawlers).unwrap_or_else(|error| panic!("{file:?} {crawlers}: {error}"));
        let text = String::from_utf8_lossy(after.robots.bytes()).into_owned();
        assert_eq!(text, want, "{file:?} {crawlers}");
        assert_eq!(after.diff.is_empty(), file == want, "{crawlers}: {file:?}");
        let again = edited(&text, crawlers).expect("the same again");
        assert_eq!(String::from_utf8_lossy(again.robots.bytes()), text, "{crawlers}: again");
    }
}

#[test]
fn keeping_a_category_out_and_letting_it_in_again_gives_the_verdicts_of_before() {
    let registry = Registry::builtin();
    for file in [
        "",
        "User-agent: *\nDisallow: /a\n",
        "User-agent: *\nDisallow: /a\nCrawl-delay: 3\n\nUser-agent: Googlebot\nDisallow: /b\n",
        "User-agent: HouseBot\nDisallow: /\n\nUser-agent: *\nDisallow: /a\n",
    ] {
        let before = RobotsTxt::parse(file);
        // The first edit has removed the rules that the file had for the crawler itself.
        let has_own = |category: &Category| *category == Category::Search && file.contains("Googlebot");
        for category in Category::ALL.iter().filter(|category| !has_own(category)) {
            let wanted = |access: Access| -> Vec<_> {
                let can_be_named =
                    |token: &ProductToken| ProductToken::from_name(token.as_bytes()).as_ref() == Some(token);
                let crawlers = registry.crawlers().filter(|crawler| {
                    crawler.category == *category && crawler.tokens.first().is_some_and(can_be_named)
                });
                crawlers.map(|crawler| (Agent::from(crawler), access)).collect()
            };
            let of = |robots: &RobotsTxt, access: Access| {
                let edited = EditedFile::of_while(robots, &wanted(access), registry, &|| true);
                edited.unwrap_or_else(|error| panic!("{category} {access}: {file}: {error}")).robots
            };
            let names = |robots: &RobotsTxt| -> Vec<Vec<u8>> {
                robots
                    .groups()
                    .flat_map(|group| group.names().map(|name| name.value().to_vec()).collect::<Vec<_>>())
                    .collect()
            };
            let (out, mut seen) = (of(&before, Access::Disallow), HashSet::new());
            assert!(names(&out).iter().all(|name| seen.insert(name.to_ascii_lowercase())), "{category}: a name twice");
            let back = of(&out, Access::Allow);
            let diff = diff(&before, &back, &DiffOptions::new());
            let text = String::from_utf8_lossy(back.bytes());
            let said = || diff.effects.iter().map(|effect| &effect.crawlers).collect::<Vec<_>>();
            assert!(diff.is_empty(), "{category} of {file:?}: {text}\n{:?}", said());
        }
    }
}

#[test]
fn who_obeyed_the_group_of_another_is_named_where_its_rules_were() {
    let family = "User-agent: Baiduspider-image\nUser-agent: Baiduspider-render\nUser-agent: Baiduspider-video\n";
    let star = "User-agent: *\nDisallow: /a\n";
    let after = edited(star, "-Baiduspider").expect("an edit");
    let want = format!("User-agent: *\n{family}Disallow: /a\n\nUser-agent: Baiduspider\nDisallow: /\n");
    assert_eq!(String::from_utf8_lossy(after.robots.bytes()), want);
    assert_eq!(after.kept, ["Baiduspider-image", "Baiduspider-render", "Baiduspider-video"]);
    let own = "User-agent: Baiduspider # search\nDisallow: /b\n";
    let want = format!("# search\n{family}Disallow: /b\n\nUser-agent: Baiduspider\nDisallow: /\n");
    let after = edited(own, "-Baiduspider").expect("an edit");
    assert_eq!(String::from_utf8_lossy(after.robots.bytes()), want);
}

#[test]
fn an_edit_that_is_not_proved_is_refused() {
    // The name in the file stands for two crawlers, so only one of them cannot be blocked.
    let file = "User-agent: Mozilla/5.0 (compatible; aaabot/1.0; bbbbot/1.0)\nAllow: /x\n";
    for (file, crawlers) in [(file, "-aaabot"), (&*"User-agent: *\nDisallow: /a\n".repeat(30_000), "-GPTBot")] {
        let error = edited(file, crawlers).expect_err("no proof").to_string();
        assert!(error.ends_with(": edit the file by hand"), "{error}");
    }
}
