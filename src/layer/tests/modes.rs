//! Tests that the action for a request is never stricter than the mode allows. Every mode is
//! combined with every rate mode, handling of impostors, override and identity.

use super::*;
use crate::agent::{Category, IdentityMethod, UndecidedReason};
use crate::live::TestClock;
use crate::policy::{Impostors, Override, RateMode};

const FILE: &str =
    "User-agent: GPTBot\nUser-agent: Googlebot\nCrawl-delay: 10\nDisallow: /drafts/\n\nUser-agent: *\nDisallow:\n";

/// `None` means that senders are not checked.
const IDENTITIES: [Option<Identity>; 6] = [
    None,
    Some(Identity::Verified(IdentityMethod::Range)),
    Some(REFUTED),
    Some(Identity::Undecided(UndecidedReason::Stale)),
    Some(Identity::Unverifiable),
    Some(Identity::Unclaimed),
];

impl Answer {
    fn as_str(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// The requests that an override applies to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Named {
    Agent(&'static str),
    Category,
    IndexEngines,
    Pattern,
}

impl Named {
    const ALL: [Self; 5] =
        [Self::Agent("GPTBot"), Self::Agent("Googlebot"), Self::Category, Self::IndexEngines, Self::Pattern];

    fn fits(self, agent: &str) -> bool {
        match self {
            Self::Agent(name) => agent.contains(name),
            Self::Category => agent == GPTBOT,
            Self::IndexEngines => agent == GOOGLEBOT,
            Self::Pattern => agent != FIREFOX,
        }
    }

    fn mode(self, mode: Mode) -> Override {
        match self {
            Self::Pattern => Override::pattern("/drafts/", mode).expect("a pattern"),
            _ => self.of(mode),
        }
    }

    fn of<M: Copy>(self, mode: M) -> Override<M> {
        match self {
            Self::Agent(name) => Override::agent(name, mode).expect("a name"),
            Self::Category => Override::category(Category::AiTraining, mode),
            Self::IndexEngines | Self::Pattern => Override::index_engines(mode),
        }
    }
}

/// The overrides of a policy: of the mode, of the rate mode, or of both.
#[derive(Clone, Copy, Debug)]
struct Overrides {
    mode: Option<(Named, Mode)>,
    rate: Option<(Named, RateMode)>,
}

impl Overrides {
    fn all() -> Vec<Self> {
        let modes = || Named::ALL.iter().flat_map(|named| Mode::ALL.iter().map(|mode| (*named, *mode)));
        let by_name = || Named::ALL.iter().filter(|named| **named != Named::Pattern);
        let rates = || by_name().flat_map(|named| RateMode::ALL.iter().map(|rate| (*named, *rate)));
        let both = |mode| {
            RateMode::ALL
                .iter()
                .map(move |rate| Some((Named::Agent("GPTBot"), *rate)))
                .map(move |rate| Self { mode: Some((Named::Agent("GPTBot"), mode)), rate })
        };
        let mut all = vec![Self { mode: None, rate: None }];
        all.extend(modes().map(|mode| Self { mode: Some(mode), rate: None }));
        all.extend(rates().map(|rate| Self { mode: None, rate: Some(rate) }));
        all.extend(Mode::ALL.iter().flat_map(|mode| both(*mode)));
        all
    }

    const fn are_none(self) -> bool {
        self.mode.is_none() && self.rate.is_none()
    }
}

/// The possible answers to a request, ordered from lenient to strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    Pass,
    Tag,
    Limit,
    Refuse,
}

/// The settings of a policy, except its mode.
#[derive(Clone, Copy, Debug)]
struct Settings {
    rate: RateMode,
    impostors: Impostors,
    overrides: Overrides,
}

/// A policy and a request that are tested together.
#[derive(Clone, Copy, Debug)]
struct Row {
    settings: Settings,
    identity: Option<Identity>,
    agent: &'static str,
    asked: Asked,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    Disallowed,
    Allowed,
    TooSoon,
}

impl Settings {
    fn all() -> impl Iterator<Item = Self> {
        let impostors = [Impostors::Observe, Impostors::Tag, Impostors::Refuse];
        let each = RateMode::ALL.iter().flat_map(move |rate| impostors.map(|impostors| (*rate, impostors)));
        each.flat_map(|(rate, impostors)| {
            Overrides::all().into_iter().map(move |overrides| Self { rate, impostors, overrides })
        })
    }

    fn policy(&self, mode: Mode) -> Policy {
        let policy = Policy::builder().mode(mode).rate(self.rate).rate_burst(std::num::NonZeroU32::MIN);
        let policy = policy.impostors(self.impostors);
        let over = self.overrides.mode.map(|(named, mode)| named.mode(mode));
        let policy = over.into_iter().fold(policy, PolicyBuilder::with_override);
        let over = self.overrides.rate.map(|(named, rate)| named.of(rate));
        over.into_iter().fold(policy, PolicyBuilder::with_rate_override).build()
    }

    fn rows(self) -> impl Iterator<Item = Row> {
        let agents = [GPTBOT, GOOGLEBOT, FIREFOX];
        let asked = [Asked::Disallowed, Asked::Allowed, Asked::TooSoon];
        let each = IDENTITIES.into_iter().flat_map(move |identity| agents.map(|agent| (identity, agent)));
        each.flat_map(move |(identity, agent)| asked.map(|asked| Row { settings: self, identity, agent, asked }))
    }
}

impl Row {
    fn request(&self) -> Request<Body> {
        let mut request = get(if self.asked == Asked::Disallowed { "/drafts/x" } else { "/page" }, self.agent);
        if let Some(identity) = self.identity {
            request.extensions_mut().insert(identity);
        }
        request
    }

    fn is_impostor(&self) -> bool {
        self.identity == Some(REFUTED)
    }

    /// Returns the mode that applies to the request if the policy has the mode `site`.
    fn mode(&self, site: Mode, with_patterns: bool) -> Mode {
        let over = self
            .settings
            .overrides
            .mode
            .filter(|(named, _)| named.fits(self.agent) && (*named != Named::Pattern || with_patterns));
        match over {
            // An override for a crawler must not give a more lenient mode to an impostor that
            // claims the crawler's name.
            Some((named, mode)) if self.is_impostor() && named != Named::Pattern => mode.max(site),
            Some((_, mode)) => mode,
            None if self.agent == GOOGLEBOT && !self.is_impostor() => site.min(Mode::Tag),
            None => site,
        }
    }

    fn limit(&self, site: Mode) -> RateMode {
        let most = if self.mode(site, false) == Mode::Refuse { RateMode::Refuse } else { RateMode::Observe };
        let is_spared = self.agent == GOOGLEBOT && !self.is_impostor();
        let spared = |rate: RateMode| if is_spared { rate.min(RateMode::Observe) } else { rate };
        let of_site = spared(self.settings.rate.min(most));
        match self.settings.overrides.rate.filter(|(named, _)| named.fits(self.agent)) {
            Some((named, rate)) => {
                let rate = if matches!(named, Named::Agent(_)) { rate } else { spared(rate) };
                if self.is_impostor() { rate.max(of_site) } else { rate }
            }
            None => of_site,
        }
    }

    /// Returns what should happen to the request if the policy has the mode `site`.
    fn answer(&self, site: Mode) -> Answer {
        if self.agent == FIREFOX {
            return Answer::Pass;
        }
        let of = |mode: Mode| match mode {
            Mode::Refuse => Answer::Refuse,
            Mode::Tag => Answer::Tag,
            _ => Answer::Pass,
        };
        let mut answer = Answer::Pass;
        if self.asked == Asked::Disallowed {
            answer = of(self.mode(site, true));
        }
        if self.is_impostor() {
            let impostors = match self.settings.impostors {
                Impostors::Refuse => Mode::Refuse,
                Impostors::Tag => Mode::Tag,
                _ => Mode::Off,
            };
            answer = answer.max(of(impostors.min(self.mode(site, false))));
        }
        if self.asked == Asked::TooSoon && self.limit(site) == RateMode::Refuse {
            answer = answer.max(Answer::Limit);
        }
        answer
    }
}

/// Only every fifth row is tested, unless `ROBOTSD_LONG` is set. The step and the number of rows
/// per policy must have no common factor.
const STEP: usize = 5;

/// Responds with the request that it received.
async fn mirror(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let sent = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
    Ok(Response::builder().header("x-app", "1").body(Full::from(sent)).expect("a response"))
}

#[tokio::test]
async fn the_mode_limits_the_action_for_a_request() {
    let clock = TestClock::new();
    let live = LiveRobots::text(FILE).clock(clock.read()).open().expect("a robots.txt");
    let (noted, sink) = noting(None);
    let layer = RobotsLayer::new(live.clone())
        .identity_from(|extensions| extensions.get::<Identity>().copied())
        .on_disallowed(move |event| *sink.lock() = Some(event.record.clone()));
    let (mut compared, mut bare_rows) = (0, 0);
    let policies = Settings::all().flat_map(|settings| Mode::ALL.iter().map(move |mode| (settings, *mode)));
    let step = if std::env::var_os("ROBOTSD_LONG").is_some() { 1 } else { STEP };
    let mut number = 0;
    for (settings, mode) in policies {
        live.set_policy(settings.policy(mode));
        for row in settings.rows() {
            number += 1;
            if number % step != 0 {
                continue;
            }
            // The bucket is refilled before each row.
            clock.pass(Duration::from_secs(60));
            if row.asked == Asked::TooSoon {
                let _ = ask(layer.clone(), row.request()).await;
            }
            noted.lock().take();
            let (head, body) =
                layer.layer(service_fn(mirror)).oneshot(row.request()).await.expect("infallible").into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            let answer = match head.status {
                StatusCode::TOO_MANY_REQUESTS => Answer::Limit,
                StatusCode::FORBIDDEN => Answer::Refuse,
                _ if body.windows(14).any(|part| part == b"robots-verdict") => Answer::Tag,
                _ => Answer::Pass,
            };
            assert_eq!(answer, row.answer(mode), "{mode} {row:?}");
            let is_untouched = mode <= Mode::Observe && row.settings.overrides.are_none();
            if is_untouched || answer == Answer::Pass {
                let bare = mirror(row.request()).await.expect("infallible");
                assert_eq!((head.status, &head.headers), (bare.status(), bare.headers()), "{mode} {row:?}");
                assert_eq!(body, bare.into_body().collect().await.expect("a body").to_bytes(), "{mode} {row:?}");
            }
            let record = noted.lock().take();
            match &record {
                Some(record) => {
                    assert_eq!(record.would.as_str(), row.answer(Mode::Refuse).as_str(), "{mode} {row:?} {record:?}")
                }
                // Unless the mode is `off`, a request has a record if the mode `refuse` would not
                // let it pass.
                None => assert!(
                    answer == Answer::Pass
                        && (mode == Mode::Off || has_off(&row) || row.answer(Mode::Refuse) == Answer::Pass),
                    "{mode} {row:?}"
                ),
            }
            compared += 1;
            bare_rows += usize::from(is_untouched);
        }
    }
    println!("{compared} answers, of which {bare_rows} are those of no layer");
    assert!(compared > 50_000 / step && bare_rows > 600 / step, "{compared} {bare_rows}");
}

/// Reports whether an override turns recording off.
fn has_off(row: &Row) -> bool {
    row.settings.overrides.mode.is_some_and(|(_, mode)| mode == Mode::Off)
        || row.settings.overrides.rate.is_some_and(|(_, rate)| rate == RateMode::Off)
}
