//! A robots.txt that can be asked: the same rules, recogniser and policy that are enforced.

use tower_robots::agent::{Agent, Recognizer, Registry};
use tower_robots::policy::{Action, Decision, Facts, Policy, Reason};
use tower_robots::rules::{
    Access, Fallback, PathForm, ProductToken, Reading, RequestPath, RobotsTxt, RuleSet, Selection, Trace, Verdict,
};

use crate::commands::agents::SaidAgent;

/// A compiled robots.txt with the recogniser that goes with it.
#[derive(Debug)]
pub(super) struct Book {
    rules: RuleSet,
    recognizer: Recognizer,
    policy: Policy,
    reading: Reading,
}

/// On whose behalf is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who<'a> {
    /// A product token, taken as given.
    Token(&'a str),
    /// A `User-Agent` field, recognised first.
    UserAgent(&'a [u8]),
}

/// What the file says, and of whom.
#[derive(Debug)]
pub(super) struct Answer<'b> {
    pub(super) access: Access,
    pub(super) form: PathForm,
    pub(super) verdict: Option<Verdict<'b>>,
    pub(super) reason: Reason,
    /// What the policy does about it; a token alone makes no request.
    pub(super) action: Option<Action>,
    pub(super) agent: Option<Recognised>,
}

#[derive(Debug)]
pub(super) struct Recognised {
    pub(super) agent: Agent,
    pub(super) held_to_star: bool,
}

impl Recognised {
    pub(super) fn said(&self) -> SaidAgent<'_> {
        SaidAgent::new(&self.agent, self.held_to_star)
    }
}

impl Book {
    pub(super) fn new(bytes: Vec<u8>, reading: Reading) -> Self {
        Self::with_policy(bytes, reading, Policy::default())
    }

    pub(super) fn with_policy(bytes: Vec<u8>, reading: Reading, policy: Policy) -> Self {
        let robots = RobotsTxt::parse(bytes);
        let registry = Registry::builtin();
        Self {
            rules: robots.compile_with(reading, |name| registry.stands_for(name.value())),
            recognizer: Recognizer::new(registry.clone(), &robots),
            policy,
            reading,
        }
    }

    pub(super) const fn robots(&self) -> &RobotsTxt {
        self.rules.document()
    }

    pub(super) fn path<'u>(&self, url: &'u [u8]) -> RequestPath<'u> {
        match self.reading {
            Reading::Reference => RequestPath::verbatim(url),
            _ => self.policy.path(url),
        }
    }

    pub(super) fn ask(&self, who: &Who<'_>, method: &str, path: &RequestPath<'_>) -> Answer<'_> {
        match who {
            Who::Token(token) => self.ask_token(token, path),
            Who::UserAgent(field) => {
                let agent = self.recognizer.identify(field);
                let held_to_star = self.policy.holds_to_star(&agent);
                let decision = self.policy.decide(&self.rules, std::slice::from_ref(&agent), Facts::new(method, path));
                Answer { agent: Some(Recognised { agent, held_to_star }), ..self.answer(&decision, path) }
            }
        }
    }

    fn ask_token(&self, token: &str, path: &RequestPath<'_>) -> Answer<'_> {
        // RFC 9309, section 2.2.2: implicitly allowed. The reference parser leaves that to its caller.
        if self.reading != Reading::Reference && path.is_robots_txt() {
            return Answer {
                access: Access::Allow,
                form: PathForm::Standard,
                verdict: None,
                reason: Reason::Exempt,
                action: None,
                agent: None,
            };
        }
        let verdict = self.rules.select(&[ProductToken::new(token)], Fallback::Star).verdict(path);
        let reason = match (verdict.group(), verdict.access()) {
            (None, _) => Reason::NoGroup,
            (Some(_), Access::Allow) => Reason::Allowed,
            (Some(_), Access::Disallow) => Reason::Disallowed,
        };
        Answer {
            access: verdict.access(),
            form: verdict.form(),
            verdict: Some(verdict),
            reason,
            action: None,
            agent: None,
        }
    }

    /// How an answer came about: every rule that matches, in every form of the path.
    pub(super) fn trace<'b>(&'b self, who: &Who<'_>, answer: &Answer<'b>, path: &RequestPath<'_>) -> Option<Trace<'b>> {
        let decider = answer.verdict?.group()?.line();
        let own = match who {
            Who::Token(token) => vec![ProductToken::new(token)],
            Who::UserAgent(_) => answer.agent.as_ref().map_or_else(Vec::new, |known| known.agent.tokens().to_vec()),
        };
        // The policy has chosen among these; the group that decided says which it was.
        let chain = [own.as_slice(), &own[..own.len().min(1)], &[]];
        let fallbacks = [Fallback::Nothing, Fallback::Nothing, Fallback::Star];
        let selected = |(tokens, fallback): (&[ProductToken], Fallback)| self.rules.select(tokens, fallback);
        chain
            .into_iter()
            .zip(fallbacks)
            .map(selected)
            .find(|selection: &Selection<'_>| selection.groups().any(|group| group.line() == decider))
            .map(|selection| selection.trace(path))
    }

    /// The token for which the groups of a trace were chosen; `None` where they are those of `*`.
    pub(super) fn token_of(&self, who: &Who<'_>, answer: &Answer<'_>, trace: &Trace<'_>) -> Option<ProductToken> {
        let own = match who {
            Who::Token(token) => vec![ProductToken::new(token)],
            Who::UserAgent(_) => answer.agent.as_ref().map_or_else(Vec::new, |known| known.agent.tokens().to_vec()),
        };
        let lines = |group: &tower_robots::rules::Group<'_>| group.line();
        own.into_iter().find(|token| {
            let named = self.rules.select(std::slice::from_ref(token), Fallback::Nothing);
            named.applies() && named.groups().map(|group| group.line()).eq(trace.groups().iter().map(lines))
        })
    }

    fn answer<'b>(&'b self, decision: &Decision<'b>, path: &RequestPath<'_>) -> Answer<'b> {
        let verdict = decision.verdict();
        Answer {
            access: verdict.map_or(Access::Allow, |verdict| verdict.access()),
            form: verdict.map_or_else(|| path.form(), |verdict| verdict.form()),
            verdict,
            reason: decision.reason(),
            action: Some(decision.action()),
            agent: None,
        }
    }
}
