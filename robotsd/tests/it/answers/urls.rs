//! Tests commands that accept the URL of a robots.txt instead of a file.

use super::cases::brotli;
use super::{TIMEOUT, URL, down, rule};
use crate::harness::*;

const STRICT: &str = "User-agent: *\nDisallow: /\n";
const OPEN: &str = "User-agent: *\nDisallow: /private/\n";

fn site() -> Origin {
    Origin::answering(|asked| match asked.target.as_str() {
        "/robots.txt" => redirect("301 Moved", "/rules"),
        "/rules" if asked.accepts("br") => response("200 OK", &["Content-Encoding: br"], brotli(STRICT.as_bytes())),
        "/open.txt" => response("200 OK", &[], OPEN),
        "/page" => response("200 OK", &[], "<!DOCTYPE html><html></html>"),
        "/down" => response("503 Service Unavailable", &[], ""),
        "/zstd" => response("200 OK", &["Content-Encoding: zstd"], "x"),
        "/large" => response("200 OK", &[], "#".repeat((8 << 20) + 1)),
        _ => response("404 Not Found", &[], ""),
    })
}

fn command(words: &[&str], site: &Origin) -> Command {
    let mut command = robotsd();
    command.args(words).args(["--connect-to", &rule(site.address, "", 8080), TIMEOUT]);
    command
}

#[test]
fn every_command_with_a_robots_txt_argument_accepts_a_url() {
    let site = site();
    let tests = "[[disallow]]\nagents = [\"Googlebot\"]\npaths = [\"/\"]\n";
    let log = "192.0.2.1 - - [01/Nov/2026:00:00:00 +0000] \"GET /x HTTP/1.1\" 200 1 \"-\" \"Mozilla/5.0 (compatible; \
               GPTBot/1.2; +https://openai.com/gptbot)\"\n";
    let named = format!("robots = \"http://example.com:8080\"\n{tests}");
    let folder = folder(&[("open.txt", OPEN), ("tests.toml", tests), ("named.toml", &named), ("access.log", log)]);
    for (words, want) in [
        (vec!["explain", "--robots", URL, "--user-agent", "GPTBot", "/x"], "http://example.com:8080/robots.txt:2"),
        (vec!["diff", "open.txt", URL], "http://example.com:8080/robots.txt"),
        (vec!["diff", "http://example.com:8080/open.txt", URL], "http://example.com:8080/robots.txt:2: disallow /"),
        (vec!["test", "tests.toml", "--robots", URL], "1 expected, all met"),
        (vec!["test", "named.toml"], "1 expected, all met"),
        (vec!["replay", "access.log", "--robots", URL], "http://example.com:8080/robots.txt"),
        (vec!["replay", "access.log", "--robots", "open.txt", "--against", URL], "http://example.com:8080/robots.txt"),
    ] {
        assert_has(run(command(&words, &site).current_dir(folder.path())).succeeded(), &[want]);
    }
}

#[test]
fn a_url_without_a_usable_robots_txt_leads_to_one_error_message() {
    let site = site();
    let disallowed = "crawlers treat the whole site as disallowed (RFC 9309, section 2.3.1.4)\n";
    let allowed = "crawlers treat everything as allowed (RFC 9309, section 2.3.1.3)\n";
    let zstd = ": the answer cannot be read: the body is encoded as \"zstd\", which the request does not accept\n";
    let ftp = "\"ftp://example.com/robots.txt\" cannot be fetched: ftp is not supported; use http or https\n";
    for (url, want) in [
        ("/down", format!(": 503 Service Unavailable; {disallowed}")),
        ("/none", format!(": 404 Not Found; {allowed}")),
        ("/page", ":1:1: error: the file begins with ".to_owned()),
        ("/zstd", zstd.to_owned()),
        ("/large", ": the response is larger than 8 MiB, so it cannot be a robots.txt\n".to_owned()),
        ("ftp://example.com/robots.txt", ftp.to_owned()),
        ("https://user:secret@example.com/", "\"https://…@example.com/\" contains a user name".to_owned()),
    ] {
        // A message about a fetched document begins with its URL.
        let is_here = url.starts_with('/');
        let (url, want) =
            if is_here { (format!("{URL}{url}"), format!("{URL}{url}{want}")) } else { (url.to_owned(), want) };
        let explain = ["explain", "--robots", &url, "--user-agent", "GPTBot", "/x"];
        let output = run(&mut command(&explain, &site)).ends_with(2);
        assert_eq!(output.out, "", "{url}");
        assert!(output.error.starts_with(&format!("robotsd: {want}")), "{url}: {}", output.error);
    }
    run(robotsd().args(["test", "/dev/null", "--robots", URL, "--connect-to", &down("", 8080)])).ends_with(2);
}

#[test]
fn invalid_fetch_options_are_rejected() {
    for (argument, want) in [
        ("--connect-to=example.com:443", "write HOST:PORT:ADDRESS:PORT"),
        ("--timeout=0s", "write a time from 100ms to 10m"),
        ("--timeout=soon", "write a time from 100ms to 10m"),
    ] {
        assert_has(run(robotsd().args(["check", URL, argument])).failed(2), &[want]);
    }
}

#[test]
fn the_error_for_a_site_name_in_place_of_a_file_suggests_the_url() {
    for words in [&["check", "example.com"][..], &["explain", "--robots", "example.com", "--user-agent", "GPTBot", "/"]]
    {
        let error = run(robotsd().args(words)).failed(2);
        let want = "No such file or directory (os error 2): if you mean the site, write https://example.com\n";
        assert!(error.ends_with(want), "{error}");
    }
}

/// `--config` must accept only files, because the config decides what is served.
#[test]
fn a_config_is_never_fetched_from_a_url() {
    let error = run(&mut command(&["explain", "--config", URL, "--user-agent", "GPTBot", "/x"], &site())).failed(2);
    assert_has(error, &["http://example.com:8080"]);
}
