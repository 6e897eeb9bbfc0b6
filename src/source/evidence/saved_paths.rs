//! When crawlers were last verified on each path, and an address that proves each operator's names, in a file: for the next
//! start.
//!
//! Without it nothing would be refuted on a path, or by a name, from a restart until its crawler comes again.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::claim_paths::ClaimPaths;
use super::operator_table::{OperatorTable, ResolverProof};
use super::verified_path::VerifiedPath;
use crate::live::Clock;

/// How long what was learned is at most not saved.
const PAUSE: Duration = if cfg!(test) { Duration::from_millis(10) } else { Duration::from_secs(60) };

/// What is read of a file: more than all paths there can be.
const MOST: u64 = 8 << 20;

/// The file of a folder.
#[derive(Clone, Debug)]
pub(super) struct SavedPaths(PathBuf);

/// What was learned.
#[derive(Debug, Default)]
pub(super) struct Learned {
    pub(super) paths: Vec<VerifiedPath>,
    pub(super) proofs: Vec<ResolverProof>,
}

impl SavedPaths {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(folder.join("claim-paths.json"))
    }

    /// What was saved, as far as their times say something now. A file with times that are still to come is removed: when
    /// they come, nothing would show any more that they are from a clock that was wrong.
    pub(super) fn load(&self, now: SystemTime) -> Result<Learned, String> {
        let mut learned = self.read()?;
        let known = learned.paths.len();
        learned.paths.retain(|path| !path.is_ahead_of(now));
        if learned.paths.len() < known {
            fs::remove_file(&self.0).map_err(|error| format!("{}: {error}", self.0.display()))?;
        }
        Ok(learned)
    }

    /// Nothing if there is no file.
    fn read(&self) -> Result<Learned, String> {
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", self.0.display());
        let mut octets = Vec::new();
        match fs::File::open(&self.0) {
            Ok(file) => file.take(MOST).read_to_end(&mut octets).map_err(|error| failed(&error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Learned::default()),
            Err(error) => return Err(failed(&error)),
        };
        let value: Value = serde_json::from_slice(&octets).map_err(|error| failed(&error))?;
        let paths = value.get("paths").and_then(Value::as_array);
        let paths = paths.ok_or_else(|| failed(&"`paths` is missing"))?;
        let proofs = value.get("proofs").and_then(Value::as_array);
        Ok(Learned {
            paths: paths.iter().filter_map(VerifiedPath::of_json).collect(),
            proofs: proofs.into_iter().flatten().filter_map(ResolverProof::of_json).collect(),
        })
    }

    /// Saves what is learned, until the last verifier is dropped.
    pub(super) async fn keep(self, paths: Weak<ClaimPaths>, operators: Weak<OperatorTable>, clock: Clock) {
        let mut last = String::new();
        loop {
            tokio::time::sleep(PAUSE).await;
            let (Some(paths), Some(operators)) = (paths.upgrade(), operators.upgrade()) else { return };
            let text = Learned { paths: paths.verified_paths(clock.now()), proofs: operators.proofs() }.written();
            if text == last || text.is_empty() {
                continue;
            }
            let (file, to_write) = (self.clone(), text.clone());
            // A disk takes its time.
            let saved = tokio::task::spawn_blocking(move || file.write(&to_write)).await;
            match saved {
                Ok(Ok(())) => {
                    paths.saved();
                    last = text;
                }
                Ok(Err(error)) => paths.not_saved(format!("{}: {error}", self.0.display())),
                Err(_) => return,
            }
        }
    }

    /// In one step: a process that ends meanwhile leaves the file before.
    fn write(&self, text: &str) -> io::Result<()> {
        if let Some(folder) = self.0.parent() {
            fs::create_dir_all(folder)?;
        }
        let draft = self.0.with_extension("tmp");
        fs::write(&draft, text)?;
        fs::rename(&draft, &self.0)
    }
}

impl Learned {
    /// Empty where there is nothing to save: then a file that is there stays.
    fn written(&self) -> String {
        if self.paths.is_empty() && self.proofs.is_empty() {
            return String::new();
        }
        let paths: Vec<Value> = self.paths.iter().map(VerifiedPath::to_json).collect();
        let proofs: Vec<Value> = self.proofs.iter().map(ResolverProof::to_json).collect();
        json!({"paths": paths, "proofs": proofs}).to_string()
    }
}
