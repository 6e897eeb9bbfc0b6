//! Parses robots.txt files, and decides which paths they disallow. This module is for programs that
//! read, write or obey a robots.txt, including crawlers and editors.
//!
//! [`RobotsTxt`] is the parsed document: its lines and groups, and the reasons why crawlers ignore
//! certain lines. Parsing never fails, because crawlers ignore invalid lines. [`RuleSet`] is a
//! document compiled for a [`Reading`]. [`RuleSet::select`] takes the [`ProductToken`]s of an
//! agent, and returns the groups for the first token that occurs in the file.
//! [`Selection::verdict`] compares a [`RequestPath`] with the rules of these groups. The
//! [`Verdict`] contains the deciding rule, its line and its group.
//!
//! This module does not depend on the registry of crawlers, HTTP types, files or clocks.
//!
//! ```
//! use robots_core::rules::{Access, Fallback, ProductToken, Reading, RequestPath, RobotsTxt};
//!
//! let robots = RobotsTxt::parse(&b"User-agent: ExampleBot\nDisallow: /private/\n"[..]);
//! let rules = robots.compile(Reading::Standard);
//! let token = ProductToken::from_name(b"ExampleBot/1.0").expect("a name");
//! let verdict = rules.select(&[token], Fallback::Star).verdict(&RequestPath::new(b"/private/x"));
//! assert_eq!(verdict.access(), Access::Disallow);
//! assert_eq!(verdict.line(), Some(2));
//! ```

use crate::keyword_enum;
use crate::keywords;

mod agent_rules;
#[cfg(feature = "check")]
pub(crate) mod append;
mod authority;
mod delays;
mod dictionary;
mod document;
mod extension;
mod index;
pub(crate) mod keyword;
mod line;
mod match_budget;
mod path;
mod path_form;
mod pattern;
mod rule_set;
mod spelling;
mod text;
mod token;
#[cfg(feature = "check")]
mod trace;
mod usage;
mod usage_query;
mod value;
#[cfg(feature = "check")]
mod write;

pub use self::agent_rules::AgentRules;
pub(crate) use self::agent_rules::product_tokens;
#[cfg(feature = "check")]
#[doc(hidden)]
pub use self::append::{Fragment, LinePlaces};
#[doc(hidden)]
pub use self::authority::{Authority, Port};
pub use self::delays::{CrawlDelay, RequestRate, TimeWindow};
pub use self::document::{Group, Name, RobotsTxt, Rule, Sitemap};
pub use self::extension::{Extension, Meaning};
pub use self::keyword::ValueError;
pub use self::line::{Directive, Field, Line, LineKind};
pub(crate) use self::line::{MAX_LINE, starts_with};
pub(crate) use self::match_budget::MatchBudget;
pub use self::path::RequestPath;
pub use self::path_form::PathForm;
pub(crate) use self::path_form::PathForms;
#[doc(hidden)]
pub use self::pattern::Costly;
pub use self::pattern::PathPattern;
pub(crate) use self::pattern::priority;
pub use self::rule_set::{Fallback, RuleSet, Selection, Verdict};
pub use self::text::{Note, NoteKind};
pub use self::token::ProductToken;
#[cfg(feature = "check")]
#[doc(hidden)]
pub use self::trace::{FormTrace, Trace};
pub use self::usage::UsagePreferences;
pub use self::usage_query::Usage;
pub use self::value::Host;
pub(crate) use self::value::{delay as crawl_delay, is_absolute_url};
#[cfg(feature = "check")]
pub use self::write::RobotsTxtBuilder;

/// Whether a rule or a verdict allows or disallows a path (RFC 9309, section 2.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Access {
    /// The path may be fetched.
    Allow,
    /// The path may not be fetched.
    Disallow,
}

keywords!(Access, "an access", {
    Allow = "allow",
    Disallow = "disallow",
});

keyword_enum! {
    /// An interpretation of robots.txt. Readings differ in how they interpret names and patterns,
    /// and in the size limit:
    ///
    /// | | `Reference` | `Standard` | `Legacy` |
    /// |---|---|---|---|
    /// | name in a user-agent line | its longest prefix in `[A-Za-z_-]` | whole, see [`ProductToken::from_name`](ProductToken::from_name) | as `Standard` |
    /// | escapes in patterns | hex digits upper-cased, bytes ≥ 0x80 escaped | also decoded: unreserved bytes, bytes that are invalid in a URI, and before the first `?` reserved bytes except `/`, `?`, `#` | as `Standard` |
    /// | `%` that does not begin an escape | stays | stays; `%25` if decoding the following bytes would create an escape | as `Standard` |
    /// | `%2A`, `%24` in a pattern | an escape | the literal `*`, `$` (RFC 9309, section 2.2.3) | as `Standard` |
    /// | part of the file that is read | all | [`Reading::STANDARD_LIMIT`]; a line that is cut there is dropped | as `Standard` |
    /// | pattern without leading `/` or `*` | matches nothing | matches nothing | a leading `/` is assumed |
    ///
    /// Every reading compiles only the first 256 MiB of a file. The priority of a rule is the same
    /// in every reading: the length of the pattern as written. A byte ≥ 0x80 counts as three bytes,
    /// the length of its escape.
    #[derive(Default)]
    Reading, "a reading", {
        /// RFC 9309 as a server enforces it. The default.
        #[default]
        Standard = "standard",
        /// Gives the same verdicts as google/robotstxt, including its quirks. Use this reading with
        /// [`RequestPath::verbatim`](RequestPath::verbatim).
        Reference = "reference",
        /// Like `Standard`, but patterns may lack the leading slash, as in older specifications.
        Legacy = "legacy",
    }
}

impl Reading {
    /// Maximum number of bytes of a file that [`Reading::Standard`] and [`Reading::Legacy`] read.
    /// RFC 9309, section 2.5, requires at least 500 KiB.
    pub const STANDARD_LIMIT: usize = 512_000;

    /// Returns the maximum number of bytes of a file that this reading compiles.
    pub(super) const fn limit(self) -> usize {
        match self {
            Self::Reference => index::MAX_READ,
            Self::Standard | Self::Legacy => Self::STANDARD_LIMIT,
        }
    }

    /// Returns the path of a request target, in the forms that this reading compares with rules.
    pub fn path<'t>(self, target: &'t (impl AsRef<[u8]> + ?Sized)) -> RequestPath<'t> {
        self.path_with(target.as_ref(), PathForms::ALL)
    }

    /// Creates a path like [`Reading::path`], but only with the additional forms in `forms`. With
    /// `Reference`, a path has no additional forms.
    pub(crate) fn path_with(self, target: &[u8], forms: PathForms) -> RequestPath<'_> {
        match self {
            Self::Reference => RequestPath::verbatim(target),
            Self::Standard | Self::Legacy => RequestPath::with_forms(target, forms),
        }
    }

    /// Like [`Reading::path_with`], but for the target of a request that a server has received
    /// ([`RequestPath::of_request`]).
    pub(crate) fn path_of_request(self, target: &[u8], forms: PathForms) -> RequestPath<'_> {
        match self {
            Self::Reference => RequestPath::verbatim(target),
            Self::Standard | Self::Legacy => RequestPath::of_request(target, forms),
        }
    }
}
