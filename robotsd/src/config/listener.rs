//! The settings of listeners, with their trusted proxies and certificates. Certificates are read
//! together with the config. An unusable certificate makes the config invalid.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::HeaderName;
use toml::Spanned;
use tower_robots::policy::Network;

use super::{Fault, Faults, Placed, parsed, tables, unplaced, words};
use crate::edge::{CertificatePair, LiveCertificates, PairFile, PairPaths, Trusted};
use crate::names::quoted_list;

tables! {
    RawListener {
        name: Option<Spanned<String>>,
        address: Spanned<SocketAddr>,
        kind: ListenerKind,
        on_error: Option<Spanned<OnError>>,
        unknown_host: Option<Spanned<UnknownHost>>,
        trusted_proxies: Vec<Spanned<String>>,
        agent_header: Option<Spanned<String>>,
        proxy_protocol: Spanned<bool> = unplaced(false),
        certificate: Vec<RawCertificate>,
    }

    /// A certificate chain and its private key.
    RawCertificate {
        chain: Spanned<PathBuf>,
        key: Spanned<PathBuf>,
    }
}

words! {
    /// The kinds of listeners.
    ListenerKind {
        #[default]
        Proxy = "proxy",
        /// Answers decision requests of another proxy, which ask whether to allow a request.
        Decision = "decision",
    }

    /// The verdict on a request to an unknown host, if the decision request does not name a site.
    UnknownHost {
        #[default]
        Pass = "pass",
        /// Every site evaluates the request, and the strictest verdict counts.
        Strictest = "strictest",
    }

    /// The response to a decision request that does not describe the client's request.
    OnError {
        #[default]
        Pass = "pass",
        Refuse = "refuse",
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuestionSettings {
    pub(crate) on_error: OnError,
    pub(crate) unknown_host: UnknownHost,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListenerConfig {
    /// Name of the listener's socket, if a supervisor such as systemd passes sockets to robotsd.
    pub(crate) name: Option<String>,
    pub(crate) address: SocketAddr,
    pub(crate) kind: ListenerKind,
    /// The settings for incomplete decision requests, which only decision listeners use.
    pub(crate) questions: QuestionSettings,
    pub(crate) certificates: Option<LiveCertificates>,
    pub(crate) trusted: Arc<Trusted>,
    /// Whether every connection must come from a trusted proxy and begin with a PROXY header.
    pub(crate) proxy_protocol: bool,
}

/// Returns an error if the certificates do not cover all hosts of the sites.
///
/// Only the certificates of listeners that clients connect to directly are checked, because a proxy
/// in front of a listener may accept any certificate. If the config also has other listeners,
/// clients may use those for the uncovered hosts. In this case, the function returns an error only
/// if the certificates cover no host and no site serves every host. IP addresses and names without
/// a dot are ignored, because they may be only for health checks.
pub(crate) fn uncovered<'a>(listeners: &[ListenerConfig], patterns: impl Iterator<Item = &'a str>) -> Option<String> {
    let of_clients = || listeners.iter().filter(|listener| listener.kind == ListenerKind::Proxy);
    let certain = of_clients().filter(|listener| listener.trusted.networks.is_empty());
    let certain: Vec<_> = certain.filter_map(|listener| listener.certificates.as_ref()).collect();
    let name = |pattern: &str| pattern.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let is_name = |name: &String| name.is_ascii() && name.contains('.') && name.parse::<Ipv4Addr>().is_err();
    let is_covered = |name: &String| certain.iter().any(|certificates| certificates.cover(name));
    // Ports are removed, because certificates do not contain ports.
    let mut seen = HashSet::new();
    let patterns = patterns.map(name).filter(|name| seen.insert(name.clone()));
    let (every, patterns): (Vec<_>, Vec<_>) = patterns.partition(|name| name == "*");
    let (covered, uncovered): (Vec<_>, Vec<_>) = patterns.into_iter().filter(is_name).partition(is_covered);
    let are_all_certain = certain.len() == of_clients().count();
    let is_for_none = covered.is_empty() && every.is_empty();
    let is_fault = !certain.is_empty() && !uncovered.is_empty() && (are_all_certain || is_for_none);
    let hosts = is_fault.then(|| quoted_list(uncovered))?;
    Some(format!(
        "no [[listener]] has a certificate for {hosts}, so clients refuse to connect: add a certificate for these \
         names"
    ))
}

pub(super) fn resolve(listener: &RawListener, folder: &Path) -> Result<ListenerConfig, Fault> {
    let of_questions = [
        ("on_error", listener.on_error.as_ref().map(Spanned::span)),
        ("unknown_host", listener.unknown_host.as_ref().map(Spanned::span)),
    ];
    for (key, span) in of_questions {
        if let (ListenerKind::Proxy, Some(span)) = (listener.kind, span) {
            return Err(Fault::new(span, format!("{key:?} requires kind = \"decision\"")));
        }
    }
    if let (ListenerKind::Decision, Some(agent_header)) = (listener.kind, &listener.agent_header) {
        let message = "\"agent_header\" has an effect only with kind = \"proxy\": remove it, because a decision \
            request already contains the User-Agent of the client";
        return Err(agent_header.fault(message));
    }
    Ok(ListenerConfig {
        name: listener.name.as_ref().map(|name| name.get_ref().clone()),
        questions: QuestionSettings {
            on_error: listener.on_error.as_ref().map(|on_error| *on_error.get_ref()).unwrap_or_default(),
            unknown_host: listener.unknown_host.as_ref().map(|unknown| *unknown.get_ref()).unwrap_or_default(),
        },
        address: *listener.address.get_ref(),
        kind: listener.kind,
        certificates: certificates(&listener.certificate, folder)?,
        trusted: Arc::new(trusted(listener)?),
        proxy_protocol: *listener.proxy_protocol.get_ref(),
    })
}

pub(super) fn conflicts(listeners: &[RawListener], of_admin: &[&Spanned<SocketAddr>], faults: &mut Faults) {
    let mut names = HashSet::new();
    for name in listeners.iter().filter_map(|listener| listener.name.as_ref()) {
        if name.get_ref().is_empty() {
            faults.push(name.fault("the name is empty: write the name of a socket that the supervisor passes"));
        } else if !names.insert(name.get_ref()) {
            faults.push(name.fault(format!(
                "another listener already has the name {name:?}: write a different name",
                name = name.get_ref()
            )));
        }
    }
    // All invalid networks are reported here, because the function that resolves a listener stops
    // at the first invalid network.
    let networks = listeners.iter().flat_map(|listener| &listener.trusted_proxies).map(parsed::<Network>);
    networks.filter_map(Result::err).for_each(|fault| faults.push(fault));
    let addresses = || listeners.iter().map(|listener| &listener.address);
    for (number, address) in addresses().enumerate() {
        let (span, address) = (address.span(), *address.get_ref());
        if let Some(before) = addresses().take(number).find(|before| overlap(*before.get_ref(), address)) {
            let before = *before.get_ref();
            let message = if before == address {
                format!("another listener already has the address {address}: write a different address")
            } else {
                format!(
                    "{address} overlaps with the address {before} of another listener, so only one of the two can be \
                     opened: remove one"
                )
            };
            faults.push(Fault::new(span, message));
        }
    }
    for (number, address) in of_admin.iter().enumerate() {
        let takes = |taken: &&Spanned<SocketAddr>| overlap(*taken.get_ref(), *address.get_ref());
        let message = if let Some(taken) = addresses().find(takes) {
            format!(
                "a listener already has the address {address}: write a different address for [admin]",
                address = taken.get_ref()
            )
        } else if let Some(taken) = of_admin.iter().copied().take(number).find(takes) {
            format!(
                "the admin interface already has the address {address}: write a different address for each of its \
                 listeners",
                address = taken.get_ref()
            )
        } else {
            continue;
        };
        faults.push(address.fault(message));
    }
}

fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port()
        && one.port() != 0
        && (one.ip() == other.ip() || is_any && one.is_ipv4() == other.is_ipv4())
}

fn certificates(files: &[RawCertificate], folder: &Path) -> Result<Option<LiveCertificates>, Fault> {
    let Some(first) = files.first() else { return Ok(None) };
    let pairs = pairs(files, folder)?;
    LiveCertificates::new(pairs).map(Some).map_err(|error| first.chain.fault(error.to_string()))
}

pub(super) fn pairs(files: &[RawCertificate], folder: &Path) -> Result<Vec<(PairPaths, CertificatePair)>, Fault> {
    let mut pairs = Vec::new();
    for file in files {
        let paths = PairPaths { chain: folder.join(file.chain.get_ref()), key: folder.join(file.key.get_ref()) };
        let pair = CertificatePair::read(&paths).map_err(|unusable| {
            let span = match unusable.culprit {
                PairFile::Chain => file.chain.span(),
                PairFile::Key => file.key.span(),
            };
            Fault::new(span, unusable.to_string())
        })?;
        if pair.names.is_empty() && !pairs.is_empty() {
            let message = format!(
                "{}: this certificate contains no DNS name, so no client would ever get it: list it first, which makes \
                 it the default, or use a certificate with a DNS name",
                paths.chain.display()
            );
            return Err(file.chain.fault(message));
        }
        pairs.push((paths, pair));
    }
    Ok(pairs)
}

fn trusted(listener: &RawListener) -> Result<Trusted, Fault> {
    let networks = listener.trusted_proxies.iter().map(parsed::<Network>).collect::<Result<Vec<_>, _>>()?;
    let agent_header = listener.agent_header.as_ref().map(agent_header).transpose()?;
    if let Some(agent_header) = listener.agent_header.as_ref().filter(|_| networks.is_empty()) {
        return Err(agent_header.fault(
            "\"agent_header\" requires \"trusted_proxies\", because only a trusted proxy may set this header: \
             list the addresses of the proxy in front of robotsd",
        ));
    }
    if *listener.proxy_protocol.get_ref() && networks.is_empty() {
        let message = "proxy_protocol = true requires \"trusted_proxies\", because only trusted proxies may connect: \
            list the addresses of the proxy in front of robotsd";
        return Err(listener.proxy_protocol.fault(message));
    }
    Ok(Trusted { networks, agent_header })
}

/// Parses `agent_header`, the name of a header field that contains the client's `User-Agent`.
/// Returns an error for standard fields with another meaning.
fn agent_header(text: &Spanned<String>) -> Result<HeaderName, Fault> {
    const STANDARD_FIELDS: [&str; 8] = [
        "accept",
        "authorization",
        "connection",
        "content-length",
        "cookie",
        "host",
        "transfer-encoding",
        "user-agent",
    ];
    let wrong = |why: &str| {
        text.fault(format!("{name:?} {why}: write a name such as \"X-Original-User-Agent\"", name = text.get_ref()))
    };
    let name =
        HeaderName::from_bytes(text.get_ref().as_bytes()).map_err(|_| wrong("is not the name of a header field"))?;
    if STANDARD_FIELDS.contains(&name.as_str()) {
        return Err(wrong("already has another meaning in HTTP"));
    }
    Ok(name)
}
