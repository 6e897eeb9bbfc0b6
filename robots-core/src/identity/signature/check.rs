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

/// Maximum number of signatures that are checked per request. Checking a signature can take 60 µs.
const MAX_SIGNATURES: usize = 2;

pub(super) type FoundKeys = Result<Arc<KeySet>, UndecidedReason>;

/// A Web Bot Auth signature that passed all checks that need no key. The key of the signature has
/// not been looked up yet.
///
/// Checks of equal candidates with the same keys have equal results. So a candidate can be the key
/// of a cached result, until the time that [`until`](Self::until) returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SignatureCandidate {
    /// The signature base: the bytes that are signed (RFC 9421, section 2.5).
    pub base: String,
    /// The decoded signature.
    pub signature: Vec<u8>,
    /// URL of the directory that contains the key.
    pub directory: DirectoryUrl,
    /// Thumbprint of the key in the directory.
    pub keyid: String,
    pub(super) window: ValidityWindow,
    /// The covered values of the request, for comparison with the values of other requests. `None`
    /// if at least one of the values cannot be compared.
    pub(super) covered: Option<CoveredValues>,
}

/// Result of checking a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignatureCheck {
    /// Outcome of the check, regardless of the crawler that the request claims to be from.
    pub outcome: MethodOutcome,
    /// The directory that the signature refers to. `None` if the signature was refuted or left
    /// undecided before its key was looked up. If the signature is verified, the directory
    /// identifies the crawler.
    pub directory: Option<DirectoryUrl>,
    /// Time until which the signature is valid; `None` if `directory` is `None`.
    pub until: Option<SystemTime>,
}

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
    /// Returns the Web Bot Auth signatures of a request, at most two. If the outcome of a signature
    /// is already known before its key is looked up, the vector contains `Err` with this outcome.
    ///
    /// The vector is empty if the request is not signed. A request without a `Signature-Input`, or
    /// with signatures that all have another `tag`, is not signed.
    pub fn all(message: &MessageHead<'_>, now: SystemTime) -> Vec<Result<Self, MethodOutcome>> {
        const UNPARSABLE: MethodOutcome = MethodOutcome::Failed(Refutation::Unparsable);
        let Some(input) = message.field("signature-input") else { return Vec::new() };
        let dictionary = match &input {
            FieldValue::Text(input) => read::<Dictionary>(input).map(|dictionary| (input, dictionary)),
            FieldValue::OtherBytes => None,
        };
        let Some((input, dictionary)) = dictionary else {
            // If there is no `Signature-Agent`, an invalid `Signature-Input` is ignored, because
            // the signature may have another purpose.
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
            Some(FieldValue::OtherBytes) => Err(UNPARSABLE),
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

    /// Reports whether the signature covers a component. A signature that covers only `@authority`,
    /// for example, is also valid for requests with another method, path or query.
    pub fn covers(&self, component: &RequiredComponent) -> bool {
        component.is_covered_by(&self.base)
    }

    /// Checks the signature with the keys in the signer's directory. If `is_busy` returns true, the
    /// sender has caused too many checks, and the outcome is undecided.
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

    /// Returns the time until which the signature is valid, including the allowed clock error.
    pub fn until(&self) -> SystemTime {
        self.window.until()
    }
}

impl SignatureCheck {
    /// Checks the signatures of a request, at most two. Returns `None` if the request is not
    /// signed. `keys` is called with the directory and the `keyid` of a signature, and returns the
    /// directory's keys or the reason why they are not available.
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

    /// Creates the result for a signature whose outcome is known without its key.
    pub(super) const fn of_request(outcome: MethodOutcome) -> Self {
        Self { outcome, directory: None, until: None }
    }

    /// Returns the outcome of the signature for a claim. `directories` contains the key directories
    /// of the claimed crawler's operator; `None` if the operator is unknown. Returns `None` if the
    /// signature is valid but made with another operator's key, because such a signature neither
    /// confirms nor refutes the claim. If the signature's directory belongs to another operator and
    /// could not be fetched, returns the same outcome as for a directory that is not configured.
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
