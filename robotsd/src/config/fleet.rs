//! The settings of `[fleet]`: the store that contains the fleet's document, and the addresses that
//! commands with `--fleet` send requests to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;

use super::rate_store::StoreKeys;
use super::values::StoreText;
use super::{AdminPlace, ConfigError, Fault, Faults, Placed, parsed, partial_parse, reader, tables, unplaced};
use crate::audit::host_name;
use crate::store::StoreSettings;

tables! {
    /// The replicas that serve the same sites.
    RawFleet {
        /// Name of the fleet. If it is set, the process is a member of the fleet.
        name: Option<Spanned<String>>,
        /// Name of this replica.
        replica: Option<Spanned<String>>,
        store: Option<Spanned<StoreText>>,
        cluster: Spanned<bool> = unplaced(false),
        password_file: Option<Spanned<PathBuf>>,
        ca: Option<Spanned<PathBuf>>,
        /// Addresses of the replicas' admin listeners. A host name stands for all of its addresses.
        replicas: Vec<Spanned<String>>,
    }
}

/// Maximum duration of a request to the store. Requests of clients never wait for the store.
const DEADLINE: Duration = Duration::from_millis(500);

/// Maximum length of the names of fleets and replicas, in characters.
const MAX_NAME_LENGTH: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FleetSettings {
    pub(crate) name: String,
    pub(crate) replica: String,
    pub(crate) store: StoreSettings,
}

impl FleetSettings {
    /// Resolves `[fleet]`. Returns `None` if the table does not set `name`. If the table does not
    /// set `store`, the fleet uses the store of `[rate]`.
    pub(super) fn resolve(file: &RawFleet, rate: Option<&StoreSettings>, folder: &Path) -> Result<Option<Self>, Fault> {
        let RawFleet { name, replica, store, cluster, password_file, ca, .. } = file;
        let named = StoreKeys { store, cluster, password_file, ca }.resolve(folder)?;
        let Some(name) = name else {
            let of_name = [store.as_ref().map(Spanned::span), replica.as_ref().map(Spanned::span)];
            let message = "this key requires the name of a fleet: write name = \"shop-prod\" in [fleet]";
            return of_name.into_iter().flatten().next().map_or(Ok(None), |span| Err(Fault::new(span, message)));
        };
        for name in [Some(name), replica.as_ref()].into_iter().flatten() {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            let text = name.get_ref();
            if text.is_empty() || text.len() > MAX_NAME_LENGTH || !text.bytes().all(is_plain) {
                return Err(name.fault(format!(
                    "{text:?} is not a valid name of a fleet or replica: write a name of 1 to {MAX_NAME_LENGTH} \
                     letters, digits, \"-\", \".\" and \"_\""
                )));
            }
        }
        let missing_store = || {
            name.fault(
                "a fleet needs a store for the document that its replicas share: write store = \
                 \"redis://10.0.0.5\" in [fleet] or [rate]",
            )
        };
        let store = named.or_else(|| rate.cloned()).ok_or_else(missing_store)?;
        let store =
            StoreSettings { prefix: format!("robotsd:fleet:{{{}}}:", name.get_ref()), deadline: DEADLINE, ..store };
        let replica = replica.as_ref().map_or_else(host_name, |replica| replica.get_ref().clone());
        Ok(Some(Self { name: name.get_ref().clone(), replica, store }))
    }
}

/// Returns the addresses of the replicas, and whether `[fleet]` has a name. Reads only `[fleet]`,
/// because commands must reach the replicas even if other tables of the config have errors.
pub(crate) fn replicas(path: &Path) -> Result<(bool, Vec<AdminPlace>), ConfigError> {
    tables! {
        Part {
            fleet: Option<RawFleet>,
        }
    }
    let text = reader::read_text(path)?;
    let (Part { fleet }, faults) = partial_parse::read::<Part>(&text).map_err(|fault| fault.at(path, &text))?;
    let is_named = fleet.as_ref().is_some_and(|fleet| fleet.name.is_some());
    let replicas = fleet.map(|fleet| fleet.replicas).unwrap_or_default();
    // An invalid address is an error, because the command must not leave out a replica without a
    // message.
    let places: Result<Vec<_>, Fault> = replicas.iter().map(place).collect();
    match places {
        Ok(places) if is_named || !places.is_empty() => Ok((is_named, places)),
        Ok(_) => {
            let message = "\"replicas\" in [fleet] is empty, so the command cannot find the replicas of the fleet";
            let none = Fault::new(0..0, message).help("write replicas = [\"robotsd-pods:9145\"] in [fleet]".to_owned());
            Err(faults.into_iter().next().unwrap_or(none).at(path, &text))
        }
        Err(fault) => Err(fault.at(path, &text)),
    }
}

/// Parses the address of a replica. Unix sockets are refused, because other machines cannot reach
/// them.
fn place(replica: &Spanned<String>) -> Result<AdminPlace, Fault> {
    match parsed(replica)? {
        AdminPlace::Socket(_) => Err(replica.fault(
            "this is a Unix socket, which other machines cannot reach: write the address of an \
             [[admin.listener]] of the replica",
        )),
        place => Ok(place),
    }
}

pub(super) fn hosts(fleet: &RawFleet, faults: &mut Faults) -> Vec<(String, u16)> {
    let places: Vec<_> = fleet.replicas.iter().filter_map(|replica| faults.keep(place(replica))).collect();
    places.iter().filter_map(AdminPlace::host_and_port).collect()
}
