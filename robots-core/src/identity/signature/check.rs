//! Checks the signatures of a request.

use std::sync::Arc;
use std::time::SystemTime;

use sfv::{Dictionary, InnerList, ListEntry};

use super::components::{Components, CoveredValues, RequiredComponent};
use super::directory_url::DirectoryUrl;
use super::key_set::KeySet;
use super::message_head::{FieldValue, MessageHead};
use super::parameters::{self, TAG, ValidityWindow};
use super::structured_field::{as_received, read, text};
use crate::agent::{Refutation, UndecidedReason};
use crate::identity::MethodOutcome;

/// Maximum number of signatures per request that are tried: each may cost a check of 60 µs.
const MAX_SIGNATURES: usize = 2;

/// The keys of a directory, or why there are none.
pub(super) type FoundKeys = Result<Arc<KeySet>, UndecidedReason>;

/// A signature of Web Bot Auth that is valid as far as the request alone shows. Its key is still to
/// be looked up.
///
/// Equal candidates have equal results. A result can be cached by base, signature and directory
/// until [`until`](Self::until).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SignatureCandidate {
    /// The signature base: the bytes that are signed (RFC 9421, section 2.5).
    pub base: String,
    /// Bytes of the signature.
    pub signature: Vec<u8>,
    /// Directory of the key.
    pub directory: DirectoryUrl,
    /// ID of the key in the directory.
    pub keyid: String,
    pub(super) window: ValidityWindow,
    /// `None` if some of the covered values cannot be compared.
    pub(super) covered: Option<CoveredValues>,
}

/// Result of checking a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignatureCheck {
    /// Outcome of the signature, whatever key made it.
    pub outcome: MethodOutcome,
    /// The directory that the signature names, unless the request alone refutes the signature. For
    /// a verified signature, it identifies the crawler.
    pub directory: Option<DirectoryUrl>,
    /// Time until which the result is valid.
    pub until: Option<SystemTime>,
}

/// Returns the members that are signatures of Web Bot Auth, at most two.
fn own_signatures(input: &Dictionary) -> Vec<(&str, &ListEntry)> {
    let is_own = |(_, member): &(&str, &ListEntry)| {
        let parameters = match member {
            ListEntry::InnerList(list) => &list.params,
            ListEntry::Item(item) => &item.params,
        };
        parameters.get("tag").and_then(text) == Some(TAG)
    };
    input.iter().map(|(label, member)| (label.as_str(), member)).filter(is_own).take(MAX_SIGNATURES).collect()
}

impl SignatureCandidate {
    /// Returns the signatures of Web Bot Auth in a request, at most two, or for each the reason why
    /// it cannot be valid.
    ///
    /// Empty if the request is not signed: it has no `Signature-Input`, or only signatures with
    /// another `tag`.
    pub fn all(message: &MessageHead<'_>, now: SystemTime) -> Vec<Result<Self, MethodOutcome>> {
        const UNPARSABLE: MethodOutcome = MethodOutcome::Failed(Refutation::Unparsable);
        let Some(input) = message.field("signature-input") else { return Vec::new() };
        let dictionary = match &input {
            FieldValue::Text(input) => read::<Dictionary>(input).map(|dictionary| (input, dictionary)),
            FieldValue::OtherOctets => None,
        };
        let Some((input, dictionary)) = dictionary else {
            // Without `Signature-Agent`, the signature may have another purpose.
            let is_meant = message.field("signature-agent").is_some();
            return if is_meant { vec![Err(UNPARSABLE)] } else { Vec::new() };
        };
        let own = own_signatures(&dictionary);
        if own.is_empty() {
            return Vec::new();
        }
        let signatures = message.field("signature");
        let signatures = match &signatures {
            None => Ok(Dictionary::default()),
            Some(FieldValue::Text(signatures)) => read(signatures).ok_or(UNPARSABLE),
            Some(FieldValue::OtherOctets) => Err(UNPARSABLE),
        };
        let candidate = |(label, member): (&str, &ListEntry)| {
            let (ListEntry::InnerList(list), Some(raw)) = (member, as_received(input, label)) else {
                return Err(UNPARSABLE);
            };
            Self::of(message, label, (list, raw), signatures.as_ref().map_err(|error| *error)?, now)
        };
        own.into_iter().map(candidate).collect()
    }

    fn of(
        message: &MessageHead<'_>,
        label: &str,
        (list, raw): (&InnerList, &str),
        signatures: &Dictionary,
        now: SystemTime,
    ) -> Result<Self, MethodOutcome> {
        let (keyid, window) = parameters::required(&list.params, now).map_err(MethodOutcome::Failed)?;
        let signature = match signatures.get(label) {
            None => return Err(MethodOutcome::Failed(Refutation::NoSignatureForLabel)),
            Some(ListEntry::Item(item)) => item.bare_item.as_byte_sequence(),
            Some(ListEntry::InnerList(_)) => None,
        };
        let signature = signature.ok_or(MethodOutcome::Failed(Refutation::Unparsable))?.to_vec();
        let components = Components::of(list, raw).map_err(MethodOutcome::Failed)?;
        if !components.cover_target() {
            return Err(MethodOutcome::Failed(Refutation::TargetNotCovered));
        }
        let directory = parameters::directory(message, label, &components)?;
        let base = components.base(message).map_err(MethodOutcome::Failed)?;
        Ok(Self {
            base,
            signature,
            directory,
            keyid: keyid.to_owned(),
            window,
            covered: CoveredValues::of(components.names(), message),
        })
    }

    /// Reports whether the signature covers a component. A signature that covers only `@authority`
    /// is valid for any method, path and query.
    pub fn covers(&self, component: &RequiredComponent) -> bool {
        component.is_covered_by(&self.base)
    }

    /// Checks the signature with the keys of its directory, unless the sender causes too many such
    /// checks.
    pub(super) fn check(&self, keys: &FoundKeys, is_busy: impl FnOnce() -> bool) -> SignatureCheck {
        let key = keys.as_ref().map_err(|reason| *reason).and_then(|keys| keys.key(&self.keyid));
        let outcome = match key {
            Err(reason) => MethodOutcome::Undecided(reason),
            Ok(_) if is_busy() => MethodOutcome::Undecided(UndecidedReason::Busy),
            Ok(key) if key.verifies(&self.signature, self.base.as_bytes()) => MethodOutcome::Verified,
            Ok(_) => MethodOutcome::Failed(Refutation::BadSignature),
        };
        SignatureCheck { outcome, directory: Some(self.directory.clone()), until: Some(self.until()) }
    }

    /// Returns the time until which the signature is valid.
    pub fn until(&self) -> SystemTime {
        self.window.until()
    }
}

impl SignatureCheck {
    /// Checks the signatures of a request, at most two; `None` if it is not signed. `keys` returns
    /// the keys of a directory for the `keyid` of a signature, or why there are none.
    pub fn all(
        message: &MessageHead<'_>,
        now: SystemTime,
        keys: impl Fn(&DirectoryUrl, &str) -> FoundKeys,
    ) -> Option<Arc<[Self]>> {
        let check = |candidate: Result<SignatureCandidate, MethodOutcome>| match candidate {
            Ok(candidate) => candidate.check(&keys(&candidate.directory, &candidate.keyid), || false),
            Err(outcome) => Self::of_request(outcome),
        };
        let candidates = SignatureCandidate::all(message, now);
        (!candidates.is_empty()).then(|| candidates.into_iter().map(check).collect())
    }

    /// Returns the check of a signature that the request alone refutes or leaves undecided.
    pub(super) const fn of_request(outcome: MethodOutcome) -> Self {
        Self { outcome, directory: None, until: None }
    }

    /// Returns the outcome of the signature for a claim whose operator has these directories.
    /// `None` represents a claim without a known operator. A valid signature of another operator
    /// neither confirms nor refutes the claim. Likewise, it does not matter for the claim if the
    /// keys of another operator are unavailable.
    pub(in crate::identity) fn outcome_for(&self, directories: Option<&[DirectoryUrl]>) -> Option<MethodOutcome> {
        let is_of_claim = match (directories, &self.directory) {
            (None, _) | (_, None) => true,
            (Some(directories), Some(directory)) => directories.contains(directory),
        };
        match self.outcome {
            MethodOutcome::Verified if !is_of_claim => None,
            MethodOutcome::Undecided(UndecidedReason::DirectoryUnavailable) if !is_of_claim => {
                Some(MethodOutcome::Undecided(UndecidedReason::DirectoryNotConfigured))
            }
            outcome => Some(outcome),
        }
    }
}
