//! Who sent the requests, in the page.

use std::io::{self, Write};

use super::contents::Report;
use super::senders::ImpostorRow;
use super::tables;
use crate::html::escaped::Escaped;
use crate::html::figures::{counted, grouped};

/// Crawlers whose claims fail because of the path, as it seems.
pub(super) fn suspect_paths(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let suspects = &report.identity.suspect_paths;
    if suspects.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<section class=\"warn\"><h2>Suspect path</h2>\n<p>These have no address of their operator, and nothing shows that \
          the log has the addresses of clients. A proxy that is missing in <code>trusted_proxies</code> does that, so they \
          count as claimed, not as impostors.</p>\n<ul>\n",
    )?;
    for suspect in suspects {
        let more = if suspect.other_addresses > 0 { ", \u{2026}" } else { "" };
        let (requests, addresses) = (counted(suspect.requests, "request"), suspect.addresses.join(", "));
        writeln!(out, "<li>{}: {requests} from {}{more}</li>", Escaped(&suspect.crawler), Escaped(&addresses))?;
    }
    out.write_all(b"</ul></section>\n")
}

/// What is verified, claimed and an impostor's, and why claims are no more than that.
pub(super) fn split(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let identity = &report.identity;
    let Some(evidence) = identity.evidence() else { return Ok(()) };
    writeln!(
        out,
        "<section><h2>Who sent them</h2>\n<p class=\"sub\">As far as claims can be checked {}.</p>\n\
         <table class=\"stacked\"><thead><tr><th scope=\"col\">Sender</th><th scope=\"col\" class=\"n\">Requests</th>\
         <th scope=\"col\" class=\"n\">Disallowed</th></tr></thead><tbody>",
        Escaped(&evidence)
    )?;
    let split = &identity.split;
    for (name, share) in [
        ("Verified crawlers", split.verified),
        ("Only claimed", split.claimed),
        ("Impostors, counted in no other table", split.impostors),
    ] {
        writeln!(
            out,
            "<tr><th scope=\"row\">{name}</th><td class=\"n\" data-label=\"Requests\">{}</td>\
             <td class=\"n\" data-label=\"Disallowed\">{}</td></tr>",
            grouped(share.requests),
            grouped(share.disallowed)
        )?;
    }
    out.write_all(b"</tbody></table>\n")?;
    let reasons = identity.reasons();
    if !reasons.is_empty() {
        out.write_all(b"<p class=\"sub\">Only claimed, because:</p>\n<ul>\n")?;
        for (reason, requests) in reasons {
            writeln!(out, "<li>{}: {}</li>", Escaped(&reason), counted(requests, "request"))?;
        }
        out.write_all(b"</ul>\n")?;
    }
    out.write_all(b"</section>\n")
}

/// What impostors did.
pub(super) fn impostors(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.impostors.is_empty() {
        return Ok(());
    }
    let mut heads = vec!["Requests", "Allowed", "Disallowed"];
    if report.totals.outcomes.not_blamed > 0 || report.impostors.iter().any(|row| row.counts.outcomes.not_blamed > 0) {
        heads.push("Counted apart");
    }
    if report.is_compared() {
        heads.extend(["Shut out", "Let in"]);
    }
    out.write_all(
        b"<section id=\"impostors\"><h2>Impostors</h2>\n<p class=\"sub\">Requests under a crawler's name from addresses that \
          are not its operator's. No crawler is blamed for them.</p>\n<table class=\"stacked\"><thead><tr>\
          <th scope=\"col\">Impostors of</th>",
    )?;
    for head in &heads {
        write!(out, "<th scope=\"col\" class=\"n\">{head}</th>")?;
    }
    out.write_all(b"<th scope=\"col\">From</th></tr></thead><tbody>\n")?;
    for (at, row) in report.impostors.iter().enumerate() {
        let name = Escaped(&row.crawler);
        out.write_all(b"<tr><th scope=\"row\">")?;
        if row.by_rule.rules.is_empty() {
            write!(out, "{name}")?;
        } else {
            write!(out, "<a href=\"#impostor-{at}\">{name}</a>")?;
        }
        out.write_all(b"</th>")?;
        for head in &heads {
            let value = match *head {
                "Requests" => row.counts.requests,
                "Allowed" => row.counts.outcomes.allowed,
                "Disallowed" => row.counts.outcomes.disallowed,
                "Counted apart" => row.counts.outcomes.not_blamed,
                "Shut out" => row.counts.outcomes.shut,
                _ => row.counts.outcomes.opened,
            };
            write!(out, "<td class=\"n\" data-label=\"{head}\">{}</td>", grouped(value))?;
        }
        writeln!(out, "<td data-label=\"From\">{}</td></tr>", Escaped(&addresses(row)))?;
    }
    out.write_all(b"</tbody></table>\n")?;
    for (at, row) in report.impostors.iter().enumerate().filter(|(_, row)| !row.by_rule.rules.is_empty()) {
        let name = format!("Impostors of {}", row.crawler);
        tables::details(out, &format!("impostor-{at}"), &name, ("impostors", "all impostors"), &row.by_rule)?;
    }
    out.write_all(b"</section>\n")
}

/// The addresses of impostors with their requests.
fn addresses(row: &ImpostorRow) -> String {
    let shown = row.addresses.iter().map(|address| format!("{} ({})", address.address, grouped(address.requests)));
    let rest = row.other_addresses_requests;
    let rest = (rest > 0).then(|| format!("others ({})", grouped(rest)));
    shown.chain(rest).collect::<Vec<_>>().join(", ")
}
