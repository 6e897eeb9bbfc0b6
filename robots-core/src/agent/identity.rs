//! The result of verifying which crawler sent a request. The module [`identity`](crate::identity)
//! contains the verification itself.

use std::fmt;
use std::str::FromStr;

use crate::keyword_enum;
use crate::rules::ValueError;

/// The result of verifying the claim that a request makes about its sender.
///
/// The string form contains the outcome and, if any, the method and the reason: `verified(range)`,
/// `refuted(signature: expired)`, `undecided(stale)`, `unverifiable`, `unclaimed`. With the feature
/// `serde`, an identity is serialised as an object with `outcome`, `method` and `reason`.
///
/// ```
/// use robots_core::agent::{Identity, Refutation};
///
/// let identity = Identity::Refuted(Refutation::NotListed);
/// assert_eq!(identity.to_string(), "refuted(range: not-listed)");
/// assert_eq!(identity.to_string().parse(), Ok(identity));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[cfg_attr(feature = "serde", serde(into = "with_serde::Parts", try_from = "with_serde::Parts"))]
pub enum Identity {
    /// A method confirmed the claim.
    Verified(IdentityMethod),
    /// The sender is an impostor. The operator publishes a method that verifies all genuine
    /// requests, the data for the check is up to date, and this request failed the check.
    Refuted(Refutation),
    /// The data for the check is missing, too old or unreliable. An undecided claim is never a
    /// reason to refuse a request.
    Undecided(UndecidedReason),
    /// The request claims to be from a crawler whose operator publishes no method that could refute
    /// the claim.
    Unverifiable,
    /// The request does not claim to be from a crawler.
    #[default]
    Unclaimed,
}

keyword_enum! {
    /// A method of verifying a claim. The methods are tried in the order of the variants.
    IdentityMethod, "a method that checks a claim", {
        /// A signature on the request (Web Bot Auth, RFC 9421).
        Signature = "signature",
        /// The client's address is in a list published by the operator.
        Range = "range",
        /// The client's address has a reverse DNS name in the operator's domain, and this name
        /// resolves back to the address.
        Rdns = "rdns",
    }
}

keyword_enum! {
    /// The reason why a claim is refuted. The first four reasons are about addresses, the others
    /// about signatures.
    Refutation, "a reason why a claim is refuted", {
        /// The address is not in any list of the operator.
        NotListed = "not-listed",
        /// The address has no reverse DNS name.
        NoName = "no-name",
        /// No reverse DNS name of the address is in the operator's domain.
        OtherName = "other-name",
        /// The reverse DNS name is in the operator's domain, but does not resolve to the address.
        NotConfirmed = "not-confirmed",
        /// The signature does not match the key and the request.
        BadSignature = "bad-signature",
        /// `Signature-Input`, `Signature` or `Signature-Agent` is not a valid structured field of
        /// its type.
        Unparsable = "unparsable",
        /// `Signature` has no member with the label that `Signature-Input` uses.
        NoSignatureForLabel = "no-signature-for-label",
        /// `created`, `expires` or `keyid` is missing.
        MissingParameter = "missing-parameter",
        /// The algorithm is not `ed25519`.
        AlgMismatch = "alg-mismatch",
        /// The signature expires before it is created.
        WindowNegative = "window-negative",
        /// The signature is valid for more than a day.
        WindowTooLong = "window-too-long",
        /// The creation time of the signature is in the future.
        CreatedInFuture = "created-in-future",
        /// The signature has expired.
        Expired = "expired",
        /// The signature covers neither `@authority` nor `@target-uri`.
        TargetNotCovered = "target-not-covered",
        /// The signature does not cover the signer's member of `Signature-Agent`.
        AgentNotCovered = "agent-not-covered",
        /// `Signature-Agent` is not an `https` URL.
        AgentNotHttps = "agent-not-https",
        /// The signature covers a component that the request does not have.
        ComponentMissing = "component-missing",
        /// The signature covers a component that does not apply to requests or has an unsupported
        /// parameter.
        ComponentUnsupported = "component-unsupported",
        /// The signature covers a component twice.
        ComponentRepeated = "component-repeated",
    }
}

keyword_enum! {
    /// The reason why a claim is neither verified nor refuted.
    UndecidedReason, "a reason why a claim is undecided", {
        /// The client's address is unknown, private, reserved, or the address of a trusted proxy.
        Address = "address",
        /// The operator's address list is too old to refute the claim.
        Stale = "stale",
        /// The operator's address list has not been loaded yet.
        NotLoaded = "not-loaded",
        /// The reverse DNS names of the address are being looked up.
        Pending = "pending",
        /// Too many reverse DNS lookups are in progress, or too many signatures from this address
        /// have failed.
        Busy = "busy",
        /// The resolver did not answer in time.
        Timeout = "timeout",
        /// The resolver answered with an error.
        ResolverFailure = "resolver-failure",
        /// The resolver's answer was truncated.
        Truncated = "truncated",
        /// The resolver has not verified any address of the operator recently, so its negative
        /// response proves nothing.
        UnprovenResolver = "unproven-resolver",
        /// Too many claims were refuted on the network path of the request, so client addresses on
        /// this path are unreliable. A proxy may have to be added to `trusted_proxies`.
        SuspectPath = "suspect-path",
        /// Signatures are the operator's only verification method, and the request is not signed.
        Unsigned = "unsigned",
        /// The request is signed but has no `Signature-Agent`, so the signer's keys cannot be
        /// found.
        AgentAbsent = "agent-absent",
        /// The signature does not cover a component that the configuration requires.
        ComponentNotCovered = "component-not-covered",
        /// The key directory is listed neither in the registry nor in the configuration.
        DirectoryNotConfigured = "directory-not-configured",
        /// The key directory could not be fetched.
        DirectoryUnavailable = "directory-unavailable",
        /// The key directory does not contain the key.
        KeyUnknownThere = "key-unknown-there",
        /// The key is one of the test keys published in RFC 9421.
        TestKey = "test-key",
    }
}

impl Identity {
    /// Returns the name of the outcome, without method and reason.
    pub const fn outcome(self) -> &'static str {
        match self {
            Self::Verified(_) => "verified",
            Self::Refuted(_) => "refuted",
            Self::Undecided(_) => "undecided",
            Self::Unverifiable => "unverifiable",
            Self::Unclaimed => "unclaimed",
        }
    }

    /// Returns the method that verified or refuted the claim; `None` for other outcomes.
    pub const fn method(self) -> Option<IdentityMethod> {
        match self {
            Self::Verified(method) => Some(method),
            Self::Refuted(refutation) => Some(refutation.method()),
            Self::Undecided(_) | Self::Unverifiable | Self::Unclaimed => None,
        }
    }

    /// Returns the string form of the reason; `None` unless the claim is refuted or undecided.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Refuted(refutation) => Some(refutation.as_str()),
            Self::Undecided(reason) => Some(reason.as_str()),
            Self::Verified(_) | Self::Unverifiable | Self::Unclaimed => None,
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        let verified = IdentityMethod::ALL.iter().copied().map(Self::Verified);
        let refuted = Refutation::ALL.iter().copied().map(Self::Refuted);
        let undecided = UndecidedReason::ALL.iter().copied().map(Self::Undecided);
        verified.chain(refuted).chain(undecided).chain([Self::Unverifiable, Self::Unclaimed])
    }
}

impl Refutation {
    /// Returns the method that refuted the claim.
    pub const fn method(self) -> IdentityMethod {
        match self {
            Self::NotListed => IdentityMethod::Range,
            Self::NoName | Self::OtherName | Self::NotConfirmed => IdentityMethod::Rdns,
            _ => IdentityMethod::Signature,
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.outcome())?;
        match (self.method(), self.reason()) {
            (Some(method), Some(reason)) => write!(f, "({method}: {reason})"),
            (Some(method), None) => write!(f, "({method})"),
            (None, Some(reason)) => write!(f, "({reason})"),
            (None, None) => Ok(()),
        }
    }
}

impl FromStr for Identity {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Self::all().find(|identity| identity.to_string() == text).ok_or_else(|| {
            ValueError::of_any(
                text,
                "is not an identity: write one such as \"verified(range)\", \"refuted(range: not-listed)\", \
                 \"undecided(stale)\", \"unverifiable\" or \"unclaimed\"",
            )
        })
    }
}

#[cfg(feature = "serde")]
mod with_serde {
    use std::borrow::Cow;

    use super::{Identity, IdentityMethod};

    #[derive(PartialEq, serde::Deserialize, serde::Serialize)]
    #[serde(rename = "Identity")]
    pub(super) struct Parts {
        outcome: Cow<'static, str>,
        method: Option<Cow<'static, str>>,
        reason: Option<Cow<'static, str>>,
    }

    impl From<Identity> for Parts {
        fn from(identity: Identity) -> Self {
            let method = identity.method().map(IdentityMethod::as_str).map(Cow::Borrowed);
            Self { outcome: identity.outcome().into(), method, reason: identity.reason().map(Cow::Borrowed) }
        }
    }

    impl TryFrom<Parts> for Identity {
        type Error = String;

        fn try_from(parts: Parts) -> Result<Self, String> {
            Self::all().find(|identity| Parts::from(*identity) == parts).ok_or_else(|| {
                let Parts { outcome, method, reason } = &parts;
                let show = |part: &Option<Cow<'static, str>>| part.clone().unwrap_or(Cow::Borrowed("none"));
                format!(
                    "the outcome {outcome:?} of a check cannot have the method {method:?} and the reason {reason:?}",
                    method = show(method),
                    reason = show(reason)
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Identity> {
        let mut all = vec![Identity::Unverifiable, Identity::Unclaimed];
        all.extend(IdentityMethod::ALL.iter().copied().map(Identity::Verified));
        all.extend(Refutation::ALL.iter().copied().map(Identity::Refuted));
        all.extend(UndecidedReason::ALL.iter().copied().map(Identity::Undecided));
        all
    }

    #[test]
    fn every_identity_parses_back_from_its_string() {
        for identity in all() {
            assert_eq!(identity.to_string().parse(), Ok(identity));
        }
        assert_eq!(Identity::Verified(IdentityMethod::Rdns).to_string(), "verified(rdns)");
        assert_eq!(Identity::Refuted(Refutation::Expired).to_string(), "refuted(signature: expired)");
        assert_eq!(Identity::Undecided(UndecidedReason::SuspectPath).to_string(), "undecided(suspect-path)");
    }

    #[test]
    fn an_invalid_identity_string_is_rejected() {
        let texts = "Verified(range)~verified~verified()~verified(dns)~verified(range: stale)~refuted(range)~\
            refuted(expired)~refuted(range: expired)~undecided~undecided(range: stale)~unclaimed()~\
            unverifiable(stale)~)~(";
        for text in texts.split('~').chain([""]) {
            let error = text.parse::<Identity>().expect_err(text).to_string();
            assert!(error.starts_with(&format!("{text:?} is not an identity")), "{error}");
        }
    }

    #[test]
    fn every_reason_has_a_unique_name() {
        let words = Refutation::ALL.iter().map(|reason| reason.as_str());
        let mut words: Vec<_> = words.chain(UndecidedReason::ALL.iter().map(|reason| reason.as_str())).collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn an_identity_is_a_json_object_of_outcome_method_and_reason() {
        for identity in all() {
            let value = serde_json::to_value(identity).expect("JSON");
            assert_eq!(serde_json::from_value::<Identity>(value).expect("an identity"), identity);
        }
        let refuted = serde_json::to_value(Identity::Refuted(Refutation::Expired)).expect("JSON");
        assert_eq!(refuted, serde_json::json!({ "outcome": "refuted", "method": "signature", "reason": "expired" }));
        let wrong = serde_json::json!({ "outcome": "refuted", "method": "range", "reason": "expired" });
        let error = serde_json::from_value::<Identity>(wrong).expect_err("no identity").to_string();
        assert!(error.contains("the method \"range\" and the reason \"expired\""), "{error}");
    }
}
