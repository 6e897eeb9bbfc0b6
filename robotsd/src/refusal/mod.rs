//! The page that a refused client gets: the default, or a site's own template.
//!
//! The template is read with the config and is either right or an error of it; rendering cannot fail.

mod template;

pub(crate) use self::template::{Contact, MAX_TEMPLATE, Template, TemplateFormat};

use std::path::PathBuf;

use bytes::Bytes;
use http::header::{CONTENT_LANGUAGE, CONTENT_TYPE, HeaderValue, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use tower_robots::layer::Event;

/// The statuses that a refusal may have. A redirect or a success is no refusal, 401 needs a challenge, and crawlers read
/// a status from 500 on as a site in trouble.
pub(crate) const REFUSAL_STATUSES: [StatusCode; 6] = [
    StatusCode::FORBIDDEN,
    StatusCode::PAYMENT_REQUIRED,
    StatusCode::NOT_FOUND,
    StatusCode::GONE,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
];

/// A site's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusalPage {
    pub(crate) status: StatusCode,
    /// The file of the template, which is followed like the config.
    pub(crate) file: Option<PathBuf>,
    pub(crate) template: Option<Template>,
    /// `Content-Language` of the template.
    pub(crate) language: Option<HeaderValue>,
    pub(crate) contact: Option<String>,
}

impl RefusalPage {
    /// The response to a refused request. Clients that ask for JSON by name get problem details, and calls of gRPC a status of gRPC, as
    /// they do by default.
    pub(crate) fn respond(&self, event: &Event<'_>) -> Response<Bytes> {
        // A template quotes the rule that disallows the request; the request of an impostor may be allowed.
        let is_quoted = event.record.is_disallowed() && !event.wants_json() && !event.request.is_grpc_call();
        let Some(template) = self.template.as_ref().filter(|_| is_quoted) else {
            return event.refusal_with_status(self.status);
        };
        let body = template.render(event, self.status, self.contact.as_deref().unwrap_or_default());
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(template.format.content_type()));
        if let Some(language) = &self.language {
            headers.insert(CONTENT_LANGUAGE, language.clone());
        }
        headers.insert(VARY, HeaderValue::from_static("User-Agent, Accept"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}
