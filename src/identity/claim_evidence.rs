//! What is at hand to judge claims by.

use std::time::SystemTime;

use super::method_outcome::MethodOutcome;
use super::public_address::PublicAddress;
#[cfg(feature = "signatures")]
use super::signature::{DirectoryKeys, DirectoryUrl, MessageHead, SignatureChecks, TestKeys, check_signatures};
use crate::agent::Crawler;

/// The evidence that is at hand. No method waits, and what is missing is said to be undecided.
pub trait ClaimEvidence {
    /// What the operator's lists say about an address; `None` where it publishes none.
    fn range(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome>;

    /// What the names of an address say; `None` where the operator's addresses have no names that are known.
    fn rdns(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome>;

    /// The keys of a directory, for a signature by the key with this thumbprint.
    #[cfg(feature = "signatures")]
    fn keys(&self, directory: &DirectoryUrl, keyid: &str, now: SystemTime) -> DirectoryKeys;

    /// Whether the keys that RFC 9421 publishes for tests verify. They do not, except in tests.
    #[cfg(feature = "signatures")]
    fn test_keys(&self) -> TestKeys {
        TestKeys::Refuse
    }

    /// What the signatures of a request say, which came from this address. By default all of them are checked, with
    /// [`keys`](Self::keys); results may be kept, and a sender whose signatures fail may be made to wait.
    #[cfg(feature = "signatures")]
    fn signatures(
        &self,
        message: &MessageHead<'_>,
        address: Option<PublicAddress>,
        now: SystemTime,
    ) -> SignatureChecks {
        let _ = address;
        check_signatures(message, now, self.test_keys(), |directory, keyid| self.keys(directory, keyid, now))
    }
}
