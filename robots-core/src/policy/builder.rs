//! Building a policy.

use std::num::NonZeroU32;

use super::decide::{Exemptions, Policy};
use super::decision::{IdentityNeeded, IdentityRules, Impostors};
use super::human_evidence::{Cookies, SuspectHuman};
use super::overrides::{Mode, Override, called};
use super::rate::{RateMode, RateRules};
use super::scope::{EmptyAgent, Star, StarExceptions, StarScope};
use crate::agent::{Category, IntoNetwork};
use crate::rules::{PathForm, PathForms, PathPattern, ValueError};

/// Builds a [`Policy`]. A value that would match nothing is refused where it is given.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PolicyBuilder {
    policy: Policy,
}

impl Policy {
    /// Starts from the defaults, which each method of the builder names.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }
}

impl From<PolicyBuilder> for Policy {
    fn from(builder: PolicyBuilder) -> Self {
        builder.build()
    }
}

/// The default policy in this mode.
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
                scope: StarScope::default(),
                methods: Self::DEFAULT_STAR_METHODS.map(Into::into).into(),
                exempt: Self::DEFAULT_STAR_EXEMPT.into(),
                exceptions: StarExceptions::default(),
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

    /// How disallowed requests are handled, and the most that is done about any request: [`rate`](Self::rate) and
    /// [`impostors`](Self::impostors) refuse where this is [`Mode::Refuse`]. Only an override goes beyond it. Default:
    /// [`Mode::Observe`]. A second call replaces the first.
    ///
    /// [`Mode::Refuse`] tags the crawlers of search engines that people use
    /// ([`Agent::is_index_engine`](crate::agent::Agent::is_index_engine)), unless an override fits.
    pub fn mode(self, mode: Mode) -> Self {
        self.with(|policy| policy.mode = mode)
    }

    /// The classes of agents that the groups for `*` are for. Default: [`StarScope::Declared`]. A second call replaces the first.
    pub fn star_scope(self, scope: StarScope) -> Self {
        self.with(|policy| policy.star.scope = scope)
    }

    /// The methods the groups for `*` are for, without case. Default: `GET` and `HEAD`. Methods that IANA's registry does
    /// not have are always held: most servers answer them like `GET`. A group that names an agent holds for every method.
    /// A second call replaces the first.
    ///
    /// # Errors
    ///
    /// If one of them is not made of letters and hyphens.
    pub fn star_methods<M: AsRef<str>>(mut self, methods: impl IntoIterator<Item = M>) -> Result<Self, ValueError> {
        self.policy.star.methods = Star::methods(methods)?;
        Ok(self)
    }

    /// Categories of registered crawlers that the groups for `*` are not for. Default: infrastructure, monitoring,
    /// preview, feed and user-fetch. A second call replaces the first.
    pub fn star_exempt(self, categories: impl AsRef<[Category]>) -> Self {
        self.with(|policy| policy.star.exempt = categories.as_ref().into())
    }

    /// Whether the groups for `*` are for crawlers documented to ignore them. Default: [`StarExceptions::Honour`].
    /// A second call replaces the first.
    pub fn star_exceptions(self, exceptions: StarExceptions) -> Self {
        self.with(|policy| policy.star.exceptions = exceptions)
    }

    /// Whether the groups for `*` are for requests without a `User-Agent`. Default: [`EmptyAgent::ByScope`].
    /// A second call replaces the first.
    pub fn star_empty(self, empty: EmptyAgent) -> Self {
        self.with(|policy| policy.star.empty = empty)
    }

    /// Holds a crawler only to groups that name it itself, not to those of the crawlers its operator says it follows
    /// (Googlebot's group applies to Googlebot-Image if it has none). Default: those apply as well.
    pub fn without_family(self) -> Self {
        self.with(|policy| policy.family = false)
    }

    /// The forms of a path that are judged besides the one it was sent in. Default: [`PathForm::OPTIONAL`]. An
    /// application whose path parameters are part of its pages leaves out [`PathForm::Parameters`]. A second call replaces the first.
    pub fn forms(self, forms: impl IntoIterator<Item = PathForm>) -> Self {
        self.with(|policy| policy.forms = forms.into_iter().collect())
    }

    /// Further path patterns whose requests pass unjudged, as in robots.txt: prefixes, with `*` and `$`, so `/health` exempts
    /// `/healthy` too, and `/health$` does not. `/robots.txt` and `/.well-known/` always are exempt, whatever the file and this say.
    /// A second call adds to the first.
    ///
    /// # Errors
    ///
    /// If one of them begins with neither `/` nor `*`: it would match no path.
    pub fn exempt_paths<P: AsRef<[u8]>>(mut self, patterns: impl IntoIterator<Item = P>) -> Result<Self, ValueError> {
        self.policy.exempt.patterns.extend(PathPattern::parse_all(patterns)?);
        Ok(self)
    }

    /// Adds networks whose requests pass unjudged: [`Network`](crate::agent::Network)s, addresses, or their texts. Default: none. A
    /// second call adds to the first.
    ///
    /// ```
    /// use robots_core::policy::Policy;
    ///
    /// let policy = Policy::builder().exempt_networks(["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"])?.build();
    /// let error = Policy::builder().exempt_networks(["10.0.0.0/33"]).expect_err("no such length");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "\"10.0.0.0/33\" is not a network: the length after the slash is a number up to 32"
    /// );
    /// # Ok::<(), robots_core::rules::ValueError>(())
    /// ```
    ///
    /// A list, not an iterator: a `Result` is an iterator too, of nothing where it is an error, and would exempt no network
    /// without a word.
    ///
    /// ```compile_fail,E0277
    /// # use robots_core::policy::{Network, Policy};
    /// let policy = Policy::builder().exempt_networks("10.0.0.0/33".parse::<Network>());
    /// ```
    ///
    /// # Errors
    ///
    /// If a text is not a valid network.
    pub fn exempt_networks<N: IntoNetwork>(mut self, networks: impl AsRef<[N]>) -> Result<Self, ValueError> {
        let networks: Vec<_> = networks.as_ref().iter().map(N::network).collect::<Result<_, _>>()?;
        self.policy.exempt.networks.extend(networks);
        Ok(self)
    }

    /// Adds crawlers whose requests pass unjudged, by the names that [`Override::agent`] takes. Default: none. A second call adds to
    /// the first.
    ///
    /// # Errors
    ///
    /// As [`Override::agent`].
    pub fn exempt_agents<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Result<Self, ValueError> {
        let names: Vec<_> = names.into_iter().map(|name| called(name.as_ref())).collect::<Result<_, _>>()?;
        self.policy.exempt.agents.extend(names);
        Ok(self)
    }

    /// Adds names of cookies whose requests pass. Default: none. A second call adds to the first. Only the name is looked at, and any
    /// client can send it: choose one that nobody guesses.
    ///
    /// # Errors
    ///
    /// If a `Cookie` field cannot hold such a name.
    pub fn exempt_cookies<N: AsRef<[u8]>>(mut self, names: impl IntoIterator<Item = N>) -> Result<Self, ValueError> {
        self.policy.cookies.exempt.extend(Cookies::names(names)?);
        Ok(self)
    }

    /// Adds names of cookies that suggest a person behind a request. Default: none. A second call adds to the first.
    ///
    /// # Errors
    ///
    /// If a `Cookie` field cannot hold such a name.
    pub fn session_cookies<N: AsRef<[u8]>>(mut self, names: impl IntoIterator<Item = N>) -> Result<Self, ValueError> {
        self.policy.cookies.session.extend(Cookies::names(names)?);
        Ok(self)
    }

    /// How a disallowed request with signs of a person is handled. Default: [`SuspectHuman::Record`]. A second call replaces the first.
    pub fn suspect_human(self, suspect_human: SuspectHuman) -> Self {
        self.with(|policy| policy.suspect_human = suspect_human)
    }

    /// The action for requests whose claim is refuted ([`RequestFacts::identity`](super::RequestFacts::identity)), as far as the
    /// [`mode`](Self::mode) lets it: they are refused under [`Mode::Refuse`], tagged at most under [`Mode::Tag`], and recorded under
    /// [`Mode::Observe`]. Default: [`Impostors::Observe`]. A second call replaces the first.
    ///
    /// Tools of the site's own that send the name of a crawler are impostors too: exempt their networks
    /// ([`exempt_networks`](Self::exempt_networks)) or cookies.
    pub fn impostors(self, impostors: Impostors) -> Self {
        self.with(|policy| policy.identity.impostors = impostors)
    }

    /// The identity that overrides milder than the mode need, and the exemption of agents. Default:
    /// [`IdentityNeeded::Claimed`]. A second call replaces the first.
    pub fn identity_needed(self, needed: IdentityNeeded) -> Self {
        self.with(|policy| policy.identity.needed = needed)
    }

    /// Adds another mode for some disallowed requests; of several that fit, the last one added counts. Default: none. For the crawlers of
    /// an override its mode also replaces the [`mode`](Self::mode) as the most that [`rate`](Self::rate) and
    /// [`impostors`](Self::impostors) do. A second call adds to the first.
    pub fn with_override(self, over: Override) -> Self {
        self.with(|policy| policy.overrides.push(over))
    }

    /// The action for allowed requests that come sooner than the `Crawl-delay` of their crawler's groups. [`RateMode::Refuse`] refuses them
    /// under [`Mode::Refuse`] alone; under [`Mode::Tag`] and [`Mode::Observe`] it records them, and under [`Mode::Off`] nothing is
    /// counted. Default: [`RateMode::Off`]. A second call replaces the first.
    ///
    /// The crawlers of search engines that people use are observed at most, unless an override names one of them
    /// ([`with_rate_override`](Self::with_rate_override)); a delay of a group for `*` never limits them. Requests for parts of
    /// pages ([`Pace::is_for_asset`](super::Pace::is_for_asset)) do not count, nor do those that are exempt or disallowed. The delay is enforced up to
    /// [`CrawlDelay::LONGEST_ENFORCED`](crate::rules::CrawlDelay::LONGEST_ENFORCED).
    pub fn rate(self, mode: RateMode) -> Self {
        self.with(|policy| policy.rate.mode = mode)
    }

    /// How many requests pass at once after a pause. Default: [`Policy::DEFAULT_BURST`], 5. A second call replaces the first.
    pub fn rate_burst(self, burst: NonZeroU32) -> Self {
        self.with(|policy| policy.rate.burst = burst)
    }

    /// Adds another mode of limiting for some crawlers, which the [`mode`](Self::mode) does not bound; of several that fit, the last
    /// one added counts. Default: none. A second call adds to the first.
    pub fn with_rate_override(self, over: Override<RateMode>) -> Self {
        self.with(|policy| policy.rate.overrides.push(over))
    }

    /// The policy.
    pub fn build(self) -> Policy {
        self.policy
    }
}
