//! The signer's member of `Signature-Agent`: whose keys to look at.

use super::components::Components;
use super::directory_url::{DirectoryUrl, DirectoryUrlError};
use super::message_head::{FieldValue, MessageHead};
use super::structured_value::{Dictionary, Item, Member};
use crate::agent::{Refutation, UndecidedReason};
use crate::identity::method_outcome::MethodOutcome;

const FIELD: &str = "signature-agent";

/// The directory that a signature with this label names, and covers.
///
/// Of several covered members the one with the signature's own label is the signer's; a single one is, whatever its key.
pub(super) fn directory(
    message: &MessageHead<'_>,
    label: &str,
    components: &Components<'_, '_>,
) -> Result<DirectoryUrl, MethodOutcome> {
    let value = match message.field(FIELD) {
        None => return Err(MethodOutcome::Undecided(UndecidedReason::AgentAbsent)),
        Some(FieldValue::OtherOctets) => return Err(MethodOutcome::Failed(Refutation::Unparsable)),
        Some(FieldValue::Text(value)) => value,
    };
    named(&value, label, &components.members_of(FIELD)).map_err(MethodOutcome::Failed)
}

fn named(value: &str, label: &str, covered: &[Option<&str>]) -> Result<DirectoryUrl, Refutation> {
    // The oldest form is a String for all signatures.
    if value.starts_with('"') {
        let item = Item::parse(value).map_err(|_| Refutation::Unparsable)?;
        return match covered {
            [] => Err(Refutation::AgentNotCovered),
            [None] => url(&item),
            // Members are covered of a field that has none.
            _ => Err(Refutation::Unparsable),
        };
    }
    let dictionary = Dictionary::parse(value).map_err(|_| Refutation::Unparsable)?;
    let own = match covered {
        [] => return Err(Refutation::AgentNotCovered),
        covered if covered.contains(&Some(label)) => dictionary.get(label),
        [Some(key)] => dictionary.get(key),
        // The whole field is covered, and so the signer's member.
        covered if covered.contains(&None) => {
            let mut members = dictionary.iter();
            match (dictionary.get(label), members.next(), members.next()) {
                (Some(own), _, _) => Some(own),
                (None, Some((_, only)), None) => Some(only),
                _ => return Err(Refutation::AgentNotCovered),
            }
        }
        _ => return Err(Refutation::AgentNotCovered),
    };
    match own.ok_or(Refutation::ComponentMissing)? {
        Member::Item(item) => url(item),
        Member::InnerList(_) => Err(Refutation::Unparsable),
    }
}

/// Parameters such as `type` say nothing that the URL does not.
fn url(item: &Item<'_>) -> Result<DirectoryUrl, Refutation> {
    DirectoryUrl::parse(item.value.as_str().ok_or(Refutation::Unparsable)?).map_err(|error| match error {
        DirectoryUrlError::NotHttps => Refutation::AgentNotHttps,
        DirectoryUrlError::Malformed => Refutation::Unparsable,
    })
}
