//! Cases of the lints about names of crawlers.

use super::Case;

#[test]
fn lints_about_names_report_the_expected_findings() {
    let file = "User-agent: mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)\nAllow: /\n";
    Case("browser-header-as-name", "the product it declares is the help")
        .found(file, &["1:13"])
        .helps(file, &["write \"Googlebot\""])
        .found("User-agent: Mozilla\nUser-agent: Googlebot/2.1\n", &[]);
    Case("cut-product-token", "the header of a browser is another lint's matter").found(file, &[]);
    Case("control-token", "the operator is named").says(
        "User-agent: google-extended\nUser-agent: Googlebot\n",
        &["requests never contain the name \"google-extended\": Google reads the rules, but a server cannot enforce \
           them"],
    );
    Case("cut-product-token", "the message says what is left")
        .says(
            "User-agent: GPT Bot",
            &["\"GPT Bot\" is not a product token: some crawlers cut the name at its first invalid character and read \
               \"GPT\""],
        )
        .says(
            "User-agent: 008",
            &["\"008\" is not a product token: some crawlers cut the name at its first invalid character and read \
               nothing"],
        )
        .helps("User-agent:\u{a0}*\n", &["write \"*\" without the invisible characters"])
        .helps("User-agent: GPT\u{200b}Bot\n", &["write \"GPTBot\" without the invisible characters"]);
    Case("cut-product-token", "plain tokens and star are not found")
        .found("User-agent: *\nUser-agent: * all\nUser-agent: a_B-c\nUser-agent:\nUser-agent: a # b\n", &[])
        .found("User-agent:  Googlebot*\nUser-agent: *bot", &["1:14", "2:13"]);
    Case("empty-user-agent", "a comment is no name")
        .found("User-agent: # Googlebot\nUser-agent: *\n user-agent : \n", &["1:1", "3:2"]);
    Case("ignores-robots", "only rules that restrict ask in vain")
        .found("User-agent: Pingdom\nUser-agent: Googlebot\nDisallow: /x\n", &["1:13"])
        .found("User-agent: Pingdom\nDisallow:\nAllow: /\n", &[]);
    Case("star-with-text", "only a blank makes it a star")
        .found("User-agent: *\nUser-agent: *\t x\nUser-agent: *bot\n", &["2:13"]);
    Case("unknown-crawler", "only near names are found")
        .helps("User-agent: Googlbot\n", &["did you mean \"Googlebot\"?"])
        .helps("User-agent: Blingbot\n", &["did you mean \"bingbot\"?"])
        .helps("User-agent: Bing\n", &["did you mean \"bingbot\"?"])
        .helps("User-agent: perplexity\n", &["did you mean \"PerplexityBot\" or \"Perplexity-User\"?"])
        .helps("User-agent: Bing, ChatGPT\n", &[])
        .helps("User-agent: GPTBt\nUser-agent: CCBott\n", &["did you mean \"GPTBot\"?", "did you mean \"CCBot\"?"])
        .found("User-agent: psbot\nUser-agent: CCBt\nUser-agent: devil\n", &[])
        .found("User-agent: *\nUser-agent: Googlebot\nUser-agent: ExampleBot\nUser-agent: xbot\nUser-agent:\n", &[])
        .found("User-agent: Googelbot\nUser-agent: googelbot\n", &["1:13"]);
}
