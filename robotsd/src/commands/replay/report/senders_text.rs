//! Who sent the requests, for a terminal.

use std::io::{self, Write};

use super::contents::Report;
use super::rules_text::{rules, shown};
use super::senders::{ImpostorRow, SenderShare};
use crate::html::figures::{counted, grouped};

/// Crawlers whose impostors are shown, addresses of each, and how many of them with rules and paths.
const IMPOSTORS: usize = 10;
const ADDRESSES: usize = 5;
const DETAILED: usize = 3;

/// What is verified, only claimed, and an impostor's.
pub(super) fn split(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let Some(evidence) = report.identity.evidence() else { return Ok(()) };
    let split = &report.identity.split;
    let harm = |share: &SenderShare| {
        let (count, what) =
            if report.is_compared() { (share.shut, "newly disallowed") } else { (share.disallowed, "disallowed") };
        if share.requests == 0 { String::new() } else { format!(" ({} {what})", grouped(count)) }
    };
    let part = |share: &SenderShare, what: &str| format!("{} {what}{}", grouped(share.requests), harm(share));
    let (verified, claimed) = (part(&split.verified, "verified"), part(&split.claimed, "only claimed"));
    writeln!(out, "{evidence}, {verified} and {claimed}")?;
    if split.impostors.requests > 0 {
        writeln!(out, "and {}, which no crawler is blamed for", part(&split.impostors, "of impostors"))?;
    }
    Ok(())
}

/// Crawlers whose claims fail because of the path, as it seems.
pub(super) fn suspect_paths(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let suspects = &report.identity.suspect_paths;
    if suspects.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nsuspect path: these have no address of their operator, and nothing shows that the log has the addresses of \
         clients;\na proxy that is missing in trusted_proxies does that, so they count as claimed"
    )?;
    for suspect in suspects {
        let more = if suspect.other_addresses > 0 { ", …" } else { "" };
        let (requests, addresses) = (counted(suspect.requests, "request"), suspect.addresses.join(", "));
        writeln!(out, "  {:24} {requests:>18} from {}{more}", shown(&suspect.crawler), shown(&addresses))?;
    }
    Ok(())
}

/// What impostors did.
pub(super) fn impostors(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.impostors.is_empty() {
        return Ok(());
    }
    let third = if report.is_compared() { "shut out" } else { "disallowed" };
    writeln!(out, "\n{:24} {:>11} {third:>11}  from", "impostors of", "requests")?;
    for row in report.impostors.iter().take(IMPOSTORS) {
        let harm = if report.is_compared() { row.counts.outcomes.shut } else { row.counts.outcomes.disallowed };
        let (requests, harm) = (grouped(row.counts.requests), grouped(harm));
        writeln!(out, "{:24} {requests:>11} {harm:>11}  {}", shown(&row.crawler), shown(&addresses(row)))?;
    }
    let rest = report.impostors.get(IMPOSTORS..).unwrap_or_default();
    if !rest.is_empty() {
        let requests: u64 = rest.iter().map(|row| row.counts.requests).sum();
        let crawlers = counted(rest.len() as u64, "more crawler");
        writeln!(out, "and of {crawlers} with {}", counted(requests, "request"))?;
    }
    for row in report.impostors.iter().filter(|row| !row.by_rule.rules.is_empty()).take(DETAILED) {
        let name = format!("impostors of {}", row.crawler);
        rules(out, report, &name, &row.by_rule)?;
    }
    Ok(())
}

/// The addresses of impostors with their requests, on a line.
fn addresses(row: &ImpostorRow) -> String {
    let mut shown: Vec<String> = row
        .addresses
        .iter()
        .take(ADDRESSES)
        .map(|address| format!("{} ({})", address.address, grouped(address.requests)))
        .collect();
    let rest = row.addresses.iter().skip(ADDRESSES).map(|address| address.requests).sum::<u64>();
    let rest = rest + row.other_addresses_requests;
    if rest > 0 {
        shown.push(format!("others ({})", grouped(rest)));
    }
    shown.join(", ")
}

/// Why requests are only claimed.
pub(super) fn reasons(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let reasons = report.identity.reasons();
    if reasons.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nwhy crawlers are only claimed")?;
    for (reason, requests) in reasons {
        writeln!(out, "  {:>10}  {reason}", grouped(requests))?;
    }
    Ok(())
}
