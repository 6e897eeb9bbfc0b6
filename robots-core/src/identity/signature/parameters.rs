//! The parameters of a signature: the required parameters, the validity window, and the directory
//! of the key.

use std::time::{Duration, SystemTime};

use sfv::{Dictionary, Item, ListEntry, Parameters};

use super::components::Components;
use super::directory_url::{DirectoryUrl, DirectoryUrlError};
use super::message_head::{FieldValue, MessageHead};
use super::structured_field::{read, text};
use crate::agent::{Refutation, UndecidedReason};
use crate::identity::MethodOutcome;

/// The `tag` of Web Bot Auth signatures. A signature with another tag, or without a tag, has
/// another purpose.
pub(super) const TAG: &str = "web-bot-auth";

/// Maximum error of the signer's clock that is tolerated, in seconds.
const SKEW: i64 = 60;

/// Maximum time from `created` to `expires`, in seconds.
const MAX_SECONDS: i64 = 24 * 60 * 60;

/// Validity window of a signature, from its parameters, as Unix times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValidityWindow {
    created: i64,
    expires: i64,
}

/// Returns the `keyid` and the validity window of a signature. Returns an error if the parameters
/// are not valid at the time `now`.
pub(super) fn required(parameters: &Parameters, now: SystemTime) -> Result<(&str, ValidityWindow), Refutation> {
    let required = |key: &str| parameters.get(key).ok_or(Refutation::MissingParameter);
    let (created, expires, keyid) = (required("created")?, required("expires")?, required("keyid")?);
    let created = created.as_integer().ok_or(Refutation::Unparsable)?.into();
    let expires = expires.as_integer().ok_or(Refutation::Unparsable)?.into();
    let keyid = text(keyid).ok_or(Refutation::Unparsable)?;
    match parameters.get("alg").map(text) {
        None | Some(Some("ed25519")) => {}
        Some(Some(_)) => return Err(Refutation::AlgMismatch),
        Some(None) => return Err(Refutation::Unparsable),
    }
    let window = ValidityWindow { created, expires };
    window.check(now)?;
    Ok((keyid, window))
}

impl ValidityWindow {
    /// Checks that a signature is valid at the time `now`. The signer's clock may be wrong by a
    /// minute.
    pub(super) fn check(self, now: SystemTime) -> Result<(), Refutation> {
        let Self { created, expires } = self;
        // Integers in structured fields have at most 15 digits, so the calculations do not
        // overflow.
        let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let now = i64::try_from(now).unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
        if expires < created {
            Err(Refutation::WindowNegative)
        } else if expires - created > MAX_SECONDS {
            Err(Refutation::WindowTooLong)
        } else if created > now + SKEW {
            Err(Refutation::CreatedInFuture)
        } else if expires < now - SKEW {
            Err(Refutation::Expired)
        } else {
            Ok(())
        }
    }

    /// Returns the end of the validity window plus the allowed clock error.
    pub(super) fn until(self) -> SystemTime {
        let until = Duration::from_secs(u64::try_from(self.expires + SKEW).unwrap_or(0));
        SystemTime::UNIX_EPOCH.checked_add(until).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

const FIELD: &str = "signature-agent";

/// Returns the key directory for the signature with this label. `Signature-Agent` may contain one
/// directory per signature, each in its own member. The signature must cover the member with the
/// signature's directory.
///
/// If the signature covers several members, the member whose key is the signature's label is used.
/// If the signature covers a single member, this member is used, even if the member's key is not
/// the label.
pub(super) fn directory(
    message: &MessageHead<'_>,
    label: &str,
    components: &Components<'_>,
) -> Result<DirectoryUrl, MethodOutcome> {
    let value = match message.field(FIELD) {
        None => return Err(MethodOutcome::Undecided(UndecidedReason::AgentAbsent)),
        Some(FieldValue::OtherBytes) => return Err(MethodOutcome::Failed(Refutation::Unparsable)),
        Some(FieldValue::Text(value)) => value,
    };
    named(&value, label, &components.members_of(FIELD)).map_err(MethodOutcome::Failed)
}

fn named(value: &str, label: &str, covered: &[Option<&str>]) -> Result<DirectoryUrl, Refutation> {
    // In the oldest form of `Signature-Agent`, the field is one String for all signatures.
    if value.starts_with('"') {
        let item: Item = read(value).ok_or(Refutation::Unparsable)?;
        return match covered {
            [] => Err(Refutation::AgentNotCovered),
            [None] => url(&item),
            // The signature covers members of the field, but the field is a String, which has no
            // members.
            _ => Err(Refutation::Unparsable),
        };
    }
    let dictionary: Dictionary = read(value).ok_or(Refutation::Unparsable)?;
    let own = match covered {
        [] => return Err(Refutation::AgentNotCovered),
        covered if covered.contains(&Some(label)) => dictionary.get(label),
        [Some(key)] => dictionary.get(*key),
        // The signature covers the whole field, and therefore also the signer's member.
        covered if covered.contains(&None) => match dictionary.get(label) {
            None if dictionary.len() == 1 => dictionary.values().next(),
            None => return Err(Refutation::AgentNotCovered),
            own => own,
        },
        _ => return Err(Refutation::AgentNotCovered),
    };
    match own.ok_or(Refutation::ComponentMissing)? {
        ListEntry::Item(item) => url(item),
        ListEntry::InnerList(_) => Err(Refutation::Unparsable),
    }
}

/// Parses the URL in an item. Parameters such as `type` are ignored.
fn url(item: &Item) -> Result<DirectoryUrl, Refutation> {
    DirectoryUrl::parse(text(&item.bare_item).ok_or(Refutation::Unparsable)?).map_err(|error| match error {
        DirectoryUrlError::NotHttps => Refutation::AgentNotHttps,
        DirectoryUrlError::Malformed => Refutation::Unparsable,
    })
}
