//! Test support: a certificate authority, and the folder with its certificate files.

use std::path::PathBuf;

use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::RootCertStore;

pub(crate) struct TestAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) folder: TempDir,
}

impl TestAuthority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// Returns the path of the file with the certificate of the authority.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Returns the trusted roots for a client that trusts only this authority.
    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }

    pub(crate) fn sign(
        &self,
        names: &[&str],
        key: &KeyPair,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Certificate {
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        change(&mut params);
        params.signed_by(key, &self.issuer).unwrap()
    }
}
