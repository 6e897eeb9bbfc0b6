//! Creates, restores and repairs the document.

use tower_robots::internals::Attribution;

use super::document::{Document, Repair, Write, WriteAnswer, WriteCall};
use super::handle::{Fleet, random, stamp};

impl Fleet {
    /// Creates a document with a new epoch.
    ///
    /// # Errors
    ///
    /// Returns an error if the store already contains a document, or if a running replica has
    /// already read a document of this fleet.
    pub(crate) async fn init(&self) -> Result<String, String> {
        self.refresh().await;
        let name = &self.settings.name;
        if let Some(document) = &self.store.lock().document {
            let damages: Vec<_> = document.damages().collect();
            return Err(if damages.is_empty() {
                format!("fleet {name:?} already has a document, with epoch {epoch}", epoch = document.epoch)
            } else {
                damaged(name, &damages)
            });
        }
        if self.member.lock().is_known() || self.is_remembered() {
            return Err(format!(
                "the store has lost the document of fleet {name:?}, but replicas still know it: write it back with \
                 `robotsd fleet restore`"
            ));
        }
        let epoch = new_epoch();
        let call = WriteCall { epoch: epoch.clone(), floor: 0, tag: random(), write: Write::Begin };
        self.ask(vec![call]).await?;
        Ok(format!("the document of fleet {name:?} was created, with epoch {epoch}"))
    }

    fn is_remembered(&self) -> bool {
        let store = self.store.lock();
        store.replicas.values().any(|beat| beat.epoch.is_some() && !beat.is_missing(store.now))
    }

    /// Writes this replica's entries back to the store if they are missing there.
    ///
    /// # Errors
    ///
    /// Returns an error if the store refuses the entries, or if the document contains damaged
    /// fields.
    pub(crate) async fn restore(&self) -> Result<String, String> {
        self.refresh().await;
        let name = &self.settings.name;
        let document = self.store.lock().document.clone();
        let damages: Vec<_> = document.iter().flat_map(Document::damages).collect();
        if !damages.is_empty() {
            return Err(damaged(name, &damages));
        }
        let writes = self.member.lock().restore(document.as_ref());
        let calls = self.calls(writes);
        if calls.is_empty() {
            return Err(format!(
                "this replica has not read a document of fleet {name:?}: create one with `robotsd fleet init`"
            ));
        }
        let answers = self.ask(calls).await?;
        let written = answers.iter().filter(|answer| matches!(answer, WriteAnswer::Written(_))).count();
        Ok(match written {
            0 => "there is nothing to restore: the store contains all entries of this replica".to_owned(),
            written => format!("entries of this replica that were written back to the store: {written}"),
        })
    }

    /// Repairs the damaged fields of the document, and writes this replica's entries back to the
    /// store if they are missing there. Off switches stay in force.
    ///
    /// # Errors
    ///
    /// Returns an error if the store refuses the repair. Also returns an error if the document is
    /// not damaged and this replica has never read a document.
    pub(crate) async fn repair(&self, by: &Attribution) -> Result<String, String> {
        self.refresh().await;
        let Some(document) = self.store.lock().document.clone().filter(|document| !document.damaged.is_empty()) else {
            return self.restore().await;
        };
        let name = &self.settings.name;
        let epoch = self.member.lock().epoch().map(str::to_owned);
        let epoch = match epoch.or_else(|| Some(document.epoch.clone()).filter(|epoch| !epoch.is_empty())) {
            Some(epoch) => epoch,
            // The epoch is damaged, and no running replica knows it, so the document gets a new
            // epoch.
            None if !self.is_remembered() => new_epoch(),
            None => {
                return Err(format!(
                    "this replica has not read the document of fleet {name:?}: run the repair on a replica that has \
                     read it"
                ));
            }
        };
        let (repairs, writes) = {
            let member = self.member.lock();
            (document.repairs(member.marks(), &stamp(by)), member.restore(Some(&document)))
        };
        let call = WriteCall { epoch, floor: document.rev, tag: random(), write: Write::Repair(repairs.clone()) };
        let is_again = |field: &str| {
            let is_own =
                |write: &Write| matches!(write, Write::Accept(site, ..) if field.strip_prefix("accept:") == Some(site));
            ["epoch", "rev", "tag", "format"].contains(&field) || writes.iter().any(is_own)
        };
        let done = |repair: &Repair| {
            let field = String::from_utf8_lossy(&repair.field);
            let done = match &repair.to {
                Some(_) => "kept",
                None if is_again(&field) => "written again",
                None => "dropped",
            };
            format!("{field:?} is {done}")
        };
        let done: Vec<_> = repairs.iter().map(done).collect();
        let calls = [call].into_iter().chain(self.calls(writes)).collect();
        self.ask(calls).await?;
        Ok(format!("the document of fleet {name:?} is repaired: {repairs}", repairs = done.join(", ")))
    }
}

/// Returns 128 random bits in hex.
fn new_epoch() -> String {
    format!("{}{}", random(), random())
}

fn damaged(name: &str, damages: &[String]) -> String {
    format!(
        "the document of fleet {name:?} has damaged fields: {damages} (repair them with `robotsd fleet restore \
         --repair`, which keeps all off switches)",
        damages = damages.join("; ")
    )
}
