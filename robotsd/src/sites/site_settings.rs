//! The settings of a site that can change while its robots.txt is live.

use std::sync::Arc;

use tower_robots::agent::Registry;
use tower_robots::check;
use tower_robots::live::Gate;
use tower_robots::policy::Policy;

/// The settings that apply to a robots.txt, whatever its source.
#[derive(Clone, Debug)]
pub(super) struct SiteSettings {
    pub(super) policy: Policy,
    pub(super) registry: Arc<Registry>,
    pub(super) check: check::Options,
    pub(super) gate: Gate,
}
