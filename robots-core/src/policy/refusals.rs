//! Special answers for some refused requests: by crawler, identity and path.
//!
//! **Some documents never get a special answer**: robots.txt, `security.txt`, and the sitemaps and
//! licences that the file names. A crawler must be able to read the conditions of a site, and a
//! price or a tarpit at these paths would hide them. The documents are not exempt from the rules,
//! because an operator may disallow a sitemap for good reasons. If a rule disallows one of these
//! documents, the crawler gets the plain refusal.
//!
//! **People never get a special answer**, unless a [`RefusalCase`] names their fetcher: a browser,
//! an app, or a fetcher that acts for a person.

use super::overrides::Crawlers;
use crate::agent::{Agent, Category, Class, Identity};
use crate::rules::{PathPattern, RequestPath, RobotsTxt};

/// Selects some of the refused requests. Without crawlers, the case covers every crawler; the same
/// is true for identities and paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalCase {
    /// The covered crawlers.
    pub crawlers: Vec<Crawlers>,
    /// The covered identities: outcomes ([`Identity::outcome`]), or [`RefusalCase::UNCHECKED`].
    pub identities: Vec<&'static str>,
    /// The patterns of the covered paths.
    pub paths: Vec<PathPattern>,
}

/// A list of [`RefusalCase`]s with their answers. The first case that covers a request decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalTable<A>(pub Vec<(RefusalCase, A)>);

/// A request that the policy refuses.
#[derive(Clone, Copy, Debug)]
pub struct RefusedRequest<'r> {
    /// The agent that the decision is about.
    pub agent: &'r Agent,
    /// The result of checking the sender; `None` if senders are not checked.
    pub identity: Option<Identity>,
    /// The requested path, in every form that the policy checks.
    pub path: &'r RequestPath<'r>,
    /// The file that the request was judged by.
    pub robots: &'r RobotsTxt,
}

impl RefusalCase {
    /// Word for the identity of a sender that nobody has checked.
    pub const UNCHECKED: &'static str = "claimed";

    fn covers(&self, request: &RefusedRequest<'_>) -> bool {
        let outcome = request.identity.map_or(Self::UNCHECKED, Identity::outcome);
        self.has_agent(request.agent)
            && (self.identities.is_empty() || self.identities.contains(&outcome))
            // A rule applies if it matches any form of the path, and so does a case.
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
    /// Returns the first case that covers the request: its index and its answer. `None` if the
    /// request gets the plain refusal.
    pub fn find(&self, request: &RefusedRequest<'_>) -> Option<(usize, &A)> {
        let mut cases = self.0.iter().enumerate();
        let (at, (_, answer)) = cases.find(|(_, (case, _))| case.covers(request))?;
        (!request.is_for_conditions()).then_some((at, answer))
    }
}

impl RefusedRequest<'_> {
    /// Reports whether the request is for a document with the conditions of the site. All forms of
    /// the path are compared, because some server may return the document for any form.
    fn is_for_conditions(&self) -> bool {
        // RFC 9116, section 3: older sites have the file at the root.
        let is_usual = |form: &[u8]| {
            matches!(without_query(form), b"/robots.txt" | b"/security.txt" | b"/.well-known/security.txt")
        };
        self.path.forms().any(|(_, form)| is_usual(form)) || self.robots.refers_to(self.path)
    }
}

fn without_query(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'?').next().unwrap_or_default()
}
