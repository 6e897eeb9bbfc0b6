//! The field of a tagged request.

use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};

use super::record::Record;
use crate::policy::Reason;
use crate::rules::PathForm;

/// The field that carries the verdict to an upstream:
/// `Robots-Verdict: disallow;agent="GPTBot";rule="/private/";line=12`, an item of RFC 9651 in ASCII, what a string may
/// not hold percent-encoded and a rule cut at 256 octets: servers bound what a field may hold. Where the path as sent does
/// not match the rule, `;form=resolved` names the form that does ([`PathForm`]). `;reason=search-engine` says that the
/// mode refuses others, and only tags the crawlers of search engines that people use ([`Reason::SearchEngine`]), and
/// `;reason=impostor` that the request is tagged for its sender ([`Reason::Impostor`]): then the verdict may be `allow`, and rule
/// and line are left out where no rule decided. Where senders are checked, `;identity=verified` is what became of the
/// claim ([`IdentityOutcome`](crate::agent::IdentityOutcome)).
pub const ROBOTS_VERDICT: HeaderName = HeaderName::from_static("robots-verdict");

/// CGI and its successors read both spellings as one name.
const WITH_UNDERSCORE: HeaderName = HeaderName::from_static("robots_verdict");

/// Octets of a rule that a field holds.
const MAX_RULE: usize = 256;

/// Whether there is such a field, ours or a client's. Requests have few fields and hardly any with a name as long
/// as this one: looking at each is cheaper than looking up two names that nearly never are there.
pub(super) fn is_present(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| *name == ROBOTS_VERDICT || *name == WITH_UNDERSCORE)
}

/// Removes a client's own field.
pub(super) fn strip(headers: &mut HeaderMap) {
    if is_present(headers) {
        headers.remove(ROBOTS_VERDICT);
        headers.remove(WITH_UNDERSCORE);
    }
}

/// Sets ours. It is taken out of the client's `Connection`, or a proxy behind would drop it.
pub(super) fn mark(headers: &mut HeaderMap, record: &Record) {
    headers.insert(ROBOTS_VERDICT, record.to_field());
    let names_ours = |value: &HeaderValue| options(value).any(|option| option.eq_ignore_ascii_case(b"robots-verdict"));
    if headers.get_all(CONNECTION).into_iter().any(names_ours) {
        let kept: Vec<_> =
            headers.get_all(CONNECTION).into_iter().filter(|value| !names_ours(value)).cloned().collect();
        headers.remove(CONNECTION);
        for value in kept {
            headers.append(CONNECTION, value);
        }
    }
}

fn options(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

impl Record {
    /// The value of the field [`ROBOTS_VERDICT`], in ASCII.
    #[must_use]
    pub fn to_field(&self) -> HeaderValue {
        let mut out = format!("{};agent=\"", self.access());
        push_string(&mut out, self.agent());
        out.push('"');
        if let (Some(rule), Some(line)) = (self.rule(), self.line()) {
            out.push_str(";rule=\"");
            push_string(&mut out, rule);
            out.push_str("\";line=");
            out.push_str(&line.to_string());
        }
        if self.form() != PathForm::Standard {
            out.push_str(";form=");
            out.push_str(self.form().as_str());
        }
        if let Reason::SearchEngine | Reason::Impostor = self.reason() {
            out.push_str(";reason=");
            out.push_str(self.reason().as_str());
        }
        if let Some(identity) = self.identity() {
            out.push_str(";identity=");
            out.push_str(identity.outcome().as_str());
        }
        // Everything but visible ASCII and blanks was escaped, so this is a field value.
        HeaderValue::try_from(out).unwrap_or(HeaderValue::from_static("disallow"))
    }
}

fn push_string(out: &mut String, text: &str) {
    for byte in text.bytes().take(MAX_RULE) {
        match byte {
            b' '..=b'~' if !matches!(byte, b'"' | b'\\') => out.push(char::from(byte)),
            _ => {
                out.push('%');
                out.extend([byte >> 4, byte & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)])));
            }
        }
    }
}
