//! Putting a policy together.

use super::Policy;
use super::evidence::{Cookies, SuspectHuman};
use super::exempt::Exemptions;
use super::mode::Mode;
use super::network::Network;
use super::overrides::{Override, called};
use super::scope::{EmptyAgent, Star, StarExceptions, StarScope};
use crate::agent::Category;
use crate::rules::{PathForms, ProductToken};

/// Builds a [`Policy`].
#[derive(Clone, Debug)]
#[must_use]
pub struct PolicyBuilder {
    mode: Mode,
    star: Star,
    family: bool,
    forms: PathForms,
    paths: Vec<Box<[u8]>>,
    networks: Vec<Network>,
    agents: Vec<ProductToken>,
    cookies: Cookies,
    suspect_human: SuspectHuman,
    overrides: Vec<Override>,
}

impl Default for PolicyBuilder {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            star: Star::default(),
            family: true,
            forms: PathForms::ALL,
            paths: vec![b"/.well-known/"[..].into()],
            networks: Vec::new(),
            agents: Vec::new(),
            cookies: Cookies::default(),
            suspect_human: SuspectHuman::default(),
            overrides: Vec::new(),
        }
    }
}

impl PolicyBuilder {
    /// What is done about disallowed requests. Default: [`Mode::Observe`].
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Whom the groups for `*` are for. Default: [`StarScope::Declared`].
    pub const fn star_scope(mut self, scope: StarScope) -> Self {
        self.star.scope = scope;
        self
    }

    /// The methods the groups for `*` are for, without case. Default: `GET` and `HEAD`. Methods that IANA's registry does
    /// not have are always held: most servers answer them like `GET`. A group that names an agent holds for every method.
    pub fn star_methods<M: AsRef<str>>(mut self, methods: impl IntoIterator<Item = M>) -> Self {
        self.star.methods = methods.into_iter().map(|method| method.as_ref().into()).collect();
        self
    }

    /// Categories of registered crawlers that the groups for `*` are not for. Default: infrastructure, monitoring,
    /// preview, feed and user-fetch.
    pub fn star_exempt(mut self, categories: impl IntoIterator<Item = Category>) -> Self {
        self.star.exempt = categories.into_iter().collect();
        self
    }

    /// Whether the groups for `*` are for crawlers documented to ignore them. Default: [`StarExceptions::Honour`].
    pub const fn star_exceptions(mut self, exceptions: StarExceptions) -> Self {
        self.star.exceptions = exceptions;
        self
    }

    /// Whether the groups for `*` are for requests without a `User-Agent`. Default: [`EmptyAgent::ByScope`].
    pub const fn star_empty(mut self, empty: EmptyAgent) -> Self {
        self.star.empty = empty;
        self
    }

    /// Holds a crawler only to groups that name it itself, not to those of the crawlers its operator says it follows
    /// (Googlebot-Image is held to Googlebot's group where it has none). Default: it is held to those as well.
    pub const fn without_family(mut self) -> Self {
        self.family = false;
        self
    }

    /// The forms of a path that are judged besides the one it was sent in. Default: [`PathForms::ALL`]. An application
    /// whose path parameters are part of its pages leaves out [`PathForm::Parameters`](crate::rules::PathForm).
    pub const fn forms(mut self, forms: PathForms) -> Self {
        self.forms = forms;
        self
    }

    /// Path patterns (as in robots.txt: prefixes, with `*` and `$`) whose requests pass unjudged, in place of the
    /// default, `/.well-known/`. `/robots.txt` is always exempt.
    pub fn exempt_paths<P: AsRef<[u8]>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.paths = patterns.into_iter().map(|pattern| pattern.as_ref().into()).collect();
        self
    }

    /// Networks whose requests pass unjudged. Default: none.
    pub fn exempt_networks(mut self, networks: impl IntoIterator<Item = Network>) -> Self {
        self.networks = networks.into_iter().collect();
        self
    }

    /// Crawlers, by name or own product token, whose requests pass unjudged. Default: none.
    pub fn exempt_agents<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.agents = names.into_iter().map(|name| called(name.as_ref())).collect();
        self
    }

    /// Names of cookies whose requests pass. Default: none.
    pub fn exempt_cookies<N: AsRef<[u8]>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.cookies.exempt = names.into_iter().map(|name| name.as_ref().into()).collect();
        self
    }

    /// Names of cookies that suggest a person behind a request. Default: none.
    pub fn session_cookies<N: AsRef<[u8]>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.cookies.session = names.into_iter().map(|name| name.as_ref().into()).collect();
        self
    }

    /// What is done where a person seems to be behind a disallowed request. Default: [`SuspectHuman::Record`].
    pub const fn suspect_human(mut self, suspect_human: SuspectHuman) -> Self {
        self.suspect_human = suspect_human;
        self
    }

    /// Adds another mode for some disallowed requests; of several that fit, the last one added counts. Default: none.
    pub fn with_override(mut self, over: Override) -> Self {
        self.overrides.push(over);
        self
    }

    /// The policy.
    #[must_use]
    pub fn build(self) -> Policy {
        Policy {
            mode: self.mode,
            star: self.star,
            family: self.family,
            forms: self.forms,
            exempt: Exemptions::new(self.paths, self.networks, self.agents),
            cookies: self.cookies,
            suspect_human: self.suspect_human,
            overrides: self.overrides,
        }
    }
}
