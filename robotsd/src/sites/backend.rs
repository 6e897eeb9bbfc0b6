//! Defines the backend of a site: upstream servers, or a folder of static files.

use std::num::NonZeroUsize;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::Either;
use tower::ServiceExt;
use tower_http::services::fs::ServeFileSystemResponseBody;

use super::log_events::{self, SiteName};
use super::static_files::{self, ServeFiles};
use crate::config::{Backend, StaticFiles};
use crate::http_common::{EdgeService, RequestBody};
use crate::log::Log;
use crate::upstream::{Origins, OriginsSettings, ResponseBody, SharedResources, Upstream, UpstreamLimits};

pub(super) type Body = Either<ResponseBody, ServeFileSystemResponseBody>;

#[derive(Clone, Debug)]
pub(crate) enum SiteBackend {
    Upstream(Upstream),
    Files(ServeFiles),
}

impl EdgeService for SiteBackend {
    type Body = Body;

    async fn answer(self, request: Box<Request<RequestBody>>) -> Response<Body> {
        match self {
            Self::Upstream(upstream) => upstream.answer(request).await.map(Either::Left),
            Self::Files(files) => {
                // Without the box, the future of every request would be as large as this one.
                let Ok(response) = Box::pin(files.oneshot(*request)).await;
                response.map(Either::Right)
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum BackendSource {
    Upstreams { origins: Origins, opened_with: Arc<(OriginsSettings, UpstreamLimits)> },
    Files(StaticFiles),
}

impl BackendSource {
    /// Opens the backend of a site from its settings. If `before` has the same upstreams, the new
    /// backend shares their state.
    pub(super) fn open(
        site: &SiteName,
        settings: &Backend,
        limits: &UpstreamLimits,
        resources: &SharedResources,
        before: Option<&Self>,
        log: &Log,
    ) -> Result<Self, String> {
        let settings = match settings {
            Backend::Files(files) => return Ok(Self::Files(files.clone())),
            Backend::Upstreams(settings) => settings,
        };
        let is_same = |before: &&Self| match before {
            Self::Upstreams { opened_with, .. } => opened_with.0 == *settings && opened_with.1 == *limits,
            Self::Files(_) => false,
        };
        if let Some(same) = before.filter(is_same) {
            return Ok(same.clone());
        }
        let on_event = log_events::upstream(site.clone(), log.clone());
        let origins = Origins::new(settings, limits.clone(), resources, on_event)
            .map_err(|message| format!("site {site:?}: {message}"))?;
        origins.look_up();
        Ok(Self::Upstreams { origins, opened_with: Arc::new((settings.clone(), limits.clone())) })
    }

    /// Returns the backend for one worker. All workers share the state of the servers. `before` is
    /// this worker's backend in the previous config. If its servers are the same, it is reused,
    /// together with its open connections.
    pub(super) fn backend(&self, workers: NonZeroUsize, before: Option<&SiteBackend>) -> SiteBackend {
        match (self, before) {
            (Self::Upstreams { origins, .. }, Some(SiteBackend::Upstream(upstream)))
                if upstream.uses_origins(origins) =>
            {
                SiteBackend::Upstream(upstream.clone())
            }
            (Self::Upstreams { origins, .. }, _) => SiteBackend::Upstream(Upstream::new(origins, workers)),
            (Self::Files(files), _) => SiteBackend::Files(static_files::serve(files)),
        }
    }

    pub(super) const fn origins(&self) -> Option<&Origins> {
        match self {
            Self::Upstreams { origins, .. } => Some(origins),
            Self::Files(_) => None,
        }
    }

    /// Reports whether both backends have the same upstream servers or the same files.
    pub(super) fn has_same_servers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Upstreams { origins, .. }, Self::Upstreams { origins: others, .. }) => origins.is_clone_of(others),
            (Self::Files(files), Self::Files(others)) => files == others,
            _ => false,
        }
    }
}
