//! The upstreams of a site.

use std::path::Path;

use toml::Spanned;

use super::error::{Fault, Faults, Placed};
use super::tables::{RawListener, RawSite, RawUpstream};
use crate::upstream::{Endpoint, HealthPolicy, HttpVersions, OriginsSettings, TlsSettings, Trust, check_server_name};

pub(super) fn resolve(
    upstreams: &[Spanned<String>],
    settings: &RawUpstream,
    folder: &Path,
) -> Result<OriginsSettings, Fault> {
    let endpoint = |url: &Spanned<String>| Endpoint::parse(url.get_ref(), folder).map_err(|why| url.fault(why));
    let endpoints = upstreams.iter().map(endpoint).collect::<Result<Vec<_>, _>>()?;
    let is_tls = endpoints.iter().any(Endpoint::is_tls);
    for span in [settings.ca.as_ref().map(Spanned::span), settings.server_name.as_ref().map(Spanned::span)] {
        if let (Some(span), false) = (span, is_tls) {
            return Err(Fault::new(span, "this is for TLS, and no upstream of the site begins with \"https://\""));
        }
    }
    let versions = match settings.http2.as_ref().map(Spanned::get_ref) {
        Some(true) => HttpVersions::Http2,
        Some(false) => HttpVersions::Http1,
        None => HttpVersions::Negotiated,
    };
    let trust = match &settings.ca {
        None => Trust::System,
        Some(ca) => Trust::file(&folder.join(ca.get_ref())).map_err(|why| ca.fault(why))?,
    };
    if let Some(name) = &settings.server_name {
        check_server_name(name.get_ref()).map_err(|why| name.fault(why))?;
    }
    if settings.eject.get_ref().0.is_zero() {
        return Err(settings.eject.fault("eject is no time at all: to never eject an upstream, write max_fails = 0"));
    }
    Ok(OriginsSettings {
        endpoints,
        versions,
        health: HealthPolicy {
            max_fails: settings.max_fails,
            fail_window: settings.fail_window.0,
            eject: settings.eject.get_ref().0,
            eject_max: settings.eject_max.0,
        },
        tls: TlsSettings { trust, server_name: settings.server_name.as_ref().map(|name| name.get_ref().clone()) },
    })
}

/// Notes the upstreams of a site that cannot be read, and those that are a listener of the same process: requests would go round
/// until none is left.
pub(super) fn faulty(site: &RawSite, listeners: &[RawListener], folder: &Path, faults: &mut Faults) {
    for url in site.upstreams.iter().flatten() {
        // All of them, where the site stops at the first.
        let endpoint = Endpoint::parse(url.get_ref(), folder).map_err(|why| url.fault(why));
        let Some(endpoint) = faults.keep(endpoint) else { continue };
        let addresses = listeners.iter().map(|listener| listener.address.get_ref().0);
        if let Some(address) = addresses.into_iter().find(|address| endpoint.is_listener(*address)) {
            let message = format!(
                "the upstream {:?} is the listener {address} of this config, so requests would go round in a circle: name the \
                 address of the origin server",
                url.get_ref()
            );
            faults.push(url.fault(message));
        }
    }
}
