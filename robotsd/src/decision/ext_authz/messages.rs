//! The messages of `envoy.service.auth.v3` that robotsd uses: the decision request, which contains
//! the client's request, and the response.
//!
//! The field numbers are taken from Envoy's `.proto` files. Fields that are not declared here are
//! skipped. Text fields are declared as bytes, because text from a client may not be UTF-8. Maps
//! are declared as lists of entries, because both have the same encoding.

use std::borrow::Cow;
use std::net::IpAddr;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response};
use prost::Message as _;
use tower_robots::agent::Category;
use tower_robots::internals::GrpcCode;
use tower_robots::layer::Record;
use tower_robots::rules::Access;

use crate::counting::RequestOutcome;
use crate::decision::asked_request::{AskedRequest, STRICTEST_METHOD, host_of_url, is_target};
use crate::decision::preset::{Preset, value_of};
use crate::decision::question_error::{QuestionError, QuestionFault};

/// Declares messages with one line per field: its name, type, number and wire format.
macro_rules! messages {
    ($($(#[$about:meta])* $message:ident {
        $($(#[doc = $doc:literal])* $field:ident: $type:ty = $tag:tt ($($wire:tt)+),)*
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub(crate) struct $message {
            $($(#[doc = $doc])* #[prost($($wire)+, tag = $tag)] pub(super) $field: $type,)*
        }
    )*};
}

messages! {
    /// Envoy's decision request, which asks whether to forward a client's request.
    CheckRequest {
        attributes: Option<AttributeContext> = "1" (message, optional),
    }

    AttributeContext {
        source: Option<SourcePeer> = "1" (message, optional),
        request: Option<RequestAttributes> = "4" (message, optional),
        /// Key-value pairs that Envoy's configuration sets for the route.
        context_extensions: Vec<HeaderEntry> = "10" (message, repeated),
    }

    SourcePeer {
        address: Option<PeerAddress> = "1" (message, optional),
    }

    PeerAddress {
        socket_address: Option<SocketAddressText> = "1" (message, optional),
    }

    SocketAddressText {
        address: Bytes = "2" (bytes = "bytes"),
    }

    RequestAttributes {
        http: Option<HttpAttributes> = "2" (message, optional),
    }

    /// The client's request as Envoy describes it.
    HttpAttributes {
        method: Bytes = "2" (bytes = "bytes"),
        headers: Vec<HeaderEntry> = "3" (message, repeated),
        /// Path and query, percent-encoded as the client sent them.
        path: Bytes = "4" (bytes = "bytes"),
        host: Bytes = "5" (bytes = "bytes"),
        /// The header fields as raw bytes, instead of `headers`, if Envoy is configured with
        /// `encode_raw_headers`.
        header_map: Option<HeaderList> = "13" (message, optional),
    }

    HeaderList {
        headers: Vec<HeaderEntry> = "1" (message, repeated),
    }

    HeaderEntry {
        key: Bytes = "1" (bytes = "bytes"),
        value: Bytes = "2" (bytes = "bytes"),
        raw_value: Bytes = "3" (bytes = "bytes"),
    }

    /// The response to a [`CheckRequest`].
    CheckResponse {
        status: Option<RpcStatus> = "1" (message, optional),
        denied_response: Option<DeniedResponse> = "2" (message, optional),
        ok_response: Option<OkResponse> = "3" (message, optional),
        dynamic_metadata: Option<Metadata> = "4" (message, optional),
    }

    #[derive(Copy)]
    RpcStatus {
        code: i32 = "1" (int32),
    }

    DeniedResponse {
        status: Option<HttpStatusCode> = "1" (message, optional),
        headers: Vec<HeaderOption> = "2" (message, repeated),
        body: Bytes = "3" (bytes = "bytes"),
    }

    #[derive(Copy)]
    HttpStatusCode {
        code: i32 = "1" (int32),
    }

    OkResponse {
        headers: Vec<HeaderOption> = "2" (message, repeated),
        headers_to_remove: Vec<String> = "5" (string, repeated),
        response_headers_to_add: Vec<HeaderOption> = "6" (message, repeated),
    }

    HeaderOption {
        header: Option<HeaderEntry> = "1" (message, optional),
        append_action: i32 = "3" (int32),
    }

    /// A `google.protobuf.Struct` with values of two types: numbers and strings.
    Metadata {
        fields: Vec<MetadataEntry> = "1" (message, repeated),
    }

    MetadataEntry {
        key: String = "1" (string),
        value: Option<MetadataValue> = "2" (message, optional),
    }

    MetadataValue {
        number: Option<f64> = "2" (double, optional),
        text: Option<String> = "3" (string, optional),
    }
}

/// Adds a header even if a header with this name exists: `APPEND_IF_EXISTS_OR_ADD` of Envoy's
/// `HeaderAppendAction`.
const APPEND_OR_ADD: i32 = 0;

/// Adds a header unless it already exists: `ADD_IF_ABSENT`.
const ADD_IF_ABSENT: i32 = 1;

/// Sets a header, and replaces an existing header with this name: `OVERWRITE_IF_EXISTS_OR_ADD`.
const OVERWRITE_OR_ADD: i32 = 2;

/// Returns the response that allows the request. If the request is not tagged, the response tells
/// Envoy to remove any `Robots-Verdict` that the client has sent.
///
/// Envoy adds `fields` to the response to the client, whatever the status of that response is.
pub(crate) fn allowed(
    tag: Option<HeaderValue>,
    fields: &[(HeaderName, HeaderValue)],
    metadata: Option<Metadata>,
) -> CheckResponse {
    // Envoy removes headers after it has set headers, so a header that is set must not also be in
    // the list of headers to remove.
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
        ok_response: Some(OkResponse {
            headers,
            headers_to_remove: removed,
            response_headers_to_add: fields.iter().map(response_header).collect(),
        }),
        dynamic_metadata: metadata,
    }
}

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

/// Returns values about a crawler's request that the proxy can write to its own log. The names of
/// the values are the same as in robotsd's access log.
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
        // Line numbers are below 2^53, so they are exact in an `f64`.
        fields.push(entry("line", MetadataValue { number: Some(line as f64), text: None }));
    }
    Metadata { fields }
}

fn entry(key: &str, value: MetadataValue) -> MetadataEntry {
    MetadataEntry { key: key.to_owned(), value: Some(value) }
}

/// Converts header fields to the type of Envoy's messages. Repeated fields are joined into one
/// field, because Envoy would otherwise replace the earlier field with the later one.
/// `Content-Length` is omitted, because Envoy computes it from the body.
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

/// Converts a header field to Envoy's message type, for the response to the client. A list field is
/// added even if the upstream sends the same field. A field that is not a list is added only if the
/// upstream does not send it.
fn response_header((name, value): &(HeaderName, HeaderValue)) -> HeaderOption {
    let is_list = matches!(name.as_str(), "link" | "vary" | "x-robots-tag");
    let append_action = if is_list { APPEND_OR_ADD } else { ADD_IF_ABSENT };
    HeaderOption { append_action, ..header(name, value.as_bytes()) }
}

#[derive(Debug)]
pub(crate) struct CheckQuestion {
    http: HttpAttributes,
    pub(crate) address: Option<IpAddr>,
    /// Name of the site, from the context extension with the key `site`.
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

    pub(crate) fn site(&self) -> Option<Cow<'_, str>> {
        self.site.as_deref().map(String::from_utf8_lossy)
    }

    /// Returns method, target and host of the original request. A missing method or target is an
    /// error.
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

    /// Returns the header fields of the client's request. Uses `header_map` if present, because it
    /// contains the raw bytes. Returns `None` if the request has more fields than a `HeaderMap` can
    /// contain.
    pub(crate) fn fields(&self) -> Option<HeaderMap> {
        let raw = self.http.header_map.as_ref().map(|map| &map.headers[..]).filter(|map| !map.is_empty());
        let entries = raw.unwrap_or(&self.http.headers);
        let mut fields = HeaderMap::with_capacity(entries.len().min(64));
        for entry in entries {
            // Keys such as `:path` are skipped, because they are not field names.
            let Ok(name) = HeaderName::from_bytes(&entry.key) else { continue };
            let bytes = if entry.raw_value.is_empty() { &entry.value } else { &entry.raw_value };
            fields.try_append(name, value_of(bytes)).ok()?;
        }
        Some(fields)
    }
}

const PATH: &str = "attributes.request.http.path";
const METHOD: &str = "attributes.request.http.method";

const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    UnknownMethod,
    /// The message is compressed. Proxies compress messages only if they are configured to do so.
    Compressed,
    TooLarge,
    /// The body is not exactly one message of the expected type.
    Malformed,
    /// The message did not arrive before the timeout.
    Late,
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
            Self::UnknownMethod => "unknown method: call /envoy.service.auth.v3.Authorization/Check",
            Self::Compressed => "the decision request is compressed: send it uncompressed",
            Self::TooLarge => "the decision request is larger than 1 MiB: leave out the body of the client's request",
            Self::Malformed => "the decision request is not a single CheckRequest message",
            Self::Late => "the decision request did not arrive in time",
            Self::Broken => "the decision request was aborted",
        }
    }

    pub(crate) const fn is_fault(self) -> bool {
        matches!(self, Self::Compressed | Self::TooLarge | Self::Malformed)
    }

    pub(crate) fn fields(self) -> HeaderMap {
        let mut fields = self.code().fields(self.message());
        if self == Self::Compressed {
            fields.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        fields
    }
}
