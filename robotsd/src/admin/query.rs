//! The query of a request: names and values.

use http::StatusCode;
use percent_encoding::percent_decode_str;

use super::reply::AdminReply;

/// The decoded query: names and values.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query: pairs with percent-encoded names and values.
    pub(super) fn new(query: Option<&str>) -> Self {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
        )
    }

    /// The value of a name; the first one.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Every value of a name.
    pub(super) fn values<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// The value of a name that has to be there.
    pub(super) fn needed(&self, name: &str, what: &str) -> Result<String, AdminReply> {
        match self.value(name) {
            Some(value) if !value.is_empty() => Ok(value.to_owned()),
            _ => Err(AdminReply::error(StatusCode::BAD_REQUEST, &format!("{name}={what} is needed"))),
        }
    }

    /// Refuses other names than these.
    pub(super) fn only(&self, names: &[&str]) -> Result<(), AdminReply> {
        self.beyond(names).map_or(Ok(()), Err)
    }

    /// The refusal of the first other name, if there is one.
    pub(super) fn beyond(&self, names: &[&str]) -> Option<AdminReply> {
        let (name, _) = self.0.iter().find(|(name, _)| !names.contains(&&**name))?;
        Some(AdminReply::error(
            StatusCode::BAD_REQUEST,
            &format!("{name:?} is not known here; there is {}", names.join(", ")),
        ))
    }
}
