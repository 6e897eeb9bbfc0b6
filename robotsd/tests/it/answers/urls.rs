//! URLs where other commands take a robots.txt.

use std::process::Command;

use super::zoo::{Reply, Zoo, brotli, redirect, response};
use super::{TIMEOUT, URL, down};
use crate::harness::{folder, robotsd, run};

const STRICT: &str = "User-agent: *\nDisallow: /\n";
const OPEN: &str = "User-agent: *\nDisallow: /private/\n";

fn site() -> Zoo {
    Zoo::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::Octets(redirect("301 Moved", "/rules")),
        "/rules" if asked.accepts("br") => {
            Reply::Octets(response("200 OK", &["Content-Encoding: br"], brotli(STRICT.as_bytes())))
        }
        "/open.txt" => Reply::Octets(response("200 OK", &[], OPEN)),
        "/page" => Reply::Octets(response("200 OK", &[], "<!DOCTYPE html><html></html>")),
        "/down" => Reply::Octets(response("503 Service Unavailable", &[], "")),
        "/zstd" => Reply::Octets(response("200 OK", &["Content-Encoding: zstd"], "x")),
        "/large" => Reply::Octets(response("200 OK", &[], "#".repeat((8 << 20) + 1))),
        _ => Reply::Octets(response("404 Not Found", &[], "")),
    })
}

fn command(words: &[&str], zoo: &Zoo) -> Command {
    let mut command = robotsd();
    command.args(words).args(["--connect-to", &zoo.rule("", 8080), TIMEOUT]);
    command
}

#[test]
fn every_command_that_takes_a_robots_txt_takes_its_url() {
    let zoo = site();
    let folder = folder(&[
        ("open.txt", OPEN),
        ("tests.toml", "[[disallow]]\nagents = [\"Googlebot\"]\npaths = [\"/\"]\n"),
        (
            "named.toml",
            "robots = \"http://example.com:8080\"\n[[disallow]]\nagents = [\"Googlebot\"]\npaths = [\"/\"]\n",
        ),
        (
            "access.log",
            "192.0.2.1 - - [01/Nov/2026:00:00:00 +0000] \"GET /x HTTP/1.1\" 200 1 \"-\" \"Mozilla/5.0 (compatible; \
             GPTBot/1.2; +https://openai.com/gptbot)\"\n",
        ),
    ]);
    for (words, want) in [
        (vec!["explain", "--robots", URL, "--user-agent", "GPTBot", "/x"], "http://example.com:8080/robots.txt:2"),
        (vec!["diff", "open.txt", URL], "http://example.com:8080/robots.txt"),
        (vec!["diff", "http://example.com:8080/open.txt", URL], "http://example.com:8080/robots.txt:2: disallow /"),
        (vec!["test", "tests.toml", "--robots", URL], "1 expected, all met"),
        (vec!["test", "named.toml"], "1 expected, all met"),
        (vec!["replay", "access.log", "--robots", URL], "http://example.com:8080/robots.txt"),
        (vec!["replay", "access.log", "--robots", "open.txt", "--against", URL], "http://example.com:8080/robots.txt"),
    ] {
        let output = run(command(&words, &zoo).current_dir(folder.path()));
        assert_eq!(output.code, Some(0), "{words:?}: {}", output.error);
        assert!(output.out.contains(want), "{words:?}: {}", output.out);
    }
}

#[test]
fn an_answer_that_is_no_robots_txt_is_one_clear_message() {
    let zoo = site();
    for (url, want) in [
        (
            "http://example.com:8080/down",
            "http://example.com:8080/down: 503 Service Unavailable; crawlers take the whole site as disallowed (RFC 9309, \
             section 2.3.1.4)\n",
        ),
        (
            "http://example.com:8080/none",
            "http://example.com:8080/none: 404 Not Found; crawlers take everything as allowed (RFC 9309, section 2.3.1.3)\n",
        ),
        ("http://example.com:8080/page", "http://example.com:8080/page:1:1: error: the file begins with "),
        (
            "http://example.com:8080/zstd",
            "http://example.com:8080/zstd: the answer cannot be read: it is encoded as \"zstd\", which the request does not \
             accept\n",
        ),
        (
            "http://example.com:8080/large",
            "http://example.com:8080/large: larger than 8 MiB, so it cannot be a robots.txt\n",
        ),
        (
            "ftp://example.com/robots.txt",
            "\"ftp://example.com/robots.txt\" cannot be fetched: ftp is not spoken here; use http or https\n",
        ),
        ("https://user:secret@example.com/", "\"https://…@example.com/\" holds a user name"),
    ] {
        let output = run(&mut command(&["explain", "--robots", url, "--user-agent", "GPTBot", "/x"], &zoo));
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""), "{url}: {}", output.error);
        assert!(output.error.starts_with(&format!("robotsd: {want}")), "{url}: {}", output.error);
    }
    let rule = down("", 8080);
    let output = run(robotsd().args(["test", "/dev/null", "--robots", URL, "--connect-to", &rule]));
    assert_eq!(output.code, Some(2), "{}", output.error);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (argument, want) in [
        ("--connect-to=example.com:443", "write HOST:PORT:ADDRESS:PORT"),
        ("--timeout=0s", "write a time from 100ms to 10m"),
        ("--timeout=soon", "write a time from 100ms to 10m"),
    ] {
        let error = run(robotsd().args(["check", URL, argument])).failed(2);
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn the_name_of_a_site_is_no_file_and_the_message_says_so() {
    for words in [&["check", "example.com"][..], &["explain", "--robots", "example.com", "--user-agent", "GPTBot", "/"]]
    {
        let output = run(robotsd().args(words));
        assert_eq!(output.code, Some(2));
        let want = "No such file or directory (os error 2): if the site is meant, write https://example.com\n";
        assert!(output.error.ends_with(want), "{}", output.error);
    }
}

/// The config is a file: what it says decides what is served.
#[test]
fn no_config_is_fetched() {
    let zoo = site();
    let error = run(&mut command(&["explain", "--config", URL, "--user-agent", "GPTBot", "/x"], &zoo)).failed(2);
    assert!(error.contains("http://example.com:8080"), "{error}");
}
