//! Cases of the lints about paths.

use super::{Case, messages, words};
use crate::check::Severity;

#[test]
fn lints_about_paths_report_the_expected_findings() {
    Case("dollar-inside", "the last byte is the end")
        .found("Allow: /a$\nAllow: /a$b$\nAllow: $\nAllow: /a$$\nAllow:\n", &["2:10", "4:10"])
        .helps("Allow: /*.php$*", &["write \"/*.php$\""]);
    Case("hash-in-path", "a blank makes it a comment")
        .found("Allow: /a#b\nAllow: /a #b\nAllow:#b\nSitemap: https://a/#b\n", &["1:10"]);
    Case("needless-escape", "only unreserved bytes are found")
        .found("Allow: /%2f%zz%\nAllow: /%2F%61\nAllow: /%c3%a9%24%2A\n", &["2:12"])
        .helps("Allow: /%61%62%2F%7e", &["write \"/ab%2F~\""]);
    let file = "User-agent: *\nAllow: a\nDisallow: /a\nDisallow: *a\nDisallow:\nDisallow: $\nSitemap: x\nAllow /a:b\n";
    Case("path-without-slash", "allow and disallow are held to it").found(file, &["2:8", "6:11"]);
    Case("path-without-slash", "the help has the slash").writes(
        "a/b → /a/b~\"/a/b\" → /a/b~'/a/b' → /a/b~\u{201c}/a/b\u{201d} → /a/b~\
            \"\" → /\\\"\\\"~^/y$ → /y$~\"^/y\" → /y~^y → /y",
    );
    let file = "Allow: /a*\nAllow: /*\nAllow: *\nAllow: /*.pdf$\nAllow: /a**b\nAllow: /a*$\nAllow: **\nAllow: /a%2A\n";
    Case("redundant-star", "stars at the end and in a row are found")
        .found(file, &["1:10", "5:11", "6:10"])
        .helps("Allow: /a***b**$", &["write \"/a*b\""])
        .found("Allow: /a/.*\nAllow: /(.*)\nAllow: /a.*\n", &["3:11"])
        .found("Allow: .*\nAllow: a*\nAllow: /a/*,/b/*\nAllow: /a *\n", &[]);
    let rule = "User-agent: *\nDisallow: {}\n";
    let expressions = words(
        "/[0-9]+/ /[a-zA-Z0-9_] /[a-z_]x /[^/]+/x /[abc]{3} /[abc]+/ /a(b|c) /(.*)/y /x/.* \
        /x/.+$ /page-\\d+ /\\d{8}/ /id\\w /a\\.php /x\\?id= /projects*[&%] /d.+$ /e/?$ /(?i)admin /(?:a) \
        /(a)?$ /(a)+ /a.{2} /foo.*$ /\\S+ /a\\-b ^/x/.* ([0-9]+)---/ajax",
    );
    let paths = words(
        "/foo? /a(1) /a(b)c|d(e) /a|b /a+b /?q=[foo]+bar /?filter[]= /filter[price] /?a=[1] \
        /collections*?f=[0]= /[10-20] /contact[e-mail] /size[t-shirt] /index.* /*.* /*.*$ /?$ /*?$ /*/?$ \
        /filter[*]= /?q=Mr.+Smith /_vti_bin\\_x /*.php.* /private\\data /{id}/ /x/.well-known /*.pdf$ ^/x",
    );
    Case("regular-expression", "signs that no URL has are found")
        .found_each(rule, &expressions, &["2:11"])
        .found_each(rule, &paths, &[])
        .found(rule.replace("{}", ""), &[])
        .found("Sitemap: https://a/[0-9]\nUser-agent: *\nAllow: /[0-9]\n", &["3:8"])
        .says(r"Allow: /\d", &["crawlers compare \"/\\\\d\" literally, not as a regular expression"]);
    Case("space-in-path", "the help tells one path from two")
        .found("Allow: /a b\nAllow: /a # b\nAllow: a b\nSitemap: a b\n", &["1:10"])
        .helps("Allow: /a  b", &["write \"/a%20b\""])
        .helps("Allow: /a\t/b", &["write one path per line"])
        .helps("Allow: /a and /b", &["write one path per line"])
        .helps("Allow: / a", &["write \"/a\", or \"#\" before \"a\" if it is a comment"])
        .helps("Allow: /a, b", &["write \"/a,%20b\", or write one path per line"]);
    Case("unescaped-non-ascii", "the first letter of a rule is found")
        .found("Allow: /a\u{f6}\u{e4}\n# \u{e9}\nAllow: /b", &["1:10"])
        .found(b"Allow: /a\xe9\n", &[])
        .helps("Allow: /\u{f6}*", &["write \"/%C3%B6*\""]);
    Case("url-as-path", "the help has the path")
        .helps("Allow: HTTPS://example.com/a?b", &["write only the path: \"/a?b\""])
        .found("Allow: /http://x\nSitemap: https://example.com/\n", &[]);
    Case("path-without-slash", "a URL is another lint's matter").found("Allow: http://example.com/", &[]);
}

#[test]
fn the_help_contains_the_path_that_was_intended() {
    let site = "Sitemap: https://www.shop.example/s.xml\nAllow: ";
    let rule = "User-agent: *\nDisallow: {}\n";
    Case("path-without-slash", "signs in front and hosts are no part of the path")
        .writes(
            "^/foo.*$ → /foo~.*\\.pdf$ → *.pdf$~.pdf$ → /*.pdf$~.php? → /*.php?~.git/ → /.git/~\
            .env → /.env~./a → /a~../.a → /.a~\\windows\\ → /windows/~a\\b → /a/b~%2Fa → /a",
        )
        .helps("Allow:: /a", &["write \"/a\""])
        .helps(b"Allow:\xa0/a", &["write \"/a\""])
        .writes(
            "www.shop.example/old/ → /old/~index.html → /index.html~^www.shop.example/a → /a~\
            www.shop.example:8080/a → /a~^.*$ → /~(/a/) → /a/~\u{201e}/a/\u{201c} → /a/~\
            \"/a/ → /a/~`/a*` → /a*~\u{2022} /a → /a",
        )
        .helps("Allow: ~/a", &["write \"/a\""])
        .helps("Allow::/a", &["write \"/a\""])
        .helps("Allow: \u{ff0f}a\u{ff0f}", &["write \"/a/\""])
        .helps("Allow: %2fa%2Fb", &["write \"/a/b\""])
        .helps("Allow: a%2Fb", &["write \"/a%2Fb\""]);
    Case("path-without-slash", "where no path can be named, the help says what to do")
        .helps("Allow: a/, b/", &["write one path per line, and \"%20\" for a space within the path"])
        .helps(
            "Allow: \\\\server\\a",
            &["write the path that a browser shows, without the folders of the server's disk"],
        )
        .helps("Allow: [/a,/b]", &["write one path per line, and \"%20\" for a space within the path"])
        .helps(
            "Allow: (/a|/b)",
            &["begin with \"/\", write \"*\" for \".*\" or a character class, and write a rule for each alternative"],
        )
        .helps("Allow: null", &["leave the value empty for a rule without a path"]);
    let urls = "ftp://a.example/b https:/a.example/b http//a.example/b \"https://a.example/b\" \
        ^https://a.example/b ://a.example/b (https://a.example/b)";
    for url in urls.split(' ') {
        let help = "write only the path: rules contain neither a scheme nor a host";
        Case("path-without-slash", "a URL is no path").helps(format!("Allow: {url}"), &[help]);
    }
    Case("path-without-slash", "a value that shows a path, and a list, are left to other lints").found_each(
        rule,
        &["\u{200b}/a", "\u{feff}", "\"/a\", \"/b\""],
        &[],
    );
    Case("path-without-slash", "the host of the site is known by its sitemaps")
        .helps(format!("{site}shop.example/old/"), &["write \"/old/\""])
        .helps(
            format!("{site}www.other.example/old/"),
            &["write \"/old/\" for this path if the site has this host, or \"/www.other.example/old/\" for a folder of \
               this name"],
        );
    Case("path-without-slash", "what can be meant in two ways has both in the help")
        .helps(
            "Allow: .x",
            &["write \"/*.x\" for paths that contain it anywhere, or \"/.x\" for those that begin with it"],
        )
        .helps("Allow: ?sort=", &["write \"/*?*sort=\" for every page, or \"/?sort=\" for the home page alone"])
        .helps("Allow: &page=", &["write \"/*?*page=\" for every position, or \"/*&page=\" for every position except the first"])
        .helps(
            "Allow: page=2",
            &["write \"/*?*page=2\" for a query parameter, or \"/page=2\" for paths that begin with it"],
        )
        .helps("Allow: pdf$", &["write \"/*.pdf$\" for files of this kind, or \"/pdf$\" for this path alone"])
        .helps("Allow: all", &["write \"/\" for every path, or \"/all\" for paths that begin with it"])
        .helps(
            "Allow: shop.example/old/",
            &["write \"/old/\" for this path if the site has this host, or \"/shop.example/old/\" for a folder of this name"],
        )
        .helps(
            "Allow: shop.example",
            &["write \"/\" for the whole site if it has this host, or \"/shop.example\" for paths that begin with it"],
        )
        .helps(
            "Allow: ;id=",
            &["write \"/*;id=\" for paths that contain it anywhere, or \"/;id=\" for those that begin with it"],
        );
    Case("dollar-inside", "the end of one of several paths is none inside").found_each(
        rule,
        &["/*.a$,/*.b$", "/*.a$ /*.b$"],
        &[],
    );
    Case("url-as-path", "a URL of another site is no path of this one")
        .helps(format!("{site}https://shop.example/a"), &["write only the path: \"/a\""])
        .helps(
            "Allow: https://a.example",
            &["if \"a.example\" is this site, write only the path, \"/\"; rules for another host belong in the robots.txt of that host"],
        )
        .found("Allow: https://a.example/b, https://a.example/c", &[])
        .helps(
            format!("{site}https://other.example/a"),
            &["if \"other.example\" is this site, write only the path, \"/a\"; rules for another host belong in the robots.txt of that host"],
        );
    Case("space-in-path", "words behind a whole path may be a remark")
        .helps("Allow: /a/ b c", &["write \"/a/%20b%20c\", or \"#\" before \"b c\" if it is a comment"]);
}

#[test]
fn lints_about_invalid_paths_report_the_expected_findings() {
    let site = "Sitemap: https://www.shop.example/s.xml\nAllow: ";
    let rule = "User-agent: *\nDisallow: {}\n";
    let files = words(
        "/index.php/x /residential.education/x /v1.2/x /.well-known/x /shop.example \
        /a/shop.example/x /*.example/x",
    );
    Case("host-in-path", "hosts in front of paths are found, folders and files are not")
        .found_each(rule, &["/shop.example/admin/", "//shop.example/old/", "/www.shop.pl/x"], &["2:11"])
        .found_each(rule, &files, &[])
        .found_each(&format!("{site}{{}}"), &["/other.example/a", "/www.other.example/a", "/shop.example/a,/b"], &[])
        .helps("Allow: /shop.example/a", &["write \"/a\" if \"shop.example\" is the host of this site"])
        .helps(format!("{site}/shop.example:8080/a"), &["write \"/a\""]);
    Case("several-paths", "paths that commas join are found, and commas in a path are not")
        .found_each(rule, &["/a,/b", "/a, /b", "/a;/b", "/a|/b", "\"/a\",\"/b\"", "*.a$,*.b$", "/a, /b /c"], &["2:11"])
        .found_each(rule, &["/a,b.html", "/a,", "/a /b", "/(a|/b)", "/*,*", "/a", "/a,*/", "/*,*.html"], &[])
        .says("Allow: /a,/b", &["crawlers read \"/a,/b\" as one path, so this rule applies to none of \"/a\", \"/b\""]);
    let routes = words(
        "/:id /[slug] /[...slug] /[[...slug]] /{id} /{id:int} /{id?} /<slug> \
        /<int:id> /{a}.html /{**path} /:path+",
    );
    let others = words(
        "/a:b /filter[price] /?q={search} /{{url}} /[] /a/Special:b /[0] /:80 \
        */{link} /:w:/r /a-[b] /{a},/{b}",
    );
    Case("route-parameter", "the forms of routers are found")
        .found_each(rule, &routes, &["2:12"])
        .found_each(rule, &["/p-{id}", "/p.:id", "/a/:id/b", "/a/:id?"], &["2:14"])
        .found_each(rule, &others, &[])
        .helps("Allow: /:a-:b.:c/d", &["write \"/*-*.*/d\": \"*\" stands for any text, and is not needed at the end"])
        .helps("Allow: /{a}{b}/:c?/d", &["write \"/*/*/d\": \"*\" stands for any text, and is not needed at the end"])
        .helps("Allow: /a/:b/c", &["write \"/a/*/c\": \"*\" stands for any text, and is not needed at the end"])
        .helps("Allow: /a/{b}/{c}", &["write \"/a/*/\": \"*\" stands for any text, and is not needed at the end"])
        .helps("Allow: /:b", &["write \"*\" for any text: the pattern then matches every path of the site"]);
    Case("query-as-path", "parameters in front are found")
        .found_each(rule, &["/nocrawl=1", "/?b=9", "/&sort=", "/skip=true", "/?sort=*"], &["2:11"])
        .found_each(
            rule,
            &["/?s=", "/*?b=9", "/a/b=9", "/b=9/", "/?", "/a?b=9", "/=", "/?b", "/?tab=saved", "/?sp=404", "/list=*"],
            &[],
        )
        .found("Allow: /?b=9\nAllow: /*&b=\n", &[])
        .found("Allow: /?b=9\nAllow: /*?\n", &[])
        .found("Allow: /?b=\nDisallow: /?b=*&\n", &[])
        .helps("Allow: /page=2", &["to match the parameter on every page, write \"/*?*page=2\""]);
    Case("invisible-character", "characters of no width are found")
        .found_each(rule, &["/a\u{200b}", "/a\u{ad}b", "/a\u{a0}"], &["2:11"])
        .found_each(rule, &["/a\u{a0}b", "/\u{e9}", "\u{200b}a"], &[])
        .helps("Allow: /a\u{200b}/\u{e9}", &["write \"/a/\u{e9}\""])
        .helps("Allow: \u{feff}/a", &["write \"/a\""])
        .helps("Allow: \u{200b}", &["remove the line: its value consists of invisible characters only"]);
    for code in ["invisible-character", "several-paths"] {
        let severity = |value: &str| super::severities(code, format!("Allow: {value}").as_bytes());
        let (hidden, seen) = (["\u{200b}/a", "\"/a\",\"/b\""], ["/a\u{200b}", "/a,/b"]);
        assert_eq!(hidden.map(severity).concat(), [Severity::Error], "{code}: no path matches without the slash");
        assert_eq!(seen.map(severity).concat(), [Severity::Warning], "{code}");
    }
    Case("unescaped-non-ascii", "what nobody sees is not escaped")
        .found("Allow: /a\u{200b}/\u{e9}\nAllow: \u{ab}/a\u{bb}\n", &[])
        .helps("Allow: /a\u{a0}b", &["write \"/a%C2%A0b\", or \"/a%20b\" for an ordinary space"]);
}

#[test]
fn a_regular_expression_in_a_rule_is_not_read_as_an_expression() {
    use crate::rules::{Access, Fallback, Reading, RobotsTxt};
    for (pattern, matched, passed) in [("/p-[0-9]+/", "/p-[0-9]+/x", "/p-12/"), ("/x/.*$", "/x/.a", "/x/a")] {
        let file = format!("User-agent: *\nDisallow: {pattern}\n");
        for reading in [Reading::Standard, Reading::Reference] {
            let rules = RobotsTxt::parse(&file).compile(reading);
            let access = |path: &str| rules.select(&[], Fallback::Star).verdict(&reading.path(path)).access();
            assert_eq!((access(matched), access(passed)), (Access::Disallow, Access::Allow), "{pattern} {reading:?}");
        }
    }
}

#[test]
fn the_space_in_path_message_agrees_with_how_paths_are_matched() {
    use crate::rules::{Access, Fallback, Reading, RequestPath, RobotsTxt};
    for (pattern, path) in [("/a b", "/a%20b"), ("/*/a b$", "/x/a%20b"), ("*a b", "/a%20b"), ("/a?q=b c", "/a?q=b%20c")]
    {
        let file = format!("User-agent: *\nDisallow: {pattern}\n");
        let robots = RobotsTxt::parse(file.as_bytes());
        let access = |reading, path: &RequestPath<'_>| {
            robots.compile(reading).select(&[], Fallback::Star).verdict(path).access()
        };
        assert_eq!(access(Reading::Standard, &RequestPath::new(path.as_bytes())), Access::Disallow, "{pattern}");
        assert_eq!(access(Reading::Reference, &RequestPath::verbatim(path.as_bytes())), Access::Allow, "{pattern}");
        let said = messages("space-in-path", file.as_bytes());
        assert!(said.len() == 1, "{pattern}: {said:?}");
        assert!(said[0].ends_with("some crawlers do not treat the two as equal"), "{pattern}: {said:?}");
    }
}
