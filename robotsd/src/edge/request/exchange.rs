//! One request and its response, from the end of the head to the last octet of the body.

use std::sync::Arc;

use http::StatusCode;

use crate::edge::connection_state::state::{ConnectionState, RequestInProgress};
use crate::edge::http2::stream_timeout::StreamConsumer;
use crate::edge::request::access_record::PendingRecord;
use crate::edge::transfer::Transfer;

/// Ends when dropped: with the last octet of the response body, or when the client leaves.
#[derive(Debug)]
pub(crate) struct Exchange {
    // Dropped before the record: when the record is logged, the connection is idle.
    in_progress: RequestInProgress,
    holds_transfer: bool,
    is_answered: bool,
    /// The account of it, where one is kept.
    pub(crate) record: Option<Box<PendingRecord>>,
    /// The stream of HTTP/2 that counts the octets for it.
    stream: Option<StreamConsumer>,
}

impl Exchange {
    pub(crate) fn begin(connection: &Arc<ConnectionState>, http2: bool) -> Self {
        let in_progress = connection.begin(http2);
        Self { in_progress, holds_transfer: false, is_answered: false, record: None, stream: None }
    }

    /// The response goes to a stream of HTTP/2. What counts as sent is what the stream has taken, not what its task was handed.
    pub(crate) fn sent_on(&mut self, stream: StreamConsumer) {
        self.stream = Some(stream);
    }

    /// The record that the body counts its octets in; none where a stream does.
    pub(crate) fn body_record(&mut self) -> Option<&mut PendingRecord> {
        self.record.as_deref_mut().filter(|_| self.stream.is_none())
    }

    pub(crate) fn connection(&self) -> &Arc<ConnectionState> {
        self.in_progress.connection()
    }

    /// The head of the response is known.
    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.is_answered = true;
        self.connection().counts().answered(status);
    }

    /// The response holds a connection to an upstream.
    pub(crate) fn hold(&mut self, transfer: Transfer) {
        self.holds_transfer = true;
        self.connection().delivery().set_transfer(Some(transfer));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.is_answered {
            self.connection().counts().unanswered();
        }
        if self.holds_transfer {
            self.connection().delivery().set_transfer(None);
        }
        if let (Some(stream), Some(record)) = (&self.stream, &mut self.record) {
            record.sent(stream.sent());
            if stream.is_ended() {
                record.whole();
            }
        }
    }
}
