//! TLS to servers with trusted and untrusted certificates.

use std::io::Write;
use std::sync::Arc;

use tower_robots::live::{LiveRobots, ReloadOutcome, WhenMissing};
use tower_robots::source::fetch::{Fetcher, FetcherBuilder};

use super::server::{Server, response, robots};
use crate::certificate::{Authority, certificate_for, server_config};
use crate::closing::Closing;

fn secured(authority: &Authority, name: &str, answer: String) -> Server {
    let config = Arc::new(server_config(&authority.sign(&certificate_for(&[name]))));
    Server::wrapped(
        move |socket| Some(Box::new(Closing::over(socket, config.clone())?)),
        move |_, stream| drop(stream.write_all(answer.as_bytes())),
    )
}

fn trusting(authority: &Authority) -> FetcherBuilder {
    Fetcher::builder().trust(authority.pem().as_bytes()).unwrap()
}

/// Returns the initial state of a site at this URL: its file, or why it has none.
fn opened(builder: FetcherBuilder, url: &str) -> Result<String, String> {
    let fetcher = builder.start().unwrap();
    let live = LiveRobots::url(url).unwrap().fetcher(&fetcher).when_missing(WhenMissing::Fail).open();
    let live = live.map_err(|rejection| rejection.to_string())?;
    let content = live.snapshot().content.as_ref().unwrap().clone();
    Ok(String::from_utf8(content.body().to_vec()).unwrap())
}

#[test]
fn a_server_with_a_trusted_certificate_is_accepted() {
    let authority = Authority::new();
    let server = secured(&authority, "localhost", robots("# safe"));
    let url = format!("https://localhost:{}/robots.txt", server.address.port());
    assert_eq!(opened(trusting(&authority), &url), Ok("# safe".into()));
    let server = secured(&authority, "127.0.0.1", robots("# safe"));
    assert_eq!(opened(trusting(&authority), &format!("https://{}/robots.txt", server.address)), Ok("# safe".into()));
}

#[test]
fn a_certificate_of_another_authority_or_name_is_rejected() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = secured(&authority, "localhost", robots("# safe"));
    let url = format!("https://localhost:{}/robots.txt", server.address.port());
    let refused = opened(trusting(&other), &url).unwrap_err();
    let want = "the TLS handshake failed: the certificate is not signed by a trusted authority";
    assert!(refused.contains(want), "{refused}");
    let server = secured(&authority, "other.example", robots("# safe"));
    let url = format!("https://localhost:{}/robots.txt", server.address.port());
    let refused = opened(trusting(&authority), &url).unwrap_err();
    assert!(refused.contains("certificate") && refused.contains("other.example"), "{refused}");
    assert_eq!(server.heads().len(), 0, "a server that is not trusted gets no request");
}

#[test]
fn a_failed_tls_handshake_does_not_fall_back_to_plain_http() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/robots.txt", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let _ = socket.write_all(robots("# plain").as_bytes());
        }
    });
    let refused = opened(trusting(&Authority::new()), &url).unwrap_err();
    assert!(refused.contains("the TLS handshake failed"), "{refused}");
}

#[test]
fn a_redirect_from_https_to_http_is_refused_for_a_site() {
    let authority = Authority::new();
    let plain = Server::saying(robots("# plain"));
    let server = secured(&authority, "localhost", response("301 M", &format!("Location: {}\r\n", plain.url("/r")), ""));
    let url = format!("https://localhost:{}/robots.txt", server.address.port());
    let refused = opened(trusting(&authority), &url).unwrap_err();
    assert!(refused.contains(" does not use TLS, but https://localhost"), "{refused}");
    assert_eq!(plain.heads().len(), 0);
}

#[test]
fn a_redirect_from_http_to_https_is_followed() {
    let authority = Authority::new();
    let safe = secured(&authority, "localhost", robots("# safe"));
    let location = format!("Location: https://localhost:{}/r\r\n", safe.address.port());
    let server = Server::saying(response("301 M", &location, ""));
    assert_eq!(opened(trusting(&authority), &server.url("/robots.txt")), Ok("# safe".into()));
}

#[test]
fn an_upstream_is_verified_by_its_own_name_and_gets_the_sites_host_field() {
    let authority = Authority::new();
    let server = secured(&authority, "127.0.0.1", robots("# safe"));
    let fetcher = trusting(&authority).start().unwrap();
    let upstream = format!("https://{}", server.address);
    let live = LiveRobots::upstream([upstream], "shop.example").unwrap().fetcher(&fetcher).open().unwrap();
    assert!(matches!(
        live.reload_blocking().outcome,
        ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. }
    ));
    assert!(server.last_head().to_lowercase().contains("\r\nhost: shop.example\r\n"));
}

#[test]
fn an_upstream_is_verified_by_the_configured_server_name() {
    let authority = Authority::new();
    let server = secured(&authority, "app.internal", robots("# safe"));
    let fetcher = Fetcher::builder().trust_only(authority.pem().as_bytes()).unwrap().start().unwrap();
    let open = |name: Option<&str>| {
        let builder = LiveRobots::upstream([format!("https://{}", server.address)], "shop.example").unwrap();
        let builder = builder.fetcher(&fetcher).when_missing(WhenMissing::Fail);
        match name {
            Some(name) => builder.server_name(name).open(),
            None => builder.open(),
        }
    };
    assert!(open(Some("app.internal")).is_ok());
    for refused in [open(None), open(Some("shop.example")), open(Some("no name"))] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("the TLS handshake failed"), "{refused}");
    }
}

#[test]
fn an_invalid_certificate_cannot_be_added_as_a_trusted_authority() {
    assert!(Fetcher::builder().trust(b"").is_err());
    assert!(Fetcher::builder().trust(b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n").is_err());
}
