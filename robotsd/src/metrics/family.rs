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
    /// The unit, with which the name ends; empty if the family has none.
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
        "Processor time that the process has used, of user and system.";
    PROCESS_RESIDENT = Gauge "process_resident_memory_bytes" ("bytes"), "Memory of the process that is in RAM.";
    PROCESS_VIRTUAL = Gauge "process_virtual_memory_bytes" ("bytes"), "Address space that the process has in use.";
    PROCESS_VIRTUAL_MAX = Gauge "process_virtual_memory_max_bytes" ("bytes"),
        "The bound on the address space of the process; -1 without one.";
    PROCESS_OPEN_FDS = Gauge "process_open_fds", "File descriptors that the process has open.";
    PROCESS_MAX_FDS = Gauge "process_max_fds", "The bound on open file descriptors; -1 without one.";
    PROCESS_THREADS = Gauge "process_threads", "Threads of the process.";
    PROCESS_START = Gauge "process_start_time_seconds" ("seconds"), "When the process started, in Unix time.";

    BUILD = Info "robotsd_build", "The version of robotsd.";
    CONFIG_SUCCESSFUL = Gauge "robotsd_config_last_reload_successful",
        "Whether the config file is in force: 0 while it is rejected and the config before stays.";
    CONFIG_REFUSED = Gauge "robotsd_config_refused_files",
        "Included files that are not in force, in place of which their last good copies or no sites are served.";
    CONFIG_TIMESTAMP = Gauge "robotsd_config_last_reload_success_timestamp_seconds" ("seconds"),
        "When the config that is served was accepted, in Unix time.";
    STATE_WRITABLE = Gauge "robotsd_state_writable",
        "Whether the state directory can be written: 0 while a restart would forget what has come; 1 also where there is none.";
    WORKER_STALLED = Gauge "robotsd_worker_stalled",
        "Whether a thread that serves, or the control thread, has taken up no work for six seconds: its connections stand still.";
    PANICS = Counter "robotsd_panics", "Panics of threads, which are faults of robotsd; the log has each.";
    SERIES = Gauge "robotsd_metrics_series", "Series in this text, besides this family and the next.";
    SERIES_DROPPED = Gauge "robotsd_metrics_series_dropped",
        "Series that this text leaves out because there are more than its bound.";

    SITE_INFO = Info "robotsd_site",
        "The robots.txt of a site that is in force: hash of the version, mode of enforcement, and kind of source.";
    SITE_STATE = StateSet "robotsd_site_state",
        "The state of a site: live, last-good (the newest cannot be used), gated (a version waits) or none.";
    SITE_ENFORCED = Gauge "robotsd_site_enforced",
        "Whether the rules of a site are applied: 0 while it has none or the kill switch is off for it.";
    SITE_PENDING = Gauge "robotsd_site_pending", "Whether a version of a site waits to be accepted.";
    SITE_PUBLISHED = Gauge "robotsd_site_published_timestamp_seconds" ("seconds"),
        "When the version of a site that is in force was published, in Unix time.";
    SITE_FINDINGS = Gauge "robotsd_site_findings", "Findings of the check in the version that is in force, by severity.";
    RELOADS = Counter "robotsd_reloads", "Reads of the robots.txt of a site, by cause and outcome.";
    GATE_UNREAD = Gauge "robotsd_site_gate_unread",
        "Files and sitemaps that the gate of a site cannot use, or that have lost more than half of their pages.";
    APPEND_PARTS = StateSet "robotsd_append_part_state",
        "The state of a part that is appended to the robots.txt of a site: appended, last-good (it cannot be read now) or missing (it is \
         not at hand, so it is not appended).";
    PUBLISH_REQUESTS = Counter "robotsd_publish_requests",
        "Versions of a site that its hooks announced, by the host they send to and outcome: delivered or given-up.";
    PUBLISH_PENDING = Gauge "robotsd_publish_pending",
        "Whether a hook of a site has not announced the version in force, by the host it sends to: 1 while it tries, and once it has given up.";
    NOTIFICATIONS = Counter "robotsd_notifications",
        "Notifications of [[notify]], by the host they are sent to and outcome: delivered or given-up.";
    CONNECTIONS = Gauge "robotsd_connections", "Connections of clients that are open, by listener.";
    CONNECTIONS_LIMIT = Gauge "robotsd_connections_limit", "The bound on connections of clients, on all listeners.";
    CONNECTION_ERRORS = Counter "robotsd_connection_errors",
        "Connection errors of clients, by reason as in the event trouble of the log.";
    QUESTIONS_UNDECIDED = Counter "robotsd_questions_undecided",
        "Questions of other proxies with a fault, by reason as in the event undecided of the log.";
    CERTIFICATE_EXPIRY = Gauge "robotsd_tls_certificate_expiry_timestamp_seconds" ("seconds"),
        "When the certificate chain in a file ends, in Unix time.";
    CERTIFICATE_REJECTED = Gauge "robotsd_tls_certificate_rejected",
        "Whether the files of a certificate cannot be used: 1 while the certificate before stays in force and a restart would fail.";
    LOG_DROPPED = Counter "robotsd_log_lines_dropped", "Lines that a log could not take: its reader or disk is slower.";
    AGENT_CACHE_LOOKUPS = Counter "robotsd_agent_cache_lookups",
        "User-Agent fields looked up among those recognised before: hit, or miss where the field was recognised anew.";
    REGISTRY_REJECTED = Gauge "robotsd_registry_rejected",
        "Whether the registry of the config cannot be used, or waits to be accepted: 1 while the one before stays in force.";
    IDENTITY_LISTS = Gauge "robotsd_identity_lists",
        "Published lists of crawlers' addresses, by state: confirmed, by their servers within a day, or unconfirmed, so that they refute no claim.";
    RATE_STORE_UP = Gauge "robotsd_rate_store_up",
        "Whether the store of rates is asked: 0 while it does not answer and each process counts crawlers for itself.";
    RATE_STORE_CALLS = Counter "robotsd_rate_store_calls",
        "Questions to the store of rates, by result: answered, late (not within wait) or failed.";
    RATE_STORE_REQUESTS = Counter "robotsd_rate_store_requests",
        "Requests of crawlers that have a delay, by who decided: allowed or denied by the store of rates, known-denied by an \
         earlier denial of the store, or alone, by this process because the store did not answer.";
    FLEET_STATE = StateSet "robotsd_fleet_state",
        "How this process stands to the document of its fleet: current, went-back (entries of the store are older), foreign (of another \
         fleet), rejected (of a later version), damaged (fields cannot be read), doubled (another process has the name of this replica) or \
         unknown (none was read, so nothing is enforced).";
    FLEET_READ = Gauge "robotsd_fleet_read_timestamp_seconds" ("seconds"),
        "When the document of the fleet was read last, in Unix time.";
    FLEET_WRITABLE = Gauge "robotsd_fleet_store_up", "Whether the store of the fleet can be read and written.";
    FLEET_REPLICAS = Gauge "robotsd_fleet_replicas", "Replicas of the fleet by state, as this process sees them: synced, or what is wrong.";
    UPSTREAM_HEALTHY = Gauge "robotsd_upstream_healthy", "Whether requests are sent to a server of a site.";
    UPSTREAM_CONNECTIONS = Gauge "robotsd_upstream_connections", "Connections to a server of a site: active (being made, or with a request), idle, or tunnel.";

    DECISIONS = Counter "robotsd_decisions",
        "Requests of a site by outcome, those for /robots.txt aside. untouched: no group of the file is for the agent; failed: passed \
         because judging ended in a fault of robotsd, which is counted as untouched as well.";
    UPSTREAM_REQUESTS = Counter "robotsd_upstream_requests",
        "Requests that were sent to the servers of a site: answered, or why there was no answer.";
    QUESTIONS_WITHOUT_USER_AGENT = Counter "robotsd_questions_without_user_agent",
        "Questions of other proxies about requests of a site that name no User-Agent, so that no crawler is recognised.";
    ROBOTS_TXT_REQUESTS = Counter "robotsd_robots_txt_requests",
        "Requests for /robots.txt, by crawler and status code. crawler none: no crawler was recognised.";
    CRAWLER_REQUESTS = Counter "robotsd_crawler_requests",
        "Requests of crawlers by outcome, those for /robots.txt aside. crawler is a name of the registry, or a class of agents that \
         are in none; past 256 combinations a site it is other.";
    HTTP_REQUESTS = Counter "robotsd_http_requests",
        "Responses by listener, site, status code and method; site is empty for what was refused before a site was chosen.";
    DECISION_DURATION = Histogram "robotsd_decision_duration_seconds" ("seconds"),
        "Time to decide about a request. One request in 64 is timed, so its count is no request rate.";
    HTTP_DURATION = Histogram "robotsd_http_request_duration_seconds" ("seconds"),
        "Time from the head of a request to the head of its response. One request in 64 is timed, so its count is no request rate.";
}

impl Family {
    /// Returns the index in the order of the text.
    pub(super) fn place(&self) -> usize {
        ALL.iter().position(|family| family.name == self.name && family.kind == self.kind).unwrap_or(0)
    }
}
