//! Access to Valkey or Redis for all modules: settings, connection, and explanations of errors.

mod connection;
mod settings;

pub(crate) use self::connection::{
    AddressLookup, StoreAddresses, StoreConnection, StoreProblem, StoreScript, system_lookup,
};
pub use self::settings::{StoreNodes, StoreSettings, StoreUrl};
