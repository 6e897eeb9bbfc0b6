//! Checks a robots.txt before crawlers fetch it. This module is for editors, CI and admin pages.
//!
//! [`check`] runs every [`Lint`] over a document and collects their [`Finding`]s in a [`Report`]. A
//! finding has a permanent code, a severity, a position in the file, a message and often a help
//! line. Lints are about the effect of a line on crawlers, not about style. An ordinary file
//! without mistakes has no findings.
//!
//! [`fix()`] corrects findings. A safe [`Fix`] is proved to change no verdict for any crawler.
//!
//! [`diff()`] finds the differences for each crawler between two versions of a file.
//! [`DrasticChange::between`] finds changes that are rarely intended, such as a rule that blocks
//! the whole site. [`Expectations`] define the paths that a file must allow or disallow for certain
//! crawlers.
//!
//! A comment `# robots-check: allow(code)` after a field turns a lint off for this line. On a line
//! of its own, it turns the lint off for the next line. [`Options`] turn a lint off for the whole
//! file or give it another severity.
//!
//! This module does not read files and does not print anything.
//!
//! ```
//! use robots_core::check::{Options, Severity, check};
//! use robots_core::rules::RobotsTxt;
//!
//! let robots = RobotsTxt::parse(&b"User-agent: *\nDisallow: private/\n"[..]);
//! let report = check(&robots, &Options::new());
//! let finding = &report.findings[0];
//! assert_eq!((finding.code, finding.line, finding.column), ("path-without-slash", 2, 11));
//! assert_eq!(report.worst(), Some(Severity::Error));
//! ```

mod access_edit;
mod checked_file;
pub(crate) mod crawlers;
mod diff;
pub(crate) mod directives;
mod expectations;
mod file_kind;
mod finding;
mod fix;
mod fixes;
mod front_page;
mod invisible;
mod lint;
mod lints;
mod options;
mod path_text;
mod pattern;
mod quote;
mod reach;
mod report;
#[cfg(test)]
mod test_notation;

#[doc(hidden)]
pub use self::access_edit::EditedFile;
pub use self::diff::{
    Breach, Breadth, Change, Decider, Delay, DelayChange, Diff, DiffOptions, DrasticChange, Effect, Guard, Page,
    Subject, diff,
};
#[doc(hidden)]
pub use self::diff::{LostPage, PageLoss, UsageChange};
pub use self::expectations::{ExpectationOutcome, Expectations, Unmet};
#[doc(hidden)]
pub use self::file_kind::FileKind;
pub use self::finding::{Finding, Severity};
pub use self::fix::{FixedFile, fix};
pub use self::fixes::{Edit, Fix, Fixes, Safety};
#[doc(hidden)]
pub use self::front_page::{CrawlerKind, FrontPageAccess};
pub use self::lint::{Example, Lint};
pub use self::options::{Options, RefusedCrawler};
pub use self::report::{Report, check};
