//! Certificates: valid, and wrong in each way.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::cases::{DISALLOW_ALL, GO_BY_RULES, RULES};
use super::table::Row;
use super::zoo::{Reply, Zoo, response};
use super::{Checked, check};
use crate::harness::{Folder, folder};

/// An authority of the test's own, and its certificate in a file.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: Folder,
}

/// What a server's certificate is like.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Valid,
    Expired,
    OtherName,
    SelfSigned,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = folder(&[("authority.pem", &issuer.pem())]);
        Self { issuer, folder }
    }

    pub(super) fn argument(&self) -> String {
        format!("--cacert={}", self.folder.at("authority.pem").display())
    }

    /// The settings of a server for these names.
    pub(super) fn server(&self, names: &[&str]) -> ServerConfig {
        self.config(Kind::Valid, names)
    }

    fn config(&self, kind: Kind, names: &[&str]) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        params.distinguished_name.push(DnType::CommonName, names[0]);
        if matches!(kind, Kind::Expired) {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 4, 1));
        }
        let certificate = match kind {
            Kind::SelfSigned => params.self_signed(&key).unwrap(),
            _ => params.signed_by(&key, &self.issuer).unwrap(),
        };
        let certificate: CertificateDer<'static> = certificate.der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        builder.with_single_cert(vec![certificate], key).unwrap()
    }
}

fn rules() -> Reply {
    Reply::Octets(response("200 OK", &["Content-Type: text/plain"], RULES))
}

/// The rows of the table for certificates.
pub(super) fn rows() -> Vec<Row> {
    let authority = Authority::new();
    let row = |(says, kind, name, codes): (&str, Kind, &str, &[&str])| {
        let zoo = Zoo::tls(authority.config(kind, &[name]), |_| rules());
        let mut command = check(&["https://example.com:8080"], &[zoo.rule("", 8080)]);
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
    let plain = Zoo::start(|_| rules());
    let checked = Checked::of(&mut check(&["https://example.com:8080"], &[plain.rule("", 8080)]));
    assert_eq!((checked.codes(), checked.exit()), (vec!["answer-tls"], 1), "{}", checked.stderr());
    rows.push(Row::of("no TLS at the port of https", &checked));
    rows
}

#[test]
fn a_certificate_counts_for_the_name_of_the_url_wherever_it_is_served() {
    let authority = Authority::new();
    let zoo = Zoo::tls(authority.server(&["www.example.com"]), |asked| {
        assert_eq!(asked.host, "www.example.com:8443");
        rules()
    });
    let rule = [zoo.rule("www.example.com", 8443)];
    let url = "https://www.example.com:8443/robots.txt";
    let trusted = Checked::of(check(&[url], &rule).arg(authority.argument()));
    assert_eq!((trusted.codes(), trusted.exit()), (vec![], 0), "{}", trusted.stderr());
    let distrusted = Checked::of(&mut check(&[url], &rule));
    assert_eq!((distrusted.codes(), distrusted.exit()), (vec!["answer-tls"], 1), "{}", distrusted.stderr());
    let missing = Checked::of(check(&[url], &rule).arg("--cacert=/nowhere/authority.pem"));
    assert_eq!(missing.exit(), 2);
    assert!(missing.stderr().starts_with("robotsd: /nowhere/authority.pem: "), "{}", missing.stderr());
}
