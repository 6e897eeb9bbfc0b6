//! The messages of `envoy.service.auth.v3`, as far as they are read and written here: the question, the request that it
//! is about, and the answer.
//!
//! Field numbers are those of Envoy's files; fields that are not named are skipped. Text is octets: a client's text
//! need not be UTF-8. An entry of a map is a message of its own on the wire, so maps are lists here.

use std::borrow::Cow;
use std::net::IpAddr;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response};
use prost::Message as _;
use tower_robots::agent::Category;
use tower_robots::layer::{GrpcCode, Record};
use tower_robots::rules::Access;

use crate::ask::asked_request::{AskedRequest, STRICTEST_METHOD, host_of_url, is_target};
use crate::ask::preset::{Preset, value_of};
use crate::ask::question_error::{QuestionError, QuestionFault};
use crate::counting::RequestOutcome;

/// A question.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) attributes: Option<AttributeContext>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AttributeContext {
    #[prost(message, optional, tag = "1")]
    pub(super) source: Option<SourcePeer>,
    #[prost(message, optional, tag = "4")]
    pub(super) request: Option<RequestAttributes>,
    /// The config of the proxy for the route.
    #[prost(message, repeated, tag = "10")]
    pub(super) context_extensions: Vec<HeaderEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SourcePeer {
    #[prost(message, optional, tag = "1")]
    pub(super) address: Option<PeerAddress>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PeerAddress {
    #[prost(message, optional, tag = "1")]
    pub(super) socket_address: Option<SocketAddressText>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SocketAddressText {
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) address: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RequestAttributes {
    #[prost(message, optional, tag = "2")]
    pub(super) http: Option<HttpAttributes>,
}

/// The client's request.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HttpAttributes {
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) method: Bytes,
    #[prost(message, repeated, tag = "3")]
    pub(super) headers: Vec<HeaderEntry>,
    /// With its query, not decoded.
    #[prost(bytes = "bytes", tag = "4")]
    pub(super) path: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) host: Bytes,
    /// In place of the headers, with `encode_raw_headers`.
    #[prost(message, optional, tag = "13")]
    pub(super) header_map: Option<HeaderList>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HeaderList {
    #[prost(message, repeated, tag = "1")]
    pub(super) headers: Vec<HeaderEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HeaderEntry {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) value: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) raw_value: Bytes,
}

/// An answer.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CheckResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<RpcStatus>,
    #[prost(message, optional, tag = "2")]
    pub(super) denied_response: Option<DeniedResponse>,
    #[prost(message, optional, tag = "3")]
    pub(super) ok_response: Option<OkResponse>,
    #[prost(message, optional, tag = "4")]
    pub(super) dynamic_metadata: Option<Metadata>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DeniedResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<HttpStatusCode>,
    #[prost(message, repeated, tag = "2")]
    pub(super) headers: Vec<HeaderOption>,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) body: Bytes,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct HttpStatusCode {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OkResponse {
    #[prost(message, repeated, tag = "2")]
    pub(super) headers: Vec<HeaderOption>,
    #[prost(string, repeated, tag = "5")]
    pub(super) headers_to_remove: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HeaderOption {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<HeaderEntry>,
    #[prost(int32, tag = "3")]
    pub(super) append_action: i32,
}

/// `google.protobuf.Struct`, with values of two kinds.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Metadata {
    #[prost(message, repeated, tag = "1")]
    pub(super) fields: Vec<MetadataEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetadataEntry {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<MetadataValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetadataValue {
    #[prost(double, optional, tag = "2")]
    pub(super) number: Option<f64>,
    #[prost(string, optional, tag = "3")]
    pub(super) text: Option<String>,
}

/// A field that is set whether it is there or not (`OVERWRITE_IF_EXISTS_OR_ADD`).
const OVERWRITE_OR_ADD: i32 = 2;

/// The request goes on, with the verdict where it is tagged. The client's own verdict does not.
pub(crate) fn allowed(tag: Option<HeaderValue>, metadata: Option<Metadata>) -> CheckResponse {
    // A header that is set is not removed besides: Envoy removes last.
    let mut removed = vec!["robots_verdict".to_owned()];
    let headers = match tag {
        Some(tag) => vec![header(&Record::FIELD, tag.as_bytes())],
        None => {
            removed.push(Record::FIELD.as_str().to_owned());
            Vec::new()
        }
    };
    CheckResponse {
        status: Some(RpcStatus { code: 0 }),
        denied_response: None,
        ok_response: Some(OkResponse { headers, headers_to_remove: removed }),
        dynamic_metadata: metadata,
    }
}

/// The request is answered with this response.
pub(crate) fn denied(response: Response<Bytes>, metadata: Option<Metadata>) -> CheckResponse {
    let (head, body) = response.into_parts();
    CheckResponse {
        status: Some(RpcStatus { code: GrpcCode::PermissionDenied.number().into() }),
        denied_response: Some(DeniedResponse {
            status: Some(HttpStatusCode { code: head.status.as_u16().into() }),
            headers: headers(&head.headers),
            body,
        }),
        ok_response: None,
        dynamic_metadata: metadata,
    }
}

/// The fields that the proxy can write to its own log about a crawler's request, in the words of the log of requests.
pub(crate) fn metadata(site: &str, request: &Record) -> Metadata {
    let mut fields = Vec::with_capacity(10);
    let mut text = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            fields.push(entry(key, MetadataValue { number: None, text: Some(value.to_owned()) }));
        }
    };
    text("site", Some(site));
    text("agent", Some(request.name()));
    text("category", request.agent.category().map(Category::as_str));
    text("identity", Some(request.identity.map_or("claimed", |identity| identity.outcome())));
    text("decision", Some(request.access.unwrap_or(Access::Allow).as_str()));
    text("action", Some(RequestOutcome::of(request.action, request.reason).as_str()));
    text("reason", Some(request.reason.as_str()));
    text("rule", request.rule.as_deref());
    text("robots_hash", Some(&request.hash.short()));
    if let Some(line) = request.line {
        // Exact up to 2^53.
        fields.push(entry("line", MetadataValue { number: Some(line as f64), text: None }));
    }
    Metadata { fields }
}

fn entry(key: &str, value: MetadataValue) -> MetadataEntry {
    MetadataEntry { key: key.to_owned(), value: Some(value) }
}

/// The fields of a response; the lines of one are joined, because one that is set replaces what is there. Content has the length
/// that it has.
fn headers(fields: &HeaderMap) -> Vec<HeaderOption> {
    let names = fields.keys().filter(|name| **name != CONTENT_LENGTH);
    let joined = |name: &HeaderName| {
        let lines: Vec<_> = fields.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        header(name, &lines.join(&b", "[..]))
    };
    names.map(joined).collect()
}

fn header(name: &HeaderName, value: &[u8]) -> HeaderOption {
    let (key, value) = (name.as_str().to_owned().into(), Bytes::copy_from_slice(value));
    HeaderOption { header: Some(HeaderEntry { key, value, raw_value: Bytes::new() }), append_action: OVERWRITE_OR_ADD }
}

/// A message that was read.
#[derive(Debug)]
pub(crate) struct CheckQuestion {
    http: HttpAttributes,
    pub(crate) address: Option<IpAddr>,
    /// The name of the site, in the context extension `site`.
    site: Option<Bytes>,
}

impl CheckQuestion {
    pub(crate) fn read(message: Bytes) -> Result<Self, CallError> {
        let CheckRequest { attributes } = CheckRequest::decode(message).map_err(|_| CallError::Malformed)?;
        let AttributeContext { source, request, context_extensions } = attributes.unwrap_or_default();
        let site = context_extensions.into_iter().find(|entry| *entry.key == *b"site").map(|entry| entry.value);
        let socket = source.and_then(|source| source.address).and_then(|address| address.socket_address);
        let address = socket.and_then(|socket| std::str::from_utf8(&socket.address).ok()?.parse().ok());
        Ok(Self { http: request.and_then(|request| request.http).unwrap_or_default(), address, site })
    }

    /// The site that the config of the proxy names.
    pub(crate) fn site(&self) -> Option<Cow<'_, str>> {
        self.site.as_deref().map(String::from_utf8_lossy)
    }

    /// Method, target and host, which are never guessed.
    pub(crate) fn original(&self) -> Result<AskedRequest<'_>, QuestionError> {
        let HttpAttributes { method, path, host, .. } = &self.http;
        for (value, place) in [(path, PATH), (method, METHOD)] {
            if value.is_empty() {
                return Err(QuestionError::missing(Preset::EnvoyGrpc, place));
            }
        }
        let unreadable = |place| QuestionError::new(Preset::EnvoyGrpc, QuestionFault::Unreadable, place);
        let mut odd = (!is_target(path)).then(|| unreadable(PATH));
        let method = Method::from_bytes(method).unwrap_or_else(|_| {
            odd = Some(unreadable(METHOD));
            STRICTEST_METHOD
        });
        Ok(AskedRequest {
            method,
            target: path,
            further_targets: Vec::new(),
            host: Some(&host[..]).filter(|host| !host.is_empty()),
            host_in_target: host_of_url(path),
            odd,
        })
    }

    /// The client's fields, in its octets where the proxy sends those; none where they are more than can be judged.
    pub(crate) fn fields(&self) -> Option<HeaderMap> {
        let raw = self.http.header_map.as_ref().map(|map| &map.headers[..]).filter(|map| !map.is_empty());
        let entries = raw.unwrap_or(&self.http.headers);
        let mut fields = HeaderMap::with_capacity(entries.len().min(64));
        for entry in entries {
            // `:path` and its like are no names.
            let Ok(name) = HeaderName::from_bytes(&entry.key) else { continue };
            let octets = if entry.raw_value.is_empty() { &entry.value } else { &entry.raw_value };
            fields.try_append(name, value_of(octets)).ok()?;
        }
        Some(fields)
    }
}

const PATH: &str = "attributes.request.http.path";
const METHOD: &str = "attributes.request.http.method";

const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Why a call gets a status in place of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// There is no such method.
    UnknownMethod,
    /// It is compressed, which no caller does unless it is configured to.
    Compressed,
    TooLarge,
    /// It is no message, not the only one, or none of this call.
    Malformed,
    /// It did not come in time.
    Late,
    /// The caller has gone.
    Broken,
}

impl CallError {
    const fn code(self) -> GrpcCode {
        match self {
            Self::UnknownMethod | Self::Compressed => GrpcCode::Unimplemented,
            Self::TooLarge => GrpcCode::ResourceExhausted,
            Self::Malformed => GrpcCode::InvalidArgument,
            Self::Late => GrpcCode::DeadlineExceeded,
            Self::Broken => GrpcCode::Cancelled,
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::UnknownMethod => "questions go to /envoy.service.auth.v3.Authorization/Check",
            Self::Compressed => "the question is compressed: send it as it is",
            Self::TooLarge => "the question has more than 1 MiB: leave the body of the request out",
            Self::Malformed => "the question is not one CheckRequest",
            Self::Late => "the question did not come in time",
            Self::Broken => "the question was broken off",
        }
    }

    /// Whether the caller asks in a way that has to be mended.
    pub(crate) const fn is_fault(self) -> bool {
        matches!(self, Self::Compressed | Self::TooLarge | Self::Malformed)
    }

    /// The fields of a response that says this and nothing else.
    pub(crate) fn fields(self) -> HeaderMap {
        let mut fields = self.code().fields(self.message());
        if self == Self::Compressed {
            fields.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        fields
    }
}
