//! Tests several replicas. Databases that read their files must get the same counts as their
//! boards, and Prometheus must detect that replicas disagree.

use std::cell::Cell;

use super::identity::{TRUSTING, crawlers, known_by};
use super::programs::{debian, python_with};
use super::prometheus::Prometheus;
use crate::harness::*;
use crate::played_dns::{PlayedDns, ptr};

const PAGE: &str = include_str!("../../../docs/src/howto/replicas.md");
const ALERTS: &str = include_str!("../../../config/monitoring/alerts.yml");

const REPLICAS: [&str; 3] = ["a", "b", "c"];
const ROBOTS: &str = "User-agent: *\nDisallow: /drafts/\n";

/// Columns that occur in the board, in its files and in the log.
const COLUMNS: &str = "site crawler identity reads allowed disallowed refused tagged observed passed limited";

/// Script that reads a query from standard input, and prints the result rows as JSON.
const DUCKDB: &str = "import duckdb, json, sys; print(json.dumps(duckdb.sql(sys.stdin.read()).fetchall()))";
const CLICKHOUSE: &str = "import chdb, json, sys; \
    print(json.dumps([json.loads(row) for row in str(chdb.query(sys.stdin.read(), 'JSONCompactEachRow')).splitlines() if row]))";

/// Returns a code block of the page, by its language and its first line.
fn recipe(language: &str, title: &str) -> &'static str {
    let blocks = PAGE.split("```").skip(1).step_by(2);
    let mut of_language = blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    of_language.find(|block| block.starts_with(title)).unwrap_or_else(|| panic!("no recipe {title:?}"))
}

/// Returns a database's answer to the query of a recipe, with `/mnt/*` replaced by these folders;
/// `None` if the database is not installed.
fn answer(title: &str, machines: &str) -> Option<Value> {
    let (module, package, program) = match title.split(',').next()? {
        "-- DuckDB" => ("duckdb", "duckdb", DUCKDB),
        _ => ("chdb", "chdb-core", CLICKHOUSE),
    };
    let query = recipe("sql", title).replace("/mnt/*", machines);
    let output = run_with(python_with(module, package)?.args(["-c", program]), query.as_bytes());
    assert!(output.code == Some(0), "{query}");
    Some(output.json())
}

/// Returns the common columns of the board's CSV.
fn rows_of_csv(text: &str) -> Value {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let places: Vec<_> =
        COLUMNS.split(' ').map(|column| head.iter().position(|name| *name == column).unwrap()).collect();
    let row = |line: Vec<&str>| {
        let value = |&place: &usize| match line[place].parse::<u64>() {
            Ok(number) => Value::from(number),
            Err(_) => Value::from(line[place]),
        };
        places.iter().map(value).collect::<Vec<_>>()
    };
    json!(lines.map(row).collect::<Vec<_>>())
}

/// Returns the rows in the tables of the page: crawler, identity, allowed and disallowed requests.
fn rows_of_page(page: &str) -> Vec<(String, String, u64, u64)> {
    let mut rows: Vec<_> = page.split("<span class=\"name\"><b>").skip(1).map(row_of_page).collect();
    rows.sort();
    rows
}

/// Returns a row of the page. `row` begins with the line that expands to the details of a crawler.
fn row_of_page(row: &str) -> (String, String, u64, u64) {
    let fact = |name: &str| {
        let (_, rest) = row.split_once(&format!("<dt>{name}</dt><dd>")).unwrap();
        rest.split(['<', ' ', ',']).next().unwrap()
    };
    let crawler = row.split("</b>").next().unwrap();
    let number = |name: &str| fact(name).parse().unwrap();
    (crawler.to_owned(), fact("Identity").to_owned(), number("Allowed"), number("Disallowed"))
}

fn rows_of_answer(rows: &Value) -> Vec<(String, String, u64, u64)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |row: &Value| (text(&row[1]), text(&row[2]), row[4].as_u64().unwrap(), row[5].as_u64().unwrap());
    let mut rows: Vec<_> = rows.as_array().unwrap().iter().map(row).collect();
    rows.sort();
    rows
}

fn merged(folders: impl IntoIterator<Item = PathBuf>) -> Value {
    rows_of_csv(&run(robotsd().args(["board", "--csv", "--merge"]).args(folders)).succeeded())
}

/// Creates three replicas with separate files.
fn machines(names: &PlayedDns) -> Folder {
    let config = known_by(names, TRUSTING, "wait = \"250ms\"").keys("mode = \"refuse\"");
    let config = config.tables("[board]\nsees_all = true\nreplicas = 3").log_requests();
    let config = config.tables("access_path = \"access.jsonl\"").to_string();
    let all = folder(&[]);
    for name in REPLICAS {
        for (file, text) in [
            ("robotsd.toml", &*config),
            ("robots.txt", ROBOTS),
            ("crawlers.toml", &crawlers()),
            ("pages/a.html", "a\n"),
        ] {
            all.write(format!("{name}/{file}"), text);
        }
    }
    all
}

/// Sends requests of a verified crawler, an impostor, a crawler that cannot be verified, an
/// unregistered crawler, and a person. The numbers differ between replicas. Returns the number of
/// requests.
fn play(running: &Running, at: usize) -> usize {
    const REAL: &str = "8.8.4.1";
    const IMPOSTOR: &str = "9.9.9.9";
    const EXAMPLE: &str = "ExampleBot/1.0 (+https://bot.example/about)";
    let requests = Cell::new(0);
    let get = |client: &str, agent: &str, path: &str| {
        running.request("GET", path, &[("User-Agent", agent), ("X-Forwarded-For", client)]);
        requests.set(requests.get() + 1);
    };
    let is_known = |client: &str, want: &str| {
        wait_until(want, || {
            get(client, EXAMPLE, "/a.html");
            let board = running.ask_admin("GET /board.json").json();
            let mut crawlers = board["sites"][0]["crawlers"].as_array().into_iter().flatten();
            crawlers.any(|crawler| crawler["identity"] == want)
        });
    };
    is_known(REAL, "verified");
    is_known(IMPOSTOR, "impostor");
    for _ in 0..=at {
        get(REAL, EXAMPLE, "/robots.txt");
        get(IMPOSTOR, EXAMPLE, "/drafts/1?page=2");
        get("198.51.100.7", "CCBot/2.0 (https://commoncrawl.org/faq/)", "/a.html");
        get("198.51.100.7", FIREFOX, "/drafts/2");
    }
    // A fetch on the first replica must not count on the last one.
    for path in ["/drafts/1", "/a.html", "/%64rafts/2"] {
        (0..at).for_each(|_| get(REAL, EXAMPLE, path));
    }
    if at == 1 {
        get("198.51.100.9", "Unknown-Crawler/3 (+https://unknown.example/)", "/robots.txt?x=1");
        get("198.51.100.9", "Unknown-Crawler/3 (+https://unknown.example/)", "/drafts/");
    }
    requests.get()
}

#[test]
fn duckdb_and_clickhouse_queries_return_the_counts_of_the_board() {
    let names = PlayedDns::start();
    names.confirmed("8.8.4.1", "crawl-1.bot.example").names("9.9.9.9", ptr(&["host.other.example"]));
    let all = machines(&names);
    let path = |name: &str| all.at(name);
    for (at, name) in REPLICAS.into_iter().enumerate() {
        let mut running = Running::start_with(&path(name).join("robotsd.toml"));
        let requests = play(&running, at);
        // When the process ends, it waits at most a second for the log. So the test waits for all
        // lines first.
        let logged = || all.read(format!("{name}/access.jsonl")).lines().count();
        wait_until("a line of each request", || logged() == requests);
        // The process writes its last counts when it ends.
        running.signal("TERM");
        running.wait_for_end();
    }
    let board = merged(REPLICAS.map(|name| path(name).join("state")));
    let of = |crawler: &str, identity: &str| {
        board.as_array().unwrap().iter().find(|row| row[1] == crawler && row[2] == identity).cloned()
    };
    let real = of("ExampleBot", "verified").unwrap();
    assert_eq!((&real[3], &real[5], &real[6]), (&6.into(), &6.into(), &6.into()), "{board}");
    assert_eq!(of("ExampleBot", "impostor").unwrap()[5], 6, "{board}");
    assert_eq!(of("CCBot", "claimed").unwrap()[4], 6, "{board}");
    let unknown = of("Unknown-Crawler", "claimed").unwrap();
    assert_eq!((&unknown[3], &unknown[5]), (&1.into(), &1.into()), "{board}");

    let every = all.at("*");
    let tables = [
        "-- DuckDB, the board's files",
        "-- ClickHouse, the board's files",
        "-- DuckDB, the log of requests",
        "-- ClickHouse, the log of requests",
    ];
    for title in tables {
        if let Some(answer) = answer(title, every.to_str().unwrap()) {
            assert_eq!(answer, board, "{title}");
        }
    }
    // The page of a replica must show the content of its own files. The second replica got requests
    // of all kinds of clients.
    for name in if is_long() { &REPLICAS[..] } else { &REPLICAS[1..2] } {
        let Some(own) = answer(tables[0], path(name).to_str().unwrap()) else { return };
        assert_eq!(own, merged([path(name).join("state")]));
        let running = Running::start_with(&path(name).join("robotsd.toml"));
        let own = rows_of_answer(&own);
        let page = || rows_of_page(&running.ask_admin("GET /board").body);
        wait_until("the page", || page() == own);
    }
}

#[test]
fn an_alert_fires_while_replicas_serve_different_versions() {
    if debian("prometheus", "prometheus").is_none() {
        return;
    }
    let config = Config::new().files_of("shop").tables("[[admin.listener]]\naddress = \"127.0.0.1:0\"").robots(ROBOTS);
    let replicas = REPLICAS.map(|_| config.folder());
    let running = replicas.each_ref().map(|replica| replica.start());
    let publish = |replica: &Folder| {
        replica.replace("robots.txt", format!("{ROBOTS}Disallow: /more/\n"));
    };
    let folder = folder(&[]);
    let alerts = ALERTS.replace("for: 15m", "for: 1s");
    let prometheus = Prometheus::start(folder.path(), &running.each_ref().map(Running::admin), &alerts);
    prometheus.answers("count(up == 1) == 3");
    let disagree = recipe("promql", "count").trim();
    let firing = || {
        let result = prometheus.query("ALERTS{alertstate=\"firing\"}")["data"]["result"].take();
        result.as_array().unwrap().iter().map(|alert| alert["metric"]["alertname"].clone()).collect::<Vec<_>>()
    };
    prometheus.answers("count(robotsd_site_info) == 3");
    assert!(!prometheus.answer(disagree));
    // A late scrape also raises an alert, for a short time.
    wait_until("no alert", || firing().is_empty());

    publish(&replicas[2]);
    prometheus.answers(&format!("({disagree}) == 2"));
    wait_until("the alert", || firing() == ["RobotsdFleetDisagrees"]);
    publish(&replicas[0]);
    publish(&replicas[1]);
    wait_until("the end of the alert", || !prometheus.answer(disagree) && firing().is_empty());
    prometheus.answers("count(robotsd_site_info) == 3");
}
