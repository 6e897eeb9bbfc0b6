//! Cases of the lints about fields.

use super::Case;

#[test]
fn lints_about_fields_report_the_expected_findings() {
    Case("missing-colon", "only known directives are found")
        .found(
            "User-agent *\nDisallow\t/x\nCrawl-delay 10\nhello world\nUser agent: x\nfoo bar: x\n",
            &["1:1", "2:1", "3:1"],
        )
        .helps("Disallow; /b", &["write \"Disallow: /b\""]);
    Case("missing-colon", "a colon in the value is worse")
        .found(
            "Disallow /wiki/Special:Search\nSitemap https://example.com/\nHost example.com:8080\n",
            &["1:1", "2:1", "3:1"],
        )
        .helps("Disallow /a:b", &["write \"Disallow: /a:b\""]);
    let lenient = ["useragent", "User agent", "dissallow", "disalow", "diasllow", "Disallowed", "Site-Map", "Sitemaps"];
    let others = ["USER-AGENT", "allow", "Disallow ", "sitemap", "host", "alow", "Disallow /a"];
    Case("misspelled-directive", "what lenient crawlers accept is found")
        .found_each("{}: x", &lenient, &["1:1"])
        .found_each("{}: x", &others, &[])
        .helps("useragent: x", &["write \"User-agent\""]);
    let training = "User-agent: *\nDisallowAITraining: /\nAllowed: /x\nAllow-AI-Training: /art/\n";
    Case("misspelled-directive", "a word that says more is no misspelling").found(training, &["2:1", "3:1", "4:1"]).helps(
        training,
        &[
            "write \"Disallow\" if the rule is for every use; if it is for AI only, name AI crawlers in a group, or write \"Content-Usage\"",
            "write \"Allow\"",
            "write \"Allow\" if the rule is for every use; if it is for AI only, name AI crawlers in a group, or write \"Content-Usage\"",
        ],
    );
    Case("not-a-field", "text and nameless values are found").found(
        "junk\nhello world\n  three words here # x\n: /x\nDisallow /x\nfoo: x\n# x\n\n",
        &["1:1", "2:1", "3:3", "4:1"],
    );
    Case("not-a-field", "the help knows what was meant")
        .helps("Disallow /a b", &["write \"Disallow: /a b\""])
        .helps("Disallow\n", &["write \"Disallow:\" and its value"])
        .helps("Disallow;/a/", &["write \"Disallow: /a/\""])
        .helps("User-agent , 'GPTBot'", &["write \"User-agent: GPTBot\""])
        .helps("go away", &["begin a comment with \"#\""])
        .helps(": /x", &["write a directive before the colon, for example \"Disallow: /x\""]);
    let end = ["write the rest of the line, and end the file with a line break"];
    Case("not-a-field", "a file that ends within a field is one that was cut")
        .helps("User-agent: *\nDisal", &end)
        .helps("User-agent: *\nDisallow", &end)
        .says("User-agent: *\nUser-a", &["the file ends within a field, after \"User-a\": crawlers ignore the line"]);
    let standard = "User-agent: *\nDisallow: /a\n";
    Case("several-directives", "whatever stands for a line end")
        .found(standard.replace('\n', " "), &["1:15"])
        .found(standard.replace('\n', "\\n"), &["1:16"])
        .found("User-agent: *\nDisallow: /a\\nAllow: /b\nAllow: /c Allow: /d\n", &["2:15", "3:11"])
        .found("User-agent: GPTBotDisallow: /aUser-agent: *\n", &["1:19"])
        .found("User-agent: *\nDisallow: /a;Allow: /b\nAllow: /a|Sitemap: https://a.test/\n", &["2:14", "3:11"])
        .found("# all User-agent: * Disallow: /a\n", &["1:21"])
        .found("User-agent: * # all Disallow: /a\n", &["1:21"]);
    let ordinary = [
        "Disallow: /wiki/Host:Setup",
        "Disallow: /wiki/Special:Allow",
        "Disallow: /wiki/Special:Allow:",
        "Disallow: /*host:",
        "Disallow: /(allow:x",
        "Disallow: /a;host:x",
        "Sitemap: https://a.test:8080/sitemap:1.xml",
        "Disallow: /a # Disallow: /b",
        "# User-agent: * Disallow: /b",
        "Disallow: /a # robots-check: allow(several-directives)",
    ];
    Case("several-directives", "one with a colon in its value is one")
        .found_each("User-agent: *\nDisallow: /\n{}\n", &ordinary, &[])
        .found("# User-agent: *\n# Disallow: /\n", &[])
        .found("User-agent: *\nAllow: /a Allow: /b # robots-check: allow(several-directives)\n", &[]);
    Case("space-in-path", "no other lint looks at the line").found("User-agent: *\nAllow: /a Allow: /b\n", &[]);
    let of_standard = ["user-agent", "ALLOW", "Disallow", "sitemap"];
    let of_engines = ["host", "Crawl-delay", "clean-param", "request-rate", "visit-time", "noindex"];
    let of_usage = ["content-usage", "content-signal", "license", "acap-crawler"];
    Case("unknown-directive", "known ones are not found")
        .found_each("{}: x", &of_standard, &[])
        .found_each("{}: x", &of_engines, &[])
        .found_each("{}: x", &of_usage, &[])
        .found("dissallow: x", &[]);
    Case("unknown-directive", "the nearest known one is named")
        .helps("alow: /", &["did you mean \"Allow\"?"])
        .helps("crawl_delay: 1", &["did you mean \"Crawl-delay\"?"])
        .helps("Foo: 1", &[])
        .helps("\u{feff}Disallow: /", &[])
        .helps("Allow: /\n\u{feff}Disallow: /", &["write \"Disallow\" without the invisible characters"])
        .says(
            "Allow: /\n\u{feff}user-agent: *\n\u{200b}Allow: /",
            &[
                "a byte order mark hides the directive in \"\\u{feff}user-agent\": crawlers ignore the line",
                "an invisible character hides the directive in \"\\u{200b}Allow\": crawlers ignore the line",
            ],
        )
        .helps("https://example.com/s.xml", &["for a sitemap write \"Sitemap: https://example.com/s.xml\""]);
    let file = "# robots-check: allow(secret-path, nonsense-of-mine)\nAllow: / # robots-check: allow(secrets-path)\n";
    Case("unknown-lint", "each code is looked up")
        .found(file, &["1:36", "2:32"])
        .helps(file, &["did you mean \"secret-path\"?"]);
}
