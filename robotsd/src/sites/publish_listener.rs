//! Tells the hooks of a site what goes live.

use std::sync::Arc;

use tower_robots::live::{Cause, Reload, ReloadOutcome, Snapshot};

use crate::config;
use crate::publish_hook::{HookSettings, PublishHooks, PublishedVersion};

/// What is live where there is no robots.txt any more.
const NONE: &str = "none";

/// Listens to the reloads of a robots.txt. `name` is its own: `SITE`, or `SITE/HOST`.
pub(super) fn listener(
    hooks: &PublishHooks,
    site: &config::SiteConfig,
    name: &str,
) -> impl Fn(&Reload, &Snapshot) + Send + Sync + 'static {
    let (hooks, at_opening): (_, Vec<Arc<HookSettings>>) = (hooks.clone(), site.on_publish.clone());
    let of_directory = name.strip_prefix(&*site.name).and_then(|rest| rest.strip_prefix('/'));
    let hosts: Vec<String> = match of_directory {
        Some(host) => vec![host.to_owned()],
        None => site.hosts.iter().filter(|host| !host.contains('*')).cloned().collect(),
    };
    let (site, name) = (site.name.clone(), name.to_owned());
    move |reload, snapshot| {
        let version = snapshot.content().map_or_else(|| NONE.to_owned(), |content| content.hash().to_string());
        let live = PublishedVersion { name: name.clone(), hosts: hosts.clone(), version };
        match (reload.cause(), reload.outcome()) {
            // What is live may be what was live before a restart, whatever came of the source.
            (Cause::Start, _) if snapshot.content().is_some() => hooks.opened(&at_opening, &live),
            (Cause::Start, _) => {}
            (_, ReloadOutcome::Published { .. } | ReloadOutcome::Absent { .. }) => hooks.published(&site, &live),
            _ => {}
        }
    }
}
