//! Interim responses (1xx), which are sent to the client before the final response (RFC 9110,
//! section 15.2).
//!
//! The service cannot return interim responses, because they arrive before the final response. If
//! the client accepts interim responses, its request contains [`InterimResponses`], a handle for
//! sending them. The heads wait in an [`InterimQueue`]. After each poll of the service's future,
//! the code that writes to the client takes the heads from this queue.
//!
//! Two status codes are not relayed: 100, which the edge sends itself when it begins to read the
//! body, and 101, which ends the exchange. HTTP/1.0 clients do not understand interim responses, so
//! they get none.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use http::header::{CONTENT_LENGTH, HeaderMap};
use http::{Response, StatusCode};
use parking_lot::Mutex;

use super::fields;

/// Maximum number of queued heads per client; further heads are dropped.
pub(crate) const WAITING: usize = 32;

/// Maximum total size of the queued heads, in bytes.
pub(crate) const WAITING_OCTETS: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct InterimResponses(Arc<dyn InterimClient>);

pub(crate) trait InterimClient: fmt::Debug + Send + Sync {
    fn interim(&self) -> &InterimQueue;
}

impl InterimResponses {
    pub(crate) fn to<C: InterimClient + 'static>(client: Arc<C>) -> Self {
        Self(client)
    }

    /// Sends an interim response to the client, without hop-by-hop fields and `Content-Length`.
    /// Must be called from within the service's future, before the service returns its response.
    pub(crate) fn send(&self, status: StatusCode, fields: &HeaderMap) {
        if !status.is_informational() || matches!(status, StatusCode::CONTINUE | StatusCode::SWITCHING_PROTOCOLS) {
            return;
        }
        let mut head = Response::new(());
        *head.status_mut() = status;
        *head.headers_mut() = fields.clone();
        fields::remove_hop_by_hop(head.headers_mut());
        // `Content-Length` is not allowed in a 1xx response (RFC 9110, section 8.6).
        head.headers_mut().remove(CONTENT_LENGTH);
        self.0.interim().push(head);
    }

    /// Sends 100 (Continue) to the client. This call is needed only if the HTTP library does not
    /// send the 100 response.
    pub(crate) fn send_continue(&self) {
        let mut head = Response::new(());
        *head.status_mut() = StatusCode::CONTINUE;
        self.0.interim().push(head);
    }
}

#[derive(Debug, Default)]
pub(crate) struct InterimQueue {
    /// Whether responses are queued or being written. While this flag is false, which is nearly
    /// always the case, the queue need not be locked.
    is_waiting: AtomicBool,
    waiting: Mutex<WaitingHeads>,
}

#[derive(Debug, Default)]
struct WaitingHeads {
    heads: VecDeque<Response<()>>,
    bytes: usize,
    /// Waker of the task that must not send its final response before the interim responses are
    /// written.
    written: Option<Waker>,
}

impl InterimQueue {
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Acquire)
    }

    /// Removes the next head from the queue. [`is_waiting`](Self::is_waiting) stays true until the
    /// head [is written](Self::note_written).
    pub(crate) fn take(&self) -> Option<Response<()>> {
        let mut waiting = self.waiting.lock();
        let head = waiting.heads.pop_front();
        if waiting.heads.is_empty() {
            waiting.bytes = 0;
        }
        head
    }

    /// Removes all heads and appends them to `out` in the format of HTTP/1.1.
    pub(crate) fn take_bytes(&self, out: &mut Vec<u8>) {
        while let Some(head) = self.take() {
            write(out, &head);
        }
    }

    /// Records that all heads that were removed so far have been written.
    pub(crate) fn note_written(&self) {
        if !self.is_waiting() {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.heads.is_empty() {
            self.is_waiting.store(false, Ordering::Release);
            if let Some(waker) = waiting.written.take() {
                waker.wake();
            }
        }
    }

    pub(crate) fn poll_written(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_waiting() {
            return Poll::Ready(());
        }
        self.waiting.lock().written = Some(cx.waker().clone());
        Poll::Pending
    }

    fn push(&self, head: Response<()>) {
        let bytes = size(&head);
        let mut waiting = self.waiting.lock();
        if waiting.heads.len() < WAITING && waiting.bytes + bytes <= WAITING_OCTETS {
            waiting.bytes += bytes;
            waiting.heads.push_back(head);
            self.is_waiting.store(true, Ordering::Release);
        }
    }
}

/// Returns the size of all fields of a head, in bytes.
pub(crate) fn size(head: &Response<()>) -> usize {
    head.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + b": \r\n".len()).sum()
}

fn write(out: &mut Vec<u8>, head: &Response<()>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(head.status().as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(head.status().canonical_reason().unwrap_or("Interim").as_bytes());
    out.extend_from_slice(b"\r\n");
    fields::write(out, head.headers(), None);
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[derive(Debug)]
    struct Client(InterimQueue);

    impl InterimClient for Client {
        fn interim(&self) -> &InterimQueue {
            &self.0
        }
    }

    fn client() -> (Arc<Client>, InterimResponses) {
        let client = Arc::new(Client(InterimQueue::default()));
        (Arc::clone(&client), InterimResponses::to(client))
    }

    fn fields(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    fn written(client: &Client) -> String {
        let mut out = Vec::new();
        client.0.take_bytes(&mut out);
        client.0.note_written();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rfc_9110_15_2_interim_heads_are_written_in_order_without_connection_fields() {
        let (client, responses) = client();
        responses.send(StatusCode::EARLY_HINTS, &fields(&[("link", "</a>"), ("connection", "x-a"), ("x-a", "1")]));
        responses.send(StatusCode::PROCESSING, &fields(&[("content-length", "5"), ("keep-alive", "1")]));
        responses.send(StatusCode::from_u16(199).unwrap(), &fields(&[]));
        assert!(client.0.is_waiting());
        assert_eq!(
            written(&client),
            "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 199 Interim\r\n\r\n"
        );
        assert!(!client.0.is_waiting());
    }

    #[test]
    fn only_interim_responses_other_than_100_and_101_are_sent() {
        let (client, responses) = client();
        for status in [100, 101, 200, 404] {
            responses.send(StatusCode::from_u16(status).unwrap(), &fields(&[]));
        }
        assert!(!client.0.is_waiting());
    }

    #[test]
    fn the_number_and_size_of_waiting_interim_responses_are_limited() {
        let (client, responses) = client();
        for _ in 0..10_000 {
            responses.send(StatusCode::EARLY_HINTS, &fields(&[("link", "</a>")]));
        }
        assert_eq!(written(&client).matches("HTTP/1.1 103").count(), WAITING);
        let mut large = HeaderMap::new();
        large.insert("x-a", HeaderValue::from_maybe_shared(vec![b'x'; WAITING_OCTETS / 3]).unwrap());
        (0..4).for_each(|_| responses.send(StatusCode::EARLY_HINTS, &large));
        assert_eq!(written(&client).matches("HTTP/1.1 103").count(), 2);
        responses.send(StatusCode::EARLY_HINTS, &large);
        assert_eq!(written(&client).matches("HTTP/1.1 103").count(), 1);
    }

    #[test]
    fn a_response_waits_until_earlier_interim_responses_are_written() {
        let (client, responses) = client();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(client.0.poll_written(&mut cx).is_ready());
        responses.send(StatusCode::EARLY_HINTS, &fields(&[]));
        assert!(client.0.poll_written(&mut cx).is_pending());
        let _ = client.0.take();
        // The head has been removed from the queue, but not written yet.
        assert!(client.0.poll_written(&mut cx).is_pending());
        client.0.note_written();
        assert!(client.0.poll_written(&mut cx).is_ready());
    }
}
