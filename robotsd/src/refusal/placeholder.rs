//! The placeholders of a template, and their values.

use std::borrow::Cow;

use http::StatusCode;
use tower_robots::layer::Event;

/// Characters of a value that a page shows: what a client sends can be long.
const SHOWN: usize = 512;

/// A place of a template that is filled in for each refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    Agent,
    Contact,
    Group,
    Host,
    Line,
    Path,
    RequestId,
    Rule,
    Status,
    Title,
}

impl Placeholder {
    pub(super) const ALL: [Self; 10] = [
        Self::Agent,
        Self::Contact,
        Self::Group,
        Self::Host,
        Self::Line,
        Self::Path,
        Self::RequestId,
        Self::Rule,
        Self::Status,
        Self::Title,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Contact => "contact",
            Self::Group => "group",
            Self::Host => "host",
            Self::Line => "line",
            Self::Path => "path",
            Self::RequestId => "request_id",
            Self::Rule => "rule",
            Self::Status => "status",
            Self::Title => "title",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|placeholder| placeholder.as_str() == name)
    }

    /// Whether its value is never taken from a request or from a robots.txt, which may be fetched from elsewhere.
    pub(super) const fn is_trusted(self) -> bool {
        matches!(self, Self::Contact | Self::Line | Self::Status | Self::Title)
    }

    /// The value for a refused request, of bounded length and not escaped.
    pub(super) fn value<'e>(self, event: &Event<'e>, status: StatusCode, contact: &'e str) -> Cow<'e, str> {
        let record = event.record();
        let value = match self {
            Self::Agent => record.name().unwrap_or("this client").into(),
            Self::Contact => return contact.into(),
            Self::Group => record.group().unwrap_or_default().into(),
            Self::Host => event.host().unwrap_or_default().into(),
            Self::Line => record.line().unwrap_or_default().to_string().into(),
            Self::Path => String::from_utf8_lossy(event.target()),
            Self::RequestId => event.request_id().unwrap_or_default().into(),
            Self::Rule => record.rule().unwrap_or_default().into(),
            Self::Status => status.as_u16().to_string().into(),
            Self::Title => status.canonical_reason().unwrap_or_default().into(),
        };
        match value.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &value[..end]).into(),
            None => value,
        }
    }
}
