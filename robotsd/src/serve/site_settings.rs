//! The settings of a site that can change while its robots.txt is live.

use std::sync::Arc;

use tower_robots::agent::Registry;
use tower_robots::check;
use tower_robots::live::Gate;
use tower_robots::policy::Policy;

/// How what a source holds is taken, as far as that can be changed while it is live.
#[derive(Clone, Debug)]
pub(super) struct SiteSettings {
    pub(super) policy: Policy,
    pub(super) registry: Arc<Registry>,
    pub(super) check: check::Options,
    pub(super) gate: Gate,
}
