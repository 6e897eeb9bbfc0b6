//! Sends hosts and URLs that a client can choose through real servers. None may bypass a rule, and
//! none may prevent a browser from getting its page.

use super::super::decision_hosts;
use super::server::{SERVERS, Stage};
use super::with_each;
use crate::harness::*;

/// Only one of this many generated hosts is tried.
fn every() -> usize {
    if is_long() { 32 } else { 251 }
}

#[test]
fn no_host_or_url_bypasses_a_rule_through_real_servers() {
    let named = r"h.test:? h.test:# h.test:80?x h.test:80@x h.test:@ h.test:80\ h.test:,x h.test:99999 [h.test]"
        .split_whitespace();
    let hosts: Vec<_> = decision_hosts::hosts().into_iter().step_by(every()).chain(named.map(str::to_owned)).collect();
    let heads: Vec<_> = hosts
        .iter()
        .map(|host| format!("GET /drafts/x HTTP/1.1\r\nHost: {host}\r\n"))
        .chain(hosts.iter().zip(["http", "ftp", "HTTPS", "x"].iter().cycle()).map(|(host, scheme)| {
            let host = host.replace(['/', ' '], "");
            format!("GET {scheme}://{host}/drafts/x HTTP/1.1\r\nHost: h.test\r\n")
        }))
        .chain(["GET drafts/x HTTP/1.1\r\nHost: h.test\r\n".to_owned(), "GET /drafts/x HTTP/1.0\r\n".to_owned()])
        .collect();
    let faults = with_each(|server, program| {
        let named = |text: String| text.replace("hosts       = []", "hosts = [\"h.test\"]");
        let stage = Stage::set(server, program, "", &named);
        let faults = heads.iter().filter_map(|head| fault(&stage, head));
        faults.map(|fault| format!("{}: {fault}\n", server.name)).collect::<String>()
    });
    println!("{} requests through {} servers, by a crawler and by a browser", heads.len(), SERVERS.len());
    assert_eq!(faults.concat(), "");
}

/// Returns what is wrong with the responses to a request, if anything. At first, a server may not
/// know yet that robotsd is available, and let the request pass; a real error does not go away.
fn fault(stage: &Stage, head: &str) -> Option<String> {
    let is_wrong = |agent: &str, wrong: &dyn Fn(&Answer) -> bool| {
        let request = format!("{head}User-Agent: {agent}\r\nConnection: close\r\n\r\n");
        (0..10).all(|before| {
            thread::sleep(Duration::from_millis(100 * before));
            stage.offer(request.as_bytes()).is_some_and(|answer| wrong(&answer))
        })
    };
    if is_wrong(GPTBOT, &serves_the_page) {
        return Some(format!("a crawler gets the page: {head:?}"));
    }
    // A server's own refusal usually has status 400. Without TLS, Envoy responds with 403.
    let is_own = |answer: &Answer| head.contains("HTTPS://") && answer.field("vary").is_none();
    is_wrong(FIREFOX, &|answer| answer.status == 403 && !is_own(answer))
        .then(|| format!("a browser is refused: {head:?}"))
}

/// Reports whether the site received a request for the page. The site's response contains the
/// request that it received; a request for `/` with a query does not count.
fn serves_the_page(answer: &Answer) -> bool {
    let target = answer.body.split(' ').nth(1).unwrap_or_default();
    answer.field("served-by") == Some("site") && target.split('?').next().is_some_and(|path| path.contains("drafts"))
}
