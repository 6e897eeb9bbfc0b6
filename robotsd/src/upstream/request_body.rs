//! The body of a request on its way to an upstream, which notes whom the upstream is waiting for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::exchange_progress::ExchangeProgress;
use crate::edge::{RequestBody, RequestBodyError};

/// A request body on its way to an upstream.
#[derive(Debug)]
pub(super) struct OutgoingBody {
    body: RequestBody,
    progress: Arc<ExchangeProgress>,
}

impl OutgoingBody {
    pub(super) fn new(body: RequestBody, progress: Arc<ExchangeProgress>) -> Self {
        Self { body, progress }
    }

    /// The body, for another connection. Only whole where nothing of it has been taken.
    pub(super) fn into_body(self) -> RequestBody {
        self.body
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        this.progress.note_awaits_client(frame.is_pending());
        // Once there is an answer, its body knows whether anything moves.
        if this.progress.awaits_head() {
            let usage = this.progress.usage();
            if frame.is_pending() { usage.stall() } else { usage.moved() }
        }
        if let Poll::Ready(Some(Err(error))) = &frame {
            this.progress.note_body_failure(error);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
