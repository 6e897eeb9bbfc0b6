//! The part of the status about who sends requests.

use std::fmt::Write as _;

use crate::commands::output::page::Page;
use crate::report::{DirectoryReport, IdentityReport, ListReport, SuspectReport};

/// A list that was confirmed within so many seconds can refute a claim.
const FRESH: u64 = 24 * 3600;

/// The evidence about senders: how much there is, what is missing, and where claims are not believed.
pub(super) fn describe(page: &mut Page, identity: &IdentityReport) {
    let fresh = |list: &&ListReport| list.age_seconds.is_some_and(|age| age <= FRESH);
    let fresh = identity.lists.iter().filter(fresh).count();
    let keys = identity.directories.iter().filter(|directory| directory.keys.is_some()).count();
    let mut text = format!("{fresh} of {} lists confirmed within a day", identity.lists.len());
    let _ = write!(text, ", {keys} of {} key directories loaded", identity.directories.len());
    let _ = write!(text, ", names of {} addresses known", identity.names_known);
    if identity.names_waiting > 0 {
        let _ = write!(text, ", {} wait", identity.names_waiting);
    }
    page.line("identity", &text);
    for ListReport { url, origin, trouble, .. } in &identity.lists {
        if let Some(trouble) = trouble {
            let held = origin.as_deref().map_or("no list".to_owned(), |origin| format!("the {origin} list stays"));
            page.line("", &format!("{url}: {trouble}; {held}"));
        }
    }
    for DirectoryReport { url, trouble, .. } in &identity.directories {
        if let Some(trouble) = trouble {
            page.line("", &format!("{url}: {trouble}"));
        }
    }
    if let Some(trouble) = &identity.paths_trouble {
        page.line("", trouble);
    }
    for SuspectReport { site, listener, crawler, method, networks, last_verified } in &identity.suspects {
        let since = last_verified.as_ref().map_or("never".to_owned(), |at| format!("last {at}"));
        let who = if crawler.is_empty() { "a signature without a crawler's name" } else { crawler };
        page.title(&format!(
            "SUSPECT PATH to site {site:?} at {listener}: {who} was {since} verified by {method}, so no request is refuted by it"
        ));
        if method == "signature" {
            page.line("hint", "a proxy in front may change Host or the path, or the clock may be wrong");
        } else if !networks.is_empty() {
            let networks = networks.join(", ");
            page.line(
                "addresses",
                &format!("most are in {networks}: if that is your proxy, add it to trusted_proxies"),
            );
        }
    }
}
