//! Declares the metric families, each with its name, type, unit and help.
//!
//! The families are in the order of the scrape. The most important families are first, because
//! series beyond the limit are dropped from the end.

#[derive(Debug)]
pub(crate) struct Family {
    /// The name, without the suffixes `_total` and `_info`.
    pub(super) name: &'static str,
    pub(super) kind: FamilyKind,
    /// The unit, which is also the end of `name`; empty if the family has no unit.
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
    Info,
    /// One series per state, with the value 1 for the current state.
    StateSet,
}

macro_rules! families {
    ($($constant:ident = $kind:ident $name:literal $(($unit:literal))?, $help:literal;)*) => {
        $(pub(crate) const $constant: Family = Family {
            name: $name,
            kind: FamilyKind::$kind,
            unit: concat!("" $(, $unit)?),
            help: $help,
        };)*

        pub(super) const ALL: &[&Family] = &[$(&$constant),*];
    };
}

families! {
    PROCESS_CPU = Counter "process_cpu_seconds" ("seconds"),
        "Processor time of the process, user and system.";
    PROCESS_RESIDENT = Gauge "process_resident_memory_bytes" ("bytes"), "Resident memory of the process.";
    PROCESS_VIRTUAL = Gauge "process_virtual_memory_bytes" ("bytes"), "Virtual memory of the process.";
    PROCESS_VIRTUAL_MAX = Gauge "process_virtual_memory_max_bytes" ("bytes"),
        "Limit of the process's virtual memory; -1 if there is no limit.";
    PROCESS_OPEN_FDS = Gauge "process_open_fds", "Open file descriptors of the process.";
    PROCESS_MAX_FDS = Gauge "process_max_fds", "Limit of open file descriptors; -1 if there is no limit.";
    PROCESS_THREADS = Gauge "process_threads", "Threads of the process.";
    PROCESS_START = Gauge "process_start_time_seconds" ("seconds"), "Start time of the process, in Unix time.";

    BUILD = Info "robotsd_build", "The version of robotsd.";
    CONFIG_SUCCESSFUL = Gauge "robotsd_config_last_reload_successful",
        "1 if the current config file is used; 0 if it is rejected, and the previous config stays in use.";
    CONFIG_REFUSED = Gauge "robotsd_config_refused_files",
        "Number of included files that are rejected. The last good copy of such a file is used; without a copy, its \
         sites are not served.";
    CONFIG_TIMESTAMP = Gauge "robotsd_config_last_reload_success_timestamp_seconds" ("seconds"),
        "Time when the current config was accepted, in Unix time.";
    STATE_WRITABLE = Gauge "robotsd_state_writable",
        "1 if the state directory is writable, or if there is none; 0 if a restart would lose recent changes.";
    WORKER_STALLED = Gauge "robotsd_worker_stalled",
        "1 if a serving thread or the control thread has done no work for six seconds. Connections of this thread get \
         no answers.";
    PANICS = Counter "robotsd_panics",
        "Number of panics of threads. Each panic is a bug in robotsd, and is logged.";
    SERIES = Gauge "robotsd_metrics_series",
        "Number of series in this scrape, except `robotsd_metrics_series` and `robotsd_metrics_series_dropped`.";
    SERIES_DROPPED = Gauge "robotsd_metrics_series_dropped",
        "Number of series that are left out of this scrape, because it has reached its maximum size.";

    SITE_INFO = Info "robotsd_site",
        "The live robots.txt of a site: hash of the version, enforcement mode, and kind of source.";
    SITE_STATE = StateSet "robotsd_site_state",
        "The state of a site: `live`, `last-good` (the newest version cannot be used), `gated` (a version is pending) \
         or `none`.";
    SITE_ENFORCED = Gauge "robotsd_site_enforced",
        "Whether the rules of a site are enforced: 0 if the site has no robots.txt, or if its enforcement is \
         switched off.";
    SITE_PENDING = Gauge "robotsd_site_pending",
        "1 if a version of the site is pending: the gate holds it until it is accepted.";
    SITE_PUBLISHED = Gauge "robotsd_site_published_timestamp_seconds" ("seconds"),
        "Publication time of the live version of a site, in Unix time.";
    SITE_FINDINGS = Gauge "robotsd_site_findings", "Findings in the live version, by severity.";
    RELOADS = Counter "robotsd_reloads", "Reads of the robots.txt of a site, by cause and outcome.";
    GATE_UNREAD = Gauge "robotsd_site_gate_unread",
        "Number of files and sitemaps that the gate of a site cannot use, or that have lost more than half of their \
         pages.";
    APPEND_PARTS = StateSet "robotsd_append_part_state",
        "The state of a list that is appended to the robots.txt of a site: `appended`, `last-good` (the list cannot be \
         read now, so its last copy is appended) or `missing` (there is no copy, so the list is not appended).";
    PUBLISH_REQUESTS = Counter "robotsd_publish_requests",
        "Versions of a site that its hooks have announced or given up on, by destination host and `outcome`: \
         `delivered` or `given-up`.";
    PUBLISH_PENDING = Gauge "robotsd_publish_pending",
        "1 if the hooks have not announced a site's live version to the destination host, because they are still \
         trying or have given up.";
    NOTIFICATIONS = Counter "robotsd_notifications",
        "Notifications of [[notify]], by destination host and `outcome`: `delivered` or `given-up`.";
    CONNECTIONS = Gauge "robotsd_connections", "Open connections from clients, by listener.";
    CONNECTIONS_LIMIT = Gauge "robotsd_connections_limit", "Limit of connections from clients, over all listeners.";
    CONNECTION_ERRORS = Counter "robotsd_connection_errors",
        "Errors of client connections. The label `reason` has the same values as in the log event `problem`.";
    QUESTIONS_UNDECIDED = Counter "robotsd_questions_undecided",
        "Invalid decision requests from other proxies. The label `reason` has the same values as in the log event \
         `undecided`.";
    CERTIFICATE_EXPIRY = Gauge "robotsd_tls_certificate_expiry_timestamp_seconds" ("seconds"),
        "Time when the certificate chain in a file expires, in Unix time.";
    CERTIFICATE_REJECTED = Gauge "robotsd_tls_certificate_rejected",
        "1 if the files of a certificate cannot be used. The previous certificate stays in use, but a restart would \
         fail.";
    LOG_DROPPED = Counter "robotsd_log_lines_dropped",
        "Lines that a log has lost, because its reader or disk is too slow.";
    AGENT_CACHE_LOOKUPS = Counter "robotsd_agent_cache_lookups",
        "Lookups in the cache of parsed User-Agent fields, by `result`: `hit`, or `miss` if the field had to be \
         parsed.";
    REGISTRY_REJECTED = Gauge "robotsd_registry_rejected",
        "1 if the registry in the config cannot be used, or is held until it is accepted. The previous registry then \
         stays in use.";
    IDENTITY_LISTS = Gauge "robotsd_identity_lists",
        "Published lists of crawlers' addresses, by `state`: `confirmed` by their servers within a day, or \
         `unconfirmed`. Unconfirmed lists cannot be used to recognise impostors.";
    RATE_STORE_UP = Gauge "robotsd_rate_store_up",
        "1 if the rate store answers; 0 if it does not answer, and this process uses only its own counts.";
    RATE_STORE_CALLS = Counter "robotsd_rate_store_calls",
        "Queries to the rate store, by `result`: `answered`, `late` (not within the time limit `wait`) or `failed`.";
    RATE_STORE_REQUESTS = Counter "robotsd_rate_store_requests",
        "Requests of crawlers with a delay, by `result`: `allowed` or `denied` by the rate store, `known-denied` \
         because of an earlier denial, or counted by this process `alone`, because the store did not answer.";
    FLEET_STATE = StateSet "robotsd_fleet_state",
        "State of this process in its fleet: `current`, `stale` (the fleet's document cannot be read now), `went-back` \
         (the store has older entries), `foreign` (the document belongs to another fleet), `rejected` (it has a later \
         format version), `damaged` (fields cannot be read), `doubled` (another process has the name of this replica) \
         or `unknown` (no document was read, so nothing is enforced).";
    FLEET_READ = Gauge "robotsd_fleet_read_timestamp_seconds" ("seconds"),
        "Time when this process last read the fleet's document, in Unix time.";
    FLEET_WRITABLE = Gauge "robotsd_fleet_store_up",
        "1 if this process can read and write the fleet's store.";
    FLEET_REPLICAS = Gauge "robotsd_fleet_replicas",
        "Number of replicas of the fleet in each `state`, as seen by this process: `synced`, or the kind of problem.";
    UPSTREAM_HEALTHY = Gauge "robotsd_upstream_healthy", "1 if requests are sent to this server.";
    UPSTREAM_CONNECTIONS = Gauge "robotsd_upstream_connections",
        "Connections to a site's server, by `state`: `active` (being opened, or with a request), `idle`, or \
         `tunnel`.";

    DECISIONS = Counter "robotsd_decisions",
        "Requests of a site by `outcome`, without requests for /robots.txt. `untouched`: no group of the file applies \
         to the agent. `failed`: the request passed because of a bug in robotsd; it is also counted as `untouched`.";
    UPSTREAM_REQUESTS = Counter "robotsd_upstream_requests",
        "Requests sent to the servers of a site. The label `outcome` is `answered`, or the reason why there was no \
         answer.";
    QUESTIONS_WITHOUT_USER_AGENT = Counter "robotsd_questions_without_user_agent",
        "Decision requests without a User-Agent from other proxies, by site. In such requests, robotsd cannot \
         recognise crawlers.";
    FIELDS_KEPT = Counter "robotsd_response_fields_kept",
        "Fields that robotsd did not add to responses of a site, because the upstream had set them already.";
    ROBOTS_TXT_REQUESTS = Counter "robotsd_robots_txt_requests",
        "Requests for /robots.txt, by crawler and status code. The label `crawler` is `none` if the agent is not a \
         crawler.";
    CRAWLER_REQUESTS = Counter "robotsd_crawler_requests",
        "Requests of crawlers by outcome, without requests for /robots.txt. The label `crawler` is a name in the \
         registry, or the class of an unregistered agent. If a site has more than 256 combinations of crawler and \
         outcome, further combinations have the crawler `other`.";
    HTTP_REQUESTS = Counter "robotsd_http_requests",
        "Responses by listener, site, status code and method. The label `site` is empty if the request was refused \
         before a site was chosen.";
    DECISION_DURATION = Histogram "robotsd_decision_duration_seconds" ("seconds"),
        "Time that robotsd needs to decide about a request. Only one request in 64 is measured, so do not use the \
         count as a request rate.";
    HTTP_DURATION = Histogram "robotsd_http_request_duration_seconds" ("seconds"),
        "Time from the head of a request to the head of its response. Only one request in 64 is measured, so do not \
         use the count as a request rate.";
}

impl Family {
    /// Returns the index of the family in the order of a scrape.
    pub(super) fn place(&self) -> usize {
        ALL.iter().position(|family| family.name == self.name && family.kind == self.kind).unwrap_or(0)
    }
}
