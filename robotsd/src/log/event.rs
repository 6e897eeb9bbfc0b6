//! The events of the log, each with its name and its usual level.
//!
//! Only the events listed here can be logged. `docs/log.schema.json` specifies the fields of each
//! event, and `docs/src/reference/log.md` explains them. Tests check that this list, the schema,
//! the page and the lines that robotsd writes agree.

use crate::word_enum::word_enum;

word_enum! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum LogLevel {
        /// Normal operation.
        #[default]
        Info = "info",
        /// All requests are served, but something differs from the config, or serving will fail
        /// soon.
        Warn = "warn",
        /// A failure. For example, a file could not be used, a request got no response, or log
        /// lines were lost.
        Error = "error",
    }
}

macro_rules! events {
    ($($(#[$doc:meta])* $event:ident = $name:literal, $level:ident;)*) => {
        word_enum! {
            /// The kind of event that a log line reports.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) enum LogEvent { $($(#[$doc])* $event = $name,)* }
        }

        impl LogEvent {
            pub(crate) const fn level(self) -> LogLevel {
                match self {
                    $(Self::$event => LogLevel::$level,)*
                }
            }
        }
    };
}

events! {
    // Requests that the robots.txt disallows, and crawl delays.
    Refused = "refused", Info;
    Tagged = "tagged", Info;
    Observed = "observed", Info;
    /// The request is disallowed, but forwarded because it seems to come from a person. Requests
    /// that are forwarded because of an exemption, or because an exception turns enforcement off,
    /// are not logged.
    Passed = "passed", Info;
    /// The robots.txt allows the request, but it was answered with 429, because it came before the
    /// crawl delay had passed.
    Limited = "limited", Info;
    /// The robots.txt allows the request, and it was forwarded although it came before the crawl
    /// delay had passed.
    LimitObserved = "limit-observed", Info;
    /// The sender is not the crawler that it claims to be, but the request is neither tagged nor
    /// refused.
    Impostor = "impostor", Info;
    Request = "request", Info;

    // Reloads of a robots.txt.
    Published = "published", Info;
    Unchanged = "unchanged", Info;
    /// There is no robots.txt, so the site starts without rules.
    Absent = "absent", Warn;
    /// The robots.txt is missing at its source. The live version stays in force for a limited time.
    Held = "held", Warn;
    Unreachable = "unreachable", Warn;
    Rejected = "rejected", Error;
    Gated = "gated", Warn;
    /// A reload had an outcome that this version of robotsd does not know.
    Reloaded = "reloaded", Info;
    Finding = "finding", Warn;
    /// The state of a list that is appended to a robots.txt has changed.
    Append = "append", Info;
    /// The outcome of a webhook request of `on_publish`, which reports a new live version.
    OnPublish = "on-publish", Info;
    /// The outcome of a notification of `[[notify]]`.
    Notify = "notify", Info;
    Directory = "directory", Warn;
    /// The evidence that identifies genuine crawlers is missing, or is available again.
    Identity = "identity", Warn;
    Gate = "gate", Info;
    Watch = "watch", Warn;

    // The config and the files that belong to it.
    Config = "config", Info;
    ConfigChanged = "config-changed", Info;
    ConfigRejected = "config-rejected", Error;
    ConfigWarning = "config-warning", Warn;
    Registry = "registry", Info;
    RegistryRejected = "registry-rejected", Error;
    RegistryGated = "registry-gated", Warn;
    Certificate = "certificate", Info;
    CertificateRejected = "certificate-rejected", Error;
    CertificateWarning = "certificate-warning", Warn;

    // Decisions of the operator.
    /// The admin interface has failed.
    Admin = "admin", Error;
    /// An operator changed something, or a change was refused.
    Audit = "audit", Info;
    Accept = "accept", Info;
    Rollback = "rollback", Info;
    Enforcement = "enforcement", Info;
    /// robotsd has begun or stopped using the rate store.
    RateStore = "rate-store", Info;
    /// This replica has applied a change of the fleet, or the state of the fleet's store has
    /// changed.
    Fleet = "fleet", Info;
    Reload = "reload", Info;

    // Connections and upstreams.
    Upstream = "upstream", Error;
    Problem = "problem", Info;
    Undecided = "undecided", Warn;
    NoUserAgent = "no-user-agent", Warn;

    // The process.
    AdminListening = "admin-listening", Info;
    Listening = "listening", Info;
    Connections = "connections", Info;
    ConnectionsBounded = "connections-bounded", Warn;
    Descriptors = "descriptors", Warn;
    Clock = "clock", Error;
    /// The sites refuse disallowed requests of other crawlers, but only tag disallowed requests of
    /// search engines.
    SearchEngines = "search-engines", Info;
    State = "state", Warn;
    /// The replacement of this process by a new one has begun, succeeded or failed.
    Upgrade = "upgrade", Info;
    Supervisor = "supervisor", Warn;
    /// A thread has stopped making progress, or has resumed.
    Stalled = "stalled", Error;
    Panic = "panic", Error;
    Stopping = "stopping", Info;
    Stopped = "stopped", Info;
    AccessLog = "access-log", Error;
    LogOverflow = "log-overflow", Error;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    const SCHEMA: &str = include_str!("../docs/log.schema.json");

    fn schema() -> Value {
        serde_json::from_str(SCHEMA).expect("JSON")
    }

    fn names(values: &Value) -> BTreeSet<&str> {
        values.as_array().expect("a list").iter().filter_map(Value::as_str).collect()
    }

    #[test]
    fn the_schema_names_every_event_and_no_other() {
        let schema = schema();
        let events = schema["oneOf"].as_array().expect("a list");
        let documented: BTreeSet<_> =
            events.iter().filter_map(|event| event["properties"]["event"]["const"].as_str()).collect();
        let written: BTreeSet<_> = LogEvent::ALL.iter().map(|event| event.as_str()).collect();
        assert_eq!(documented, written);
        assert_eq!(events.len(), LogEvent::ALL.len(), "an event is there twice");
        for event in LogEvent::ALL {
            let of = events.iter().find(|of| of["title"] == event.as_str()).expect("an entry");
            assert!(names(&of["properties"]["level"]["enum"]).contains(event.level().as_str()), "{event:?}");
        }
    }

    #[test]
    fn the_handbook_has_every_event_of_the_schema_with_its_fields() {
        // `log.md` is outside of this package, so it cannot be included at compile time.
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/reference/log.md");
        let page = std::fs::read_to_string(page).expect("the page exists");
        let schema = schema();
        for event in schema["oneOf"].as_array().expect("a list") {
            let (name, about) =
                (event["title"].as_str().expect("a name"), event["description"].as_str().expect("a text"));
            let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("{name} is not on the page"));
            let levels: Vec<_> = names(&event["properties"]["level"]["enum"]).into_iter().collect();
            assert!(row.contains(about) && levels.iter().all(|level| row.contains(level)), "{name}: {row}");
            if row.contains("as `refused`") {
                let refused =
                    schema["oneOf"].as_array().expect("a list").iter().find(|event| event["title"] == "refused");
                assert_eq!(refused.map(|refused| &refused["required"]), Some(&event["required"]), "{name}");
                continue;
            }
            let required = names(&event["required"]);
            let fields = event["properties"].as_object().expect("fields").keys();
            for field in fields.filter(|field| !["ts", "level", "event"].contains(&field.as_str())) {
                let mark = if required.contains(field.as_str()) { "" } else { "?" };
                assert!(row.contains(&format!("`{field}`{mark}")), "{name}: {field}{mark}: {row}");
            }
        }
    }
}
