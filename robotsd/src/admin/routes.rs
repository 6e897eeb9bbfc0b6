//! What can be asked and told: one entry a path.
//!
//! An entry takes what was asked, with the query decoded, and gives a [`Reply`]; whether it reads or changes something
//! decides which methods it has and who may send them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use tokio::task::spawn_blocking;
use tower_robots::live::{Enforcement, VersionHashError, VersionHashPrefix};

use super::connections::Work;
use super::reply::Reply;
use super::report::{ChangeReport, ReloadReport};
use super::state::{Desk, Phase, Serving};
use crate::serve::{Refusal, Sites, UnknownSite};

/// Every path there is.
pub(super) const ROUTES: &[Route] = &[
    Route::reads("/livez", |_, _| Box::pin(async { Reply::text(StatusCode::OK, "alive\n") })),
    Route::reads("/readyz", |desk, asked| Box::pin(async move { ready(&desk, &asked) })),
    Route::reads("/status", |desk, _| Box::pin(async move { Reply::json(&desk.report()) })),
    Route::reads("/history", |desk, asked| Box::pin(async move { history(&desk, &asked) })),
    Route::changes("/accept", |desk, asked| Box::pin(async move { accept(&desk, &asked).await })),
    Route::changes("/rollback", |desk, asked| Box::pin(async move { roll_back(&desk, &asked).await })),
    Route::changes("/enforce", |desk, asked| Box::pin(async move { enforce(&desk, &asked).await })).urgent(),
    Route::changes("/reload", |desk, asked| Box::pin(async move { reload(&desk, &asked).await })),
];

/// A path, and what happens when it is asked for.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    pub(super) work: Work,
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
        Self { path, kind: Kind::Reads, work: Work::Usual, answer }
    }

    /// POST, and over TCP with the field that says so.
    const fn changes(path: &'static str, answer: Handler) -> Self {
        Self { path, kind: Kind::Changes, work: Work::Usual, answer }
    }

    /// It is answered however many others are worked on.
    const fn urgent(self) -> Self {
        Self { work: Work::Urgent, ..self }
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

    /// The value of a name that has to be there.
    fn needed(&self, name: &str, what: &str) -> Result<String, Reply> {
        match self.value(name) {
            Some(value) if !value.is_empty() => Ok(value.to_owned()),
            _ => Err(Reply::error(StatusCode::BAD_REQUEST, &format!("{name}={what} is needed"))),
        }
    }

    /// Refuses what was asked for beyond these names.
    fn only(&self, names: &[&str]) -> Result<(), Reply> {
        self.beyond(names).map_or(Ok(()), Err)
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
        if serving.sites.enforcement() == Enforcement::Off {
            lines.push("enforcement is OFF for every site".to_owned());
        } else {
            let off = serving.sites.switched_off();
            lines.extend(off.into_iter().map(|name| format!("enforcement is OFF for site {name:?}")));
        }
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

/// Reads the config and robots.txt again, of all sites, or robots.txt of `?site=` one, and waits for what comes of it.
async fn reload(desk: &Desk, asked: &Asked) -> Reply {
    if let Some(reply) = asked.beyond(&["site"]) {
        return reply;
    }
    let starting = || Reply::error(StatusCode::SERVICE_UNAVAILABLE, "starting: there are no sites yet");
    if desk.serving().is_none() {
        return starting();
    }
    let config = match asked.value("site") {
        None => desk.orders().reconfigure().await,
        Some(_) => None,
    };
    // Those of the config as it is now.
    let Some(serving) = desk.serving() else { return starting() };
    match serving.sites.reload(asked.value("site")).await {
        Ok(report) => Reply::json(&ReloadReport { config, ..report }),
        Err(UnknownSite(name)) => Reply::error(StatusCode::NOT_FOUND, &serving.sites.unknown(&name)),
    }
}

/// What was tried for `?site=`.
fn history(desk: &Desk, asked: &Asked) -> Reply {
    let report = asked.only(&["site"]).and_then(|()| {
        let site = asked.needed("site", "NAME")?;
        serving(desk)?.sites.history(&site).map_err(refused)
    });
    report.map_or_else(|reply| reply, |report| Reply::json(&report))
}

/// Brings the version `?hash=` of `?site=` live, which waits.
async fn accept(desk: &Desk, asked: &Asked) -> Reply {
    let wanted = asked.only(&["site", "hash"]).and_then(|()| {
        let (site, hash) = (asked.needed("site", "NAME")?, asked.needed("hash", "HASH")?);
        let hash: VersionHashPrefix = hash
            .parse()
            .map_err(|error: VersionHashError| Reply::error(StatusCode::BAD_REQUEST, &error.to_string()))?;
        Ok((site, hash))
    });
    change(desk, wanted, |sites, (site, hash)| sites.accept(&site, &hash)).await
}

/// Brings the version of `?site=` live that was accepted before.
async fn roll_back(desk: &Desk, asked: &Asked) -> Reply {
    let wanted = asked.only(&["site"]).and_then(|()| asked.needed("site", "NAME"));
    change(desk, wanted, |sites, site| sites.roll_back(&site)).await
}

/// Turns enforcement `?to=off` or `?to=on`, of every site or of `?site=`.
async fn enforce(desk: &Desk, asked: &Asked) -> Reply {
    let wanted = asked.only(&["to", "site"]).and_then(|()| {
        let to = match &*asked.needed("to", "off or to=on")? {
            "off" => Enforcement::Off,
            "on" => Enforcement::On,
            other => {
                let message = format!("{other:?} is neither \"off\" nor \"on\"");
                return Err(Reply::error(StatusCode::BAD_REQUEST, &message));
            }
        };
        let site = asked.value("site").map(|_| asked.needed("site", "NAME")).transpose()?;
        Ok((site, to))
    });
    change(desk, wanted, |sites, (site, to)| sites.enforce(site.as_deref(), to)).await
}

/// Does what is wanted on a thread that may block. It is done also when whoever asked has gone.
async fn change<T: Send + 'static>(
    desk: &Desk,
    wanted: Result<T, Reply>,
    make: impl FnOnce(&Sites, T) -> Result<ChangeReport, Refusal> + Send + 'static,
) -> Reply {
    let (wanted, serving) = match wanted.and_then(|wanted| Ok((wanted, serving(desk)?))) {
        Ok(both) => both,
        Err(reply) => return reply,
    };
    match spawn_blocking(move || make(&serving.sites, wanted)).await {
        Ok(Ok(report)) => Reply::json(&report),
        Ok(Err(refusal)) => refused(refusal),
        Err(error) => {
            Reply::error(StatusCode::INTERNAL_SERVER_ERROR, &format!("a fault of robotsd's: {error}: see the status"))
        }
    }
}

fn serving(desk: &Desk) -> Result<Arc<Serving>, Reply> {
    let starting = || Reply::error(StatusCode::SERVICE_UNAVAILABLE, "starting: there are no sites yet");
    desk.serving().ok_or_else(starting)
}

fn refused(refusal: Refusal) -> Reply {
    match refusal {
        Refusal::Unknown(message) => Reply::error(StatusCode::NOT_FOUND, &message),
        Refusal::Conflict(message) => Reply::error(StatusCode::CONFLICT, &message),
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
