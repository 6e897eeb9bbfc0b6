//! Suspected people behind crawlers' names.
//!
//! A person's tool or browser may carry the name of a crawler, and a mistaken registry row may take a browser for one. The
//! requests of a browser give it away under every name: it fetches a page's styles, scripts, pictures and fonts from the
//! same address with the same header, and names a page of the site in the Referer. Crawlers that render pages do that too,
//! so this is a suspicion, to be looked at before the agent is refused. Search engines, which are known to render, are not
//! suspected.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher, BuildHasherDefault};

use tower_robots::rules::Authority;

use super::format::LoggedRequest;

/// Visitors that are remembered.
const MOST: usize = 20_000;

/// Kinds of assets with the site's own Referer that make a suspicion.
const KINDS: u32 = 3;

/// Crawlers' names from one address, and what speaks for a person.
#[derive(Clone, Debug, Default)]
pub(super) struct Visitor {
    pub(super) address: Vec<u8>,
    /// The claim of the header.
    pub(super) claims: String,
    kinds: u8,
    /// The host of the first Referer, where the log has no virtual host.
    referer: Option<u64>,
    pub(super) disallowed: u64,
    /// A target that was disallowed.
    pub(super) target: Vec<u8>,
}

/// Visitors by a hash of address and header. A hash that is the same in every run keeps the same ones where there are too many.
#[derive(Debug, Default)]
pub(super) struct Visitors {
    known: HashMap<u64, Visitor>,
}

impl Visitors {
    /// Takes note of a request under a crawler's name.
    pub(super) fn note(&mut self, entry: &LoggedRequest<'_>, claims: &str, is_disallowed: bool) {
        let kind = kind(&entry.target);
        let referer = authority(&entry.referer).filter(|_| kind != 0);
        if !is_disallowed && referer.is_none() {
            return;
        }
        let key = hash((&*entry.address, &*entry.agent));
        if !self.known.contains_key(&key) && !self.has_room() {
            return;
        }
        let visitor = self.known.entry(key).or_insert_with(|| Visitor {
            address: entry.address[..entry.address.len().min(64)].to_vec(),
            claims: claims.to_owned(),
            ..Visitor::default()
        });
        if let Some(referer) = referer {
            let host = entry.host.as_deref().map(|host| Authority::of_host_field(host).host);
            let own = match host.filter(|host| !host.is_empty()) {
                Some(host) => referer.eq_ignore_ascii_case(host),
                None => {
                    let referer = hash(referer.to_ascii_lowercase());
                    *visitor.referer.get_or_insert(referer) == referer
                }
            };
            if own {
                visitor.kinds |= kind;
            }
        }
        if is_disallowed {
            visitor.disallowed += 1;
            if visitor.target.is_empty() {
                visitor.target = entry.target[..entry.target.len().min(256)].to_vec();
            }
        }
    }

    /// Adds those of the next chunk.
    pub(super) fn merge(&mut self, next: Self) {
        let mut next: Vec<_> = next.known.into_iter().collect();
        if self.known.len() + next.len() > MOST {
            // Not all may have room, so the order must not be that of a map.
            next.sort_unstable_by_key(|(key, _)| *key);
        }
        for (key, more) in next {
            if let Some(known) = self.known.get_mut(&key) {
                known.merge(more);
            } else if self.has_room() {
                self.known.insert(key, more);
            }
        }
    }

    /// Whether one more is remembered. Visitors with few signs of a person are dropped first; when all have signs, new ones
    /// are not tracked.
    fn has_room(&mut self) -> bool {
        if self.known.len() >= MOST {
            self.known.retain(|_, visitor| visitor.kinds.count_ones() > 1);
        }
        self.known.len() < MOST
    }

    /// Those who were disallowed something and look like a person, the most refused first.
    pub(super) fn suspects(&self) -> Vec<&Visitor> {
        let mut suspects: Vec<_> = self
            .known
            .values()
            .filter(|visitor| visitor.disallowed > 0 && visitor.kinds.count_ones() >= KINDS)
            .collect();
        suspects.sort_by_key(|one| (std::cmp::Reverse(one.disallowed), &one.address, &one.claims, &one.target));
        suspects
    }
}

impl Visitor {
    fn merge(&mut self, next: Self) {
        // A Referer of another site is no sign.
        if self.referer.is_none() || next.referer.is_none() || self.referer == next.referer {
            self.kinds |= next.kinds;
            self.referer = self.referer.or(next.referer);
        }
        self.disallowed += next.disallowed;
        if self.target.is_empty() {
            self.target = next.target;
        }
    }
}

fn hash(what: impl std::hash::Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(what)
}

/// The kind of asset a target is, as a bit; 0 for a page.
fn kind(target: &[u8]) -> u8 {
    let path = &target[..memchr::memchr(b'?', target).unwrap_or(target.len())];
    let Some(dot) = path.iter().rev().take(6).position(|octet| *octet == b'.') else { return 0 };
    match path[path.len() - dot..].to_ascii_lowercase().as_slice() {
        b"css" => 1,
        b"js" | b"mjs" => 2,
        b"png" | b"jpg" | b"jpeg" | b"gif" | b"webp" | b"avif" | b"svg" | b"ico" => 4,
        b"woff" | b"woff2" | b"ttf" | b"otf" => 8,
        b"mp4" | b"webm" | b"mp3" | b"ogg" => 16,
        _ => 0,
    }
}

/// The host of a URL, without a port.
fn authority(url: &[u8]) -> Option<&[u8]> {
    let (scheme, authority, _) = Authority::of_url(url)?;
    let is_http = matches!(scheme, b"http" | b"https");
    Some(authority.host).filter(|host| is_http && !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(address: &'a str, target: &'a str, referer: &'a str) -> LoggedRequest<'a> {
        LoggedRequest {
            address: address.as_bytes().into(),
            target: target.as_bytes().into(),
            referer: referer.as_bytes().into(),
            ..LoggedRequest::default()
        }
    }

    fn suspects(entries: &[(&str, &str, &str, bool)]) -> usize {
        let mut all = Visitors::default();
        for (address, target, referer, is_disallowed) in entries {
            // Each from another chunk.
            let mut one = Visitors::default();
            one.note(&entry(address, target, referer), "XBot", *is_disallowed);
            all.merge(one);
        }
        all.suspects().len()
    }

    #[test]
    fn several_kinds_of_assets_with_one_referer_make_a_suspicion() {
        let own = "https://example.com/page";
        let page = ("a", "/page", "", true);
        let assets = [("a", "/s.css", own, false), ("a", "/s.JS?v=1", own, false), ("a", "/i.png", own, false)];
        assert_eq!(suspects(&[page, assets[0], assets[1], assets[2]]), 1);
        assert_eq!(suspects(&[page, assets[0], assets[1]]), 0);
        assert_eq!(suspects(&assets), 0);
        assert_eq!(suspects(&[("b", "/page", "", true), assets[0], assets[1], assets[2]]), 0);
        assert_eq!(suspects(&[page, assets[0], assets[0], assets[1]]), 0);
        assert_eq!(
            suspects(&[page, ("a", "/s.css", "", false), ("a", "/s.js", "", false), ("a", "/i.png", "", false)]),
            0
        );
    }

    #[test]
    fn another_sites_referer_does_not_count() {
        let mut visitors = Visitors::default();
        for target in ["/s.css", "/s.js", "/i.png"] {
            let entry = entry("a", target, "https://elsewhere.example/");
            visitors.note(&LoggedRequest { host: Some(b"example.com:8080"[..].into()), ..entry }, "XBot", true);
        }
        assert_eq!(visitors.suspects().len(), 0);
    }

    #[test]
    fn hosts_are_found_in_urls() {
        for (url, want) in [
            ("https://example.com/x", Some("example.com")),
            ("http://example.com:8080", Some("example.com")),
            ("https://[::1]:80/", Some("[::1]")),
            ("-", None),
            ("https:///x", None),
        ] {
            assert_eq!(authority(url.as_bytes()), want.map(str::as_bytes), "{url}");
        }
    }
}
