//! Bytes of a robots.txt to a verdict on a path.
//!
//! [`RobotsTxt`] is the document: every line with its number, the groups, what was ignored and why. Parsing never
//! fails, because a crawler accepts the rest of a broken file. [`RuleSet`] is the document compiled for a
//! [`Reading`]: [`RuleSet::select`] finds the group that a chain of [`ProductToken`]s obeys, and
//! [`Selection::verdict`] judges a [`RequestPath`]. A [`Verdict`] carries the rule, its line and its group.
//!
//! This room knows nothing of crawlers that exist, of HTTP types, files or clocks.
//!
//! ```
//! use tower_robots::rules::{Access, Fallback, ProductToken, Reading, RequestPath, RobotsTxt};
//!
//! let robots = RobotsTxt::parse(&b"User-agent: ExampleBot\nDisallow: /private/\n"[..]);
//! let rules = robots.compile(Reading::Standard);
//! let verdict = rules
//!     .select(&[ProductToken::new("examplebot")], Fallback::Star)
//!     .verdict(&RequestPath::new(b"/private/x"));
//! assert_eq!(verdict.access(), Access::Disallow);
//! assert_eq!(verdict.line(), Some(2));
//! ```

mod append;
mod authority;
mod costly;
mod crawl_delay;
mod document;
mod extension;
mod find_forms;
mod fragment;
mod hash;
mod index;
mod keyword;
mod line;
mod matching_rules;
mod note;
mod path;
mod path_form;
mod pattern;
mod reading;
mod request_rate;
mod rule_set;
mod spelling;
mod text;
mod token;
mod value;
mod write;

#[cfg(feature = "live")]
pub(crate) use self::append::appended_titles;
pub use self::append::{Appended, LinePlaces};
pub use self::authority::{Authority, Port};
pub use self::costly::{Costly, CostlyKind, MANY_TOGETHER, MANY_WILDCARDS};
pub use self::crawl_delay::{CrawlDelay, Seconds};
pub use self::document::{Group, Name, RobotsTxt, Rule, Sitemap};
pub use self::extension::{Extension, Meaning};
pub use self::fragment::{Fragment, FragmentError, FragmentErrorKind};
pub(crate) use self::index::MatchBudget;
pub use self::keyword::KeywordError;
pub(crate) use self::keyword::{keyword_enum, keywords};
pub use self::line::{Directive, Field, Line, LineKind, MAX_LINE};
pub use self::matching_rules::{FormTrace, Trace};
pub use self::note::{Note, NoteKind};
pub use self::path::RequestPath;
pub use self::path_form::{PathForm, PathForms};
pub use self::pattern::{PathPattern, PathPatternError};
pub use self::reading::{Reading, STANDARD_LIMIT};
pub use self::request_rate::{RequestRate, TimeWindow};
pub use self::rule_set::{Fallback, RuleSet, Selection, Verdict};
pub use self::token::ProductToken;
pub(crate) use self::value::delay as crawl_delay;
pub use self::value::{CleanParam, Host, Preferences};
pub use self::write::{RobotsTxtBuilder, Unwritable, UnwritableKind};

/// The effect of a rule, and of a verdict, on a path (RFC 9309, section 2.2.2).
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
