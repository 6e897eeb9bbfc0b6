//! The request that a message asks about.

use std::net::IpAddr;

use bytes::Bytes;
use http::Method;
use http::header::{HeaderMap, HeaderName};
use prost::Message as _;

use super::call::CallError;
use super::messages::{AttributeContext, CheckRequest, HttpAttributes};
use crate::decision::original_request::{OriginalRequest, is_target};
use crate::decision::preset::Preset;
use crate::decision::preset_fields::value_of;
use crate::decision::question_error::{QuestionError, QuestionFault};

/// A message that was read.
#[derive(Debug)]
pub(crate) struct CheckQuestion {
    http: HttpAttributes,
    address: Option<IpAddr>,
}

impl CheckQuestion {
    pub(crate) fn read(message: Bytes) -> Result<Self, CallError> {
        let CheckRequest { attributes } = CheckRequest::decode(message).map_err(|_| CallError::Malformed)?;
        let AttributeContext { source, request } = attributes.unwrap_or_default();
        let socket = source.and_then(|source| source.address).and_then(|address| address.socket_address);
        let address = socket.and_then(|socket| std::str::from_utf8(&socket.address).ok()?.parse().ok());
        Ok(Self { http: request.and_then(|request| request.http).unwrap_or_default(), address })
    }

    /// The client's address as the proxy saw it.
    pub(crate) const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Method, target and host, which are never guessed.
    pub(crate) fn original(&self) -> Result<OriginalRequest<'_>, QuestionError> {
        let error = |fault, place| QuestionError::new(Preset::EnvoyGrpc, fault, place);
        let HttpAttributes { method, path, host, .. } = &self.http;
        for (value, place) in [(path, PATH), (method, METHOD)] {
            if value.is_empty() {
                return Err(error(QuestionFault::Missing, place));
            }
        }
        if !is_target(path) {
            return Err(error(QuestionFault::Unreadable, PATH));
        }
        let method = Method::from_bytes(method).map_err(|_| error(QuestionFault::Unreadable, METHOD))?;
        Ok(OriginalRequest { method, target: path, host: Some(&host[..]).filter(|host| !host.is_empty()) })
    }

    /// The client's fields, in its octets where the proxy sends those.
    pub(crate) fn fields(&self) -> Result<HeaderMap, QuestionError> {
        let raw = self.http.header_map.as_ref().map(|map| &map.headers[..]).filter(|map| !map.is_empty());
        let entries = raw.unwrap_or(&self.http.headers);
        let mut fields = HeaderMap::with_capacity(entries.len().min(64));
        for entry in entries {
            // `:path` and its like are no names.
            let Ok(name) = HeaderName::from_bytes(&entry.key) else { continue };
            let octets = if entry.raw_value.is_empty() { &entry.value } else { &entry.raw_value };
            if fields.try_append(name, value_of(octets)).is_err() {
                let fault = QuestionFault::Unreadable;
                return Err(QuestionError::new(Preset::EnvoyGrpc, fault, "attributes.request.http.headers"));
            }
        }
        Ok(fields)
    }
}

const PATH: &str = "attributes.request.http.path";
const METHOD: &str = "attributes.request.http.method";
