//! The gate of one site: what its config and its expectations demand of a version.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tower_robots::agent::Registry;
use tower_robots::check;
use tower_robots::live::{Gate, GateBuilder};

use crate::expectations::ExpectationsFile;

/// The gate of the config, and the file with the expectations of the site.
#[derive(Clone, Debug)]
pub(super) struct GateSettings {
    gate: Option<GateBuilder>,
    pub(super) expectations: Option<PathBuf>,
    /// The gate when the file could last be used.
    last: Arc<Mutex<Option<Gate>>>,
}

impl GateSettings {
    pub(super) fn new(gate: Option<GateBuilder>, expectations: Option<PathBuf>) -> Self {
        Self { gate, expectations, last: Arc::default() }
    }

    /// The gate, with the expectations as their file has them now.
    pub(super) fn gate(&self, registry: &Arc<Registry>) -> Result<Gate, String> {
        let gate = match (&self.gate, &self.expectations) {
            (None, _) => Gate::open(),
            (Some(gate), Some(path)) => gate.clone().expectations(expectations(path, registry)?).build(),
            (Some(gate), None) => gate.clone().build(),
        };
        self.keep(&gate);
        Ok(gate)
    }

    /// Keeps a gate as the last one.
    pub(super) fn keep(&self, gate: &Gate) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(gate.clone());
    }

    pub(super) fn last(&self) -> Option<Gate> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a file expects of a robots.txt.
fn expectations(path: &Path, registry: &Arc<Registry>) -> Result<check::Expectations, String> {
    ExpectationsFile::read(path, registry).map(|file| file.expectations).map_err(|error| error.to_string())
}
