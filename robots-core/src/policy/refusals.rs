//! Selects special responses for some refused requests, depending on the crawler, the identity and
//! the path.
//!
//! **Requests for some documents never get a special response**: robots.txt, `security.txt`, and
//! the sitemaps and licences that the robots.txt names. These documents contain the terms of a
//! site. A crawler that gets a demand for payment or a tarpit instead cannot read the terms. But
//! these documents are not exempt from the rules, because an operator may have good reasons to
//! disallow a sitemap. If a rule disallows such a document, the crawler gets the plain refusal.
//!
//! **Browsers, apps and fetchers that act for a person never get a special response**, unless a
//! [`RefusalCase`] names them.

use super::overrides::Crawlers;
use crate::agent::{Agent, Category, Class, Identity};
use crate::rules::{PathPattern, RequestPath, RobotsTxt};

/// Conditions that select some of the refused requests. A field with an empty list sets no
/// condition. If `crawlers` is empty, the case covers all agents except browsers, apps and fetchers
/// that act for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalCase {
    /// The crawlers that the case covers.
    pub crawlers: Vec<Crawlers>,
    /// The results of verification that the case covers ([`Identity::outcome`]).
    /// [`RefusalCase::UNCHECKED`] covers senders that the application does not verify.
    pub identities: Vec<&'static str>,
    /// The patterns of the paths that the case covers.
    pub paths: Vec<PathPattern>,
}

/// A list of [`RefusalCase`]s, each with its response. The first case that covers a request
/// decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalTable<A>(pub Vec<(RefusalCase, A)>);

/// A request that the policy refuses.
#[derive(Clone, Copy, Debug)]
pub struct RefusedRequest<'r> {
    /// The agent that the decision is about.
    pub agent: &'r Agent,
    /// The result of verifying the sender; `None` if the application does not verify senders.
    pub identity: Option<Identity>,
    /// The requested path, in every form that the policy compares with rules.
    pub path: &'r RequestPath<'r>,
    /// The robots.txt whose rules were applied to the request.
    pub robots: &'r RobotsTxt,
}

impl RefusalCase {
    /// Value in `identities` for senders that the application does not verify.
    pub const UNCHECKED: &'static str = "claimed";

    fn covers(&self, request: &RefusedRequest<'_>) -> bool {
        let outcome = request.identity.map_or(Self::UNCHECKED, Identity::outcome);
        self.has_agent(request.agent)
            && (self.identities.is_empty() || self.identities.contains(&outcome))
            // As with rules, a pattern needs to match only one form of the path.
            && (self.paths.is_empty()
                || request.path.forms().any(|(_, form)| self.paths.iter().any(|path| path.matches(form))))
    }

    fn has_agent(&self, agent: &Agent) -> bool {
        let is_for_person =
            matches!(agent.class(), Class::Browser | Class::App) || agent.category() == Some(Category::UserFetch);
        let selects = |crawlers: &Crawlers| {
            (!is_for_person || matches!(crawlers, Crawlers::Agent(_))) && crawlers.contains(agent)
        };
        self.crawlers.is_empty() && !is_for_person || self.crawlers.iter().any(selects)
    }
}

impl<A> RefusalTable<A> {
    /// Returns the index and the response of the first case that covers the request; `None` if the
    /// request gets the plain refusal.
    pub fn find(&self, request: &RefusedRequest<'_>) -> Option<(usize, &A)> {
        let mut cases = self.0.iter().enumerate();
        let (at, (_, answer)) = cases.find(|(_, (case, _))| case.covers(request))?;
        (!request.is_for_conditions()).then_some((at, answer))
    }
}

impl RefusedRequest<'_> {
    /// Reports whether the request is for a document with the terms of the site. Compares all forms
    /// of the path, because a server may return the document for any form.
    fn is_for_conditions(&self) -> bool {
        // Older sites have `security.txt` at the root (RFC 9116, section 3).
        let is_usual = |form: &[u8]| {
            matches!(without_query(form), b"/robots.txt" | b"/security.txt" | b"/.well-known/security.txt")
        };
        self.path.forms().any(|(_, form)| is_usual(form)) || self.robots.refers_to(self.path)
    }
}

fn without_query(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'?').next().unwrap_or_default()
}
