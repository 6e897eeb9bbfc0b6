//! The interim responses (1xx) of a server to one request.
//!
//! A proxy forwards them (RFC 9110, section 15.2), and no final response may ever follow: so few are passed on, and they move no
//! deadline.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderMap, StatusCode};

use crate::edge::InterimResponses;

/// So many responses are passed on: servers send one or two, or one in a while for as long as they work.
const RESPONSES: usize = 32;

/// So many are taken at all.
const MOST_RESPONSES: usize = 1000;

/// Passes the interim responses to one request on, as far as its client can be sent some.
#[derive(Debug)]
pub(super) struct InterimRelay {
    client: Option<InterimResponses>,
    received: AtomicUsize,
}

/// More came than any server has a use for.
pub(super) struct TooManyInterim;

impl InterimRelay {
    pub(super) fn new(client: Option<&InterimResponses>) -> Self {
        Self { client: client.cloned(), received: AtomicUsize::new(0) }
    }

    pub(super) fn has_client(&self) -> bool {
        self.client.is_some()
    }

    /// Takes the next one, which is dropped where enough have been passed on.
    pub(super) fn received(&self, status: StatusCode, fields: &HeaderMap) -> Result<(), TooManyInterim> {
        let before = self.received.fetch_add(1, Ordering::Relaxed);
        if before >= MOST_RESPONSES {
            return Err(TooManyInterim);
        }
        if let Some(client) = self.client.as_ref().filter(|_| before < RESPONSES) {
            client.send(status, fields);
        }
        Ok(())
    }
}
