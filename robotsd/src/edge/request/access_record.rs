//! The access record of one request, which becomes a line of the access log.
//!
//! A record is created when the head of its request has arrived. The record is sent to the log when
//! the response has ended, for any reason. The services behind the edge may add fields to the
//! record.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::header::{REFERER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version};
use serde_json::Value;

use super::ClientInfo;
use super::request_id::{RequestId, trace_id};
use crate::http_common::{AccessFields, AddedFields, AskedAbout};

/// A request and its outcome. If another proxy has asked for a decision, the record describes the
/// original request and the decision.
#[derive(Debug)]
pub(crate) struct AccessRecord {
    pub(crate) at: SystemTime,
    /// Address of the client's end of the connection. For a proxy's decision request, the address
    /// of the original client; `None` if the decision request does not contain this address.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) id: RequestId,
    pub(crate) trace_id: Option<Box<str>>,
    pub(crate) method: Method,
    /// Path and query, without the host of an absolute-form target or of an HTTP/2 request.
    pub(crate) target: String,
    pub(crate) version: Version,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) referer: Option<HeaderValue>,
    pub(crate) user_agent: Option<HeaderValue>,
    /// Status of the response. `None` if the client disconnected before there was a response.
    pub(crate) status: Option<StatusCode>,
    /// Number of bytes of the response's content that were passed to the connection.
    pub(crate) sent: u64,
    /// Whether all of the content was passed to the connection.
    pub(crate) is_whole: bool,
    pub(crate) took: Duration,
    pub(crate) notes: Vec<(&'static str, Value)>,
}

/// Callback for each request that has ended. The callback must not block.
pub(crate) type OnAccess = Arc<dyn Fn(Box<AccessRecord>) + Send + Sync>;

pub(crate) struct PendingRecord {
    record: Option<Box<AccessRecord>>,
    began: Instant,
    pub(crate) fields: AccessFields,
    /// Length of the content as declared in the response's head, in bytes. The content counts as
    /// complete after `length` bytes, because the connection then stops polling the body.
    pub(crate) length: Option<u64>,
    on_access: OnAccess,
}

impl PendingRecord {
    /// Creates the record of a request. `Referer` and `User-Agent` are recorded as the client sent
    /// them.
    pub(crate) fn new(
        (method, target, version): (&Method, &Uri, Version),
        headers: &HeaderMap,
        id: RequestId,
        ClientInfo { peer, agent }: ClientInfo,
        on_access: OnAccess,
    ) -> Self {
        let record = AccessRecord {
            at: SystemTime::now(),
            peer: Some(peer.address),
            id,
            trace_id: trace_id(headers).map(Box::from),
            method: method.clone(),
            target: target.path_and_query().map_or_else(|| target.to_string(), |target| target.as_str().to_owned()),
            version,
            host: headers.get(http::header::HOST).cloned(),
            referer: headers.get(REFERER).cloned(),
            user_agent: agent.as_ref().and_then(|lines| lines.first()).or(headers.get(USER_AGENT)).cloned(),
            status: None,
            sent: 0,
            is_whole: false,
            took: Duration::ZERO,
            notes: Vec::new(),
        };
        Self {
            record: Some(record.into()),
            began: Instant::now(),
            fields: AccessFields::default(),
            length: None,
            on_access,
        }
    }

    pub(crate) fn set_status(&mut self, status: StatusCode) {
        if let Some(record) = &mut self.record {
            record.status = Some(status);
            record.is_whole |= record.method == Method::HEAD;
        }
    }

    pub(crate) fn sent(&mut self, bytes: u64) {
        if let Some(record) = &mut self.record {
            record.sent += bytes;
            record.is_whole |= self.length == Some(record.sent);
        }
    }

    pub(crate) fn set_complete(&mut self) {
        if let Some(record) = &mut self.record {
            record.is_whole = true;
        }
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        if let Some(mut record) = self.record.take() {
            record.took = self.began.elapsed();
            let AddedFields { notes, asked } = self.fields.take();
            record.notes = notes;
            if let Some(asked) = asked {
                let AskedAbout { method, target, host, referer, user_agent, address } = *asked;
                (record.method, record.target, record.host) = (method, target, host);
                (record.referer, record.user_agent) = (referer, user_agent);
                record.peer = address;
            }
            (self.on_access)(record);
        }
    }
}

tower_robots::internals::debug_as!(|it| PendingRecord { record: it.record });
