//! The replicas that commands with `--fleet` ask. A process that serves has no use for them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::str::FromStr;

use toml::Spanned;

use super::{ConfigError, Fault, Faults, admin, parsed, reader, salvage, tables};

tables! {
    /// The replicas that serve the same sites.
    RawFleet {
        /// Admin listeners: addresses, and names that stand for all of theirs.
        replicas: Vec<Spanned<String>>,
    }
}

/// Where the admin listeners of replicas are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaPlace {
    Address(SocketAddr),
    /// Every address that the name has.
    Name(String, u16),
    /// Behind TLS: one replica, by the name that its certificate is for.
    Tls(String, u16),
}

impl FromStr for ReplicaPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let (text, is_tls) = text.strip_prefix("https://").map_or((text, false), |text| (text, true));
        if let Some(address) = text.parse::<IpAddr>().ok().filter(|_| !is_tls) {
            return Ok(Self::Address((address, admin::PORT).into()));
        }
        let (name, port) = text.rsplit_once(':').map_or((text, Ok(admin::PORT)), |(name, port)| (name, port.parse()));
        let is_name = |name: &str| name.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-._".contains(&octet));
        match port {
            Ok(port) if !name.is_empty() && is_name(name) && is_tls => Ok(Self::Tls(name.to_owned(), port)),
            Ok(port) if !name.is_empty() && is_name(name) => Ok(Self::Name(name.to_owned(), port)),
            _ => Err(format!(
                "{text:?} is no place of an admin listener: write an address such as \"10.0.0.5:{0}\", a name such as \"robotsd-pods:{0}\", \
                 or \"https://web-1.internal:{0}\" for one behind TLS",
                admin::PORT
            )),
        }
    }
}

impl fmt::Display for ReplicaPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
            Self::Tls(name, port) => write!(f, "https://{name}:{port}"),
        }
    }
}

impl ReplicaPlace {
    /// Reads the table alone: replicas must be within reach after the config was broken elsewhere.
    pub(crate) fn load(path: &Path) -> Result<Vec<Self>, ConfigError> {
        tables! {
            Part {
                fleet: Option<RawFleet>,
            }
        }
        let text = reader::read_text(path)?;
        let (Part { fleet }, faults) = salvage::read::<Part>(&text).map_err(|fault| fault.at(path, &text))?;
        let replicas = fleet.map(|fleet| fleet.replicas).unwrap_or_default();
        // A name with a fault in it is a replica that would not be asked.
        let places: Result<Vec<_>, Fault> = replicas.iter().map(parsed).collect();
        match places {
            Ok(places) if !places.is_empty() => Ok(places),
            Ok(_) => {
                let message = "there is no [fleet] with replicas, so it is not known whom to ask";
                let none =
                    Fault::new(0..0, message).help("write replicas = [\"robotsd-pods:9145\"] in [fleet]".to_owned());
                Err(faults.into_iter().next().unwrap_or(none).at(path, &text))
            }
            Err(fault) => Err(fault.at(path, &text)),
        }
    }
}

/// Notes the places that are none.
pub(super) fn check(fleet: &RawFleet, faults: &mut Faults) {
    for replica in &fleet.replicas {
        faults.keep(parsed::<ReplicaPlace>(replica));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_addresses_and_names() {
        for (text, want) in [
            ("10.0.0.5:9000", Some("10.0.0.5:9000")),
            ("10.0.0.5", Some("10.0.0.5:9145")),
            ("::1", Some("[::1]:9145")),
            ("[::1]:9000", Some("[::1]:9000")),
            ("robotsd-pods", Some("robotsd-pods:9145")),
            ("https://web-1.internal", Some("https://web-1.internal:9145")),
            ("web-1.internal:9000", Some("web-1.internal:9000")),
            ("", None),
            (":9145", None),
            ("web:x", None),
            ("http://web:9145", None),
            ("web 1", None),
        ] {
            let place = text.parse::<ReplicaPlace>();
            assert_eq!(place.as_ref().map(ToString::to_string).ok().as_deref(), want, "{text}: {place:?}");
        }
    }
}
