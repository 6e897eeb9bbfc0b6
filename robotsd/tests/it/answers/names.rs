//! The names of a site: with and without TLS, with and without www., in other scripts, as addresses.

use super::cases::{ALLOW_ALL, GO_BY_RULES, RULES};
use super::tls::Authority;
use super::zoo::{Asked, Reply, Zoo, redirect, response};
use super::{Checked, check, down};
use crate::harness::message;

fn rules(_: &Asked) -> Reply {
    Reply::Octets(response("200 OK", &["Content-Type: text/plain"], RULES))
}

/// The four names of a site, each at a server of its own.
fn four(authority: &Authority, plain: fn(&Asked) -> Reply, secure: fn(&Asked) -> Reply) -> [String; 2] {
    let names = ["example.com", "www.example.com"];
    [Zoo::start(plain).rule("", 80), Zoo::tls(authority.server(&names), secure).rule("", 443)]
}

fn findings_of(checked: &Checked) -> Vec<String> {
    let text = |finding: &serde_json::Value, name: &str| finding[name].as_str().unwrap().to_owned();
    checked.findings.iter().map(|finding| format!("{} {}", text(finding, "file"), text(finding, "code"))).collect()
}

fn same_of(checked: &Checked) -> String {
    let answers = checked.answers.as_ref().unwrap()["answers"].as_array().unwrap();
    answers.iter().map(|answer| answer["same"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_site_that_redirects_to_one_name_is_fine() {
    let authority = Authority::new();
    let canonical = |asked: &Asked| match asked.host.as_str() {
        "example.com" => rules(asked),
        _ => Reply::Octets(redirect("301 Moved", "https://example.com/robots.txt")),
    };
    let all = |_: &Asked| Reply::Octets(redirect("301 Moved", "https://example.com/robots.txt"));
    let sites = four(&authority, all, canonical);
    let checked = Checked::of(check(&["https://example.com"], &sites).arg(authority.argument()));
    assert_eq!((findings_of(&checked), checked.exit()), (vec![], 0), "{}", checked.stderr());
    assert_eq!(same_of(&checked), "named same same same");
    // From any of the names.
    let checked = Checked::of(check(&["http://www.example.com"], &sites).arg(authority.argument()));
    assert_eq!((findings_of(&checked), same_of(&checked).as_str()), (vec![], "named same same same"));
}

#[test]
fn other_rules_at_another_name_are_found() {
    let authority = Authority::new();
    let secure = |asked: &Asked| match asked.host.as_str() {
        "example.com" => rules(asked),
        _ => Reply::Octets(response("200 OK", &["Content-Type: text/plain"], "User-agent: *\nDisallow: /\n")),
    };
    let missing = |_: &Asked| Reply::Octets(response("404 Not Found", &[], ""));
    let sites = four(&authority, missing, secure);
    let checked = Checked::of(check(&["https://example.com"], &sites).arg(authority.argument()));
    let want = ["http://example.com", "https://www.example.com", "http://www.example.com"]
        .map(|name| format!("{name}/robots.txt host-other-rules"));
    assert_eq!((findings_of(&checked), checked.exit()), (want.to_vec(), 0), "{}", checked.stderr());
    let messages: Vec<_> = checked.findings.iter().map(message).collect();
    assert_eq!(
        messages[0],
        "404 Not Found: crawlers take everything as allowed here, and go by the rules of the file at \
         https://example.com/robots.txt"
    );
    assert_eq!(messages[1], "it is another file than that of https://example.com/robots.txt");
}

#[test]
fn a_name_that_does_not_exist_is_none_of_the_site() {
    let site = Zoo::start(rules);
    let nowhere = "www.example.com::no..name:".to_owned();
    let checked = Checked::of(&mut check(&["http://example.com"], &[nowhere, site.rule("", 80), down("", 443)]));
    assert_eq!(same_of(&checked), "named differs no-site no-site", "{}", checked.stderr());
    assert_eq!(findings_of(&checked), ["https://example.com/robots.txt host-other-rules"]);
    assert_eq!((checked.findings[0]["severity"].as_str(), checked.exit()), (Some("note"), 0));
    // No site is told to lead back from TLS.
    assert_eq!(checked.findings[0]["help"], "serve the same file, or redirect http://example.com/robots.txt here");
}

#[test]
fn addresses_and_names_of_other_scripts_are_hosts() {
    let site = Zoo::start(|asked| {
        assert_eq!(asked.host, "xn--mller-kva.example:8080");
        rules(asked)
    });
    for url in
        ["http://müller.example:8080", "http://Müller.example:8080/robots.txt", "http://xn--mller-kva.example:8080"]
    {
        let checked = Checked::of(&mut check(&[url], &[site.rule("müller.example", 8080)]));
        assert_eq!((checked.crawlers(), checked.exit()), (GO_BY_RULES, 0), "{url}: {}", checked.stderr());
    }
    let four = Zoo::at("127.0.0.1:0", rules);
    let checked = Checked::of(&mut check(&[&format!("http://{}", four.address)], &[]));
    assert_eq!((checked.codes(), checked.exit()), (vec![], 0), "{}", checked.stderr());
    let six = Zoo::at("[::1]:0", rules);
    let checked = Checked::of(&mut check(&[&format!("http://{}/", six.address)], &[]));
    assert_eq!((checked.codes(), checked.exit()), (vec![], 0), "{}", checked.stderr());
    assert_eq!(checked.answer()["address"].as_str(), Some(six.address.to_string().as_str()));
    // A name that leads to IPv6.
    let checked = Checked::of(&mut check(&["http://example.com:81"], &[six.rule("example.com", 81)]));
    assert_eq!((checked.codes(), checked.exit()), (vec![], 0), "{}", checked.stderr());
}

#[test]
fn several_sites_and_files_are_checked_together() {
    let folder = crate::harness::folder(&[("bad.txt", "User-agent: *\nDisallow: private/\n")]);
    let [good, gone] = [Zoo::start(rules), Zoo::start(|_| Reply::Octets(response("404 Not Found", &[], "")))];
    let rules = [good.rule("a.example", 8080), gone.rule("b.example", 8080)];
    let mut command = check(&["http://a.example:8080", "bad.txt", "http://b.example:8080/robots.txt"], &rules);
    let checked = Checked::of(command.current_dir(folder.path()));
    assert_eq!(checked.exit(), 1, "{}", checked.stderr());
    assert_eq!(
        findings_of(&checked),
        ["http://b.example:8080/robots.txt answer-missing", "bad.txt path-without-slash"]
    );
    assert_eq!(checked.crawlers(), GO_BY_RULES);
    // Findings about answers are chosen and weighed as others are.
    let ignored = Checked::of(check(&["http://b.example:8080"], &rules).args(["--ignore", "answer-missing"]));
    assert_eq!((findings_of(&ignored), ignored.crawlers()), (vec![], ALLOW_ALL));
    let denied = Checked::of(check(&["http://b.example:8080"], &rules).args(["--deny", "notes"]));
    assert_eq!(denied.exit(), 1);
    let selected = Checked::of(check(&["http://b.example:8080"], &rules).args(["--select", "answer-tls"]));
    assert_eq!((findings_of(&selected), selected.exit()), (vec![], 0));
}
