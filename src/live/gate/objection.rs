//! Why the gate refuses a version.

use std::fmt;

use crate::check::{Breach, Report, Severity, Unmet, Upheaval};
use crate::rules::Access;

/// Objections of one kind that are listed; the rest are counted.
const SHOWN: usize = 3;

/// One reason for which a version does not go live by itself. `Display` gives it in one clause, safe to print.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Objection {
    kind: ObjectionKind,
    text: String,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The kind of an objection.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
        #[non_exhaustive]
        pub enum ObjectionKind {
            $($(#[$doc])* $kind,)*
        }

        impl ObjectionKind {
            const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The kind's name in kebab-case.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name),* }
            }
        }
    };
}

kinds! {
    /// It shuts out everyone, crawlers without a group of their own, or search engines.
    ShutOut = "shut-out",
    /// It opens much of what was closed.
    Opening = "opening",
    /// It disallows pages that matter to search engines.
    Pages = "pages",
    /// It disallows what it must allow.
    MustAllow = "must-allow",
    /// It does not meet an expectation.
    Expectation = "expectation",
    /// It changes what a guard keeps.
    Guard = "guard",
    /// The check has findings of the severity that the gate refuses.
    Finding = "finding",
    /// It was live and was rolled back.
    RolledBack = "rolled-back",
}

impl ObjectionKind {
    pub(in crate::live) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }
}

impl Objection {
    pub(in crate::live) fn new(kind: ObjectionKind, text: String) -> Self {
        Self { kind, text }
    }

    pub(in crate::live) fn rolled_back() -> Self {
        Self::new(ObjectionKind::RolledBack, "it was rolled back".to_owned())
    }

    pub(super) fn upheaval(upheaval: &Upheaval) -> Self {
        let kind = match upheaval {
            Upheaval::SiteOpened
            | Upheaval::GroupsLost { .. }
            | Upheaval::RulesLost { .. }
            | Upheaval::CrawlersLetIn { .. } => ObjectionKind::Opening,
            _ => ObjectionKind::ShutOut,
        };
        Self::new(kind, upheaval.to_string())
    }

    pub(super) fn unmet(kind: ObjectionKind, unmet: &[Unmet]) -> Vec<Self> {
        some_of(kind, unmet.len(), unmet.iter().map(describe))
    }

    pub(super) fn misspelled(name: &str, meant: &str) -> Self {
        let text =
            format!("no crawler and no group is called {name:?}, which must be allowed: did you mean {meant:?}?");
        Self::new(ObjectionKind::MustAllow, text)
    }

    pub(super) fn breach(breach: &Breach) -> Self {
        let change = breach.change();
        let text = format!(
            "the guard {:?} is broken: {:?} is now {}",
            breach.guard().to_string(),
            change.path(),
            participle(change.access())
        );
        Self::new(ObjectionKind::Guard, text)
    }

    pub(super) fn findings(severity: Severity, report: &Report) -> Vec<Self> {
        let findings = report.findings().iter().filter(|finding| finding.severity() >= severity);
        let count = Severity::ALL.into_iter().filter(|other| *other >= severity).map(|other| report.count(other)).sum();
        some_of(ObjectionKind::Finding, count, findings.map(ToString::to_string))
    }

    /// The kind of an objection.
    #[must_use]
    pub const fn kind(&self) -> ObjectionKind {
        self.kind
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn some_of(kind: ObjectionKind, count: usize, texts: impl Iterator<Item = String>) -> Vec<Objection> {
    let mut objections: Vec<_> = texts.take(SHOWN).map(|text| Objection::new(kind, text)).collect();
    if count > objections.len() {
        let more = count - objections.len();
        objections.push(Objection::new(kind, format!("{more} more of this kind")));
    }
    objections
}

fn describe(unmet: &Unmet) -> String {
    let (agent, path) = (unmet.agent(), unmet.path());
    match unmet.rule() {
        Some(rule) => format!(
            "{path:?} must be {} for {agent:?} and is {} by line {}",
            participle(opposite(unmet.access())),
            participle(unmet.access()),
            rule.line()
        ),
        None => format!("{path:?} must be disallowed for {agent:?} and no rule says so"),
    }
}

const fn participle(access: Access) -> &'static str {
    match access {
        Access::Allow => "allowed",
        Access::Disallow => "disallowed",
    }
}

const fn opposite(access: Access) -> Access {
    match access {
        Access::Allow => Access::Disallow,
        Access::Disallow => Access::Allow,
    }
}
