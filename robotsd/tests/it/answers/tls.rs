//! Tests a valid certificate, and a certificate with each kind of problem.

use rcgen::{DnType, KeyPair, date_time_ymd};
use tokio_rustls::rustls::ServerConfig;

use super::cases::{DISALLOW_ALL, GO_BY_RULES, RULES};
use super::table::Row;
use super::{Checked, check, rule};
use crate::harness::*;

/// An authority for tests, and its certificate in a file.
pub(super) struct Authority {
    issuer: crate::harness::Authority,
    folder: Folder,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Valid,
    Expired,
    OtherName,
    SelfSigned,
}

impl Authority {
    pub(super) fn new() -> Self {
        let issuer = crate::harness::Authority::new();
        let folder = folder(&[("authority.pem", &issuer.pem())]);
        Self { issuer, folder }
    }

    pub(super) fn argument(&self) -> String {
        format!("--cacert={}", self.folder.at("authority.pem").display())
    }

    pub(super) fn server(&self, names: &[&str]) -> ServerConfig {
        self.config(Kind::Valid, names)
    }

    fn config(&self, kind: Kind, names: &[&str]) -> ServerConfig {
        let mut params = certificate_for(names);
        params.distinguished_name.push(DnType::CommonName, names[0]);
        if matches!(kind, Kind::Expired) {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 4, 1));
        }
        server_config(&match kind {
            Kind::SelfSigned => {
                let key = KeyPair::generate().unwrap();
                (params.self_signed(&key).unwrap(), key)
            }
            _ => self.issuer.sign(&params),
        })
    }
}

fn rules(_: &Asked) -> Vec<u8> {
    response("200 OK", &["Content-Type: text/plain"], RULES)
}

/// Returns the rows of the table about certificates.
pub(super) fn rows() -> Vec<Row> {
    let authority = Authority::new();
    let row = |(says, kind, name, codes): (&str, Kind, &str, &[&str])| {
        let server = Origin::over_tls(authority.config(kind, &[name]), rules);
        let mut command = check(&["https://example.com:8080"], &[rule(server.address, "", 8080)]);
        let checked = Checked::of(command.arg(authority.argument()));
        assert_eq!(checked.codes(), codes, "{says}: {:#?} {}", checked.findings, checked.stderr());
        let crawlers = if codes.is_empty() { GO_BY_RULES } else { DISALLOW_ALL };
        assert_eq!((checked.crawlers(), checked.exit()), (crawlers, i32::from(!codes.is_empty())), "{says}");
        Row::of(says, &checked)
    };
    let failed = &["answer-tls"][..];
    let rows = [
        ("200 over TLS", Kind::Valid, "example.com", &[][..]),
        ("a certificate that has expired", Kind::Expired, "example.com", failed),
        ("a certificate for another name", Kind::OtherName, "example.net", failed),
        ("a certificate that vouches for itself", Kind::SelfSigned, "example.com", failed),
    ];
    let mut rows: Vec<Row> = rows.into_iter().map(row).collect();
    let plain = rule(Origin::answering(rules).address, "", 8080);
    let checked = Checked::of(&mut check(&["https://example.com:8080"], &[plain]));
    assert_eq!((checked.codes(), checked.exit()), (vec!["answer-tls"], 1), "{}", checked.stderr());
    rows.push(Row::of("no TLS at the port of https", &checked));
    rows
}

#[test]
fn a_certificate_is_checked_against_the_name_in_the_url() {
    let authority = Authority::new();
    let server = Origin::over_tls(authority.server(&["www.example.com"]), |asked| {
        assert_eq!(asked.field("host").unwrap(), "www.example.com:8443");
        rules(asked)
    });
    let rule = [rule(server.address, "www.example.com", 8443)];
    let checked = |more: &[&str]| Checked::of(check(&["https://www.example.com:8443/robots.txt"], &rule).args(more));
    let trusted = checked(&[&authority.argument()]);
    assert_eq!((trusted.codes(), trusted.exit()), (vec![], 0), "{}", trusted.stderr());
    let distrusted = checked(&[]);
    assert_eq!((distrusted.codes(), distrusted.exit()), (vec!["answer-tls"], 1), "{}", distrusted.stderr());
    let missing = checked(&["--cacert=/nowhere/authority.pem"]);
    assert_eq!(missing.exit(), 2);
    assert!(missing.stderr().starts_with("robotsd: /nowhere/authority.pem: "), "{}", missing.stderr());
}
