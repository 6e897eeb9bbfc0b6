//! Access to Valkey or Redis for all modules: address and settings, the connection, and the meaning
//! of errors.

mod connection;
mod settings;

pub(crate) use self::connection::{
    AddressLookup, StoreAddresses, StoreConnection, StoreProblem, StoreScript, of_system,
};
pub use self::settings::{StoreNodes, StoreSettings, StoreUrl};
