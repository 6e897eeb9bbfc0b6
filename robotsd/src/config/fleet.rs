//! The replicas that commands with `--fleet` ask. A process that serves has no use for them.

use std::path::Path;

use toml::Spanned;

use super::{AdminPlace, ConfigError, Fault, Faults, Placed, parsed, reader, salvage, tables};

tables! {
    /// The replicas that serve the same sites.
    RawFleet {
        /// Admin listeners: addresses, and names that stand for all of theirs.
        replicas: Vec<Spanned<String>>,
    }
}

/// The replicas of a config, read alone: they must be within reach after it was broken elsewhere.
pub(crate) fn replicas(path: &Path) -> Result<Vec<AdminPlace>, ConfigError> {
    tables! {
        Part {
            fleet: Option<RawFleet>,
        }
    }
    let text = reader::read_text(path)?;
    let (Part { fleet }, faults) = salvage::read::<Part>(&text).map_err(|fault| fault.at(path, &text))?;
    let replicas = fleet.map(|fleet| fleet.replicas).unwrap_or_default();
    // A name with a fault in it is a replica that would not be asked.
    let places: Result<Vec<_>, Fault> = replicas.iter().map(place).collect();
    match places {
        Ok(places) if !places.is_empty() => Ok(places),
        Ok(_) => {
            let message = "there is no [fleet] with replicas, so it is not known whom to ask";
            let none = Fault::new(0..0, message).help("write replicas = [\"robotsd-pods:9145\"] in [fleet]".to_owned());
            Err(faults.into_iter().next().unwrap_or(none).at(path, &text))
        }
        Err(fault) => Err(fault.at(path, &text)),
    }
}

/// The place of a replica, which commands on other machines reach too.
fn place(replica: &Spanned<String>) -> Result<AdminPlace, Fault> {
    match parsed(replica)? {
        AdminPlace::Socket(_) => Err(replica.fault("a replica is reached by an [[admin.listener]], not by a socket")),
        place => Ok(place),
    }
}

/// Notes the places that are none.
pub(super) fn check(fleet: &RawFleet, faults: &mut Faults) {
    faults.keep_all(fleet.replicas.iter().map(place));
}
