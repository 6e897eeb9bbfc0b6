//! From a request to what its signature says.

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

/// How many signatures of a request are tried: each may cost a check of 60 µs.
const MOST_SIGNATURES: usize = 2;

/// The keys of a directory, or why none are known of it.
pub(super) type FoundKeys = Result<Arc<KeySet>, UndecidedReason>;

/// A signature of Web Bot Auth that holds by all that the request says; its key is still to be looked up.
///
/// Two candidates that are equal are signed alike: a result can be kept by base, signature and directory until
/// [`until`](Self::until).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SignatureCandidate {
    /// The signature base: the octets that are signed (RFC 9421, section 2.5).
    pub base: String,
    /// The octets of the signature.
    pub signature: Vec<u8>,
    /// The directory of its key.
    pub directory: DirectoryUrl,
    /// Which key it is.
    pub keyid: String,
    pub(super) window: ValidityWindow,
    /// `None` where not all of them can be compared.
    pub(super) covered: Option<CoveredValues>,
}

/// The result of checking a signature of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignatureCheck {
    /// The outcome of the signature, whatever key made it.
    pub outcome: MethodOutcome,
    /// The directory that the signature names, where the request alone did not refute it. Of a verified signature it says
    /// who the crawler is.
    pub directory: Option<DirectoryUrl>,
    /// Until when the result holds.
    pub until: Option<SystemTime>,
}

/// The members that are signatures of Web Bot Auth, the first two of them.
fn own_signatures(input: &Dictionary) -> Vec<(&str, &ListEntry)> {
    let is_own = |(_, member): &(&str, &ListEntry)| {
        let parameters = match member {
            ListEntry::InnerList(list) => &list.params,
            ListEntry::Item(item) => &item.params,
        };
        parameters.get("tag").and_then(text) == Some(TAG)
    };
    input.iter().map(|(label, member)| (label.as_str(), member)).filter(is_own).take(MOST_SIGNATURES).collect()
}

impl SignatureCandidate {
    /// The signatures of Web Bot Auth that a request bears, at most two, each with the reason where it cannot hold.
    ///
    /// Empty for a request that is not signed: one without `Signature-Input`, or with signatures of another `tag` only.
    pub fn all(message: &MessageHead<'_>, now: SystemTime) -> Vec<Result<Self, MethodOutcome>> {
        const UNPARSABLE: MethodOutcome = MethodOutcome::Failed(Refutation::Unparsable);
        let Some(input) = message.field("signature-input") else { return Vec::new() };
        let dictionary = match &input {
            FieldValue::Text(input) => read::<Dictionary>(input).map(|dictionary| (input, dictionary)),
            FieldValue::OtherOctets => None,
        };
        let Some((input, dictionary)) = dictionary else {
            // Without `Signature-Agent` nothing says that the signature is meant for this.
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

    /// Reports whether the signature covers a component. One that covers `@authority` alone holds for any method, path and query.
    pub fn covers(&self, component: &RequiredComponent) -> bool {
        component.is_covered_by(&self.base)
    }

    /// Checks the signature with the keys of its directory, unless the sender keeps the machine busy with such checks.
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

    /// Until when the signature holds.
    pub fn until(&self) -> SystemTime {
        self.window.until()
    }
}

impl SignatureCheck {
    /// Checks the signatures of a request, at most two; `None` if it is not signed. `keys` finds the keys of a directory, for the
    /// `keyid` of a signature, or says why there are none.
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

    /// The check of a signature that cannot hold, by what the request alone says.
    pub(super) const fn of_request(outcome: MethodOutcome) -> Self {
        Self { outcome, directory: None, until: None }
    }

    /// The outcome of the signature for a claim whose operator has these directories; `None` stands for a claim that names no
    /// operator that is known. A valid one by another operator says nothing: it neither confirms the claim, nor is it false. That
    /// the keys of another operator cannot be had is no doubt about this claim either.
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
