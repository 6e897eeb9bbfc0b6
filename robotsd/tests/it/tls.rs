//! Tests TLS with certificates whose files change.

use rcgen::{BasicConstraints, IsCa, KeyPair, date_time_ymd};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";
fn config() -> Config {
    let certificate = "[[listener.certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"";
    Config::refusing().listener(certificate).files_of("a").robots(ROBOTS).file("page.html", "hello")
}

/// Writes a self-signed certificate as `a.pem` and `a.key`. Each file is replaced atomically.
pub(super) fn certify(folder: &Path, names: &[&str]) -> CertificateDer<'static> {
    let (certificate, key) = pair(names);
    put(&folder.join("a.pem"), &certificate.pem());
    put(&folder.join("a.key"), &key.serialize_pem());
    certificate.der().clone()
}

fn pair(names: &[&str]) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    (certificate_for(names).self_signed(&key).unwrap(), key)
}

pub(super) fn put(path: &Path, text: &str) {
    let aside = path.with_extension("new");
    fs::write(&aside, text).unwrap();
    fs::set_permissions(&aside, PermissionsExt::from_mode(0o600)).unwrap();
    fs::rename(aside, path).unwrap();
}

fn started() -> (Folder, Running, CertificateDer<'static>) {
    let folder = config().folder();
    let certificate = certify(folder.path(), &["a.test"]);
    let running = folder.start();
    (folder, running, certificate)
}

type Secure = Kept<StreamOwned<ClientConnection, TcpStream>>;

/// Opens a connection. The client trusts only this certificate.
fn connect(running: &Running, trusted: &CertificateDer<'static>, name: &str) -> std::io::Result<Secure> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut socket = crate::harness::connect(running.address);
    let mut session = ClientConnection::new(Arc::new(client), ServerName::try_from(name.to_owned()).unwrap()).unwrap();
    while session.is_handshaking() {
        session.complete_io(&mut socket)?;
    }
    Ok(Kept::over(StreamOwned::new(session, socket), name))
}

#[test]
fn a_site_is_served_and_crawlers_refused_over_tls() {
    let (_folder, running, certificate) = started();
    let listening = running.event("listening");
    assert!(message(&listening).starts_with("https://"), "{listening}");
    let event = running.event("certificate");
    assert!(message(&event).contains("a.pem: used for a.test, until"), "{event}");
    let mut kept = connect(&running, &certificate, "a.test").unwrap();
    assert_eq!(kept.get("/page.html", FIREFOX).1, "hello");
    assert_eq!(kept.get("/robots.txt", GPTBOT).1, ROBOTS);
    assert_eq!(kept.get("/drafts/x", GPTBOT).0, 403);
    running.get("/robots.txt", GPTBOT).comes_with(400, "400 this port speaks TLS: use https://\n");
}

#[test]
fn certificates_are_reloaded_from_changed_files_and_an_invalid_pair_changes_nothing() {
    let (folder, running, first) = started();
    let mut kept = connect(&running, &first, "a.test").unwrap();
    assert_eq!(kept.get("/page.html", FIREFOX).1, "hello");
    // This certificate must be used without a command.
    let second = certify(folder.path(), &["a.test", "second.test"]);
    wait_for("the second certificate", || connect(&running, &second, "a.test").ok());
    assert!(connect(&running, &first, "a.test").is_err());
    // The key does not match the certificate, and a reload is requested.
    let (_, other) = pair(&["other.test"]);
    put(&folder.at("a.key"), &other.serialize_pem());
    running.signal("HUP");
    let event = running.event("certificate-rejected");
    let message = message(&event);
    assert_has(message, &["a.key: the key does not match the first certificate"]);
    assert!(message.ends_with("the previous certificate stays in use, but a restart would fail"), "{message}");
    connect(&running, &second, "a.test").unwrap();
    let third = certify(folder.path(), &["a.test", "third.test"]);
    running.signal("HUP");
    wait_for("the third certificate", || connect(&running, &third, "a.test").ok());
    assert_eq!(kept.get("/page.html", FIREFOX).1, "hello", "the first connection goes on");
    running.wait_for_message("certificate", "third.test");
    assert!(!running.has_event("certificate", |line| line.to_string().contains("PRIVATE")));
}

/// A restart would fail, so the status must report the rejected files, like the log.
#[test]
fn a_rejected_certificate_renewal_is_a_problem_until_it_is_repaired() {
    let folder = config().admin().folder();
    let first = certify(folder.path(), &["a.test"]);
    let running = folder.start();
    let metric = || {
        let text = running.ask_admin("GET /metrics").body;
        let line = text.lines().find(|line| line.starts_with("robotsd_tls_certificate_rejected{"));
        line.unwrap().rsplit(' ').next().unwrap().to_owned()
    };
    let problems = || running.json(&["status"])["problems"].clone();
    assert_eq!((metric().as_str(), problems()), ("0", json!([])));
    let key = fs::read_to_string(folder.at("a.key")).unwrap();
    let (_, other) = pair(&["other.test"]);
    let said = "; the previous certificate stays in use, but a restart would fail";
    for (text, why) in [
        (other.serialize_pem(), "a.key: the key does not match the first certificate"),
        ("no key\n".to_owned(), "a.key: the file contains no private key"),
    ] {
        put(&folder.at("a.key"), &text);
        // robotsd must notice the bad file without a command.
        wait_until("a problem", || problems().to_string().contains(why));
        assert_has(problems().to_string(), &[said]);
        let problems = running.command(&["status", "--problems"]).ends_with(1).out;
        assert_has(unfolded(&problems), &[why, said]);
        assert_eq!(metric(), "1");
        running.command(&["status", "--ready"]).succeeded();
        assert_eq!(running.ask_admin("GET /readyz").status, 200);
        folder.configured(["config", "check"]).failed(2);
        running.wait_for_message("certificate-rejected", why);
        connect(&running, &first, "a.test").unwrap();
    }
    // The files now contain the certificate in use again.
    put(&folder.at("a.key"), &key);
    wait_until("the end of the problem", || problems() == json!([]));
    assert_eq!(metric(), "0");
    running.wait_for_message("certificate", "the files again contain the certificate");
    // A certificate is renewed.
    put(&folder.at("a.key"), "no key\n");
    wait_until("another problem", || metric() == "1");
    let second = certify(folder.path(), &["a.test", "second.test"]);
    wait_until("the end of it", || problems() == json!([]));
    connect(&running, &second, "a.test").unwrap();
}

#[test]
fn a_key_file_that_all_users_can_read_causes_a_warning() {
    let folder = config().folder();
    certify(folder.path(), &["a.test"]);
    let key = folder.at("a.key");
    fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let running = folder.start();
    let event = running.event("certificate-warning");
    assert!(message(&event).contains("set its mode to 0600"), "{event}");
}

#[test]
fn an_unusable_certificate_pair_is_a_config_error() {
    let (certificate, key) = pair(&["a.test"]);
    let (_, other) = pair(&["b.test"]);
    let (nameless, nameless_key) = pair(&[]);
    let files = [
        ("a.pem", certificate.pem()),
        ("a.key", key.serialize_pem()),
        ("other.key", other.serialize_pem()),
        ("nameless.pem", nameless.pem()),
        ("nameless.key", nameless_key.serialize_pem()),
    ];
    let with = |certificates: &str| {
        let config = Config::new().listener(certificates).files_of("a").robots(ROBOTS);
        files
            .iter()
            .fold(config, |config, (name, text)| config.file(name, text))
            .folder()
            .configured(["config", "check"])
    };
    let one = |chain: &str, key: &str| format!("[[listener.certificate]]\nchain = \"{chain}\"\nkey = \"{key}\"\n");
    with(&one("a.pem", "a.key")).succeeded();
    with(&one("nameless.pem", "nameless.key")).succeeded();
    for (certificates, message) in [
        (one("no.pem", "a.key"), "robotsd.toml:4:9\n"),
        (one("a.pem", "no.key"), "robotsd.toml:5:7\n"),
        (one("a.pem", "other.key"), "other.key: the key does not match the first certificate"),
        (one("a.pem", "a.key") + &one("nameless.pem", "nameless.key"), "robotsd.toml:7:9\n"),
    ] {
        let error = with(&certificates).failed(2);
        assert_has(&error, &[message]);
        assert_lacks(error, &["PRIVATE KEY-----\nM"]);
    }
}

/// `openssl req -x509` creates such a certificate by default.
#[test]
fn a_ca_certificate_used_as_a_server_certificate_causes_a_warning() {
    let certificate = "chain = \"a.pem\"\nkey = \"a.key\"";
    let admin = format!(
        "[admin]\nhosts = [\"localhost\"]\n[[admin.listener]]\naddress = \"127.0.0.1:0\"\naccess = \"full\"\n\
         [[admin.listener.certificate]]\n{certificate}"
    );
    let folder = config().tables(admin).folder();
    let (key, mut params) = (KeyPair::generate().unwrap(), certificate_for(&["localhost"]));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    put(&folder.at("a.pem"), &params.self_signed(&key).unwrap().pem());
    put(&folder.at("a.key"), &key.serialize_pem());
    let checked = folder.with_config(&["config", "check"]).ends_with(0);
    assert_has(&checked.out, &["warnings: 2"]);
    let parts = ["this is the certificate of a certificate authority, not of a server", "basicConstraints=CA:FALSE"];
    assert_has(&checked.error, &parts);
    let running = folder.start();
    running.wait_for_message("config-warning", "certificate of a certificate authority");
    let listening = running.wait_for_message("admin-listening", "https://");
    let port = message(&listening).rsplit(':').next().unwrap().split(' ').next().unwrap().to_owned();
    let mut command = folder.robotsd();
    command.args(["status", "--admin", &format!("https://localhost:{port}")]);
    let said = run(command.env("ROBOTSD_ADMIN_CA", folder.at("a.pem"))).failed(2);
    let wants = [
        "it is the certificate of an authority, not of a server; create a server certificate with basicConstraints=CA:FALSE",
    ];
    assert_has(&said, &wants);
    assert_lacks(&said, &["Other", "EndEntity"]);
}

/// An expired certificate must neither reject the config nor prevent a start. Clients reject the
/// certificate in any case, but without a start, nothing would be served at all.
#[test]
fn the_check_and_the_status_report_expired_soon_expiring_and_not_yet_valid_certificates() {
    let past = (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 4, 1));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let in_days = |days: u64| date_time_ymd(1970, 1, 1) + now + Duration::from_secs(days * 24 * 3600 + 3600);
    let expired = "a.pem: the certificate expired on Wed, 01 Apr 2020 00:00:00 GMT: renew it";
    for (begin, end, said) in [
        (past.0, past.1, Some(expired)),
        (past.0, in_days(5), Some(", in 5 days: renew it")),
        (in_days(5), in_days(90), Some("GMT: either the certificate is new, or the clock of this machine is wrong")),
        (past.0, in_days(15), None),
    ] {
        // Both listeners have the certificate.
        let other = "[[listener]]\naddress = \"127.0.0.1:0\"\nkind = \"decision\"\n[[listener.certificate]]";
        let folder = config().admin_socket().tables(format!("{other}\nchain = \"a.pem\"\nkey = \"a.key\"")).folder();
        let (key, mut params) = (KeyPair::generate().unwrap(), certificate_for(&["a.test"]));
        (params.not_before, params.not_after) = (begin, end);
        put(&folder.at("a.pem"), &params.self_signed(&key).unwrap().pem());
        put(&folder.at("a.key"), &key.serialize_pem());
        let checked = folder.with_config(&["config", "check"]).ends_with(0);
        let _running = folder.start();
        let problems = folder.with_config(&["status", "--json"]).json()["problems"].to_string();
        let words = |text: &str| text.matches("a.pem: the certificate ").count();
        let Some(said) = said else {
            assert_eq!((words(&checked.error), &*problems), (0, "[]"), "{checked:?}");
            continue;
        };
        assert_has(&checked.out, &["warnings: 2"]);
        assert_has(&checked.error, &[said, "robotsd.toml:", "chain = \"a.pem\""]);
        assert_has(&problems, &[said]);
        assert_eq!((words(&checked.error), words(&problems)), (2, 1), "{checked:?} {problems}");
        assert_has(folder.with_config(&["status", "--problems"]).ends_with(1).out, &["problem:"]);
        folder.with_config(&["status", "--ready"]).succeeded();
    }
}

/// A browser cannot reach such a host. If the certificate may be correct, nothing may be reported.
#[test]
fn hosts_without_a_certificate_are_reported_unless_the_certificate_may_be_correct() {
    let certificate = "[[listener.certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"";
    let plain = format!("{certificate}\n[[listener]]\naddress = \"127.0.0.1:0\"");
    let behind = format!("trusted_proxies = [\"10.0.0.0/8\"]\n{certificate}");
    let other = &["other.test"][..];
    for (listeners, names, hosts, said) in [
        (certificate, other, &["shop.test"][..], Some("\"shop.test\"")),
        (
            certificate,
            &["*.shop.test"],
            &["WWW.shop.test", "shop.test", "a.b.shop.test"],
            Some("\"shop.test\", \"a.b.shop.test\""),
        ),
        (certificate, other, &["shop.test:8443", "shop.test", "*.shop.test"], Some("\"shop.test\", \"*.shop.test\"")),
        (certificate, &["shop.test", "x.www.test"], &["shop.test:8443", "*.www.test"], None),
        (certificate, other, &[], None),
        (certificate, other, &["*", "localhost", "127.0.0.1", "[::1]"], None),
        // The proxy in front checks its own certificates.
        (&behind, other, &["shop.test"], None),
        // One of the hosts may be meant for the other listener.
        (&plain, &["shop.test"], &["shop.test", "inside.test"], None),
        (&plain, other, &["shop.test"], Some("\"shop.test\"")),
    ] {
        let site = format!("hosts = {hosts:?}\nroot = \".\"");
        let folder = Config::refusing().listener(listeners).site("a", site).admin_socket().robots(ROBOTS).folder();
        certify(folder.path(), names);
        let checked = folder.with_config(&["config", "check"]).ends_with(0);
        let running = folder.start();
        let status = folder.with_config(&["status", "--json"]).json();
        let Some(said) = said else {
            assert_lacks(&checked.error, &["no certificate"]);
            assert_eq!(status["problems"], json!([]), "{names:?} {hosts:?}");
            continue;
        };
        let said = format!(
            "no [[listener]] has a certificate for {said}, so clients refuse to connect: add a certificate for these names"
        );
        assert_has(&checked.error, &[&said, "chain = \"a.pem\""]);
        assert_eq!(status["problems"], json!([said]));
        folder.with_config(&["status", "--problems"]).ends_with(1);
        // The right certificate is installed.
        let all = hosts.iter().map(|host| host.split(':').next().unwrap()).collect::<Vec<_>>();
        certify(folder.path(), &all);
        running.signal("HUP");
        wait_until("the certificate", || folder.with_config(&["status", "--json"]).json()["problems"] == json!([]));
    }
}
