//! Selects the requests in a log that are counted: the requests for a host of the site. If the log
//! is from a proxy that asks robotsd for decisions, the proxy's decision requests are not counted.

use std::io;

use tower_robots::rules::Authority;

use super::format::{JsonKeys, LoggedRequest, ReplayLogFormat};
use crate::commands::arguments::SiteHosts;
use crate::commands::arguments::site::SelectedSite;
use crate::decision::{QuestionKind, question_kind};
use crate::exit::complain;
use crate::html::counted;
use crate::target_url::is_http;

/// Settings for reading log lines and for choosing the requests that are counted. Without a config,
/// all requests are counted.
#[derive(Debug)]
pub(in crate::commands) struct LogSelection {
    pub(super) format: ReplayLogFormat,
    pub(super) json_keys: JsonKeys,
    hosts: Option<SiteHosts>,
    is_host_named: bool,
}

/// Numbers of requests that are not counted, and of requests without a host in the log. The report
/// contains a note about each of these numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, derive_more::AddAssign)]
pub(in crate::commands) struct RequestedHosts {
    /// Number of requests for other sites. No other count includes these requests.
    pub(in crate::commands) other: u64,
    /// Number of requests without a host in the log. They are counted as requests for the site.
    pub(in crate::commands) without_host: u64,
    /// Number of log lines that contain a proxy's decision request instead of the client's request.
    /// No other count includes these lines.
    pub(in crate::commands) decision_requests: u64,
    /// Number of requests that a proxy sent to get a refusal page. The refused request itself is in
    /// an earlier line of robotsd's log.
    pub(in crate::commands) refusal_pages: u64,
}

impl LogSelection {
    /// Selects the requests for a site. Requests without a host in the log are treated as requests
    /// for `host`. If `host` is `None`, requests without a host are counted as requests for the
    /// site, and a note states their number.
    pub(in crate::commands) fn of(
        site: &SelectedSite,
        format: ReplayLogFormat,
        json_keys: JsonKeys,
        host: Option<&str>,
    ) -> io::Result<Self> {
        if json_keys.has_operator_keys() && !matches!(format, ReplayLogFormat::Auto | ReplayLogFormat::Json) {
            return Err(io::Error::other(
                "--json-keys is for JSON lines: write --log-format json, or leave --log-format out",
            ));
        }
        let hosts = site.own_hosts()?;
        match (&hosts, host) {
            (None, Some(_)) => Err(io::Error::other("--host needs a site: give its config with --config FILE")),
            (Some(hosts), Some(host)) if !hosts.contains_host(host.as_bytes()) => {
                let (site, list) = (&hosts.site, hosts.list());
                let no_host = format!("--host {host:?} is not a host of the site {site:?}, which serves {list}");
                Err(io::Error::other(format!("{no_host}, so no request would be counted")))
            }
            _ => {
                let hosts = hosts.filter(|hosts| !hosts.has_every_host());
                Ok(Self { format, json_keys, hosts, is_host_named: host.is_some() })
            }
        }
    }

    /// Reports whether a request is for the site. If the request is left out or has no host, counts
    /// it in `counts`.
    pub(super) fn has(&self, request: &LoggedRequest<'_>, counts: &mut RequestedHosts) -> bool {
        if request.target.starts_with(b"/-/")
            && let Some(kind) = question_kind(&request.target)
        {
            match kind {
                QuestionKind::Decision => counts.decision_requests += 1,
                QuestionKind::Refusal => counts.refusal_pages += 1,
            }
            return false;
        }
        let Some(hosts) = &self.hosts else { return true };
        let of_site = request.site.as_deref().and_then(|site| hosts.matches_log_name(site));
        let Some(is_own) = of_site.or_else(|| named_host(request).map(|host| hosts.contains_host(host))) else {
            counts.without_host += u64::from(!self.is_host_named);
            return true;
        };
        counts.other += u64::from(!is_own);
        is_own
    }

    /// Returns notes about requests that were left out and about assumptions that were made. Each
    /// note is a sentence without a full stop. `requests` is the number of requests that are
    /// counted.
    pub(in crate::commands) fn notes(&self, counts: RequestedHosts, requests: u64) -> Vec<String> {
        let pages = (counts.refusal_pages > 0).then(|| {
            let requests = counted(counts.refusal_pages, "request");
            let are = if counts.refusal_pages == 1 { "is" } else { "are" };
            format!(
                "{requests} of a proxy for refusal pages {are} left out, because the refused requests have lines of \
                 their own"
            )
        });
        let decision_requests = (counts.decision_requests > 0).then(|| {
            let decision_requests = counted(counts.decision_requests, "line");
            format!(
                "{decision_requests} with a decision request of a proxy cannot be counted, because the log does not contain \
                 the client's request: use the log of the proxy"
            )
        });
        let decision_requests = decision_requests.into_iter().chain(pages);
        let Some(hosts) = &self.hosts else { return decision_requests.collect() };
        let (site, RequestedHosts { other, without_host, .. }) = (&hosts.site, counts);
        let (are, count) = if other == 1 { ("is", "does") } else { ("are", "do") };
        let left_out = (other > 0).then(|| {
            let (requests, hosts) = (counted(other, "request"), hosts.list());
            format!("{requests} {are} for other hosts than those of the site {site:?} ({hosts}), and {count} not count")
        });
        let assumed = (without_host > 0).then(|| {
            let lines = match without_host == requests {
                true => "no request in the log has a host: all".to_owned(),
                false => format!("{requests} without a host in the log", requests = counted(without_host, "request")),
            };
            format!("{lines} count as requests for the site {site:?}; to confirm this assumption, use --host HOST")
        });
        decision_requests.chain(left_out).chain(assumed).collect()
    }

    /// Prints the keys of `--json-keys` that no line contains. Must be called after all lines are
    /// read.
    pub(in crate::commands) fn complain_of_missing_keys(&self) {
        let unused_keys = self.json_keys.unused_keys();
        unused_keys.for_each(|key| complain(&format_args!("--json-keys {key}: no line of the logs contains this key")));
    }

    /// Explains why no request is counted: all requests are for other hosts, or are requests of a
    /// proxy to robotsd. `None` if there is another reason.
    pub(in crate::commands) fn explain_empty_selection(&self, counts: RequestedHosts) -> Option<String> {
        if counts.decision_requests + counts.refusal_pages > 0 && counts.other == 0 {
            return self.notes(counts, 0).into_iter().next();
        }
        let hosts = self.hosts.as_ref().filter(|_| counts.other > 0)?;
        let (site, list) = (&hosts.site, hosts.list());
        Some(format!("no request in the logs is for a host of the site {site:?}, which serves {list}"))
    }
}

/// Returns the host of a request. The host in the target takes precedence over the field `Host`
/// (RFC 9112, section 3.2.2).
fn named_host<'r>(request: &'r LoggedRequest<'_>) -> Option<&'r [u8]> {
    let of_target = || Authority::of_url(&request.target).filter(|(scheme, ..)| is_http(scheme));
    of_target().map(|(_, authority, _)| authority.host_and_port).or(request.host.as_deref())
}
