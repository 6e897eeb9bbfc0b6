//! What can be asked and told: one entry a path.
//!
//! An entry takes what was asked, with the query decoded, and gives a [`Reply`]; whether it reads or changes something
//! decides which methods it has and who may send them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;

use super::desk::{Desk, Phase};
use super::reply::Reply;
use crate::serve::UnknownSite;

/// Every path there is.
pub(super) const ROUTES: &[Route] = &[
    Route::reads("/livez", |_, _| Box::pin(async { Reply::text(StatusCode::OK, "alive\n") })),
    Route::reads("/readyz", |desk, asked| Box::pin(async move { ready(&desk, &asked) })),
    Route::reads("/status", |desk, _| Box::pin(async move { Reply::json(&desk.report()) })),
    Route::changes("/reload", |desk, asked| Box::pin(async move { reload(&desk, &asked).await })),
];

/// A path, and what happens when it is asked for.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    pub(super) answer: Handler,
}

/// Whether asking changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Reads,
    Changes,
}

pub(super) type Handler = fn(Arc<Desk>, Asked) -> Answering;
pub(super) type Answering = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// What was asked, after the path: names and values.
#[derive(Debug, Default)]
pub(super) struct Asked(Vec<(String, String)>);

impl Route {
    /// GET and HEAD.
    const fn reads(path: &'static str, answer: Handler) -> Self {
        Self { path, kind: Kind::Reads, answer }
    }

    /// POST, and over TCP with the field that says so.
    const fn changes(path: &'static str, answer: Handler) -> Self {
        Self { path, kind: Kind::Changes, answer }
    }
}

impl Kind {
    pub(super) const fn allow(self) -> &'static str {
        match self {
            Self::Reads => "GET, HEAD",
            Self::Changes => "POST",
        }
    }

    pub(super) fn allows(self, method: &Method) -> bool {
        match self {
            Self::Reads => matches!(*method, Method::GET | Method::HEAD),
            Self::Changes => method == Method::POST,
        }
    }
}

impl Asked {
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

    /// What was asked for beyond these names.
    fn beyond(&self, names: &[&str]) -> Option<Reply> {
        let (name, _) = self.0.iter().find(|(name, _)| !names.contains(&&**name))?;
        Some(Reply::error(
            StatusCode::BAD_REQUEST,
            &format!("{name:?} is not known here; there is {}", names.join(", ")),
        ))
    }
}

/// Whether requests are to be sent here.
///
/// A site without a robots.txt is named, but takes nothing away from the others, and its own requests pass: it is not
/// ready only for who asks with `?require=sites`.
fn ready(desk: &Desk, asked: &Asked) -> Reply {
    if let Some(reply) = asked.beyond(&["require"]) {
        return reply;
    }
    let sites = match asked.value("require") {
        None => StatusCode::OK,
        Some("sites") => StatusCode::SERVICE_UNAVAILABLE,
        Some(other) => {
            let message = format!("{other:?} cannot be required; there is require=sites");
            return Reply::error(StatusCode::BAD_REQUEST, &message);
        }
    };
    let mut status = StatusCode::OK;
    let mut lines = Vec::new();
    match desk.phase() {
        Phase::Starting => lines.push("starting: not every listener listens yet".to_owned()),
        Phase::Draining => lines.push("draining: the listeners are closed".to_owned()),
        Phase::Serving => {}
    }
    if !lines.is_empty() {
        status = StatusCode::SERVICE_UNAVAILABLE;
    }
    if let Some(serving) = desk.serving() {
        for name in serving.sites.without_robots() {
            lines.push(format!("site {name:?} has no robots.txt: nothing is enforced"));
            status = status.max(sites);
        }
    }
    if status == StatusCode::OK {
        lines.insert(0, "ready".to_owned());
    }
    Reply::text(status, lines.join("\n") + "\n")
}

/// Reads robots.txt again, of all sites or of `?site=` one, and waits for what comes of it.
async fn reload(desk: &Desk, asked: &Asked) -> Reply {
    if let Some(reply) = asked.beyond(&["site"]) {
        return reply;
    }
    let Some(serving) = desk.serving() else {
        return Reply::error(StatusCode::SERVICE_UNAVAILABLE, "starting: there are no sites yet");
    };
    match serving.sites.reload(asked.value("site")).await {
        Ok(report) => Reply::json(&report),
        Err(UnknownSite(name)) => Reply::error(StatusCode::NOT_FOUND, &format!("there is no site {name:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let asked = Asked::new(Some("site=b%C3%BCcher%20%26&site=x&flag&"));
        assert_eq!(asked.value("site"), Some("bücher &"));
        assert_eq!(asked.value("flag"), Some(""));
        assert_eq!(asked.value("other"), None);
        assert!(asked.beyond(&["site", "flag"]).is_none());
        assert!(asked.beyond(&["site"]).is_some());
        assert!(Asked::new(None).beyond(&[]).is_none());
    }

    #[test]
    fn paths_are_there_once() {
        for (number, route) in ROUTES.iter().enumerate() {
            assert!(route.path.starts_with('/'));
            assert!(ROUTES[..number].iter().all(|before| before.path != route.path), "{}", route.path);
        }
    }
}
