//! Bytes of a robots.txt to a verdict on a path: for programs that read, write or obey a robots.txt, crawlers and editors included.
//!
//! [`RobotsTxt`] is the document: every line with its number, the groups, what was ignored and why. Parsing never
//! fails, because a crawler accepts the rest of a broken file. [`RuleSet`] is the document compiled for a
//! [`Reading`]: [`RuleSet::select`] finds the group that a chain of [`ProductToken`]s obeys, and
//! [`Selection::verdict`] judges a [`RequestPath`]. A [`Verdict`] carries the rule, its line and its group.
//!
//! This room knows nothing of crawlers that exist, of HTTP types, files or clocks.
//!
//! ```
//! use robots_core::rules::{Access, Fallback, ProductToken, Reading, RequestPath, RobotsTxt};
//!
//! let robots = RobotsTxt::parse(&b"User-agent: ExampleBot\nDisallow: /private/\n"[..]);
//! let rules = robots.compile(Reading::Standard);
//! let verdict = rules
//!     .select(&[ProductToken::new("examplebot")], Fallback::Star)
//!     .verdict(&RequestPath::new(b"/private/x"));
//! assert_eq!(verdict.access(), Access::Disallow);
//! assert_eq!(verdict.line(), Some(2));
//! ```

use crate::keywords;

pub(crate) mod append;
mod authority;
mod delays;
mod document;
mod extension;
mod index;
mod keyword;
mod line;
mod path;
mod path_form;
mod pattern;
mod reading;
mod rule_set;
mod spelling;
mod text;
mod token;
mod value;
mod write;

pub use self::append::{Appended, Fragment, FragmentError, LinePlaces};
pub use self::authority::{Authority, Port};
pub use self::delays::{CrawlDelay, RequestRate, Seconds, TimeWindow};
pub use self::document::{Group, Name, RobotsTxt, Rule, Sitemap};
pub use self::extension::{Extension, Meaning};
pub(crate) use self::index::MatchBudget;
pub use self::keyword::ValueError;
pub(crate) use self::line::MAX_LINE;
pub use self::line::{Directive, Field, Line, LineKind};
pub use self::path::RequestPath;
pub use self::path_form::{PathForm, PathForms};
pub use self::pattern::{Costly, PathPattern};
pub use self::reading::Reading;
pub(crate) use self::reading::STANDARD_LIMIT;
pub use self::rule_set::{Fallback, FormTrace, RuleSet, Selection, Trace, Verdict};
pub use self::text::{Note, NoteKind};
pub use self::token::ProductToken;
pub use self::value::{CleanParam, Host, Preferences};
pub(crate) use self::value::{delay as crawl_delay, is_absolute_url};
pub use self::write::RobotsTxtBuilder;

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
