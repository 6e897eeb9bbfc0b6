//! The agents and methods that the groups for `*` apply to.

use crate::agent::{Agent, Category, Class, Obeys};
use crate::keyword_enum;
use crate::rules::ValueError;

keyword_enum! {
    /// The classes of agents that `User-agent: *` applies to. Each variant includes the agents of
    /// the variants before it.
    ///
    /// `*` is meant for crawlers. Browsers, health probes and payment webhooks never fetch
    /// robots.txt. So by default, `*` applies only to registered crawlers and to agents that
    /// declare themselves as crawlers.
    #[derive(Default, PartialOrd, Ord)]
    WildcardScope, "a scope of the groups for \"*\"", {
        /// No agent. Only groups that name an agent apply.
        Nobody = "nobody",
        /// Crawlers in the registry.
        Registered = "registered",
        /// Registered crawlers, and agents that declare themselves as crawlers. The default.
        #[default]
        Declared = "declared",
        /// `Declared`, headless browsers and HTTP libraries.
        Automation = "automation",
        /// `Automation`, apps, requests without a `User-Agent`, and all other agents that do not
        /// look like a browser.
        NonBrowser = "non-browser",
        /// All agents, including browsers.
        Everyone = "everyone",
    }
}

impl WildcardScope {
    const fn narrowest_with(class: Class) -> Self {
        match class {
            Class::Registered => Self::Registered,
            Class::Declared => Self::Declared,
            Class::Headless | Class::Library => Self::Automation,
            Class::Browser => Self::Everyone,
            // The remaining classes are infrastructure, apps, and empty and unrecognised headers.
            // Future variants of `Class` are not treated as crawlers.
            _ => Self::NonBrowser,
        }
    }
}

keyword_enum! {
    /// Whether `*` applies to crawlers that ignore it according to their documentation (such as
    /// AdsBot-Google).
    #[derive(Default)]
    WildcardExceptions, "a way to treat crawlers that ignore the groups for \"*\"", {
        /// `*` does not apply to these crawlers. Only groups that name them apply. The default.
        #[default]
        Honour = "honour",
        /// `*` applies to these crawlers as to any other crawler.
        Ignore = "ignore",
    }
}

keyword_enum! {
    /// Whether `*` applies to requests with a missing or empty `User-Agent`.
    #[derive(Default)]
    EmptyAgent, "a way to treat requests without a User-Agent", {
        /// `*` applies if the [`WildcardScope`] is [`WildcardScope::NonBrowser`] or wider. The
        /// default.
        #[default]
        ByScope = "by-scope",
        /// `*` always applies, regardless of the scope.
        Hold = "hold",
        /// `*` never applies, regardless of the scope.
        Exempt = "exempt",
    }
}

/// The HTTP Method Registry of IANA, as of 2026-11.
const REGISTERED_METHODS: [&[&str]; 6] = [
    &["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PRI", "*"],
    &["COPY", "LOCK", "MKCOL", "MOVE", "PROPFIND", "PROPPATCH", "UNLOCK", "ACL"],
    &["BIND", "REBIND", "UNBIND", "ORDERPATCH", "SEARCH"],
    &["BASELINE-CONTROL", "CHECKIN", "CHECKOUT", "LABEL", "MERGE", "MKACTIVITY"],
    &["MKWORKSPACE", "REPORT", "UNCHECKOUT", "UPDATE", "VERSION-CONTROL"],
    &["LINK", "MKCALENDAR", "MKREDIRECTREF", "UNLINK", "UPDATEREDIRECTREF"],
];

/// The settings that decide whether the groups for `*` apply to a request.
#[derive(Clone, Debug)]
pub(super) struct Star {
    pub(super) scope: WildcardScope,
    pub(super) methods: Vec<Box<str>>,
    pub(super) exempt: Vec<Category>,
    pub(super) exceptions: WildcardExceptions,
    pub(super) empty: EmptyAgent,
}

impl Star {
    pub(super) fn methods<M: AsRef<str>>(methods: &[M]) -> Result<Vec<Box<str>>, ValueError> {
        let is_registered = |method: &str| {
            let mut registered = REGISTERED_METHODS.iter().copied().flatten();
            registered.any(|known| known.eq_ignore_ascii_case(method))
        };
        let method = |method: &M| match method.as_ref() {
            "*" => Err(ValueError::new("*", "is not a method: list each method by its name")),
            method if is_registered(method) => Ok(method.into()),
            other => Err(ValueError::new(
                other,
                "is not a registered method: write one such as \"GET\"; the groups for \"*\" always apply to \
                 unregistered methods",
            )),
        };
        if methods.is_empty() {
            let fault =
                "is an empty list: write methods such as \"GET\" and \"HEAD\", or set the wildcard scope \"nobody\"";
            return Err(ValueError::new("wildcard_methods", fault));
        }
        methods.iter().map(method).collect()
    }

    /// Reports whether `*` applies to this method. Servers may answer `get`, `post` and `FOO` like
    /// `GET`, so a client must not be able to avoid the rules with these methods.
    pub(super) fn covers_method(&self, method: &str) -> bool {
        self.methods.iter().any(|known| **known == *method)
            || self.methods.iter().any(|known| known.eq_ignore_ascii_case(method))
            || !REGISTERED_METHODS.iter().any(|methods| methods.contains(&method))
    }

    /// Reports whether `*` applies to this agent. If the registry does not state whether a crawler
    /// obeys `*`, the crawler is treated like a crawler that obeys `*`.
    pub(super) fn applies_to(&self, agent: &Agent) -> bool {
        self.covers_class(agent.class())
            && (agent.obeys_star() != Obeys::No || self.exceptions == WildcardExceptions::Ignore)
            && agent.category().is_none_or(|category| !self.exempt.contains(&category))
    }

    fn covers_class(&self, class: Class) -> bool {
        match (class, self.empty) {
            (Class::Empty, EmptyAgent::Hold) => true,
            (Class::Empty, EmptyAgent::Exempt) => false,
            _ => self.scope >= WildcardScope::narrowest_with(class),
        }
    }
}
