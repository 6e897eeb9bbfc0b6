//! Tests whether a crawler can get a disallowed page by spelling its target differently. The
//! crawler sends requests through a real robotsd to real servers.
//!
//! All tests check one property: no response to a crawler contains the content of a private page.
//! Each server decides which page a spelling means, so these tests need not know how robotsd reads
//! a path. In addition, requests that RFC 9309 allows must be forwarded, and browsers must never be
//! refused.
//!
//! The rules are in `tests/cases/spellings/robots.txt`, the pages in `private.jsonl`, spellings
//! that once got through in `known.jsonl`, and the servers' scripts in `upstreams`.
//! `SPELLINGS=3000` tries that many random spellings of each page, and reports every one that gets
//! through.

mod client;
mod harmless;
mod target;
mod upstream;

use std::fmt::Write;

use tower_robots::rules::RequestPath;

use crate::harness::*;

use self::client::{Client, Greeting, refusal};
use self::target::{Family, METHODS, Numbers, Page};
use self::upstream::{JAVA, SERVERS, Upstream};

/// A header of a crawler that identifies itself but that no group names.
const CRAWLER: &str = "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.test/bot)";

const MARKER: &str = "PRIVATE-CONTENT";
const PUBLIC: [&str; 6] =
    ["/index.html", "/pub/x", "/private/pub/y", "/docs/a.html", "/wiki/Talk:Foo", "/.well-known/x"];

/// Returns the number of random spellings per page: 25, 75 with `ROBOTSD_LONG`, or `SPELLINGS`.
fn by_chance() -> usize {
    let usual = if is_long() { 75 } else { 25 };
    std::env::var("SPELLINGS").map_or(usual, |count| count.parse().expect("SPELLINGS is a number"))
}

/// Returns the number of servers that share the spellings. Each server gets one in this many
/// spellings. With `ROBOTSD_LONG`, or in a longer search, each server gets all spellings.
fn share() -> usize {
    if is_long() || std::env::var_os("SPELLINGS").is_some() { 1 } else { 24 }
}

#[test]
fn no_spelling_gets_a_crawler_past_a_rule() {
    let tree = tree();
    attack(&upstream::start(SERVERS, tree.path()));
}

/// A separate test, because these servers take seconds to start.
#[test]
fn no_spelling_gets_a_crawler_past_a_rule_in_front_of_a_servlet_container() {
    let tree = tree();
    attack(&upstream::start(JAVA, tree.path()));
}

#[test]
fn a_browser_is_never_refused_regardless_of_the_spelling_of_the_target() {
    let origin = Origin::start();
    let (_folder, running) = proxy(&[("echo".to_owned(), origin.address.to_string())]);
    let mut client = Client::new(running.address, "s0.test", Greeting::None);
    let mut numbers = Numbers(2);
    let step = if is_long() { 1 } else { 6 };
    for page in pages() {
        // A sample of spellings is enough, because the decision about a browser does not depend on
        // the spelling.
        for (target, _) in target::spellings(&page, by_chance(), &mut numbers).into_iter().step_by(step) {
            let target = with_host(&target, "s0.test");
            let reply = client.get(&target, FIREFOX);
            assert_eq!(refusal(&reply), None, "{}", String::from_utf8_lossy(&target));
            // If robotsd rejects a target, every client must get 400.
            assert!(matches!(reply.status, 200 | 400), "{}: {reply:?}", String::from_utf8_lossy(&target));
        }
    }
    for method in METHODS {
        let mut client = Client::new(running.address, "s0.test", Greeting::None);
        assert_eq!(refusal(&client.ask(method, b"/private/x", FIREFOX)), None, "{method}");
    }
}

/// A private page that a crawler has received.
struct Bypass {
    upstream: &'static str,
    family: String,
    request: String,
    rule: String,
    served: String,
}

/// Sends each spelling of each page to every upstream. Fails if a crawler receives a private page.
fn attack(upstreams: &[Upstream]) {
    if upstreams.is_empty() {
        return;
    }
    let sites: Vec<_> =
        upstreams.iter().map(|upstream| (upstream.name.to_owned(), upstream.address.to_string())).collect();
    let (_folder, running) = proxy(&sites);
    let pages = pages();
    let mut numbers = Numbers(1);
    let spellings: Vec<_> =
        pages.iter().map(|page| (page, target::spellings(page, by_chance(), &mut numbers))).collect();
    let count: usize = spellings.iter().map(|(_, spellings)| spellings.len()).sum();
    let bypasses: Vec<_> = thread::scope(|scope| {
        let running = &running;
        let spellings = &spellings;
        let attack = |(number, upstream): (usize, &'_ Upstream)| {
            let name = upstream.name;
            scope.spawn(move || {
                let began = Instant::now();
                let bypasses = attack_one(running, number, name, spellings);
                println!("{name}: one in {} of {count} spellings, {:.1?}", share(), began.elapsed());
                bypasses
            })
        };
        let attacking: Vec<_> = upstreams.iter().enumerate().map(attack).collect();
        attacking.into_iter().flat_map(|attacking| attacking.join().expect("see above")).collect()
    });
    assert!(bypasses.is_empty(), "{}", report(upstreams, &bypasses));
}

fn attack_one(
    running: &Running,
    number: usize,
    upstream: &'static str,
    spellings: &[(&Page, BTreeMap<Vec<u8>, Family>)],
) -> Vec<Bypass> {
    let host = &*format!("s{number}.test");
    let share = share();
    let mut bypasses = Vec::new();
    let mut note = |family: &str, method: &str, target: &[u8], rule: &str, body: &str| {
        bypasses.push(Bypass {
            upstream,
            family: family.to_owned(),
            request: format!("{method} {}", String::from_utf8_lossy(target)),
            rule: rule.to_owned(),
            served: body.trim().to_owned(),
        });
    };
    // robotsd has two code paths for HTTP/1. The earlier requests on a connection determine which
    // path is used.
    let mut clients = [Greeting::None, Greeting::Options].map(|greeting| Client::new(running.address, host, greeting));
    let mut turn = 0_usize;
    for (page, spellings) in spellings {
        let plain = target::canonical(page);
        // This is a precondition: the page exists, and a browser can get it.
        let reply = clients[0].get(&plain, FIREFOX);
        assert!(reply.body.contains(MARKER), "{upstream}: {}: {reply:?}", page.path);
        // Some pages also respond to paths below their own path. If the rule ends in `$`, it covers
        // only one of these paths.
        if page.rule.ends_with('$')
            && clients[0].get(&[&plain[..], b"/and/more"].concat(), FIREFOX).body.contains(MARKER)
        {
            continue;
        }
        for agent in [GPTBOT, CRAWLER] {
            for method in METHODS {
                let mut client = Client::new(running.address, host, Greeting::None);
                let reply = client.ask(method, &plain, agent);
                if reply.body.contains(MARKER) {
                    note("Method", method, &plain, &page.rule, &reply.body);
                }
            }
        }
        for (target, family) in spellings.iter().skip(number % share).step_by(share) {
            let target = with_host(target, host);
            turn += 1;
            let agent = [GPTBOT, CRAWLER][turn % 2];
            let reply = clients[(turn / 2) % 2].get(&target, agent);
            // A rule for `/private/` does not cover `/private`, but some servers respond to both
            // with the same page.
            let is_another = reply.body.contains("index.html") && !target::ends_as_folder(&target);
            if reply.body.contains(MARKER) && !is_another {
                note(&format!("{family:?}"), "GET", &target, &page.rule, &reply.body);
            }
        }
    }
    for line in lines("known.jsonl") {
        let target = line["target"].as_str().unwrap().as_bytes();
        for agent in [GPTBOT, CRAWLER] {
            for client in &mut clients {
                let reply = client.get(target, agent);
                if reply.body.contains(MARKER) {
                    note("Known", "GET", target, line["kind"].as_str().unwrap(), &reply.body);
                }
            }
        }
    }
    bypasses
}

/// Reports how many spellings got through for each upstream. Then lists some of each kind, with the
/// path forms that robotsd compared with the rules.
fn report(upstreams: &[Upstream], bypasses: &[Bypass]) -> String {
    const EXAMPLES: usize = 6;
    let families = Family::ALL.iter().map(|family| format!("{family:?}")).chain(["Method", "Known"].map(str::to_owned));
    let families: Vec<_> = families.collect();
    let mut report = format!("{} requests of crawlers got a private page\n| upstream |", bypasses.len());
    families.iter().for_each(|family| write!(report, " {family} |").unwrap());
    for upstream in upstreams {
        write!(report, "\n| {} |", upstream.name).unwrap();
        for family in &families {
            let fits = |bypass: &&Bypass| bypass.upstream == upstream.name && bypass.family == *family;
            write!(report, " {} |", bypasses.iter().filter(fits).count()).unwrap();
        }
    }
    report.push('\n');
    let limit = if std::env::var_os("SPELLINGS").is_some() { usize::MAX } else { EXAMPLES };
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for bypass in bypasses {
        let seen = seen.entry((bypass.upstream, &bypass.family)).or_default();
        *seen += 1;
        if *seen <= limit {
            let Bypass { upstream, family, request, rule, served } = bypass;
            writeln!(report, "{upstream}: {family}: {request}: past {rule}: served {served:?}").unwrap();
            let target = request.split_once(' ').unwrap().1;
            let path = RequestPath::new(target.as_bytes());
            for (form, path) in path.forms() {
                writeln!(report, "    {}: {}", form.as_str(), String::from_utf8_lossy(path)).unwrap();
            }
        }
    }
    report
}

/// Starts robotsd with the rules and these sites. Their hosts are `s0.test`, `s1.test` and so on.
fn proxy(sites: &[(String, String)]) -> (Folder, Running) {
    let mut config = Config::refusing().keys("workers = 2");
    for (number, (_, address)) in sites.iter().enumerate() {
        config = config.upstream(&format!("s{number}"), address).tables(format!("hosts = [\"s{number}.test\"]"));
    }
    config.robots(fs::read_to_string(case("robots.txt")).unwrap()).start()
}

fn case(name: &str) -> PathBuf {
    project("robotsd/tests/cases/spellings").join(name)
}

fn lines(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(case(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect("a case a line")).collect()
}

fn pages() -> Vec<Page> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    lines("private.jsonl").iter().map(|line| Page { rule: text(line, "rule"), path: text(line, "path") }).collect()
}

/// Creates the files that all upstreams serve.
fn tree() -> Folder {
    let folder = upstream::readable_folder();
    let file = |path: &str, text: String| folder.write(path.trim_start_matches('/'), text);
    for line in lines("private.jsonl") {
        let path = line["file"].as_str().unwrap();
        file(path, format!("{MARKER} {path}\n"));
    }
    for path in PUBLIC {
        file(path, format!("public {path}\n"));
    }
    folder
}

/// Inserts the host of the site into an absolute URL.
fn with_host(target: &[u8], host: &str) -> Vec<u8> {
    String::from_utf8_lossy(target).replace("{host}", host).into_bytes()
}
