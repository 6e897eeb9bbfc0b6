//! Valkey or Redis, as every room uses it: the address and how it is called, the connection, and what an error means.

mod connection;
mod settings;

pub(crate) use self::connection::{
    AddressLookup, StoreAddresses, StoreConnection, StoreScript, StoreTrouble, of_system,
};
pub use self::settings::{StoreNodes, StoreSettings, StoreUrl};
