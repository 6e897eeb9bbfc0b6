//! Tests `robotsd check` with URLs of sites and of files, for every kind of response.

mod cases;
mod formats;
mod names;
mod sitemaps;
mod specification;
mod table;
mod tls;
mod urls;

use self::cases::{CASES, Case};
use self::table::{Row, Table};
use crate::harness::*;

/// URL of a case's server. Because the URL contains a port, the check does not request other names
/// of the site.
const URL: &str = "http://example.com:8080";

/// Timeout that is long enough for a busy machine.
const TIMEOUT: &str = "--timeout=60s";

/// Timeout for a server that does not respond, as the table of the page shows it.
const SHORT_TIMEOUT: &str = "--timeout=3s";

/// The JSON output of a check.
struct Checked {
    output: Ended,
    findings: Vec<Value>,
    /// The responses; `None` if the argument does not name a robots.txt.
    answers: Option<Value>,
}

impl Checked {
    fn of(command: &mut Command) -> Self {
        let output = run(command.args(["--format", "json"]));
        let (findings, others): (Vec<_>, Vec<_>) =
            output.json_lines().into_iter().partition(|line| line.get("code").is_some());
        let answers = others.into_iter().find(|line| line.get("answers").is_some());
        Self { output, findings, answers }
    }

    fn exit(&self) -> i32 {
        self.output.code.unwrap()
    }

    fn stderr(&self) -> &str {
        &self.output.error
    }

    /// Returns each code once, in output order.
    fn codes(&self) -> Vec<&str> {
        let mut codes: Vec<&str> = self.findings.iter().map(|finding| finding["code"].as_str().unwrap()).collect();
        codes.dedup();
        codes
    }

    /// Returns the response to the URL in the command line.
    fn answer(&self) -> &Value {
        &self.answers.as_ref().unwrap_or_else(|| panic!("no answers: {}", self.stderr()))["answers"][0]
    }

    fn crawlers(&self) -> &str {
        self.answer()["crawlers"].as_str().unwrap()
    }
}

/// Creates a check of URLs. `rules` are values of `--connect-to`, which map hosts and ports to
/// servers on loopback.
fn check(urls: &[&str], rules: &[String]) -> Command {
    check_within(TIMEOUT, urls, rules)
}

/// Like [`check`], with another timeout per request.
fn check_within(timeout: &str, urls: &[&str], rules: &[String]) -> Command {
    let mut command = robotsd();
    command.args(["check", timeout]).args(urls);
    for rule in rules {
        command.args(["--connect-to", rule]);
    }
    command
}

/// Returns a rule that maps a host and port to an address without a server. The system never
/// assigns the port of that address.
fn down(host: &str, port: u16) -> String {
    rule(SocketAddr::from(([127, 0, 0, 1], 1)), host, port)
}

/// Returns a rule that maps a host and port to an address.
fn rule(address: SocketAddr, host: &str, port: u16) -> String {
    let ip = if address.is_ipv6() { format!("[{}]", address.ip()) } else { address.ip().to_string() };
    format!("{host}:{port}:{ip}:{}", address.port())
}

/// Checks a site that this server serves.
fn checked_at(server: &Origin) -> Checked {
    Checked::of(&mut check(&[URL], &[rule(server.address, "", 8080)]))
}

fn checked(case: &Case) -> Checked {
    let server = Origin::answering(case.reply);
    let timeout = if case.codes == "answer-timeout" { SHORT_TIMEOUT } else { TIMEOUT };
    Checked::of(&mut check_within(timeout, &[URL], &[rule(server.address, "", 8080), down("", 8081)]))
}

#[test]
fn every_response_is_interpreted_as_in_the_table() {
    let rows: Vec<Row> = thread::scope(|scope| {
        let running: Vec<_> = CASES.iter().map(|case| scope.spawn(move || (case, checked(case)))).collect();
        let rows = running.into_iter().map(|case| case.join().unwrap());
        let row = |(case, checked): (&Case, Checked)| {
            let says = case.says;
            let found = checked.codes().join(" ");
            assert_eq!(found, case.codes, "{says}: {:?} {}", checked.findings.first(), checked.stderr());
            assert_eq!((checked.crawlers(), checked.exit()), case.outcome, "{says}");
            Row::of(says, &checked)
        };
        rows.map(row).collect()
    });
    let unreachable = Checked::of(&mut check(&[URL], &[down("", 8080)]));
    assert_eq!((unreachable.crawlers(), unreachable.exit()), (cases::DISALLOW_ALL, 2));
    // This name has an empty label, so no resolver is queried.
    let unknown = Checked::of(&mut check(&["http://no..name:8080"], &[]));
    assert_eq!((unknown.crawlers(), unknown.exit()), (cases::DISALLOW_ALL, 2));
    let others = [Row::of("no server at the address", &unreachable), Row::of("no such name", &unknown)];
    Table::of_the_page().check(rows.into_iter().chain(tls::rows()).chain(others));
}

#[test]
fn every_redirect_status_is_followed() {
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let checked = checked_at(&Origin::answering(move |asked| match asked.target.as_str() {
            "/robots.txt" => redirect(status, "rules?v=1"),
            "/rules?v=1" => response("200 OK", &["Content-Type: text/plain"], cases::RULES),
            other => panic!("{other}"),
        }));
        assert_eq!((checked.codes(), checked.exit()), (vec![], 0), "{status}: {}", checked.stderr());
        assert_eq!(checked.answer()["redirects"][0]["to"], "http://example.com:8080/rules?…");
    }
}
