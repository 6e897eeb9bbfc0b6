//! An explanation as text: the answer in one sentence, which says whether this crawler may fetch this URL and which line says so,
//! then the lines of the file.

use std::io::{self, Write};

use tower_robots::agent::{Agent, Identity, Obeys};
use tower_robots::internals::first_few;
use tower_robots::policy::{Action, RateMode, Reason};
use tower_robots::rules::{Access, Fallback, Group, Line, PathForm, ProductToken, Rule, Trace, Verdict};

use super::explanation::{AssumedHost, ExplainedRequest, Explanation, Requester};
use crate::render::printable;

/// Matching rules that are shown, and forms of the path.
const SHOWN: usize = 20;

impl ExplainedRequest<'_> {
    pub(super) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { path, explanation, .. } = self;
        writeln!(out, "{}", self.headline())?;
        match self.requester {
            Requester::Token { crawler: Some(crawler), tokens, .. } => {
                let tokens: Vec<_> = tokens.iter().map(ToString::to_string).collect();
                let (crawler, tokens) = (printable(crawler), printable(tokens.join(", then ")));
                writeln!(out, "  agent:  the token of {crawler}; obeys {tokens}")?;
            }
            Requester::Token { name, crawler: None, .. } => {
                writeln!(out, "  agent:  the token {}, taken as given", printable(name))?;
            }
            Requester::Agents { .. } => {
                explanation.agent().map_or(Ok(()), |agent| writeln!(out, "  agent:  {agent}"))?;
            }
        }
        if let Some(claim) = &self.sender.claim {
            let address = match claim.identity {
                Identity::Verified(_) => "the address is verified as the crawler's",
                Identity::Refuted(_) => "the address is not the crawler's",
                _ => "the address is not verified",
            };
            writeln!(out, "  sender: {address}: {}", claim.identity)?;
            claim.steps.iter().try_for_each(|step| writeln!(out, "          {}", printable(step)))?;
        }
        writeln!(out, "  host:   {}", AssumedHost::of(&self.url, self.site))?;
        self.group(out)?;
        if let Some(trace) = &self.trace {
            self.rules(out, trace)?;
        }
        if let Some(delay) = explanation.crawl_delay() {
            let reads = match explanation.obeys_crawl_delay() {
                Obeys::Yes => "its operator says that it obeys the delay",
                Obeys::No => "its operator says that it does not read it",
                _ => "whether it obeys the delay is not known",
            };
            writeln!(out, "  delay:  {}", self.line(delay.line()))?;
            writeln!(out, "          one request in {} s; {reads}", delay.interval().as_secs_f64())?;
        }
        if explanation.form == PathForm::Standard && path.as_bytes() != self.url.as_bytes() {
            writeln!(out, "  path:   {}", printable(path.as_bytes()))?;
        }
        if self.site.is_configured() {
            pace(out, explanation)?;
        }
        if self.site.is_configured() || self.sender.claim.is_some() { decision(out, explanation) } else { Ok(()) }
    }

    /// The groups that apply, and why.
    fn group(&self, out: &mut impl Write) -> io::Result<()> {
        let Some(trace) = &self.trace else {
            return match self.explanation.reason {
                Reason::Exempt => writeln!(out, "  group:  none applies: the path or the agent is exempt"),
                _ => writeln!(out, "  group:  none applies to this request, so the file does not apply to it"),
            };
        };
        for name in trace.groups.iter().flat_map(|group| group.names()) {
            writeln!(out, "  group:  {}", self.line(name.line()))?;
        }
        match self.explanation.token_of(trace) {
            Some(token) => writeln!(out, "          because it names {}", printable(token.as_bytes())),
            None => writeln!(out, "          because no group names it, and \"*\" is for every other crawler"),
        }
    }

    /// Every rule that matches, form by form; the one that decides is marked.
    fn rules(&self, out: &mut impl Write, trace: &Trace<'_>) -> io::Result<()> {
        let decider = trace.verdict.rule().filter(|rule| !rule.pattern().is_empty()).map(Rule::line);
        let many = trace.forms.len() > 1;
        let deciding = trace.deciding();
        for (number, form) in trace.forms.iter().enumerate() {
            let decides = deciding.is_some_and(|deciding| std::ptr::eq(deciding, form));
            if number >= SHOWN && !decides {
                continue;
            }
            if many {
                let mark = if decides { "  <- decides" } else { "" };
                writeln!(out, "  read as {}: {}{mark}", form.form.as_str(), printable(&form.path))?;
            }
            for rule in form.rules.iter().take(SHOWN) {
                let mark = if decides && Some(rule.line()) == decider { "  <- decides" } else { "" };
                writeln!(out, "  rule:   {}{mark}", self.line(rule.line()))?;
            }
            if form.rules.len() > SHOWN {
                writeln!(out, "          and {} more", form.rules.len() - SHOWN)?;
            }
            if form.rules.is_empty() {
                writeln!(out, "  rule:   none of the group's rules matches, so the path is allowed")?;
            }
        }
        if trace.forms.len() > SHOWN {
            writeln!(out, "  of {} forms the first {SHOWN} are shown, and the one that decides", trace.forms.len())?;
        }
        Ok(())
    }

    /// A line of the file, with its place.
    fn line(&self, number: usize) -> String {
        let text = self.explanation.evaluator.robots().lines().nth(number.saturating_sub(1));
        let text = text.map_or_else(String::new, |line: Line<'_>| printable(line.bytes()));
        format!("{}:{number}: {text}", printable(self.file))
    }

    /// As in ``GPTBot may not fetch /drafts/x: line 4, `Disallow: /drafts/`, in the group for GPTBot``.
    fn headline(&self) -> String {
        let Self { explanation, .. } = self;
        let may = match explanation.access {
            Access::Allow => "may",
            Access::Disallow => "may not",
        };
        let url = printable(self.url.as_bytes());
        let fetch = match self.method {
            "GET" | "HEAD" => format!("fetch {url}"),
            method => format!("send {} to {url}", printable(method)),
        };
        let why = match (explanation.reason, explanation.verdict) {
            (Reason::Exempt, _) => self.exempt(),
            (_, Some(verdict)) if verdict.group().is_some() => {
                let token = self.trace.as_ref().and_then(|trace| explanation.token_of(trace));
                [decider(verdict, token), read_as(explanation.form, self.trace.as_ref())].concat()
            }
            _ => self.without_group(),
        };
        let sentence = format!("{} {may} {fetch}: {why}", self.requester.name());
        // A class of agents begins the sentence, and a name stays as it is written.
        match ["a ", "this ", "any "].iter().any(|class| sentence.starts_with(class)) {
            true => sentence[..1].to_uppercase() + &sentence[1..],
            false => sentence,
        }
    }

    fn without_group(&self) -> String {
        let Self { explanation, path, .. } = self;
        let evaluator = explanation.evaluator;
        let star = evaluator.rules.select(&[], Fallback::Star).applies();
        let agent = explanation.agent.as_ref();
        match (star, explanation.fallback == Fallback::Star) {
            (true, false) if agent.is_none_or(|agent| agent.obeys_star() == Obeys::No) => {
                "no group names it, and its operator says that it does not obey `*`".to_owned()
            }
            (true, false) => match agent.filter(|agent| agent.is_registered()).and_then(Agent::category) {
                // The crawler itself may obey the file: that is what an expectation asks for.
                Some(category) => {
                    let star = evaluator.rules.select(&[], Fallback::Star).verdict(path);
                    let disallows = |rule: &Rule<'_>| rule.access() == Access::Disallow && !rule.pattern().is_empty();
                    let though = star.rule().filter(disallows).map_or_else(String::new, |rule| {
                        format!(", though {}, is for every crawler without a group", rule_line(rule))
                    });
                    let who = if self.site.is_configured() { "the config" } else { "robotsd by default" };
                    format!("no group names it, and {who} does not apply `*` to {category} agents{though}")
                }
                None => "no group names it, and the group for `*` does not apply to it".to_owned(),
            },
            // It holds for the agent, so it does not for the method.
            (true, true) => {
                format!("no group names it, and the group for `*` does not apply to {}", printable(self.method))
            }
            (false, _) => "no group of the file is for it".to_owned(),
        }
    }

    /// Exempt from judging, regardless of the file; its verdict is printed too.
    fn exempt(&self) -> String {
        let Self { explanation, path, .. } = self;
        if path.is_robots_txt() {
            return "every crawler may read robots.txt itself".to_owned();
        }
        let is_well_known = path.as_bytes().starts_with(b"/.well-known/");
        let who = if is_well_known {
            "what is below /.well-known/ is always exempt"
        } else {
            "the config exempts the path or the agent"
        };
        match explanation.verdict_of_file(path).rule().filter(|rule| rule.access() == Access::Disallow) {
            Some(rule) if !rule.pattern().is_empty() => format!("{who}, though {}, disallows it", rule_line(rule)),
            _ => who.to_owned(),
        }
    }
}

/// The action of the policy.
fn decision(out: &mut impl Write, explanation: &Explanation<'_>) -> io::Result<()> {
    let Some(action) = explanation.action else { return Ok(()) };
    let what = match (action, explanation.reason) {
        (Action::Refuse, _) => "refuse",
        (Action::Tag, Reason::SearchEngine) => "tag, and let pass (a search engine is not refused without an override)",
        (Action::Tag, _) => "tag, and let pass",
        (Action::Pass, Reason::Observed) => "let pass, and record (the mode is observe)",
        (Action::Pass, Reason::Impostor) => "let pass, and record (an impostor, and the mode is observe)",
        (Action::Pass, Reason::Off) => "let pass (the mode is off)",
        (Action::Pass, Reason::Exempt) => "let pass unjudged",
        _ => "let pass",
    };
    writeln!(out, "  policy: {what}")
}

/// What becomes of a request that comes too soon.
fn pace(out: &mut impl Write, explanation: &Explanation<'_>) -> io::Result<()> {
    if explanation.action.is_none() {
        return Ok(());
    }
    let delay = explanation.crawl_delay();
    match explanation.pace.map(|(interval, mode)| (interval.as_secs_f64(), mode)) {
        Some((interval, RateMode::Refuse)) => {
            writeln!(out, "  rate:   one request in {interval} s; one that comes sooner is answered with 429")
        }
        Some((interval, _)) => {
            writeln!(out, "  rate:   one request in {interval} s; one that comes sooner is let pass, and recorded")
        }
        None if delay.is_none() => writeln!(out, "  rate:   not limited: no Crawl-delay applies to the request"),
        None => writeln!(out, "  rate:   not limited: the config does not enforce the Crawl-delay for this request"),
    }
}

/// Names of a group that are shown.
const NAMES: usize = 3;

/// The line that decides, and its group.
fn decider(verdict: Verdict<'_>, token: Option<&ProductToken>) -> String {
    let group = verdict.group().map_or_else(String::new, |group| names(group, token));
    match verdict.rule().filter(|rule| !rule.pattern().is_empty()) {
        Some(rule) => format!("{}, in the group for {group}", rule_line(rule)),
        None => format!("no rule in the group for {group} matches"),
    }
}

fn rule_line(rule: Rule<'_>) -> String {
    let field = match rule.access() {
        Access::Allow => "Allow",
        Access::Disallow => "Disallow",
    };
    format!("line {}, `{field}: {}`", rule.line(), printable(rule.pattern()))
}

/// The name of a group that names the crawler; else the first of its names.
fn names(group: Group<'_>, token: Option<&ProductToken>) -> String {
    let is_meant = |value: &[u8]| {
        let own = ProductToken::from_name(value);
        token.is_some_and(|token| own.as_ref() == Some(token))
    };
    if let Some(name) = group.names().find(|name| is_meant(name.value())) {
        return printable(name.value());
    }
    if token.is_none() && group.is_global() {
        return "every other crawler (`*`)".to_owned();
    }
    first_few(group.names().map(|name| printable(name.value())), NAMES)
}

/// Which form of the path the rule matches, where it is not the one that was given.
fn read_as(form: PathForm, trace: Option<&Trace<'_>>) -> String {
    if matches!(form, PathForm::Standard | PathForm::Verbatim) {
        return String::new();
    }
    match trace.and_then(Trace::deciding) {
        Some(deciding) => format!("; servers may read the path as {}", printable(&deciding.path)),
        None => String::new(),
    }
}
