//! Checks whether a client with a given address is the crawler that its request names, and
//! describes each step.

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use tokio::runtime::{Builder, Runtime};
use tower_robots::agent::{Agent, Crawler, Identity, UndecidedReason};
use tower_robots::identity::{
    ClaimEvidence, DnsAnswer, IdentityRequest, ListEvidence, MethodOutcome, NamePattern, PublicAddress, RdnsCheck,
    RdnsQuestion,
};
use tower_robots::internals::{ListCopy, NameResolver};

use super::arguments::site::EvidencePlaces;
use crate::date::rfc3339;

#[derive(Debug, Serialize)]
pub(super) struct CheckedClaim {
    #[serde(flatten)]
    pub(super) identity: Identity,
    pub(super) steps: Vec<String>,
}

/// Whether to look up the reverse DNS names of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    LookUp,
    Skip,
}

/// Checks whether a request from an address comes from one of `agents`. Address lists are not
/// fetched. A list is read from the first existing copy in this order: the copy that a running
/// robotsd saved, the file in the config, the built-in copy.
pub(super) fn check(
    agents: &[Agent],
    address: IpAddr,
    places: &EvidencePlaces,
    names: Names,
) -> io::Result<CheckedClaim> {
    let is_proxy = |address: IpAddr| places.trusted_proxies.iter().any(|network| network.contains(address));
    let public = PublicAddress::of(Some(address), is_proxy);
    let steps = RefCell::new(Vec::new());
    let note = |step: String| steps.borrow_mut().push(step);
    if public.is_err() {
        let why = if is_proxy(address) {
            "belongs to a trusted proxy"
        } else {
            "is in a private, shared or reserved network"
        };
        note(format!("the address {address} {why}, so it proves nothing about the client"));
    }
    let resolver = match names {
        Names::LookUp => {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let inside = runtime.enter();
            let resolver = NameResolver::new(&places.resolvers).map_err(io::Error::other)?;
            drop(inside);
            Some((runtime, resolver))
        }
        Names::Skip => None,
    };
    let evidence = NotedEvidence { places, resolver, note: &note };
    let found = IdentityRequest::new(agents, public.ok()).identify(&evidence, SystemTime::now());
    match found.crawler {
        None => note("the request names no crawler, so there is nothing to check".to_owned()),
        Some(name) if found.identity == Identity::Unverifiable => {
            note(format!(
                "the operator of {name} publishes neither a list of addresses nor host names, so the claim \
                 can be neither verified nor refuted"
            ));
        }
        Some(_) => {}
    }
    let (identity, mut steps) = (found.identity, steps.into_inner());
    if let Identity::Undecided(_) = identity {
        steps.insert(0, "the evidence that was checked neither proves nor disproves the claim".to_owned());
    }
    Ok(CheckedClaim { identity, steps })
}

/// The evidence for a check. Calls `note` with a description of each piece of evidence that the
/// check examines.
struct NotedEvidence<'a> {
    places: &'a EvidencePlaces,
    resolver: Option<(Runtime, NameResolver)>,
    note: &'a dyn Fn(String),
}

impl NotedEvidence<'_> {
    fn shown_origin(&self, url: &str, copy: &ListCopy) -> String {
        match (copy.confirmed, copy.fetched, self.places.configured_copy(url)) {
            (Some(confirmed), _, _) => format!("saved, confirmed {}", rfc3339(confirmed)),
            (_, Some(day), _) => format!("the built-in copy from {day}"),
            (_, _, Some(path)) => format!("the copy {}", path.display()),
            _ => copy.origin.to_owned(),
        }
    }
}

impl ClaimEvidence for NotedEvidence<'_> {
    fn range(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome> {
        let list = |url: &str| self.places.list_copies(url, self.note).into_iter().next();
        let copies: Vec<_> = crawler.ranges.iter().map(|url| (url, list(url))).collect();
        for (url, copy) in &copies {
            (self.note)(match copy {
                None => format!("no copy of the list {url} is available"),
                Some(copy) => {
                    let is_in =
                        if copy.list.set.contains(address.get()) { "is in the list" } else { "is not in the list" };
                    format!("{} {is_in} {url} ({})", address.get(), self.shown_origin(url, copy))
                }
            });
        }
        let lists = copies.iter().map(|(_, copy)| copy.as_ref());
        let lists = lists.map(|copy| copy.map(|copy| ListEvidence { set: &copy.list.set, confirmed: copy.confirmed }));
        let outcome = (!copies.is_empty()).then(|| ListEvidence::examine(lists, address, None, now))?;
        if outcome == MethodOutcome::Undecided(UndecidedReason::Stale) {
            (self.note)(
                "a list refutes a claim only if its server confirmed the list within the last day: to use the lists \
                 that a running robotsd keeps up to date, add --config"
                    .to_owned(),
            );
        }
        Some(outcome)
    }

    fn rdns(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome> {
        let patterns = name_patterns(crawler)?;
        (self.note)(format!(
            "the addresses of {crawler} have DNS names such as {names}",
            crawler = crawler.name,
            names = crawler.reverse_dns.join(", ")
        ));
        let Some((runtime, resolver)) = &self.resolver else {
            (self.note)("the DNS names of the address were not looked up".to_owned());
            return Some(MethodOutcome::Undecided(UndecidedReason::UnprovenResolver));
        };
        let note = |question: &RdnsQuestion<'_>, answer: &DnsAnswer| (self.note)(lookup_step(question, answer));
        let outcome = runtime.block_on(resolver.check(address, patterns, note));
        let meant = RdnsCheck::through(outcome, None, now);
        if outcome != meant {
            (self.note)(
                "a resolver's answer refutes a claim only if the resolver verified an address of the same operator \
                 within the last hour"
                    .to_owned(),
            );
        }
        Some(meant)
    }
}

/// Returns the patterns that the reverse DNS names of a crawler's addresses match. Returns `None`
/// if the operator of the crawler does not publish any patterns.
pub(super) fn name_patterns(crawler: &Crawler) -> Option<Arc<[NamePattern]>> {
    let patterns: Arc<[NamePattern]> = crawler.reverse_dns.iter().filter_map(|text| text.parse().ok()).collect();
    Some(patterns).filter(|patterns| !patterns.is_empty())
}

fn lookup_step(question: &RdnsQuestion<'_>, answer: &DnsAnswer) -> String {
    let asked = match question {
        RdnsQuestion::Ptr(address) => format!("DNS names of {address}"),
        RdnsQuestion::A(name) | RdnsQuestion::Aaaa(name) => format!("addresses of {}", name.escape_debug()),
    };
    let found = match answer {
        DnsAnswer::Names(names) => {
            names.iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ")
        }
        DnsAnswer::Addresses(addresses) => addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        DnsAnswer::NoSuchName | DnsAnswer::NoRecords => "none".to_owned(),
        DnsAnswer::Timeout => "the resolver did not answer in time".to_owned(),
        DnsAnswer::Truncated => "the resolver's answer was truncated".to_owned(),
        _ => "the resolver failed".to_owned(),
    };
    format!("{asked}: {found}")
}
