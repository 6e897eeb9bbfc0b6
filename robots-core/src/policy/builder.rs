//! Builds a policy.

use std::num::NonZeroU32;

use super::decide::{Exemptions, Policy};
use super::decision::{IdentityNeeded, IdentityRules, Impostors};
use super::human_evidence::{Cookies, SuspectHuman};
use super::overrides::{Mode, Override, parse_crawler_name};
use super::rate::{RateMode, RateRules};
use super::scope::{EmptyAgent, Star, WildcardExceptions, WildcardScope};
use crate::agent::{Category, IntoNetwork};
use crate::rules::{PathForm, PathForms, PathPattern, ValueError};

/// Builds a [`Policy`]. Methods that return a `Result` reject values that cannot match any request.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PolicyBuilder {
    policy: Policy,
}

impl Policy {
    /// Returns a builder with the default settings, which the builder's methods document.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }
}

impl From<PolicyBuilder> for Policy {
    fn from(builder: PolicyBuilder) -> Self {
        builder.build()
    }
}

impl From<Policy> for PolicyBuilder {
    fn from(policy: Policy) -> Self {
        Self { policy }
    }
}

impl From<Mode> for Policy {
    fn from(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            star: Star {
                scope: WildcardScope::default(),
                methods: Self::DEFAULT_WILDCARD_METHODS.map(Into::into).into(),
                exempt: Self::DEFAULT_WILDCARD_EXEMPT.into(),
                exceptions: WildcardExceptions::default(),
                empty: EmptyAgent::default(),
            },
            family: true,
            forms: PathForms::ALL,
            exempt: Exemptions { patterns: PathPattern::exempt_by_default(), networks: Vec::new(), agents: Vec::new() },
            cookies: Cookies::default(),
            suspect_human: SuspectHuman::default(),
            identity: IdentityRules::default(),
            overrides: Vec::new(),
            rate: RateRules { mode: RateMode::Off, burst: Self::DEFAULT_BURST, overrides: Vec::new() },
        }
    }
}

impl PolicyBuilder {
    fn with(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    /// Sets how disallowed requests are handled. The mode also limits [`rate`](Self::rate) and
    /// [`impostors`](Self::impostors): these settings refuse requests only under [`Mode::Refuse`].
    /// For a crawler with an override, the override's mode replaces this mode. Default:
    /// [`Mode::Observe`]. A second call replaces the first.
    ///
    /// Under [`Mode::Refuse`], the crawlers of search engines that people use
    /// ([`Agent::is_index_engine`](crate::agent::Agent::is_index_engine)) are only tagged, unless
    /// an override applies to them.
    pub fn mode(self, mode: Mode) -> Self {
        self.with(|policy| policy.mode = mode)
    }

    /// Sets the classes of agents that the groups for `*` apply to. Default:
    /// [`WildcardScope::Declared`]. A second call replaces the first.
    pub fn wildcard_scope(self, scope: WildcardScope) -> Self {
        self.with(|policy| policy.star.scope = scope)
    }

    /// Sets the methods that the groups for `*` apply to. Case is ignored. Default: `GET` and
    /// `HEAD`. The list replaces the default: to add `POST`, list `GET`, `HEAD` and `POST`. Groups
    /// for `*` also apply to all methods that are not in IANA's registry, because most servers
    /// treat an unknown method like `GET`. A group that names an agent applies to every method. A
    /// second call replaces the first.
    ///
    /// # Errors
    ///
    /// Returns an error if the list is empty, or if a method is not in IANA's registry.
    pub fn wildcard_methods<M: AsRef<str>>(mut self, methods: impl AsRef<[M]>) -> Result<Self, ValueError> {
        self.policy.star.methods = Star::methods(methods.as_ref())?;
        Ok(self)
    }

    /// Sets the categories of crawlers that the groups for `*` do not apply to. An unregistered
    /// agent belongs to a category if its header suggests the category, for example with a name
    /// that contains `monitor`. Default: infrastructure, monitoring, preview, feed and user-fetch.
    /// A second call replaces the first.
    pub fn wildcard_exempt(self, categories: impl AsRef<[Category]>) -> Self {
        self.with(|policy| policy.star.exempt = categories.as_ref().into())
    }

    /// Sets whether the groups for `*` apply to crawlers whose operators document that the crawlers
    /// ignore these groups. Default: [`WildcardExceptions::Honour`]. A second call replaces the
    /// first.
    pub fn wildcard_exceptions(self, exceptions: WildcardExceptions) -> Self {
        self.with(|policy| policy.star.exceptions = exceptions)
    }

    /// Sets whether the groups for `*` apply to requests without a `User-Agent`. Default:
    /// [`EmptyAgent::ByScope`]. A second call replaces the first.
    pub fn wildcard_empty(self, empty: EmptyAgent) -> Self {
        self.with(|policy| policy.star.empty = empty)
    }

    /// Applies groups only to the crawlers that they name. By default, if the file has no group for
    /// a crawler, the crawler obeys the group that its operator documents as a fallback. For
    /// example, Googlebot-Image obeys Googlebot's group if the file has no group for
    /// Googlebot-Image.
    pub fn without_family(self) -> Self {
        self.with(|policy| policy.family = false)
    }

    /// Sets the forms of a path that are compared with the rules in addition to the path as sent.
    /// Default: [`PathForm::OPTIONAL`]. If the application's paths contain path parameters
    /// (`;v=1`), leave out [`PathForm::Parameters`]. A second call replaces the first.
    ///
    /// Iterators are not accepted, because a `Result` is also an iterator, and an `Err` would count
    /// as an empty list:
    ///
    /// ```compile_fail,E0277
    /// # use robots_core::policy::Policy;
    /// # use robots_core::rules::PathForm;
    /// let policy = Policy::builder().forms("resolvd".parse::<PathForm>());
    /// ```
    pub fn forms(self, forms: impl AsRef<[PathForm]>) -> Self {
        self.with(|policy| policy.forms = forms.as_ref().iter().copied().collect())
    }

    /// Adds patterns of exempt paths. Requests for these paths pass unchecked. A pattern is a
    /// prefix and may contain `*` and `$`, as in robots.txt: `/health` also exempts `/healthy`, and
    /// `/` exempts every path, but `/health$` and `/$` exempt only one path. `/robots.txt` and
    /// `/.well-known/` are always exempt. A second call adds to the first.
    ///
    /// # Errors
    ///
    /// Returns an error if a pattern begins with neither `/` nor `*`, because it would not match
    /// any path. Also returns an error if a pattern contains braces, because only the patterns of
    /// routers use braces (`/api/{*rest}`).
    pub fn exempt_paths<P: AsRef<[u8]>>(mut self, patterns: impl IntoIterator<Item = P>) -> Result<Self, ValueError> {
        self.policy.exempt.patterns.extend(PathPattern::parse_exempt(patterns)?);
        Ok(self)
    }

    /// Adds networks whose requests pass unchecked. An item is a
    /// [`Network`](crate::agent::Network), an address, or the string form of either. Default: none.
    /// A second call adds to the first.
    ///
    /// ```
    /// use robots_core::policy::Policy;
    ///
    /// let networks = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"];
    /// let policy = Policy::builder().exempt_networks(networks)?.build();
    /// let error = Policy::builder().exempt_networks(["10.0.0.0/33"]).expect_err("no such length");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "\"10.0.0.0/33\" is not a network: the length after the slash must be a number up to 32"
    /// );
    /// # Ok::<(), robots_core::rules::ValueError>(())
    /// ```
    ///
    /// The method takes a slice, not an iterator. A `Result` is also an iterator, so an `Err` would
    /// exempt no network instead of reporting the error.
    ///
    /// ```compile_fail,E0277
    /// # use robots_core::policy::{Network, Policy};
    /// let policy = Policy::builder().exempt_networks("10.0.0.0/33".parse::<Network>());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a string is not a valid network.
    pub fn exempt_networks<N: IntoNetwork>(mut self, networks: impl AsRef<[N]>) -> Result<Self, ValueError> {
        let networks: Vec<_> = networks.as_ref().iter().map(N::network).collect::<Result<_, _>>()?;
        self.policy.exempt.networks.extend(networks);
        Ok(self)
    }

    /// Adds crawlers whose requests pass unchecked. Accepts the same names as [`Override::agent`].
    /// Default: none. A second call adds to the first.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Override::agent`].
    pub fn exempt_agents<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Result<Self, ValueError> {
        let names: Vec<_> =
            names.into_iter().map(|name| parse_crawler_name(name.as_ref())).collect::<Result<_, _>>()?;
        self.policy.exempt.agents.extend(names);
        Ok(self)
    }

    /// Adds names of cookies. A request passes if it has a cookie with one of these names. Default:
    /// none. A second call adds to the first. Choose names that are hard to guess: only the name of
    /// a cookie is compared, and any client can send a cookie with this name.
    ///
    /// # Errors
    ///
    /// Returns an error if a name cannot occur in a `Cookie` field.
    pub fn exempt_cookies<N: AsRef<[u8]>>(mut self, names: impl IntoIterator<Item = N>) -> Result<Self, ValueError> {
        self.policy.cookies.exempt.extend(Cookies::names(names)?);
        Ok(self)
    }

    /// Adds names of cookies that suggest that the sender is a person. Default: none. A second call
    /// adds to the first.
    ///
    /// # Errors
    ///
    /// Returns an error if a name cannot occur in a `Cookie` field.
    pub fn session_cookies<N: AsRef<[u8]>>(mut self, names: impl IntoIterator<Item = N>) -> Result<Self, ValueError> {
        self.policy.cookies.session.extend(Cookies::names(names)?);
        Ok(self)
    }

    /// Sets how disallowed requests are handled if they show signs of a human sender. Default:
    /// [`SuspectHuman::Record`]. A second call replaces the first.
    pub fn suspect_human(self, suspect_human: SuspectHuman) -> Self {
        self.with(|policy| policy.suspect_human = suspect_human)
    }

    /// Sets the action for impostors: senders that claim to be a crawler, but whose claim is
    /// refuted ([`RequestFacts::identity`](super::RequestFacts::identity)). The
    /// [`mode`](Self::mode) limits the action: impostors are refused only under [`Mode::Refuse`],
    /// at most tagged under [`Mode::Tag`], and only recorded under [`Mode::Observe`]. Default:
    /// [`Impostors::Observe`]. A second call replaces the first.
    ///
    /// The site's own tools are treated as impostors if they send the name of a crawler. To let
    /// these tools pass, exempt their networks ([`exempt_networks`](Self::exempt_networks)) or
    /// their cookies ([`exempt_cookies`](Self::exempt_cookies)).
    pub fn impostors(self, impostors: Impostors) -> Self {
        self.with(|policy| policy.identity.impostors = impostors)
    }

    /// Sets how well the claim to be a crawler must be verified before the request gets the
    /// crawler's privileges: exemptions for the crawler, and overrides that are milder than the
    /// mode. Default: [`IdentityNeeded::Claimed`]. A second call replaces the first.
    pub fn identity_needed(self, needed: IdentityNeeded) -> Self {
        self.with(|policy| policy.identity.needed = needed)
    }

    /// Adds an override, which sets another mode for some disallowed requests. If several overrides
    /// apply, the last one added decides. Default: none. A second call adds to the first.
    ///
    /// For crawlers with an override, the mode of the override limits [`rate`](Self::rate) and
    /// [`impostors`](Self::impostors), and [`mode`](Self::mode) does not.
    pub fn with_override(self, over: Override) -> Self {
        self.with(|policy| policy.overrides.push(over))
    }

    /// Sets the action for allowed requests that arrive too soon for the `Crawl-delay` of their
    /// crawler's groups. [`RateMode::Refuse`] refuses these requests only under [`Mode::Refuse`].
    /// Under [`Mode::Tag`] and [`Mode::Observe`], the requests are only recorded. Under
    /// [`Mode::Off`], requests are not counted. Default: [`RateMode::Off`]. A second call replaces
    /// the first.
    ///
    /// For search engines that people use, requests that arrive too soon are only recorded, unless
    /// a rate override names the crawler ([`with_rate_override`](Self::with_rate_override)). A rate
    /// override that names a search engine's crawler does not enforce the delay of a group for `*`.
    /// Exempt requests, disallowed requests and requests for parts of pages
    /// ([`RateLimit::is_for_asset`](super::RateLimit::is_for_asset)) are not counted. If the delay
    /// is longer than [`CrawlDelay::MAX_ENFORCED`](crate::rules::CrawlDelay::MAX_ENFORCED), this
    /// maximum is enforced instead.
    pub fn rate(self, mode: RateMode) -> Self {
        self.with(|policy| policy.rate.mode = mode)
    }

    /// Sets the burst: how many requests a crawler may send without delay after a pause. Default:
    /// [`Policy::DEFAULT_BURST`], 5. A second call replaces the first.
    pub fn rate_burst(self, burst: NonZeroU32) -> Self {
        self.with(|policy| policy.rate.burst = burst)
    }

    /// Adds a rate override, which sets another [`RateMode`] for some crawlers. The policy's
    /// [`mode`](Self::mode) does not limit the rate mode of an override. If several rate overrides
    /// apply, the last one added decides. Default: none. A second call adds to the first.
    pub fn with_rate_override(self, over: Override<RateMode>) -> Self {
        self.with(|policy| policy.rate.overrides.push(over))
    }

    /// Returns the policy.
    pub fn build(self) -> Policy {
        self.policy
    }
}
