//! Tests `edit`, as the owner of a robots.txt runs it.

use tower_robots::agent::{Category, Crawler, Registry};

use crate::harness::*;

const SHOP: &str = "# Our shop\r\nUser-agent: *\r\nDisallow: /cart/ # baskets\r\n\r\nUser-agent: GPTBot\r\nUser-agent: bingbot\r\nDisallow: /sale/\r\n";

fn edit(folder: &Folder, arguments: &[&str]) -> Ended {
    run(folder.robotsd().arg("edit").args(arguments))
}

#[test]
fn a_category_is_blocked_and_the_second_run_reports_that() {
    let folder = folder(&[("robots.txt", SHOP)]);
    let shown = edit(&folder, &["--disallow", "category:ai-training", "--diff"]).ends_with(1);
    assert_eq!(folder.read("robots.txt"), SHOP);
    assert_has(&shown.out, &["--- robots.txt\n", "-User-agent: GPTBot\r\n", "+User-agent: GPTBot\r\n+"]);
    let out = edit(&folder, &["--disallow", "category:ai-training"]).succeeded();
    let is_meant = |crawler: &&Crawler| crawler.category == Category::AiTraining;
    let count = Registry::builtin().crawlers().filter(is_meant).count();
    let effect = format!("1 rule changed for {count} crawlers: the whole site is disallowed now\n");
    assert_has(&out, &["the whole site  robots.txt:", ": disallow /; was no rule\n", &effect]);
    assert_eq!(out, shown.error, "the same effect");
    let after = folder.read("robots.txt");
    assert!(after.starts_with(&SHOP.replace("User-agent: GPTBot\r\n", "")), "{after}");
    assert_eq!(after.matches("\r\n").count(), after.matches('\n').count());
    assert_has(&out, &["\nno search engine is affected\ntokens that never occur in requests, so a server cannot"]);
    let left = "not selected, although others use their data for ai-training: \"CCBot\"\n";
    assert_has(&out, &["\"Google-Extended\"", left]);
    let again = edit(&folder, &["--disallow", "category:ai-training"]).succeeded();
    let want = "robots.txt: nothing to edit: every selected crawler is already treated as requested\n";
    assert!(again.starts_with(want), "{again}");
    let both = edit(&folder, &["--disallow", "category:ai-training", "--disallow", "CCBot", "--diff"]).ends_with(1);
    assert!(!both.error.contains("not selected"), "{}", both.error);
    assert_eq!(edit(&folder, &["--disallow", "category:ai-training", "--diff"]).succeeded(), "");
    assert_eq!(folder.read("robots.txt"), after);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // A crawler's name takes precedence over its category.
    edit(&folder, &["--disallow", "category:ai-training", "--allow", "ClaudeBot"]).succeeded();
    assert_eq!(folder.read("robots.txt"), after.replace("User-agent: ClaudeBot\r\n", ""));
}

#[test]
fn suppliers_of_a_category_are_named_unless_the_file_blocks_them() {
    let left = "not selected, although others use their data for ai-training: \"CCBot\"\n";
    for (rule, is_named) in [("/", false), ("/x", true)] {
        let folder = folder(&[("robots.txt", &format!("User-agent: CCBot\nDisallow: {rule}\n"))]);
        let out = edit(&folder, &["--disallow", "GPTBot"]).succeeded();
        assert_eq!(out.contains(left), is_named, "{rule}: {out}");
        assert_eq!(out.contains("not selected"), is_named, "{rule}: {out}");
    }
    let everyone = folder(&[("robots.txt", "User-agent: *\nDisallow: /\n")]);
    assert_lacks(edit(&everyone, &["--disallow", "GPTBot"]).succeeded(), &["not selected"]);
}

/// The owner's own group is among those that block the category. It changes together with them.
#[test]
fn already_blocked_crawlers_are_named_before_allowing_opens_the_site_to_them() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDisallow: /x\n\nUser-agent: GPTBot\nDisallow: /\n")]);
    let out = edit(&folder, &["--disallow", "category:ai-training"]).succeeded();
    assert_has(&out, &["\nalready blocked: \"GPTBot\"\n"]);
    assert_lacks(&out, &["--allow does not undo"]);
    let out = edit(&folder, &["--disallow", "category:ai-training"]).succeeded();
    assert_lacks(&out, &["already blocked"]);
    let out = edit(&folder, &["--allow", "category:ai-training"]).succeeded();
    assert_has(
        &out,
        &[
            "\n--allow does not undo an earlier edit: it also allows crawlers that your own groups blocked; use version control",
        ],
    );
    assert_eq!(folder.read("robots.txt"), "User-agent: *\nDisallow: /x\n");
}

#[test]
fn selectors_are_written_as_in_a_config_and_a_misspelled_one_edits_nothing() {
    let large = format!("User-agent: *\nDisallow: /x\n{}", "# a line that says nothing\n".repeat(20_000));
    let folder = folder(&[
        ("robots.txt", "User-agent: *\nDisallow:\n"),
        ("page.txt", "<!doctype html><p>\n"),
        ("large.txt", &large),
    ]);
    for (arguments, said) in [
        (&["--disallow", "GTPBot"][..], "did you mean \"GPTBot\"?"),
        (&["--disallow", "GTPBot", "--disallow", "curl"], "did you mean \"GPTBot\"?\nrobotsd: \"curl\" is a tool"),
        (&["--disallow", "category:ai"], "\"ai\" is not a category of crawlers: write "),
        (
            &["--disallow", "ImagesiftBot:/images/"],
            "This command edits rules for whole sites: write a rule for /images/ by hand",
        ),
        (&["--disallow", "operator:OpenIA"], "did you mean \"OpenAI\"?"),
        (&["--disallow", "pattern:/x"], "write a name, \"category:WORD\""),
        (&["--disallow", "*"], "\"*\" is not a crawler's name"),
        (&["--disallow", "operator:"], "\"operator:\" needs a value: write it after the colon"),
        (&["--disallow", "ai-training"], "did you mean \"category:ai-training\"?"),
        (&["--disallow", "ai"], "and the name does not look like a crawler's, such as \"HouseBot\": write a name that"),
        (&["--disallow", "robots.txt"], "and the name does not look like a crawler's"),
        (&["--disallow", "agent:index"], "and the name does not look like a crawler's"),
        (&["https://a.example/robots.txt", "--allow", "GPTBot"], "this command edits files, not URLs"),
        (&["large.txt", "--disallow", "GPTBot"], "need not read more than 500 KiB"),
        (&[], "no crawlers are selected: write --disallow or --allow, such as --disallow category:ai-training"),
        (&["missing.txt", "--disallow", "GPTBot"], "missing.txt: "),
        (&["page.txt", "--disallow", "GPTBot"], "page.txt:1:1: "),
    ] {
        assert_has(edit(&folder, arguments).failed(2), &[said]);
    }
    assert_eq!(folder.read("robots.txt"), "User-agent: *\nDisallow:\n");
    assert_has(edit(&folder, &["--diff", "--disallow", "FooBot"]).ends_with(1).error, &["it is treated as a crawler"]);
    let filter = ["edit", "-", "--disallow", "operator:openai", "--disallow", "agent:CCBot"];
    let ended = run_with(folder.robotsd().args(filter), b"User-agent: *\nDisallow: /x\n").ends_with(0);
    assert!(ended.out.starts_with("User-agent: *\nDisallow: /x\n\nUser-agent: CCBot\nUser-agent: "), "{}", ended.out);
    assert_has(&ended.out, &["User-agent: GPTBot\n", "User-agent: OAI-SearchBot\n", "Disallow: /\n"]);
    assert_has(&ended.error, &["the whole site  <stdin>:"]);
}

#[test]
fn a_group_with_only_a_delay_is_closed_in_place_and_the_line_says_why() {
    let file = "User-agent: bingbot\nCrawl-delay: 5\n\nSitemap: https://a.example/s.xml\n";
    let folder = folder(&[("robots.txt", file)]);
    let shown = edit(&folder, &["--disallow", "GPTBot", "--diff"]).ends_with(1).out;
    let line = "Disallow: # nothing; names without a rule would share the next group\n";
    assert_has(&shown, &[&format!(" Crawl-delay: 5\n+{line} \n Sitemap: ")]);
    edit(&folder, &["--disallow", "GPTBot"]).succeeded();
    let new = "\nUser-agent: GPTBot\nDisallow: /\n";
    assert_eq!(folder.read("robots.txt"), file.replace("5\n", &format!("5\n{line}")) + new);
}

#[test]
fn a_crawler_that_obeyed_another_group_keeps_its_rules_and_is_named() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDisallow: /x\n")]);
    let out = edit(&folder, &["--disallow", "Googlebot"]).succeeded();
    assert_has(&out, &["named, to keep their previous rules: \"Applebot\", \"Google-InspectionTool\", "]);
    assert_has(folder.read("robots.txt"), &["User-agent: Applebot\n", "\n\nUser-agent: Googlebot\nDisallow: /\n"]);
}
