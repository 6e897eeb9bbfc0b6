//! Certificate authorities from an operator's PEM file. They sign the certificates of upstreams, of
//! other servers, or of clients of the admin interface.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::RootCertStore;
use tower_robots::internals::roots_of;

use crate::files;

/// Certificate authorities that are trusted instead of the system's certificate authorities.
#[derive(Clone, derive_more::Debug)]
pub(crate) struct Authorities {
    #[debug(skip)]
    pub(crate) pem: Arc<[u8]>,
    pub(crate) roots: Arc<RootCertStore>,
}

impl Authorities {
    /// Reads the certificates of a PEM file. The error is a message for the operator.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let pem = files::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
        let roots = roots_of(&pem).map_err(|why| format!("{shown} {why}"))?;
        Ok(Self { pem: pem.into(), roots: Arc::new(roots) })
    }
}

impl PartialEq for Authorities {
    fn eq(&self, other: &Self) -> bool {
        self.pem == other.pem
    }
}

impl Eq for Authorities {}
