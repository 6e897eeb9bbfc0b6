//! Tests the output formats, for a site with findings about both its response and its file.

use super::{URL, check, rule};
use crate::harness::*;

/// Creates a site whose robots.txt has an HTML content type, may be cached for ten days, and
/// contains an error and a note.
fn site() -> Origin {
    Origin::answering(|_| {
        let fields = ["Content-Type: text/html", "Cache-Control: max-age=864000"];
        let body = "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: x/\nDisallow: /x/*\n";
        response("200 OK", &fields, body)
    })
}

fn shown(arguments: &[&str]) -> String {
    let site = site();
    run(check(&[URL], &[rule(site.address, "", 8080)]).args(arguments)).out.replace(&site.to_string(), "ADDRESS")
}

#[test]
fn the_default_output_shows_responses_findings_and_access_to_the_front_page() {
    let text = shown(&[]);
    let answer = "http://example.com:8080/robots.txt: 200 OK, text/html, 74 bytes, Cache-Control: max-age=864000, \
                  from ADDRESS\n  crawlers obey the rules of the file (RFC 9309, section \
                  2.3.1.1)\n\nwarning[answer-content-type]: the Content-Type is \"text/html\": RFC 9309 requires text/plain \
                  (section 2.3)\n--> http://example.com:8080/robots.txt\n = help: send \"Content-Type: text/plain; \
                  charset=utf-8\"\n\nnotes about the answers (add --notes to show them): 1 × \
                  answer-cached-long\n\nerror[path-without-slash]: ";
    assert!(text.starts_with(answer), "{text}");
    let parts = [
        "\nthe front page, http://example.com:8080/:\n  search engines  may      Googlebot, ",
        "                  may not  GPTBot (line 2)\n\n1 file checked: 1 error, 1 warning, ",
    ];
    assert_has(text, &parts);
    assert_has(shown(&["--notes"]), &["note[answer-cached-long]: caches may keep the file for 10 days"]);
    assert_has(shown(&["--verbose"]), &["note[answer-cached-long]", "note[redundant-star]"]);
    assert_eq!(shown(&["--verbose", "--notes"]), shown(&["--verbose"]));
}

#[test]
fn an_html_or_binary_file_in_place_of_robots_txt_is_one_finding() {
    for (body, code) in [
        ("<!DOCTYPE html>\n<html></html>\n", "html-instead-of-text"),
        ("PK\u{3}\u{4}\0\0\0\0User-agent: *\n", "binary-file"),
    ] {
        let site = Origin::answering(move |_| response("200 OK", &["Content-Type: text/html"], body));
        let text = run(&mut check(&[URL], &[rule(site.address, "", 8080)])).out;
        assert_has(&text, &[": 200 OK, text/html, ", &format!("\n\nerror[{code}]: "), "\n1 file checked: 1 error\n"]);
        assert!(!text.contains("obey the rules") && !text.contains("answer-content-type"), "{text}");
    }
}

#[test]
fn a_server_error_is_explained_once_and_blocks_everyone() {
    let site = Origin::answering(|_| response("500 Internal Server Error", &[], ""));
    let shown = |arguments: &[&str]| run(check(&[URL], &[rule(site.address, "", 8080)]).args(arguments)).out;
    let text = shown(&[]);
    assert_eq!(text.matches("30 days").count(), 1, "{text}");
    assert_has(&text, &[":\n  search engines  may not  all ", "\n  AI search       may not  all "]);
    // The effect on crawlers must be reported even if the finding is ignored.
    assert_eq!(shown(&["--ignore", "answer-server-error"]).matches("30 days").count(), 1);
}

#[test]
fn a_finding_about_a_response_has_a_url_instead_of_a_line_number() {
    let concise = shown(&["--format", "concise"]);
    let line = "http://example.com:8080/robots.txt: warning: the Content-Type is \"text/html\": RFC 9309 requires text/plain \
                (section 2.3) [answer-content-type]\n";
    assert!(concise.starts_with(line), "{concise}");
    assert_has(concise, &["http://example.com:8080/robots.txt:5:11: error: "]);
    let github = shown(&["--format", "github"]);
    let want = "::warning title=answer-content-type::http://example.com:8080/robots.txt: the Content-Type is";
    assert!(github.starts_with(want), "{github}");
    let markdown = shown(&["--format", "markdown"]);
    let want = "**Fails**: 1 error, 1 warning, 3 notes\n\n`http://example.com:8080/robots.txt` answers: 1 warning, 1 note\n\n| URL | | finding |\n";
    assert!(markdown.starts_with(want), "{markdown}");
    let parts = ["| front page of `http://example.com:8080/` | may | may not |\n", " | GPTBot (line 2) |\n"];
    assert_has(markdown, &parts);
}

#[test]
fn sarif_output_contains_the_rule_of_every_result() {
    let document: Value = serde_json::from_str(&shown(&["--format", "sarif"])).unwrap();
    let run = &document["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    let mut prints = Vec::new();
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"], "{result}");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "http://example.com:8080/robots.txt", "{result}");
        let is_of_answer = result["ruleId"].as_str().unwrap().starts_with("answer-");
        assert_eq!(place.get("region").is_none(), is_of_answer, "{result}");
        prints.push(result["partialFingerprints"]["primaryLocationLineHash"].as_str().unwrap());
    }
    let codes: Vec<_> = results.iter().map(|result| result["ruleId"].as_str().unwrap()).collect();
    assert_eq!(codes[..2], ["answer-content-type", "answer-cached-long"], "{codes:?}");
    assert!(codes.contains(&"path-without-slash"), "{codes:?}");
    prints.sort_unstable();
    prints.dedup();
    assert_eq!(prints.len(), results.len(), "each result has a fingerprint of its own");
}

#[test]
fn a_servers_response_cannot_control_a_terminal() {
    let site = Origin::answering(|_| {
        let fields = ["Content-Type: text/\u{9b}31mplain; charset=\u{1b}[2J", "Cache-Control: \u{7f}\u{202e}"];
        let fields = fields.map(|field| field.replace(['\u{1b}', '\u{7f}'], ""));
        response("200 OK", &[&fields[0], &fields[1]], "User-agent: *\nDisallow: /\u{1b}]0;x\u{7}\n")
    });
    for format in ["text", "concise", "json", "github", "markdown", "sarif"] {
        let text = run(check(&[URL], &[rule(site.address, "", 8080)]).args(["--notes", "--format", format])).out;
        let raw = text.chars().find(|char| char.is_control() && *char != '\n' || *char == '\u{202e}');
        // In JSON, a string may contain any characters except the first 32, which must be escaped.
        assert!(raw.is_none_or(|raw| matches!(format, "json" | "sarif") && raw > '\u{1f}'), "{format}: {raw:?} {text}");
    }
}
