//! Tests the permissions of clients of the admin interface. Every combination of path, client, site
//! and kind of access is tried at a real listener. Also tests the audit log.

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /private/\n";

/// Right that a request needs, according to `docs/src/reference/admin-api.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Needs {
    Nothing,
    /// Read access. The request names no site.
    Look,
    /// A role, 1 to 3, for the site in the query, or for all sites if the query names no site.
    Role(u8),
    /// A role for all sites, even if the query names a site.
    All(u8),
    /// A role for the process itself.
    Process(u8),
}

/// All requests: method, path, query, and the rights needed with and without a site.
const REQUESTS: &[(&str, &str, &str, Needs, Needs)] = &[
    ("GET", "/", "", Needs::Nothing, Needs::Nothing),
    ("GET", "/livez", "", Needs::Nothing, Needs::Nothing),
    ("GET", "/readyz", "", Needs::Nothing, Needs::Nothing),
    ("GET", "/board.css", "", Needs::Nothing, Needs::Nothing),
    ("GET", "/status", "", Needs::Look, Needs::Look),
    ("GET", "/metrics", "", Needs::All(1), Needs::All(1)),
    ("GET", "/history", "", Needs::Role(1), Needs::Role(1)),
    ("GET", "/board", "", Needs::Role(1), Needs::Role(1)),
    ("GET", "/board.json", "", Needs::Role(1), Needs::Role(1)),
    ("GET", "/board.csv", "", Needs::Role(1), Needs::Role(1)),
    ("GET", "/board.csv", "fleet=1", Needs::Role(1), Needs::Role(1)),
    ("GET", "/board/rows", "", Needs::Role(1), Needs::Role(1)),
    ("POST", "/accept", "hash=0123456789abcdef", Needs::Role(2), Needs::Role(2)),
    ("POST", "/rollback", "", Needs::Role(2), Needs::Role(2)),
    ("GET", "/rollback/effect", "", Needs::Role(1), Needs::Role(1)),
    ("POST", "/reload", "", Needs::Role(2), Needs::Role(2)),
    ("POST", "/enforce", "to=off", Needs::Role(2), Needs::Role(2)),
    ("POST", "/enforce", "to=on", Needs::Role(2), Needs::Role(3)),
    // An invalid request must need the same right as a valid one.
    ("POST", "/enforce", "to=half", Needs::Role(2), Needs::Role(3)),
    ("GET", "/fleet", "", Needs::All(1), Needs::All(1)),
    ("POST", "/fleet/init", "no-such-key=", Needs::All(3), Needs::All(3)),
    ("POST", "/fleet/restore", "no-such-key=", Needs::All(3), Needs::All(3)),
    ("POST", "/upgrade", "no-such-key=", Needs::Process(3), Needs::Process(3)),
];

/// Values of `site` in a query: `shop`, a host of `shop`, another site, an unknown site, and two
/// that mean all sites: a missing and an empty value.
const SITES: [Option<&str>; 6] = [Some("shop"), Some("shop/a.test"), Some("blog-1"), Some("nowhere"), None, Some("")];

/// Name, role (1 to 3) and sites of each client.
const CLIENTS: &[(&str, u8, &[&str])] = &[
    ("reader", 1, &["*"]),
    ("shop-reader", 1, &["shop"]),
    ("operator", 2, &["*"]),
    ("shop-operator", 2, &["shop"]),
    ("blog-operator", 2, &["blog-*", "none"]),
    ("root", 3, &["*"]),
];

fn covers(sites: &[&str], site: Option<&str>) -> bool {
    match site {
        None | Some("") => sites.contains(&"*"),
        Some(site) => sites.iter().any(|known| {
            *known == "*"
                || *known == site
                || *known == "shop" && site == "shop/a.test"
                || *known == "blog-*" && site == "blog-1"
        }),
    }
}

fn may(needs: Needs, role: u8, sites: &[&str], site: Option<&str>) -> bool {
    match needs {
        Needs::Nothing => true,
        Needs::Look => role >= 1,
        Needs::Role(needed) => role >= needed && covers(sites, site),
        Needs::All(needed) => role >= needed && covers(sites, None),
        Needs::Process(needed) => role >= needed,
    }
}

fn role(number: u8) -> &'static str {
    ["read", "operate", "admin"][usize::from(number) - 1]
}

/// How a client connects and authenticates.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Token,
    TokenOverTls,
    TokenForReading,
    Proxy,
    /// Without a token, at a listener that allows everyone this role.
    Anyone(u8),
    /// With a certificate, and without a token.
    Certificate,
}

struct Scene {
    folder: Folder,
    running: Running,
    tokens: Vec<String>,
    reading: SocketAddr,
    full: SocketAddr,
    tls: SocketAddr,
    mutual: SocketAddr,
    proxy: SocketAddr,
    /// TLS client settings without and with a client certificate.
    clients: [Arc<ClientConfig>; 2],
}

impl Scene {
    fn start() -> Self {
        let [reading, full, tls, mutual, proxy] = std::array::from_fn(|_| free());
        let (mut tables, mut tokens) = (String::new(), Vec::new());
        for (name, number, sites) in CLIENTS {
            let made = run(robotsd().args(["token", "new", name])).succeeded();
            tokens.push(made.lines().next().unwrap().to_owned());
            let hash = made.lines().find(|line| line.starts_with("hash")).unwrap();
            let sites = sites.iter().filter(|_| *number < 3);
            let sites: Vec<_> = sites.collect();
            let sites = if sites.is_empty() { String::new() } else { format!("sites = {sites:?}\n") };
            let grant = format!("role = \"{}\"\n{sites}", role(*number));
            tables += &format!("[[admin.token]]\nname = {name:?}\n{hash}\n{grant}");
            tables += &format!("[[admin.user]]\nname = \"{name}@*\"\n{grant}");
        }
        let certificate = "[[admin.listener.certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"\n";
        tables += &format!("[[admin.listener]]\naddress = \"{reading}\"\naccess = \"read\"\n");
        tables += &format!("[[admin.listener]]\naddress = \"{full}\"\naccess = \"full\"\n");
        tables += &format!(
            "[[admin.listener]]\naddress = \"{proxy}\"\naccess = \"proxy\"\nfrom = [\"127.0.0.1\"]\nuser_header = \"X-User\"\n"
        );
        tables += &format!("[[admin.listener]]\naddress = \"{tls}\"\naccess = \"token\"\n{certificate}");
        tables += &format!(
            "[[admin.listener]]\naddress = \"{mutual}\"\naccess = \"full\"\nclient_ca = \"ca.pem\"\n{certificate}"
        );
        let authority = Authority::new();
        let config = Config::refusing().keys("state_dir = \"state\"").admin().tables(tables);
        let site = |config: Config, name: &str| {
            config.site(name, format!("hosts = [\"{name}.test\"]\nroot = \".\"\nrobots.path = \"robots.txt\""))
        };
        let folder = ["shop", "blog-1"].into_iter().fold(config, site).robots(ROBOTS).folder();
        folder.write("ca.pem", authority.pem());
        let (chain, key) = authority.sign(&certificate_for(&["localhost"]));
        folder.write("a.pem", chain.pem());
        folder.write("a.key", key.serialize_pem());
        let running = folder.start();
        let clients = [false, true].map(|has_certificate| Arc::new(client_config(&authority, has_certificate)));
        Self { folder, running, tokens, reading, full, tls, mutual, proxy, clients }
    }

    /// Returns the response to a request of the client with this number.
    fn ask(&self, way: Way, client: usize, request: &str, fields: &str) -> Answer {
        let token = format!("Authorization: Bearer {}\r\n", self.tokens[client]);
        let (address, fields) = match way {
            Way::Token => (self.running.admin(), token + fields),
            Way::TokenOverTls => (self.tls, token + fields),
            Way::TokenForReading => (self.reading, token + fields),
            Way::Proxy => (
                self.proxy,
                format!("X-User: {}@corp.test\r\nX-Forwarded-For: 192.0.2.1\r\n{fields}", CLIENTS[client].0),
            ),
            Way::Anyone(0) => (self.running.admin(), fields.to_owned()),
            Way::Anyone(1) => (self.reading, fields.to_owned()),
            Way::Anyone(_) => (self.full, fields.to_owned()),
            Way::Certificate => (self.mutual, fields.to_owned()),
        };
        let request =
            format!("{request} HTTP/1.1\r\nHost: {address}\r\nRobotsd-Admin: 1\r\nConnection: close\r\n{fields}\r\n");
        match way {
            Way::TokenOverTls => Answer::parse(&self.over_tls(address, false, &request).unwrap()),
            Way::Certificate => Answer::parse(&self.over_tls(address, true, &request).unwrap()),
            _ => exchange(address, request),
        }
    }

    fn over_tls(&self, address: SocketAddr, has_certificate: bool, request: &str) -> std::io::Result<Vec<u8>> {
        use std::io::{Read, Write};
        let config = Arc::clone(&self.clients[usize::from(has_certificate)]);
        let session = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
        let mut stream: StreamOwned<ClientConnection, TcpStream> = StreamOwned::new(session, connect(address));
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if answer.is_empty() => Err(error),
            _ => Ok(answer),
        }
    }

    /// Returns the complete lines of the audit log.
    fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.at("state/audit.jsonl")).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn client_config(authority: &Authority, has_certificate: bool) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let pem: CertificateDer<'static> =
        tokio_rustls::rustls::pki_types::pem::PemObject::from_pem_slice(authority.pem().as_bytes()).unwrap();
    roots.add(pem).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    if !has_certificate {
        return builder.with_no_client_auth();
    }
    let (certificate, key) = authority.sign(&certificate_for(&["deploy.corp.test"]));
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    builder.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
}

#[test]
fn every_combination_of_path_client_and_site_is_admitted_as_in_the_table() {
    let scene = Scene::start();
    // The server lists its paths in this error. Each of them must be in the table.
    let known = scene.ask(Way::Token, 0, "GET /no-such-path", "").json()["error"].as_str().unwrap().to_owned();
    let mut known: Vec<_> = known
        .split_once("use one of /")
        .map(|(_, paths)| format!("/{paths}"))
        .unwrap()
        .split(", ")
        .map(str::to_owned)
        .collect();
    let mut rows: Vec<_> = REQUESTS.iter().map(|(_, path, ..)| (*path).to_owned()).collect();
    known.sort();
    rows.sort();
    rows.dedup();
    assert_eq!(known, rows, "a path without a row, or a row without a path");

    let (mut tried, mut refused) = (0, 0);
    let ways = [Way::Token, Way::TokenOverTls, Way::TokenForReading, Way::Proxy];
    let of_clients = ways.into_iter().flat_map(|way| (0..CLIENTS.len()).map(move |client| (way, client)));
    let of_anyone = [Way::Anyone(0), Way::Anyone(1), Way::Anyone(3), Way::Certificate].map(|way| (way, 0));
    for (way, client) in of_clients.chain(of_anyone) {
        let (_, given, given_sites) = CLIENTS[client];
        let (role, sites): (u8, &[&str]) = match way {
            Way::TokenForReading => (given.min(1), given_sites),
            Way::Anyone(role) => (role, &["*"]),
            Way::Certificate => (3, &["*"]),
            _ => (given, given_sites),
        };
        for (at, (method, path, query, of_site, of_all)) in REQUESTS.iter().enumerate() {
            for (place, site) in SITES.into_iter().enumerate() {
                // Over plain TCP, every request is tried with and without a token. For the other
                // ways to connect, one request in five is tried. These requests cover every path
                // and every site.
                let is_tried = is_long() || matches!(way, Way::Token | Way::Anyone(_));
                if !is_tried && !(at * SITES.len() + place + client).is_multiple_of(5) {
                    continue;
                }
                let needs = if site.is_none_or(str::is_empty) { of_all } else { of_site };
                let site_pair = site.map(|site| format!("site={}", site.replace('/', "%2F"))).unwrap_or_default();
                let request = format!("{method} {path}?{query}&{site_pair}");
                let status = scene.ask(way, client, &request, "").status;
                let want = may(*needs, role, sites, site);
                let is_admitted = !matches!(status, 401 | 403);
                assert_eq!(is_admitted, want, "{way:?} {:?} {request}: {status}", CLIENTS[client]);
                // A request that is admitted must be processed: it succeeds, or its site, version
                // or key does not exist.
                assert!(!is_admitted || matches!(status, 200 | 302 | 400 | 404 | 409), "{way:?} {request}: {status}");
                tried += 1;
                refused += usize::from(!is_admitted);
            }
        }
    }
    let always = REQUESTS.len() * SITES.len() * (CLIENTS.len() + 3);
    assert!(tried > always && refused > tried / 4, "{tried} tried, {refused} refused");
    println!("{tried} requests, {refused} refused");
}

#[test]
fn requests_without_valid_credentials_are_refused() {
    let scene = Scene::start();
    let admin = scene.running.admin();
    let asked = |address: SocketAddr, fields: &str| {
        exchange(
            address,
            format!("POST /enforce?to=off HTTP/1.1\r\nHost: {address}\r\nRobotsd-Admin: 1\r\n{fields}\r\n"),
        )
    };
    let good = &scene.tokens[2];
    for (fields, want) in [
        (String::new(), 401),
        ("Authorization: Bearer\r\n".to_owned(), 401),
        (format!("Authorization: Bearer {}\r\n", &good[..good.len() - 1]), 401),
        (format!("Authorization: Bearer {good}0\r\n"), 401),
        (format!("Authorization: Bearer {}\r\n", good.to_uppercase()), 401),
        (format!("Authorization: Basic {good}\r\n"), 401),
        (format!("Authorization: {good}\r\n"), 401),
        (format!("X-User: root@corp.test\r\nAuthorization: Bearer {}\r\n", "rbd_".to_owned() + &"0".repeat(72)), 401),
        (format!("authorization: bearer {good}\r\n"), 200),
        // A valid token in a request that a proxy has forwarded must be rejected.
        (format!("Authorization: Bearer {good}\r\nX-Forwarded-For: 192.0.2.1\r\n"), 403),
    ] {
        let answer = asked(admin, &fields);
        assert_eq!(answer.status, want, "{fields} {answer:?}");
        assert_eq!(answer.field("www-authenticate"), (want == 401).then_some("Bearer"), "{fields}");
    }
    // Only a request from the proxy's address may contain the user's name, exactly once and in this
    // field.
    for (fields, want) in [
        ("", 401),
        ("X-User: \r\n", 401),
        ("X-User: root@a\r\nX-User: reader@a\r\n", 401),
        ("X-User: nobody@a\r\n", 403),
        ("X-User: reader@a\r\n", 403),
        ("X-User: operator@a\r\n", 200),
    ] {
        assert_eq!(asked(scene.proxy, fields).status, want, "{fields}");
    }
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], 0));
    let mut stream = connect_from([127, 0, 0, 2], scene.proxy).unwrap();
    let request = "POST /enforce?to=off HTTP/1.1\r\nHost: localhost\r\nRobotsd-Admin: 1\r\nX-User: root@a\r\nConnection: close\r\n\r\n";
    Write::write_all(&mut stream, request.as_bytes()).unwrap();
    assert_eq!(Answer::parse(&rest(stream)).status, 403, "{elsewhere}");
    // Without a client certificate, the connection fails. Without TLS, the response has status 400.
    assert!(scene.over_tls(scene.mutual, false, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").is_err());
    assert_eq!(asked(scene.tls, "").status, 400);
    // Requests from web pages of other sites, and from robotsd's own fetcher, are refused even with
    // a valid token.
    let page = format!("Authorization: Bearer {good}\r\nOrigin: https://evil.test\r\n");
    assert_eq!([admin, scene.proxy].map(|address| asked(address, &page).status), [403; 2]);
}

#[test]
fn changed_tokens_take_effect_on_reload_and_are_never_logged() {
    let scene = Scene::start();
    let operator = 2;
    let asked = || scene.ask(Way::Token, operator, "POST /reload?site=shop", "").status;
    assert_eq!(asked(), 200);
    let text = scene.folder.read("robotsd.toml");
    let hash = text.lines().skip_while(|line| *line != "name = \"operator\"").nth(1).unwrap();
    scene.folder.configure(text.replace(hash, &format!("{hash}\nuntil = 2020-01-01")));
    scene.running.wait_for_message("config", "admin.token[operator].until: not set → 2020-01-01");
    let answer = scene.ask(Way::Token, operator, "POST /reload?site=shop", "");
    assert_eq!(answer.status, 403);
    assert_has(&answer.body, &["the access of operator has expired"]);
    scene.running.wait_for_message("config-warning", "this token has expired and no longer has any effect");
    scene.folder.configure(text.replace(hash, &format!("hash = \"sha256:{}\"", "0".repeat(64))));
    scene.running.wait_for_message("config", "admin.token[operator].hash: …");
    assert_eq!(asked(), 401);
    scene.folder.configure(&text);
    wait_until("the token is taken again", || asked() == 200);
    // Logs and reports must contain neither tokens nor their hashes.
    scene.folder.with_config(&["config", "check"]);
    let status = scene.ask(Way::Token, 5, "GET /status", "").body;
    let logged: String = ["config", "config-changed", "audit"]
        .iter()
        .flat_map(|event| scene.running.all(event))
        .map(|line| line.to_string())
        .collect();
    let audit = scene.folder.read("state/audit.jsonl");
    let digits = hash.trim_start_matches("hash  = \"sha256:").trim_end_matches('"');
    assert_eq!(digits.len(), 64);
    for secret in scene.tokens.iter().map(|token| token.trim_start_matches("rbd_")).chain([digits]) {
        for (what, text) in [("status", &status), ("log", &logged), ("audit", &audit)] {
            assert!(!text.contains(&secret[..16]), "{what}");
        }
    }
}

#[test]
fn the_audit_log_records_who_changed_what_and_who_was_refused() {
    let scene = Scene::start();
    // On a slow disk, robotsd responds before the audit line is written. So the test waits for all
    // lines after each command.
    let command = |lines: usize, client: usize, arguments: &[&str]| {
        let mut command = robotsd();
        let token = scene.folder.at("token");
        fs::write(&token, format!("{}\n", scene.tokens[client])).unwrap();
        command.args(arguments).arg("--admin").arg(scene.running.admin().to_string()).env("ROBOTSD_TOKEN_FILE", &token);
        let ended = run(&mut command);
        wait_until("the lines of the audit", || scene.audit().len() == lines);
        ended
    };
    command(1, 3, &["enforce", "off", "--site", "shop", "--reason", "Googlebot gets 403 & more"]).succeeded();
    let error = command(2, 3, &["enforce", "off"]).failed(2);
    assert_has(
        &error,
        &[
            "robotsd answered 403",
            "this request needs the role operate for every site, but shop-operator has operate for \"shop\"",
        ],
    );
    command(3, 2, &["enforce", "off"]).succeeded();
    assert_has(command(4, 2, &["enforce", "on"]).failed(2), &["this request needs the role admin for every site"]);
    command(6, 5, &["enforce", "on", "--reason", "checked"]).succeeded();
    scene.folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    let waiting = scene.running.wait_for_event("gated", |line| line["site"] == "shop")["robots_hash"]
        .as_str()
        .unwrap()
        .to_owned();
    command(8, 3, &["accept", "shop", &waiting, "--reason", "intended"]).succeeded();
    command(10, 3, &["rollback", "shop"]).succeeded();
    assert_has(command(12, 3, &["rollback", "shop"]).failed(2), &["409"]);
    let seen: Vec<_> = scene
        .audit()
        .iter()
        .map(|line| {
            let want = (&json!("audit"), &json!("token"), &json!("127.0.0.1"));
            assert_eq!((&line["event"], &line["how"], &line["from"]), want);
            let text = |key: &str| line[key].as_str().unwrap_or("-").chars().take(40).collect::<String>();
            ["who", "action", "site", "result", "reason"].map(text).join(" ")
        })
        .collect();
    assert_eq!(
        seen,
        [
            "shop-operator enforce shop done Googlebot gets 403 & more",
            "shop-operator enforce * refused -",
            "operator enforce * done -",
            "operator enforce * refused -",
            "root enforce * started checked",
            "root enforce * done checked",
            "shop-operator accept shop started intended",
            "shop-operator accept shop done intended",
            "shop-operator rollback shop started -",
            "shop-operator rollback shop done -",
            "shop-operator rollback shop started -",
            "shop-operator rollback shop failed -",
        ]
    );
    let audit = scene.audit();
    assert_part(&audit[5], &json!({"id": audit[4]["id"], "before": "off", "after": "on"}));
    assert_ne!(audit[5]["id"], audit[6]["id"]);
    let (accepted, rolled_back) = (&audit[7], &audit[9]);
    assert!(accepted["after"].as_str().unwrap().contains(&waiting), "{accepted}");
    assert_eq!((&accepted["before"], &accepted["after"]), (&rolled_back["after"], &rolled_back["before"]));
    // The log must contain the same outcomes in the same words.
    let outcomes = audit.iter().filter(|line| line["result"] != "started").count();
    wait_until("every outcome in the log", || scene.running.events("audit") == outcomes);
    let logged = scene.running.all("audit");
    assert_part(
        &logged[0],
        &json!({"level": "info", "who": "shop-operator", "site": "shop", "before": "on", "after": "off", "id": audit[0]["id"]}),
    );
    assert_part(&logged[1], &json!({"level": "warn", "result": "refused"}));

    let read = |arguments: &[&str]| scene.folder.with_config(&[&["audit"], arguments].concat()).succeeded();
    assert_eq!(read(&[]).lines().count(), 8);
    let first = read(&["--who", "shop-operator", "--since", "1h"]).lines().next().unwrap().to_owned();
    assert_has(
        &first,
        &[
            "done: enforce shop (on → off), by shop-operator (token, 127.0.0.1) on ",
            "reason \"Googlebot gets 403 & more\"",
        ],
    );
    assert_eq!(read(&["--site", "blog-1"]).lines().count(), 4, "those of every site");
    assert_eq!(read(&["--since", "2100-01-01"]), "");
    let json: Vec<Value> =
        read(&["--json", "--who", "root"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((json.len(), &json[0]["result"]), (1, &json!("done")));
}

#[test]
fn commands_over_tls_require_a_valid_token_and_a_trusted_authority() {
    let scene = Scene::start();
    let place = format!("https://localhost:{}", scene.tls.port());
    let command = |token: &str, ca: &str| {
        let mut command = scene.folder.robotsd();
        command.args(["enforce", "off", "--admin", &place]).env("ROBOTSD_TOKEN", token).env("ROBOTSD_ADMIN_CA", ca);
        run(&mut command)
    };
    let (operator, reader) = (&*scene.tokens[2], &*scene.tokens[0]);
    command(operator, "ca.pem").succeeded();
    let asked = scene.running.request("GET", "/private/x", &[("Host", "shop.test"), ("User-Agent", GPTBOT)]);
    assert_eq!(asked.status, 404, "it is off");
    for (token, ca, error) in [
        (
            reader,
            "ca.pem",
            "robotsd answered 403: this request needs the role operate for every site, but reader has read",
        ),
        ("", "ca.pem", "robotsd answered 401: the request has no token"),
        (&operator[1..], "ca.pem", "ROBOTSD_TOKEN: the value is not a complete token of robotsd"),
        (operator, "a.pem", "certificate"),
        (operator, "", "certificate"),
    ] {
        assert_has(command(token, ca).failed(2), &[error]);
    }
}

#[test]
fn a_restricted_client_sees_only_its_own_sites() {
    let scene = Scene::start();
    for (client, want) in [(0, &["shop", "blog-1"][..]), (1, &["shop"]), (4, &["blog-1"])] {
        let status = scene.ask(Way::Token, client, "GET /status", "").json();
        for sites in [&status["sites"], &status["traffic"]["sites"]] {
            let names: Vec<_> = sites.as_array().unwrap().iter().map(|site| site["name"].as_str().unwrap()).collect();
            assert_eq!(names, want);
        }
    }
    // The page of the board must show only the part of the status that the client may see.
    scene.folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    scene.running.wait_for_event("gated", |line| line["site"] == "blog-1");
    let page = |client: usize| scene.ask(Way::Token, client, "GET /board?site=shop", "").body;
    assert!(page(0).contains("blog-1") && !page(1).contains("blog-1"), "{}", page(1));
}

/// If all sites of a client were renamed, the status must show this client a problem.
#[test]
fn the_status_reports_that_none_of_the_sites_of_a_client_exists() {
    let scene = Scene::start();
    let place = scene.running.admin().to_string();
    let command = |client: usize, arguments: &[&str]| {
        let mut command = scene.folder.robotsd();
        run(command.args(arguments).args(["--admin", &place]).env("ROBOTSD_TOKEN", &scene.tokens[client]))
    };
    command(1, &["status", "--problems"]).succeeded();
    scene.folder.configure(scene.folder.read("robotsd.toml").replace("sites = [\"shop\"]", "sites = [\"shpo\"]"));
    wait_until("the config", || command(1, &["status"]).code == Some(1));
    let status = command(1, &["status", "--problems"]).ends_with(1).out;
    assert_has(unfolded(&status), &["problem: [admin] gives you read for \"shpo\", but none of these sites exists"]);
    command(1, &["status", "--ready"]).succeeded();
    // If enforcement is off for all sites of a client, the status must not say that it is off for
    // every site.
    for site in ["shop", "blog-1"] {
        command(5, &["enforce", "off", "--site", site]).succeeded();
    }
    assert_lacks(command(1, &["status"]).out, &["EVERY SITE"]);
    assert_lacks(command(5, &["status"]).ends_with(1).out, &["EVERY SITE"]);
    command(2, &["enforce", "off"]).succeeded();
    assert_has(command(1, &["status"]).out, &["ENFORCEMENT IS OFF FOR EVERY SITE"]);
}

/// The kernel reports which user has connected to the socket. Only root can run commands as several
/// users.
#[test]
fn users_of_the_socket_are_identified_by_uid() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let config = |users: &str| {
        Config::refusing().keys("state_dir = \"state\"").admin_socket().tables(users).files_of("shop").robots(ROBOTS)
    };
    let users = "[[admin.user]]\nuid = 4001\nrole = \"operate\"\nsites = [\"shop\"]\n[[admin.user]]\ngroup = 4100\nrole = \"read\"\nsites = [\"*\"]\n";
    let (folder, running) = config(users).start();
    let socket = folder.at("admin.sock");
    assert_eq!(mode(&socket), 0o666);
    folder.with_config(&["enforce", "off", "--site", "shop"]).succeeded();
    if !is_root() {
        eprintln!("skipped: other users take root");
        return;
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let as_user = |uid: u32, gid: u32, arguments: &[&str]| {
        let mut command = robotsd();
        command.current_dir("/").args(arguments).arg("--admin").arg(&socket).uid(uid).gid(gid);
        run(&mut command)
    };
    if as_user(4001, 4001, &["--version"]).code.is_none() {
        return;
    }
    as_user(4001, 4001, &["enforce", "on", "--site", "shop"]).succeeded();
    as_user(4001, 4001, &["status"]).succeeded();
    let parts = ["operate for every site, but uid 4001 has operate for \"shop\""];
    assert_has(as_user(4001, 4001, &["enforce", "off"]).failed(2), &parts);
    as_user(4002, 4100, &["status"]).succeeded();
    assert_has(as_user(4002, 4100, &["enforce", "off", "--site", "shop"]).failed(2), &["uid 4002 has read"]);
    assert_has(
        as_user(4003, 4003, &["status"]).failed(2),
        &["the user with uid 4003 and group 4003 may not use this socket"],
    );
    let refused = running.wait_for_event("audit", |line| line["who"] == "uid 4002");
    assert_part(&refused, &json!({"how": "socket", "result": "refused"}));
    // If no users are configured any more, only the owner of the socket may use it.
    folder.configure(config(""));
    wait_until("the owner's socket", || mode(&socket) == 0o600);
    assert_has(as_user(4001, 4001, &["status"]).failed(2), &["permission denied"]);
    folder.with_config(&["enforce", "off"]).succeeded();
}

fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").unwrap()) == 0
}

#[test]
fn a_full_disk_only_blocks_changes_that_must_be_audited() {
    crate::small_disk::SmallDisk::with("authority::a_full_disk_only_blocks_changes_that_must_be_audited", |disk| {
        let audit = disk.path().join("audit.jsonl");
        let config = Config::refusing().keys("state_dir = \"state\"").admin().tables(format!("audit = {audit:?}"));
        let (folder, running) = config.files_of("shop").robots(ROBOTS).start();
        // The audit file does not exist yet. An existing file could have unused space at its end.
        disk.fill();
        running.command(&["enforce", "off"]).succeeded();
        assert_eq!(running.get("/private/x", GPTBOT).status, 404, "it is off");
        running.wait_for_message("admin", "the audit file cannot be written");
        for change in [
            &["enforce", "on"][..],
            &["enforce", "on", "--site", "shop"],
            &["rollback", "shop"],
            &["accept", "shop", "0123456789abcdef"],
        ] {
            let error = running.command(change).failed(2);
            assert_has(
                &error,
                &[
                    "robotsd answered 507",
                    "the audit file cannot be written: No space left on device",
                    "nothing was changed",
                ],
            );
        }
        assert_eq!(running.get("/private/x", GPTBOT).status, 404, "it is off still");
        let problems = || unfolded(&running.command(&["status", "--problems"]).out);
        let parts =
            ["problem: ", "; robotsd refuses `accept`, `rollback` and `enforce on` until it can write the audit file"];
        assert_has(problems(), &parts);
        running.command(&["reload"]).succeeded();
        running.command(&["enforce", "off", "--site", "shop"]).succeeded();
        disk.free();
        running.command(&["enforce", "on"]).succeeded();
        wait_until("the outcome in the audit", || {
            let lines = folder.with_config(&["audit", "--json"]).ends_with(0).json_lines();
            lines.last().is_some_and(|line| line["result"] == "done")
        });
        assert_lacks(problems(), &["the audit file cannot be written"]);
    });
}

/// The mode `off` disables enforcement like a kill switch, so the audit log must contain this
/// change. `audit` must reject an unknown site.
#[test]
fn a_mode_change_by_a_config_is_in_the_audit_log() {
    let config = |mode: &str, of_site: &str| {
        let keys = format!("mode = {mode:?}\nstate_dir = \"state\"");
        Config::new().keys(keys).site("shop", format!("root = \".\"\n{of_site}")).admin_socket().robots(ROBOTS)
    };
    let folder = config("refuse", "").folder();
    let audit = |arguments: &[&str]| folder.with_config(&[&["audit"], arguments].concat());
    assert_has(audit(&[]).ends_with(0).error, &["because no command or config has changed anything"]);
    let mut running = folder.start();
    let of_site = "enforcement.mode = \"tag\"";
    for (lines, mode, of_site) in [(1, "off", ""), (2, "off", of_site)] {
        folder.configure(config(mode, of_site));
        wait_until("a line of the audit", || audit(&["--json"]).json_lines().len() == lines);
    }
    let lines = audit(&["--json"]).json_lines();
    assert_part(
        &lines[0],
        &json!({"who": null, "how": "file", "action": "mode", "site": "*", "before": "refuse", "after": "off", "result": "done"}),
    );
    assert_part(&lines[1], &json!({"how": "file", "site": "shop", "before": "off", "after": "tag"}));
    let of_shop = audit(&["--site", "shop"]).succeeded();
    assert_has(of_shop, &["done: mode * (refuse → off), by the config (file) on ", "done: mode shop (off → tag), by "]);
    assert_has(audit(&["--site", "shpo"]).failed(2), &["there is no site \"shpo\": the sites are \"shop\""]);
    // The process must not end before its audit line is written.
    folder.configure(config("tag", of_site));
    running.wait_for_event("config-changed", |line| line["setting"] == "mode" && line["after"] == "tag");
    running.end();
    let lines = audit(&["--json"]).json_lines();
    assert_part(&lines[2], &json!({"how": "file", "action": "mode", "site": "*", "before": "off", "after": "tag"}));
}

#[test]
fn decisions_made_while_robotsd_is_not_running_are_in_the_audit_log() {
    let folder =
        Config::refusing().keys("state_dir = \"state\"").admin_socket().files_of("shop").robots(ROBOTS).folder();
    let mut running = folder.start();
    running.event("published");
    running.end();
    folder.with_config(&["enforce", "off", "--reason", "before the start"]).succeeded();
    folder.with_config(&["rollback", "shop"]).failed(2);
    let lines = folder.with_config(&["audit", "--json"]).ends_with(0).json_lines();
    let who = format!("uid {}", std::os::unix::fs::MetadataExt::uid(&fs::metadata(folder.path()).unwrap()));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_part(
        &lines[0],
        &json!({"who": who, "how": "command", "from": null, "action": "enforce", "site": "*", "after": "off", "reason": "before the start", "result": "done"}),
    );
    assert_part(&lines[1], &json!({"action": "rollback", "site": "shop", "result": "failed"}));
    // A folder replaces the audit file. Switching enforcement off must still work, and every other
    // change must fail.
    fs::remove_file(folder.at("state/audit.jsonl")).unwrap();
    fs::create_dir(folder.at("state/audit.jsonl")).unwrap();
    let ended = folder.with_config(&["enforce", "off", "--site", "shop"]).ends_with(0);
    assert_has(&ended.error, &["the audit file cannot be written"]);
    let parts = ["the audit file cannot be written", "nothing was changed"];
    assert_has(folder.with_config(&["enforce", "on"]).failed(2), &parts);
}
