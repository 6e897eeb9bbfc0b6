//! The messages of `envoy.service.auth.v3`, as far as they are read and written here.
//!
//! Field numbers are those of Envoy's files; fields that are not named are skipped. Text is octets: what a client sent need not be
//! UTF-8. An entry of a map is a message of its own on the wire, so maps are lists here.

use bytes::Bytes;

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
