//! The metric families, each with its name, type, unit and help.
//!
//! They are listed in the order of the text, the most important first, because series beyond the
//! limit are dropped from the end.

/// A metric family.
#[derive(Debug)]
pub(crate) struct Family {
    /// The name without `_total` and `_info`.
    pub(super) name: &'static str,
    pub(super) kind: FamilyKind,
    /// The unit, which is the end of the name; empty if the family has none.
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
}

/// The OpenMetrics types in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
    Info,
    /// One series per state, with the value 1 for the current state.
    StateSet,
}

/// Declares the families and their order.
macro_rules! families {
    ($($constant:ident = $kind:ident $name:literal $(($unit:literal))?, $help:literal;)*) => {
        $(pub(crate) const $constant: Family = Family {
            name: $name,
            kind: FamilyKind::$kind,
            unit: concat!("" $(, $unit)?),
            help: $help,
        };)*

        /// Every family, in the order of the text.
        pub(super) const ALL: &[&Family] = &[$(&$constant),*];
    };
}

families! {
    PROCESS_CPU = Counter "process_cpu_seconds" ("seconds"),
        "User and system processor time used by the process.";
    PROCESS_RESIDENT = Gauge "process_resident_memory_bytes" ("bytes"), "Resident memory of the process.";
    PROCESS_VIRTUAL = Gauge "process_virtual_memory_bytes" ("bytes"), "Address space of the process.";
    PROCESS_VIRTUAL_MAX = Gauge "process_virtual_memory_max_bytes" ("bytes"),
        "The limit of the address space of the process; -1 if unlimited.";
    PROCESS_OPEN_FDS = Gauge "process_open_fds", "Open file descriptors of the process.";
    PROCESS_MAX_FDS = Gauge "process_max_fds", "The limit of open file descriptors; -1 if unlimited.";
    PROCESS_THREADS = Gauge "process_threads", "Threads of the process.";
    PROCESS_START = Gauge "process_start_time_seconds" ("seconds"), "When the process started, in Unix time.";

    BUILD = Info "robotsd_build", "The version of robotsd.";
    CONFIG_SUCCESSFUL = Gauge "robotsd_config_last_reload_successful",
        "1 if the config file is in force; 0 if it was rejected and the previous config remains.";
    CONFIG_REFUSED = Gauge "robotsd_config_refused_files",
        "Included files that are not in force: their last good copies are served, or none of their sites.";
    CONFIG_TIMESTAMP = Gauge "robotsd_config_last_reload_success_timestamp_seconds" ("seconds"),
        "When the current config was accepted, in Unix time.";
    STATE_WRITABLE = Gauge "robotsd_state_writable",
        "1 if the state directory is writable, or none is configured; 0 if a restart would lose recent changes.";
    WORKER_STALLED = Gauge "robotsd_worker_stalled",
        "1 if a worker or the control thread has processed no work for six seconds, so that its connections are stuck.";
    PANICS = Counter "robotsd_panics", "Panics of threads; each is a bug of robotsd and is logged.";
    SERIES = Gauge "robotsd_metrics_series", "Series in this scrape, without this family and the next.";
    SERIES_DROPPED = Gauge "robotsd_metrics_series_dropped",
        "Series dropped from this scrape because of the limit of series.";

    SITE_INFO = Info "robotsd_site",
        "The live robots.txt of a site: hash of the version, mode of enforcement, and kind of source.";
    SITE_STATE = StateSet "robotsd_site_state",
        "The state of a site: live, last-good (the newest version cannot be used), gated (a version is held until accepted) or none.";
    SITE_ENFORCED = Gauge "robotsd_site_enforced",
        "1 if the rules of a site are applied; 0 if it has none, or if its enforcement is switched off.";
    SITE_PENDING = Gauge "robotsd_site_pending", "1 if a version of a site is held until accepted.";
    SITE_PUBLISHED = Gauge "robotsd_site_published_timestamp_seconds" ("seconds"),
        "When the live version of a site was published, in Unix time.";
    SITE_FINDINGS = Gauge "robotsd_site_findings", "Findings of the check in the live version, by severity.";
    RELOADS = Counter "robotsd_reloads", "Reads of the robots.txt of a site, by cause and outcome.";
    GATE_UNREAD = Gauge "robotsd_site_gate_unread",
        "Files and sitemaps that the gate of a site cannot use, or that lost more than half of their pages.";
    APPEND_PARTS = StateSet "robotsd_append_part_state",
        "The state of a part that is appended to the robots.txt of a site: appended, last-good (it cannot be read now) or missing (it \
         has no usable copy, so it is not appended).";
    PUBLISH_REQUESTS = Counter "robotsd_publish_requests",
        "Versions of a site announced by its hooks, by target host and outcome: delivered or given-up.";
    PUBLISH_PENDING = Gauge "robotsd_publish_pending",
        "1 if a hook of a site has not announced the live version, because it is still trying or has given up; by target host.";
    NOTIFICATIONS = Counter "robotsd_notifications",
        "Notifications of [[notify]], by target host and outcome: delivered or given-up.";
    CONNECTIONS = Gauge "robotsd_connections", "Open connections of clients, by listener.";
    CONNECTIONS_LIMIT = Gauge "robotsd_connections_limit", "The limit of connections of clients, on all listeners together.";
    CONNECTION_ERRORS = Counter "robotsd_connection_errors",
        "Connection errors of clients, by reason as in the log event trouble.";
    QUESTIONS_UNDECIDED = Counter "robotsd_questions_undecided",
        "Faulty questions from other proxies, by reason as in the log event undecided.";
    CERTIFICATE_EXPIRY = Gauge "robotsd_tls_certificate_expiry_timestamp_seconds" ("seconds"),
        "When the certificate chain in a file expires, in Unix time.";
    CERTIFICATE_REJECTED = Gauge "robotsd_tls_certificate_rejected",
        "1 if the files of a certificate cannot be used: the previous certificate remains in force, but a restart would fail.";
    LOG_DROPPED = Counter "robotsd_log_lines_dropped", "Log lines dropped because the reader or the disk is too slow.";
    AGENT_CACHE_LOOKUPS = Counter "robotsd_agent_cache_lookups",
        "User-Agent fields looked up in the cache of recognised fields: hit, or miss if the field had to be recognised.";
    REGISTRY_REJECTED = Gauge "robotsd_registry_rejected",
        "1 if the configured registry cannot be used or is held until accepted, so that the previous one remains in force.";
    IDENTITY_LISTS = Gauge "robotsd_identity_lists",
        "Published lists of crawlers' addresses, by state: confirmed by their servers within a day, or unconfirmed, so that they cannot refute a claim.";
    RATE_STORE_UP = Gauge "robotsd_rate_store_up",
        "1 if the rate store is used; 0 if it does not answer, so that each process counts crawlers by itself.";
    RATE_STORE_CALLS = Counter "robotsd_rate_store_calls",
        "Questions to the rate store, by result: answered, late (not within wait) or failed.";
    RATE_STORE_REQUESTS = Counter "robotsd_rate_store_requests",
        "Requests of crawlers that have a delay, by decision: allowed or denied by the rate store, known-denied by an earlier \
         denial of the store, or alone, by this process because the store did not answer.";
    FLEET_STATE = StateSet "robotsd_fleet_state",
        "The state of the fleet's document in this process: current, went-back (the entries in the store are older), foreign (it belongs to \
         another fleet), rejected (its format is of a later version), damaged (fields cannot be read), doubled (another process has the \
         name of this replica) or unknown (no document was read, so nothing is enforced).";
    FLEET_READ = Gauge "robotsd_fleet_read_timestamp_seconds" ("seconds"),
        "When the document of the fleet was last read, in Unix time.";
    FLEET_WRITABLE = Gauge "robotsd_fleet_store_up", "1 if the store of the fleet can be read and written.";
    FLEET_REPLICAS = Gauge "robotsd_fleet_replicas", "Replicas of the fleet by state, as seen by this process: synced, or the problem.";
    UPSTREAM_HEALTHY = Gauge "robotsd_upstream_healthy", "1 if a server of a site is in service.";
    UPSTREAM_CONNECTIONS = Gauge "robotsd_upstream_connections", "Connections to a server of a site: active (being opened, or with a request), idle, or tunnel.";

    DECISIONS = Counter "robotsd_decisions",
        "Requests of a site by outcome, without those for /robots.txt. untouched: no group of the file applies to the agent; failed: \
         passed because the decision failed in a bug of robotsd (also counted as untouched).";
    UPSTREAM_REQUESTS = Counter "robotsd_upstream_requests",
        "Requests sent to the servers of a site: answered, or why there was no answer.";
    QUESTIONS_WITHOUT_USER_AGENT = Counter "robotsd_questions_without_user_agent",
        "Questions from other proxies about requests of a site without a User-Agent, so that no crawler is recognised.";
    ROBOTS_TXT_REQUESTS = Counter "robotsd_robots_txt_requests",
        "Requests for /robots.txt, by crawler and status code. crawler none: no crawler was recognised.";
    CRAWLER_REQUESTS = Counter "robotsd_crawler_requests",
        "Requests of crawlers by outcome, without those for /robots.txt. crawler is a name in the registry, or else the class of the \
         agent; beyond 256 combinations per site it is other.";
    HTTP_REQUESTS = Counter "robotsd_http_requests",
        "Responses by listener, site, status code and method; site is empty if the request was refused before a site was chosen.";
    DECISION_DURATION = Histogram "robotsd_decision_duration_seconds" ("seconds"),
        "Time to decide about a request. One request in 64 is timed, so its count is not a request rate.";
    HTTP_DURATION = Histogram "robotsd_http_request_duration_seconds" ("seconds"),
        "Time from the head of a request to the head of its response. One request in 64 is timed, so its count is not a request rate.";
}

impl Family {
    /// Returns the index in the order of the text.
    pub(super) fn place(&self) -> usize {
        ALL.iter().position(|family| family.name == self.name && family.kind == self.kind).unwrap_or(0)
    }
}
