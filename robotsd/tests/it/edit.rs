//! Tests `edit`, as the owner of a robots.txt runs it.

use tower_robots::agent::{Category, Crawler, Registry};

use crate::harness::*;

const SHOP: &str = "# Our shop\r\nUser-agent: *\r\nDisallow: /cart/ # baskets\r\n\r\nUser-agent: GPTBot\r\nUser-agent: bingbot\r\nDisallow: /sale/\r\n";

fn edit(folder: &Folder, arguments: &[&str]) -> Ended {
    run(folder.robotsd().arg("edit").args(arguments))
}

#[test]
fn edit_blocks_a_category_and_a_second_run_reports_nothing_to_edit() {
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
    assert_has(&out, &["\nno search engine is affected\nthese tokens never occur in requests, so a server cannot"]);
    let left = "these crawlers are not selected, although other companies use their data for ai-training: \"CCBot\"\n";
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
fn edit_names_related_crawlers_so_that_their_rules_do_not_change() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDisallow: /x\n")]);
    let out = edit(&folder, &["--disallow", "Googlebot"]).succeeded();
    assert_has(
        &out,
        &["these crawlers are now named in the file, so that their rules do not change: \"Applebot\", \
           \"Google-InspectionTool\", "],
    );
    assert_has(folder.read("robots.txt"), &["User-agent: Applebot\n", "\n\nUser-agent: Googlebot\nDisallow: /\n"]);
}

#[test]
fn edit_refuses_a_file_that_exceeds_the_size_that_crawlers_must_read() {
    let large = format!("User-agent: *\nDisallow: /x\n{}", "# a line that says nothing\n".repeat(20_000));
    let folder = folder(&[("robots.txt", &*large)]);
    assert_has(edit(&folder, &["--disallow", "GPTBot"]).failed(2), &["crawlers need not read more than that"]);
}
