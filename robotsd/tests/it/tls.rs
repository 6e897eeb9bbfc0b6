//! TLS: certificates from files, which change.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rcgen::KeyPair;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::harness::{FIREFOX, Folder, GPTBOT, LISTENER, PATIENCE, Running, folder, message, wait_for};

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";
const CONFIG: &str = "mode = \"refuse\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
     [[listener.certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"\n\
     [[site]]\nname = \"a\"\nroot = \".\"\n";

/// A certificate that vouches for itself, written as `a.pem` and `a.key`, each whole or not at all.
pub(super) fn certify(folder: &Path, names: &[&str]) -> CertificateDer<'static> {
    let (certificate, key) = pair(names);
    put(&folder.join("a.pem"), &certificate.pem());
    put(&folder.join("a.key"), &key.serialize_pem());
    certificate.der().clone()
}

fn pair(names: &[&str]) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    (params.self_signed(&key).unwrap(), key)
}

fn put(path: &Path, text: &str) {
    let aside = path.with_extension("new");
    fs::write(&aside, text).unwrap();
    #[cfg(unix)]
    fs::set_permissions(&aside, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs::rename(aside, path).unwrap();
}

fn started() -> (Folder, Running, CertificateDer<'static>) {
    let folder = folder(&[("robotsd.toml", CONFIG), ("robots.txt", ROBOTS), ("page.html", "hello")]);
    let certificate = certify(folder.path(), &["a.test"]);
    let running = folder.start();
    (folder, running, certificate)
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A connection of a client that trusts this certificate and no other.
fn connect(running: &Running, trusted: &CertificateDer<'static>, name: &str) -> std::io::Result<Stream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut socket = TcpStream::connect(running.address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut session = ClientConnection::new(Arc::new(client), ServerName::try_from(name.to_owned()).unwrap()).unwrap();
    while session.is_handshaking() {
        session.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(session, socket))
}

/// Asks on a connection that stays open.
fn ask(stream: &mut Stream, path: &str, agent: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nUser-Agent: {agent}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let length = stream.read(&mut chunk).unwrap();
        assert!(length > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&chunk[..length]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return text.into_owned();
        }
    }
}

#[test]
fn a_site_is_served_and_crawlers_refused_over_tls() {
    let (_folder, running, certificate) = started();
    let listening = running.event("listening");
    assert!(message(&listening).starts_with("https://"), "{listening}");
    let event = running.event("certificate");
    assert!(message(&event).contains("a.pem: in force for a.test, until"), "{event}");
    let mut stream = connect(&running, &certificate, "a.test").unwrap();
    assert!(ask(&mut stream, "/page.html", FIREFOX).contains("hello"));
    assert!(ask(&mut stream, "/robots.txt", GPTBOT).ends_with(ROBOTS));
    assert!(ask(&mut stream, "/drafts/x", GPTBOT).starts_with("HTTP/1.1 403 "));
    let plain = running.get("/robots.txt", GPTBOT);
    assert_eq!((plain.status, &*plain.body), (400, "400 this port speaks TLS: use https://\n"));
}

#[cfg(unix)]
#[test]
fn certificates_follow_their_files_and_a_bad_pair_changes_nothing() {
    let (folder, running, first) = started();
    let mut kept = connect(&running, &first, "a.test").unwrap();
    assert!(ask(&mut kept, "/page.html", FIREFOX).contains("hello"));
    // By itself.
    let second = certify(folder.path(), &["a.test", "second.test"]);
    wait_for("the second certificate", || connect(&running, &second, "a.test").ok());
    assert!(connect(&running, &first, "a.test").is_err());
    // A key that does not belong to it, asked for.
    let (_, other) = pair(&["other.test"]);
    put(&folder.at("a.key"), &other.serialize_pem());
    running.signal("HUP");
    let event = running.event("certificate-rejected");
    let message = message(&event);
    assert!(message.contains("a.key: the key is not that of the first certificate"), "{message}");
    assert!(message.ends_with("the certificate before stays in force"), "{message}");
    connect(&running, &second, "a.test").unwrap();
    // And a good one again.
    let third = certify(folder.path(), &["a.test", "third.test"]);
    running.signal("HUP");
    wait_for("the third certificate", || connect(&running, &third, "a.test").ok());
    assert!(ask(&mut kept, "/page.html", FIREFOX).contains("hello"), "the first connection goes on");
    running.wait_for_message("certificate", "third.test");
    assert!(!running.has_event("certificate", |line| line.to_string().contains("PRIVATE")));
}

#[cfg(unix)]
#[test]
fn a_key_for_all_to_read_is_warned_about() {
    let folder = folder(&[("robotsd.toml", CONFIG), ("robots.txt", ROBOTS)]);
    certify(folder.path(), &["a.test"]);
    let key = folder.at("a.key");
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let running = folder.start();
    let event = running.event("certificate-warning");
    assert!(message(&event).contains("chmod 0600"), "{event}");
}

#[test]
fn a_pair_that_cannot_be_used_is_a_fault_of_the_config() {
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
        let config = format!("{LISTENER}{certificates}\n[[site]]\nname = \"a\"\nroot = \".\"\n");
        let folder = folder(&[("robotsd.toml", &config), ("robots.txt", ROBOTS)]);
        for (name, text) in &files {
            fs::write(folder.at(name), text).unwrap();
        }
        let output = folder.configured(["config", "check"]);
        (output.code, output.error)
    };
    let one = |chain: &str, key: &str| format!("[[listener.certificate]]\nchain = \"{chain}\"\nkey = \"{key}\"\n");
    assert_eq!(with(&one("a.pem", "a.key")).0, Some(0));
    assert_eq!(with(&one("nameless.pem", "nameless.key")).0, Some(0));
    for (certificates, message) in [
        (one("no.pem", "a.key"), "robotsd.toml:4:9\n"),
        (one("a.pem", "no.key"), "robotsd.toml:5:7\n"),
        (one("a.pem", "other.key"), "robotsd.toml:5:7\n"),
        (one("a.key", "a.key"), "robotsd.toml:4:9\n"),
        (one("a.pem", "a.pem"), "robotsd.toml:5:7\n"),
        (one("robots.txt", "a.key"), "no certificate here"),
        (one("a.pem", "other.key"), "other.key: the key is not that of the first certificate"),
        (one("a.pem", "a.key") + &one("nameless.pem", "nameless.key"), "robotsd.toml:7:9\n"),
        ("[[listener.certificate]]\nchain = \"a.pem\"\n".to_owned(), "this [[listener.certificate]] has no key"),
    ] {
        let (code, stderr) = with(&certificates);
        assert!(code == Some(2) && stderr.contains(message), "{certificates} {code:?}: {stderr}");
        assert!(!stderr.contains("PRIVATE KEY-----\nM"), "{stderr}");
    }
}
