use std::collections::HashSet;
use std::sync::Arc;

use super::EditedFile;
use crate::agent::{Agent, Category, Recognizer, Registry};
use crate::check::test_notation::written_out;
use crate::check::{DiffOptions, diff};
use crate::rules::{Access, ProductToken, RobotsTxt, ValueError};

/// Edits a file. `crawlers` is a list such as `-GPTBot +bingbot`, where `-` blocks a crawler and
/// `+` allows it.
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
fn an_access_edit_is_minimal_and_repeating_it_changes_nothing() {
    for (file, crawlers, want) in [
        // The new group is added at the end, with the line ends of the file.
        ("", "-GPTBot", "U: GPTBot\nD: /\n"),
        ("# Hi\r\nU: *\r\nD: /a", "-GPTBot", "# Hi\r\nU: *\r\nD: /a\r\n\r\nU: GPTBot\r\nD: /\r\n"),
        ("U: *\nD: /a\n\n", "-GPTBot", "U: *\nD: /a\n\nU: GPTBot\nD: /\n"),
        // The last group has no rule, so its crawlers would also obey the new group. A rule with a
        // comment is added to the last group.
        (
            "U: a\nCrawl-delay: 2\n",
            "-GPTBot",
            "U: a\nCrawl-delay: 2\nD: # nothing; without a rule, these names would join the next group\n\n\
             U: GPTBot\nD: /\n",
        ),
        (
            "U: b\nD: /b\n\nU: a\nCrawl-delay: 2\n\n# Pages\nSitemap: https://a.example/s\n",
            "-GPTBot",
            "U: b\nD: /b\n\nU: a\nCrawl-delay: 2\nD: # nothing; without a rule, these names would join the next \
             group\n\n# Pages\nSitemap: https://a.example/s\n\nU: GPTBot\nD: /\n",
        ),
        // If the names are added to an existing group, no new group is added.
        ("U: CCBot\nD: /\n\nU: a\nCrawl-delay: 2\n", "-GPTBot", "U: CCBot\nU: GPTBot\nD: /\n\nU: a\nCrawl-delay: 2\n"),
        ("U: GPTBot", "-GPTBot -CCBot", "U: GPTBot\nD: /\n\nU: CCBot\nD: /\n"),
        // A crawler is added to a group that only blocks, not to a group with a delay or an
        // exception.
        ("U: CCBot # no\nD: /\n\nU: *\nD: /a\n", "-GPTBot", "U: CCBot # no\nU: GPTBot\nD: /\n\nU: *\nD: /a\n"),
        ("U: CCBot\nD: /\nA: /x\n", "-GPTBot", "U: CCBot\nD: /\nA: /x\n\nU: GPTBot\nD: /\n"),
        // A crawler is not added to a group with a licence either, because the licence is only for
        // the crawlers of this group.
        (
            "U: CCBot\nD: /\nLicense: https://a.example/l\n",
            "-GPTBot",
            "U: CCBot\nD: /\nLicense: https://a.example/l\n\nU: GPTBot\nD: /\n",
        ),
        // If the group for `*` blocks everything, only crawlers that do not obey `*` need a line.
        ("U: *\nD: /\n", "-GPTBot", "U: *\nD: /\n"),
        ("U: *\nD: /\n", "-AdsBot-Google-Mobile-Apps", "U: *\nD: /\n\nU: AdsBot-Google-Mobile-Apps\nD: /\n"),
        // A group that is only for the crawler is changed in place.
        ("U: gptbot/1.0\nD: # none\n", "-GPTBot", "U: gptbot/1.0\nD: / # none\n"),
        (
            "U: GPTBot\nA: /a # why\nD: /b\nA: /c\nCrawl-delay: 3\n",
            "-GPTBot",
            "U: GPTBot\nD: / # why\nD: /b\nCrawl-delay: 3\n",
        ),
        ("U: GPTBot\nD: /b\n", "-GPTBot", "U: GPTBot\nD: /b\nD: /\n"),
        ("U: GPTBot\nD: /\nA: /a\n", "-GPTBot", "U: GPTBot\nD: /\n"),
        // After a group is removed, one blank line is left, or none at the end of the file.
        (
            "U: *\nD: /a\n\nU: GPTBot\nD: /\n\nSitemap: https://a.example/s\n",
            "+GPTBot",
            "U: *\nD: /a\n\nSitemap: https://a.example/s\n",
        ),
        ("U: GPTBot\nD: /\n\nU: *\nD: /a\n", "+GPTBot", "U: *\nD: /a\n"),
        ("U: *\nD: /a\n\nU: GPTBot\nD: /\n", "+GPTBot", "U: *\nD: /a\n"),
        ("U: *\nD: /a\n\nU: GPTBot\nD: /\n", "+GPTBot -CCBot", "U: *\nD: /a\n\nU: CCBot\nD: /\n"),
        (
            "U: *\nD: /a\n\nU: GPTBot # why\nD: /\n\nSitemap: https://a.example/s\n",
            "+GPTBot",
            "U: *\nD: /a\n\n# why\n\nSitemap: https://a.example/s\n",
        ),
        // If a group is also for other crawlers, it is not changed.
        ("U: GPTBot\nU: *\nD: /a\n", "-GPTBot", "U: *\nD: /a\n\nU: GPTBot\nD: /\n"),
        ("U: GPTBot\nU: CCBot\nA: /\n", "-GPTBot -CCBot", "U: GPTBot\nU: CCBot\nD: /\n"),
        // An allowed crawler keeps the rules of its group for parts of the site. If the group has
        // no such rules, the crawler obeys the rules for `*`.
        ("U: GPTBot\nD: /\n\n# All\nU: *\nD: /a\n", "+GPTBot", "# All\nU: *\nD: /a\n"),
        ("U: GPTBot\nU: CCBot\nD: /\n", "+GPTBot", "U: CCBot\nD: /\n"),
        ("U: GPTBot\nD: /\nD: /b\n", "+GPTBot", "U: GPTBot\nD: /b\n"),
        (
            "U: *\nD: /\nA: /p\nD: /cart/\nCrawl-delay: 2\n",
            "+GPTBot",
            "U: *\nD: /\nA: /p\nD: /cart/\nCrawl-delay: 2\n\nU: GPTBot\nA: /p\nD: /cart/\nCrawl-delay: 2\n",
        ),
        ("U: *\nD: /\n", "+GPTBot +CCBot", "U: *\nD: /\n\nU: GPTBot\nU: CCBot\nDisallow:\n"),
        ("U: *\nD: /a\n", "+GPTBot", "U: *\nD: /a\n"),
        // An allowed crawler keeps the other lines of its group, and gets the rules of the group
        // for `*`.
        (
            "U: GPTBot\nCrawl-delay: 5\nD: /\nContent-Signal: ai-train=no\n\nU: *\nD: /a\n",
            "+GPTBot",
            "U: GPTBot\nCrawl-delay: 5\nD: /a\nContent-Signal: ai-train=no\n\nU: *\nD: /a\n",
        ),
        (
            "U: GPTBot\nD: /\nLicense: https://a.example/l\n\nU: *\nD: /a\n",
            "+GPTBot",
            "U: GPTBot\nD: /a\nLicense: https://a.example/l\n\nU: *\nD: /a\n",
        ),
        (
            "U: GPTBot\nU: CCBot\nCrawl-delay: 5\nD: /\n",
            "+GPTBot",
            "U: CCBot\nCrawl-delay: 5\nD: /\n\nU: GPTBot\nDisallow:\nCrawl-delay: 5\n",
        ),
        // A robots.txt cannot distinguish two crawlers with the same token.
        ("", "-Slurp -Slurp", "U: Slurp\nD: /\n"),
        (
            "U: GPTBot\nU: CCBot\nD: /\n",
            "+GPTBot -bingbot -msnbot -msnbot-media -adidxbot -BingPreview -MicrosoftPreview",
            "U: CCBot\nU: bingbot\nU: msnbot\nU: msnbot-media\nU: adidxbot\nU: BingPreview\nU: MicrosoftPreview\nD: /\n",
        ),
    ] {
        let (file, want) = (&*written_out(file), written_out(want));
        let after = edited(file, crawlers).unwrap_or_else(|error| panic!("{file:?} {crawlers}: {error}"));
        let text = String::from_utf8_lossy(after.robots.bytes()).into_owned();
        assert_eq!(text, want, "{file:?} {crawlers}");
        assert_eq!(after.diff.is_empty(), file == want, "{crawlers}: {file:?}");
        let again = edited(&text, crawlers).expect("the same again");
        assert_eq!(String::from_utf8_lossy(again.robots.bytes()), text, "{crawlers}: again");
    }
}

#[test]
fn disallowing_and_then_allowing_a_category_restores_the_original_verdicts() {
    let registry = Registry::builtin();
    for file in [
        "",
        "User-agent: *\nDisallow: /a\n",
        "User-agent: *\nDisallow: /a\nCrawl-delay: 3\n\nUser-agent: Googlebot\nDisallow: /b\n",
        "User-agent: HouseBot\nDisallow: /\n\nUser-agent: *\nDisallow: /a\n",
    ] {
        let before = RobotsTxt::parse(file);
        // Leaves out crawlers with their own rules, because the first edit removes these rules.
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
fn crawlers_that_would_obey_the_new_group_too_are_added_to_their_old_group() {
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
fn an_edit_that_cannot_be_proved_correct_is_refused() {
    // The name in the file contains the tokens of two crawlers, so they cannot be blocked
    // separately.
    let file = "User-agent: Mozilla/5.0 (compatible; aaabot/1.0; bbbbot/1.0)\nAllow: /x\n";
    for (file, crawlers) in [(file, "-aaabot"), (&*"User-agent: *\nDisallow: /a\n".repeat(30_000), "-GPTBot")] {
        let error = edited(file, crawlers).expect_err("no proof").to_string();
        assert!(error.ends_with(": edit the file by hand"), "{error}");
    }
}
