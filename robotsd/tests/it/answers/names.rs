//! Tests the names of a site: with and without TLS and `www.`, in non-Latin scripts, and as IP
//! addresses.

use super::cases::{ALLOW_ALL, GO_BY_RULES, RULES};
use super::tls::Authority;
use super::{Checked, check, down, rule};
use crate::harness::*;

fn rules(_: &Asked) -> Vec<u8> {
    response("200 OK", &["Content-Type: text/plain"], RULES)
}

fn host(asked: &Asked) -> String {
    asked.field("host").unwrap()
}

/// Starts two servers, one without TLS and one with TLS, for the four URLs of a site. Returns the
/// rules for `--connect-to`.
fn four(authority: &Authority, plain: fn(&Asked) -> Vec<u8>, secure: fn(&Asked) -> Vec<u8>) -> [String; 2] {
    let secure = Origin::over_tls(authority.server(&["example.com", "www.example.com"]), secure);
    [rule(Origin::answering(plain).address, "", 80), rule(secure.address, "", 443)]
}

fn findings_of(checked: &Checked) -> Vec<String> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    checked.findings.iter().map(|finding| format!("{} {}", text(finding, "file"), text(finding, "code"))).collect()
}

fn same_of(checked: &Checked) -> String {
    let answers = checked.answers.as_ref().unwrap()["answers"].as_array().unwrap();
    answers.iter().map(|answer| answer["same"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_site_that_redirects_to_one_name_has_no_findings() {
    let authority = Authority::new();
    let all = |_: &Asked| redirect("301 Moved", "https://example.com/robots.txt");
    let canonical = |asked: &Asked| match host(asked).as_str() {
        "example.com" => rules(asked),
        _ => redirect("301 Moved", "https://example.com/robots.txt"),
    };
    let sites = four(&authority, all, canonical);
    let checked = Checked::of(check(&["https://example.com"], &sites).arg(authority.argument()));
    assert_eq!((findings_of(&checked), checked.exit()), (vec![], 0), "{}", checked.stderr());
    assert_eq!(same_of(&checked), "named same same same");
    // A check of another name of the site must have the same result.
    let checked = Checked::of(check(&["http://www.example.com"], &sites).arg(authority.argument()));
    assert_eq!((findings_of(&checked), same_of(&checked).as_str()), (vec![], "named same same same"));
}

#[test]
fn different_rules_at_another_name_of_a_site_are_reported() {
    let authority = Authority::new();
    let secure = |asked: &Asked| match host(asked).as_str() {
        "example.com" => rules(asked),
        _ => response("200 OK", &["Content-Type: text/plain"], "User-agent: *\nDisallow: /\n"),
    };
    let missing = |_: &Asked| response("404 Not Found", &[], "");
    let sites = four(&authority, missing, secure);
    let checked = Checked::of(check(&["https://example.com"], &sites).arg(authority.argument()));
    let want = ["http://example.com", "https://www.example.com", "http://www.example.com"]
        .map(|name| format!("{name}/robots.txt host-other-rules"));
    assert_eq!((findings_of(&checked), checked.exit()), (want.to_vec(), 0), "{}", checked.stderr());
    let messages: Vec<_> = checked.findings.iter().map(message).collect();
    let want = "404 Not Found: crawlers treat everything as allowed here, and obey the rules of the file at \
                https://example.com/robots.txt";
    assert_eq!(messages[0], want);
    assert_eq!(messages[1], "this file differs from the file at https://example.com/robots.txt");
}

#[test]
fn a_nonexistent_name_does_not_belong_to_the_site() {
    let here = rule(Origin::answering(rules).address, "", 80);
    let nowhere = "www.example.com::no..name:".to_owned();
    let checked = Checked::of(&mut check(&["http://example.com"], &[nowhere, here, down("", 443)]));
    assert_eq!(same_of(&checked), "named differs no-site no-site", "{}", checked.stderr());
    assert_eq!(findings_of(&checked), ["https://example.com/robots.txt host-other-rules"]);
    assert_eq!((checked.findings[0]["severity"].as_str(), checked.exit()), (Some("note"), 0));
    // The check must never suggest a redirect from TLS to plain HTTP.
    assert_eq!(
        checked.findings[0]["help"],
        "serve the same file at both URLs, or redirect http://example.com/robots.txt to this one"
    );
}

#[test]
fn ip_addresses_and_internationalised_names_are_accepted_as_hosts() {
    let site = Origin::answering(|asked| {
        assert_eq!(host(asked), "xn--mller-kva.example:8080");
        rules(asked)
    });
    for url in
        ["http://müller.example:8080", "http://Müller.example:8080/robots.txt", "http://xn--mller-kva.example:8080"]
    {
        let checked = Checked::of(&mut check(&[url], &[rule(site.address, "müller.example", 8080)]));
        assert_eq!((checked.crawlers(), checked.exit()), (GO_BY_RULES, 0), "{url}: {}", checked.stderr());
    }
    let (four, six) = (Origin::answering(rules), Origin::at("[::1]:0", rules));
    // The last name resolves to IPv6.
    for (url, rules) in [
        (format!("http://{four}"), vec![]),
        (format!("http://{six}/"), vec![]),
        ("http://example.com:81".to_owned(), vec![rule(six.address, "example.com", 81)]),
    ] {
        let checked = Checked::of(&mut check(&[&url], &rules));
        assert_eq!((checked.codes(), checked.exit()), (vec![], 0), "{url}: {}", checked.stderr());
        if url.contains('[') {
            assert_eq!(checked.answer()["address"], six.to_string());
        }
    }
}

#[test]
fn several_sites_and_files_are_checked_together() {
    let folder = folder(&[("bad.txt", "User-agent: *\nDisallow: private/\n")]);
    let (good, gone) = (Origin::answering(rules), Origin::answering(|_| response("404 Not Found", &[], "")));
    let rules = [rule(good.address, "a.example", 8080), rule(gone.address, "b.example", 8080)];
    let mut command = check(&["http://a.example:8080", "bad.txt", "http://b.example:8080/robots.txt"], &rules);
    let checked = Checked::of(command.current_dir(folder.path()));
    assert_eq!(checked.exit(), 1, "{}", checked.stderr());
    let want = ["http://b.example:8080/robots.txt answer-missing", "bad.txt path-without-slash"];
    assert_eq!((findings_of(&checked), checked.crawlers()), (want.map(str::to_owned).to_vec(), GO_BY_RULES));
    // Findings about responses can be selected and ranked like other findings.
    let with = |option: [&str; 2]| Checked::of(check(&["http://b.example:8080"], &rules).args(option));
    let ignored = with(["--ignore", "answer-missing"]);
    assert_eq!((findings_of(&ignored), ignored.crawlers()), (vec![], ALLOW_ALL));
    assert_eq!(with(["--deny", "notes"]).exit(), 1);
    let selected = with(["--select", "answer-tls"]);
    assert_eq!((findings_of(&selected), selected.exit()), (vec![], 0));
}
