use super::*;
use crate::rules::{Access, Fallback, Reading, RequestPath};

const READINGS: [Reading; 3] = [Reading::Standard, Reading::Reference, Reading::Legacy];

fn fragment(text: &str) -> Fragment {
    Fragment::parse("ai.txt", text).expect("a list")
}

fn append(file: &str, lists: &[&str]) -> String {
    let lists: Vec<_> = lists.iter().map(|list| fragment(list)).collect();
    let (appended, _) = RobotsTxt::parse(file.as_bytes()).append(&lists);
    assert!(appended.starts_with(file.as_bytes()), "the file itself stays as it is");
    String::from_utf8(appended.to_vec()).expect("text")
}

/// Returns the verdict, which must be the same in all readings.
fn verdict(file: &str, token: &str, path: &str) -> Access {
    let answers = READINGS.map(|reading| {
        let rules = RobotsTxt::parse(file.as_bytes()).compile(reading);
        rules.select(&[ProductToken::new(token)], Fallback::Star).verdict(&RequestPath::new(path.as_bytes())).access()
    });
    assert_eq!(answers, [answers[0]; 3], "{token} {path}\n{file}");
    answers[0]
}

fn is_allowed(file: &str, token: &str, path: &str) -> bool {
    verdict(file, token, path) == Access::Allow
}

#[test]
fn a_list_adds_crawlers_and_does_not_change_those_that_the_file_names() {
    let list = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\nAllow: /open/\n";
    let served = append("User-agent: gptbot/1.0\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /private/\n", &[list]);
    assert!(is_allowed(&served, "GPTBot", "/"));
    assert!(!is_allowed(&served, "GPTBot", "/drafts/"));
    assert!(!is_allowed(&served, "CCBot", "/") && is_allowed(&served, "CCBot", "/open/"));
    assert!(is_allowed(&served, "OtherBot", "/") && !is_allowed(&served, "OtherBot", "/private/"));
    let want = "\n# From ai.txt\n# These crawlers are named above, so they are left out here: GPTBot\nUser-agent: \
         CCBot\nDisallow: /\nAllow: /open/\n";
    assert!(served.ends_with(want), "{served}");
}

#[test]
fn a_list_affects_only_the_crawlers_that_it_names() {
    let list = "Disallow: /early\nLicense: https://list.test/all\nSitemap: https://list.test/s.xml\nHost: list.test\n\
                User-agent: *\nUser-agent: A\nDisallow: /\nLicense: https://list.test/a\nUnknown: x\nCrawl-delay: 9\n\
                Content-Usage: train-ai=n\n";
    for file in ["User-agent: B\nDisallow: /b\n", "# nothing is restricted\n", "User-agent: *\nDisallow: /x\n"] {
        let served = append(file, &[list]);
        assert!(is_allowed(&served, "Other", "/early") && is_allowed(&served, "Other", "/y"), "{served}");
        assert!(!is_allowed(&served, "A", "/y"));
        let robots = RobotsTxt::parse(served.as_bytes());
        assert_eq!((robots.sitemaps().len(), robots.host().is_some()), (0, false));
        let kept: Vec<_> = robots.extensions().map(|extension| extension.field.name.to_vec()).collect();
        assert_eq!(kept, [b"License".to_vec(), b"Crawl-delay".to_vec(), b"Content-Usage".to_vec()]);
        let rules = robots.compile(Reading::Standard);
        let licenses = |token| rules.select(&[ProductToken::new(token)], Fallback::Star).licenses().join(" ");
        assert_eq!((licenses("A"), licenses("Other")), ("https://list.test/a".to_owned(), String::new()));
        assert!(served.contains("# The list's group for every crawler (*) is left out\n# 5 lines outside groups"));
    }
}

#[test]
fn the_last_group_of_a_file_is_not_merged_with_the_appended_list() {
    let list = "User-agent: A\nDisallow: /";
    for file in [
        "User-agent: B",
        "User-agent: B\n",
        "User-agent: B\r",
        "User-agent: B\r\n\r\n",
        "User-agent: B\nCrawl-delay: 3\nSitemap: https://a.test/s",
        "User-agent: B\n# to come",
        "User-agent: *\nDisallow: /x\nUser-agent: B",
        "\u{feff}User-agent: B\nDisallow:",
        "User-agent: B\nDisallow:   # nothing",
    ] {
        let served = append(file, &[list]);
        assert!(is_allowed(&served, "B", "/x") && !is_allowed(&served, "A", "/x"), "{served:?}");
    }
}

#[test]
fn several_appended_lists_name_each_crawler_once() {
    let first = "User-agent: A\nDisallow: /1\n\nUser-agent: B\nDisallow: /2\n\nUser-agent: a\nDisallow: /3\n";
    let second = "User-agent: B\nUser-agent: C\nDisallow: /4\n";
    let served = append("User-agent: D\nDisallow: /0\n", &[first, second]);
    let robots = RobotsTxt::parse(served.as_bytes());
    let names: Vec<_> =
        robots.groups().flat_map(|group| group.names().map(|name| name.value().to_vec()).collect::<Vec<_>>()).collect();
    assert_eq!(names, [b"D", b"A", b"B", b"C"]);
    for (token, closed) in [("A", &["/1", "/3"][..]), ("B", &["/2"]), ("C", &["/4"]), ("D", &["/0"])] {
        for path in ["/0", "/1", "/2", "/3", "/4"] {
            assert_eq!(is_allowed(&served, token, path), !closed.contains(&path), "{token} {path}");
        }
    }
}

#[test]
fn names_that_are_equal_only_in_some_readings_keep_all_their_rules() {
    let served = append("User-agent: Foobot 2\nDisallow: /own\n", &["User-agent: Foobot\nDisallow: /list\n"]);
    let rules = RobotsTxt::parse(served.as_bytes()).compile(Reading::Reference);
    for path in ["/own", "/list"] {
        let selection = rules.select(&[ProductToken::new("Foobot")], Fallback::Star);
        assert_eq!(selection.verdict(&RequestPath::new(path.as_bytes())).access(), Access::Disallow, "{path}");
    }
}

#[test]
fn each_line_of_the_appended_file_maps_to_its_line_in_the_list() {
    let list = "# a list\n\nUser-agent: A\n\nDisallow: /x # why\nUser-agent: B\nUser-agent: D\n";
    let (appended, origins) = RobotsTxt::parse(&b"User-agent: D\rDisallow: /"[..]).append(&[fragment(list)]);
    let text = String::from_utf8(appended.to_vec()).expect("text");
    let want = "User-agent: D\rDisallow: /\n\n# From ai.txt\n# These crawlers are named above, so they are left out \
                here: D\n\
                User-agent: A\nDisallow: /x\n\nUser-agent: B\nDisallow:\n";
    assert_eq!(text, want);
    let robots = RobotsTxt::parse(appended);
    let places: Vec<_> = robots.lines().map(|line| origins.of(line.number).map(|(_, line)| line)).collect();
    assert_eq!(places[..10], [None, None, None, None, None, Some(3), Some(5), None, Some(6), None]);
    assert!(origins.is_own(2) && !origins.is_own(3));
}

#[test]
fn appending_a_list_does_not_multiply_rules_that_many_crawlers_share() {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number).expect("a letter"));
    let bots: Vec<String> =
        (0..400).map(|number| format!("b-{}{}", letter(number / 26), letter(number % 26))).collect();
    let rules = "Disallow: /0123456789/0123456789/0123456789\n".repeat(2_000);
    let names: String = bots.iter().map(|bot| format!("User-agent: {bot}\n")).collect();
    let own: String = bots.iter().map(|bot| format!("User-agent: {bot}\nDisallow: /own-{bot}\n")).collect();
    let list = format!("User-agent: all\n{names}{rules}{own}");
    let served = append("User-agent: b-ab\nDisallow: /mine\n", &[&list]);
    assert!(served.len() < list.len() * 2, "{} of {}", served.len(), list.len());
    let robots = RobotsTxt::parse(served.as_bytes());
    for reading in READINGS {
        let rules = robots.compile(reading);
        let is_allowed = |token: &str, path: &str| {
            let selection = rules.select(&[ProductToken::new(token)], Fallback::Star);
            selection.verdict(&RequestPath::new(path.as_bytes())).access() == Access::Allow
        };
        assert!(is_allowed("b-ab", "/own-b-ab") && !is_allowed("b-ab", "/mine"));
        assert!(!is_allowed("b-ac", "/own-b-ac") && is_allowed("b-ac", "/own-b-ad"));
    }
}

#[test]
fn a_group_without_a_rule_is_closed_for_strict_readers() {
    let list = "User-agent: GPTBot\nDissallow: /\nUser-agent: CCBot\nDisallow: /\n";
    for (rule, is_ended) in [
        ("Disallow: /private", false),
        ("disallow:", false),
        ("Allow : /a # b", false),
        ("Dissallow: /private", true),
        ("Disallow /private", true),
        ("Disallow: private", true),
        ("Crawl-delay: 5", true),
        ("Disallow: /a\nUser-agent: b", true),
    ] {
        let file = format!("User-agent: Foobot\n{rule}\n");
        let end =
            if is_ended { "# Ends the group above, in which some crawlers read no rule\nDisallow:\n" } else { "" };
        let rest = "# From ai.txt\nUser-agent: GPTBot\nDissallow: /\nDisallow:\n\nUser-agent: CCBot\nDisallow: /\n";
        assert_eq!(append(&file, &[list]), format!("{file}{end}\n{rest}"), "{rule}");
    }
}

fn message(text: &[u8]) -> Option<String> {
    Fragment::parse("list", text).err().map(|error| error.to_string())
}

#[test]
fn the_error_for_an_invalid_list_explains_the_problem() {
    for (text, begins) in [
        (&b""[..], "no group contains the name of a crawler"),
        (b"# nothing\n", "no group contains the name of a crawler"),
        (b"User-agent: *\nDisallow: /\n", "no group contains the name of a crawler"),
        (b"User-agent:\nDisallow: /\n", "no group contains the name of a crawler"),
        (b"Sitemap: https://a.test/\nDisallow: /\n", "no group contains the name of a crawler"),
        (b"\xEF\xBB\xBF \n<html>\nUser-agent: a\n", "this is an HTML page"),
        (b"User-agent: a\r\nDisallow: /\xff\n", "line 2 contains bytes that are not text"),
        (b"User-agent: a\rDisallow: /\r# \x1b[2J\r", "line 3 contains bytes that are not text"),
        (b"\xFF\xFEU\0", "line 1 contains bytes that are not text"),
    ] {
        assert!(message(text).is_some_and(|message| message.starts_with(begins)), "{:?}: {:?}", text, message(text));
    }
    assert_eq!(message(b"\xEF\xBB\xBFUser-agent: a"), None);
}

#[test]
fn a_title_is_one_short_line() {
    let title = format!(" a\nUser-agent: *\r\0{}", "x".repeat(500));
    let fragment = Fragment::parse(&title, "User-agent: a\n").expect("a list");
    assert!(fragment.title.starts_with("a User-agent: *  xx"), "{}", fragment.title);
    assert!(fragment.title.chars().count() <= MAX_TITLE_LENGTH);
}

#[test]
fn the_own_part_of_a_served_file_is_separated_from_appended_lists() {
    let list = fragment("User-agent: GPTBot\nDisallow: /\n");
    for file in
        ["User-agent: *\nDisallow: /x", "User-agent: *\nDisallow: /x\n", "User-agent: *\n", "# From me\nUser-agent: *"]
    {
        let (served, places) = RobotsTxt::parse(file.as_bytes()).append(std::slice::from_ref(&list));
        assert_eq!(&**places.own_part(&RobotsTxt::from(served.clone())).bytes(), file.as_bytes());
        let own = Fragment::without_parts(&served, file.as_bytes());
        assert_eq!(own.trim_ascii_end(), file.trim_ascii_end().as_bytes());
        assert_eq!(Fragment::without_parts(file.as_bytes(), b"# From me\n"), file.as_bytes());
    }
}
