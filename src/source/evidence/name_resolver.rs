//! Names of addresses, queried one by one: for a program that judges a log, and waits for the answers.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::dns_resolver::{DnsResolver, IN_FLIGHT};
use super::verifier_error::VerifierError;
use crate::identity::{DnsAnswer, MethodOutcome, NamePattern, PublicAddress, RdnsCheck, RdnsQuestion};

/// Looks up what the names of addresses say about claims.
///
/// As in a [`Verifier`](super::Verifier), at most 50 questions a second leave and at most 32 addresses are looked up at once,
/// however many calls wait. Nothing is kept. The queries disclose the addresses to the resolver.
pub struct NameResolver {
    resolver: DnsResolver,
    in_flight: Semaphore,
}

impl NameResolver {
    /// One that queries these servers, or without any those of the system. It belongs to the Tokio runtime that it is made in.
    ///
    /// # Errors
    ///
    /// If the resolvers of the system cannot be found.
    pub fn new(servers: &[SocketAddr]) -> Result<Self, VerifierError> {
        let resolver =
            DnsResolver::new(servers).map_err(|error| VerifierError::new(format!("no resolver for names: {error}")))?;
        Ok(Self { resolver, in_flight: Semaphore::new(IN_FLIGHT) })
    }

    /// What the names of an address say about the claim of a crawler whose addresses have names of these patterns.
    ///
    /// A failure counts only while the resolver is known to answer for that operator ([`RdnsCheck::through`]).
    pub async fn check(&self, address: PublicAddress, patterns: Arc<[NamePattern]>) -> MethodOutcome {
        self.check_noting(address, patterns, |_, _| ()).await
    }

    /// As [`check`](Self::check), with a function that is called for every answer.
    pub async fn check_noting(
        &self,
        address: PublicAddress,
        patterns: Arc<[NamePattern]>,
        note: impl FnMut(&RdnsQuestion<'_>, &DnsAnswer),
    ) -> MethodOutcome {
        // The semaphore is never closed.
        let _permit = self.in_flight.acquire().await;
        self.resolver.check_noting(RdnsCheck::new(address, patterns), note).await.0
    }
}

impl fmt::Debug for NameResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameResolver").finish_non_exhaustive()
    }
}
