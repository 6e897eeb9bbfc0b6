//! Why a candidate is not published.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use std::{fmt, io};

use robots_core::check::FileKind;
use robots_core::keyword_enum;

use super::clock;
use super::gate::Pending;
use crate::check::Report;
use crate::rules::{Directive, LineKind, RobotsTxt};

/// Maximum size of a robots.txt that is read, in bytes.
pub(crate) const MAX_FILE: u64 = 8 << 20;

/// Why a version was not published, or why the folder of a [`Directory`](crate::source::Directory)
/// could not be listed.
#[derive(Clone)]
#[non_exhaustive]
pub struct Rejection {
    /// The kind of the rejection.
    pub kind: RejectionKind,
    /// The path of the file or folder, the URL of the file, or the name of the inline text.
    pub origin: Arc<str>,
    cause: Option<Arc<io::Error>>,
    /// The version that is now pending because the gate refused it, if any.
    pub pending: Option<Box<Pending>>,
    why: Option<Arc<str>>,
    /// The check report with every finding; `None` if no file was read.
    pub report: Option<Arc<Report>>,
    /// The time when the site stops enforcing the live version, unless its source has a robots.txt
    /// again by then; `None` unless the kind is [`RejectionKind::Held`].
    pub until: Option<SystemTime>,
}

keyword_enum! {
    /// The kind of a rejection.
    RejectionKind, "a kind of rejection", {
        /// The file does not exist.
        Missing = "missing",
        /// The file cannot be read, or the directory cannot be listed.
        Unreadable = "unreadable",
        /// The path is a directory, a FIFO or something else that is not a regular file.
        NotAFile = "not-a-file",
        /// The file is larger than [`LiveRobots::MAX_FILE`](super::LiveRobots::MAX_FILE).
        TooLarge = "too-large",
        /// The file is empty or contains only white space, perhaps because it was truncated.
        Empty = "empty",
        /// The file is not text.
        Binary = "binary",
        /// The file is an HTML page.
        Html = "html",
        /// The file is text, but not a robots.txt: it contains no field that crawlers know, and it
        /// does not consist only of comments.
        NoField = "no-field",
        /// The file ends within the name of a field, or after a `User-agent:` without a name. In
        /// the second case, the file is rejected only if an earlier version can stay live.
        Cut = "cut",
        /// The file changed while it was being read.
        Unstable = "unstable",
        /// The gate refused the version, which is pending until it is accepted. This kind is used
        /// only for text that a caller publishes, and when a site is opened without an earlier
        /// accepted version.
        Gated = "gated",
        /// The robots.txt has not been fetched yet.
        NotFetched = "not-fetched",
        /// The file could not be fetched.
        Unreachable = "unreachable",
        /// The robots.txt is missing at its source. The site keeps its live version until
        /// `Rejection::until`.
        Held = "held",
        /// Text was published for a site whose robots.txt is read from a file or fetched.
        NotInline = "not-inline",
        /// The live version contains an appended part that has not been read since the start. The
        /// new version would lack this part.
        NotAppended = "not-appended",
        /// A panic in this crate interrupted the reload.
        Interrupted = "interrupted",
    }
}

impl Rejection {
    pub(crate) fn new(kind: RejectionKind, origin: &Arc<str>) -> Self {
        Self { kind, origin: origin.clone(), cause: None, pending: None, why: None, report: None, until: None }
    }

    pub(crate) fn io(cause: io::Error, origin: &Arc<str>) -> Self {
        let kind = match cause.kind() {
            io::ErrorKind::NotFound => RejectionKind::Missing,
            _ => RejectionKind::Unreadable,
        };
        Self { cause: Some(Arc::new(cause)), ..Self::new(kind, origin) }
    }

    pub(crate) fn unreadable_folder(cause: io::Error, folder: &Path) -> Self {
        let origin: Arc<str> = folder.to_string_lossy().into();
        let why = format!("cannot be listed: {cause}");
        Self { cause: Some(Arc::new(cause)), ..Self::with_reason(RejectionKind::Unreadable, why, &origin) }
    }

    pub(crate) fn gated(pending: Pending, origin: &Arc<str>) -> Self {
        let report = pending.report.clone();
        Self { pending: Some(pending.into()), report, ..Self::new(RejectionKind::Gated, origin) }
    }

    /// Completes the message of a rejection that prevents the opening of the site. The message then
    /// tells how to accept the pending version with [`Gate::accept`](super::Gate::accept), because
    /// there is no handle with a method `accept` before the site is open. `is_remembered` must be
    /// `true` if the site has a state directory, which keeps accepted versions across restarts.
    pub(super) fn with_opening_advice(self, is_remembered: bool) -> Self {
        let Some(pending) = &self.pending else { return self };
        let hash = pending.hash().short();
        let accept = format!("open the site with a gate that accepts \"{hash}\" (Gate::accept)");
        let mut lines: Vec<_> = pending.objections.iter().flat_map(|it| &it.findings).map(|it| it.line).collect();
        lines.sort_unstable();
        lines.dedup();
        let why = if let Some(lines) = enumerated(&lines) {
            let plural = if lines.contains(" and ") { "s" } else { "" };
            format!("correct line{plural} {lines}; if the version is intended, {accept}")
        } else if is_remembered {
            format!("this version was never accepted; if it is intended, {accept}")
        } else {
            format!(
                "without a StateDir, accepted versions are forgotten at a restart; add one (LiveBuilder::state) or, if the version is \
                 intended, {accept}"
            )
        };
        Self { why: Some(why.into()), ..self }
    }

    /// Creates a rejection whose message contains `why`: the cause or, for
    /// [`RejectionKind::NotAppended`], the title of the appended list.
    pub(crate) fn with_reason(kind: RejectionKind, why: impl Into<Arc<str>>, origin: &Arc<str>) -> Self {
        Self { why: Some(why.into()), ..Self::new(kind, origin) }
    }

    pub(crate) fn held(status: String, until: SystemTime, origin: &Arc<str>) -> Self {
        Self { until: Some(until), ..Self::with_reason(RejectionKind::Held, status, origin) }
    }

    /// Returns a rejection if the file is not a robots.txt, or is incomplete. `before` is the
    /// version that stays live if the file is rejected.
    pub(crate) fn of(robots: &RobotsTxt, before: Option<&[u8]>, origin: &Arc<str>) -> Option<Self> {
        let kind = match FileKind::of(robots) {
            _ if robots.bytes().trim_ascii().is_empty() => RejectionKind::Empty,
            FileKind::Html => RejectionKind::Html,
            FileKind::Utf16 | FileKind::Binary => RejectionKind::Binary,
            FileKind::OtherText => RejectionKind::NoField,
            _ => return Self::incomplete_file(robots, before, origin),
        };
        Some(Self::new(kind, origin))
    }

    /// Returns a rejection if the file seems to have been truncated, or not written completely.
    fn incomplete_file(robots: &RobotsTxt, before: Option<&[u8]>, origin: &Arc<str>) -> Option<Self> {
        let last = robots.lines().last()?;
        let number = last.number;
        if let Some(name) = last.cut_name() {
            let name = String::from_utf8_lossy(name);
            let why = format!(
                "line {number} ({name:?}) is only part of a field name: complete the line, and end the file with a \
                 line break"
            );
            return Some(Self::with_reason(RejectionKind::Cut, why, origin));
        }
        let has_other = before.is_some_and(|before| before.trim_ascii_end() != robots.bytes().trim_ascii_end());
        let is_bare = match last.kind() {
            LineKind::Field(field) if field.directive == Directive::UserAgent => {
                last.bytes()[field.name_range.end - last.range.start..].trim_ascii() == b":"
            }
            _ => false,
        };
        let why = || {
            format!(
                "line {number} is a \"User-agent\" line without a name: write the name, and end the file with a line break"
            )
        };
        (has_other && last.ends_file() && is_bare).then(|| Self::with_reason(RejectionKind::Cut, why(), origin))
    }
}

/// Formats line numbers for a sentence: `2`, `2 and 5`, `2, 3 and 5`; `None` if the list is empty.
fn enumerated(lines: &[usize]) -> Option<String> {
    let (last, others) = lines.split_last()?;
    let others: Vec<_> = others.iter().map(ToString::to_string).collect();
    Some(if others.is_empty() { last.to_string() } else { format!("{} and {last}", others.join(", ")) })
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        match self.kind {
            RejectionKind::Missing => f.write_str("the file does not exist"),
            RejectionKind::Unreadable => match (&self.why, &self.cause) {
                (Some(why), _) => f.write_str(why),
                (None, Some(cause)) => write!(f, "the file cannot be read: {cause}", cause = cause.kind()),
                (None, None) => f.write_str("the file cannot be read"),
            },
            RejectionKind::NotAFile => f.write_str("this is not a regular file"),
            RejectionKind::TooLarge => {
                write!(f, "the file is larger than {} MiB; crawlers read only 500 KiB", MAX_FILE >> 20)
            }
            RejectionKind::Empty => {
                write!(
                    f,
                    "the file is empty, perhaps because it was truncated: {right}",
                    right = FileKind::NO_RESTRICTIONS
                )
            }
            RejectionKind::Binary => f.write_str("the file is not text: save it as UTF-8 text"),
            RejectionKind::Html => f.write_str("the file is an HTML page, not a robots.txt"),
            RejectionKind::NoField => write!(f, "{}; {}", FileKind::NO_ROBOTS_TXT, FileKind::NO_RESTRICTIONS),
            RejectionKind::Cut => {
                write!(
                    f,
                    "the file is truncated or still being written: {why}",
                    why = self.why.as_deref().unwrap_or_default()
                )
            }
            RejectionKind::Unstable => f.write_str("the file changed while it was being read"),
            RejectionKind::Gated => match &self.pending {
                Some(pending) => {
                    write!(f, "version {version} is held until accepted: {pending}", version = pending.hash().short())?;
                    self.why.as_ref().map_or(Ok(()), |why| write!(f, "; {why}"))
                }
                None => f.write_str("the gate holds the version"),
            },
            RejectionKind::NotFetched => f.write_str("the file has not been fetched yet"),
            RejectionKind::Unreachable => {
                write!(
                    f,
                    "the file cannot be fetched: {why}",
                    why = self.why.as_deref().unwrap_or("the cause is unknown")
                )
            }
            RejectionKind::Held => {
                write!(f, "the server answered {}", self.why.as_deref().unwrap_or("with an unknown status"))?;
                self.until.map_or(Ok(()), |until| {
                    write!(f, "; the site keeps its live version until {until}", until = clock::format_time(until))
                })
            }
            RejectionKind::NotInline => f.write_str(
                "this robots.txt is read from a source, so published text cannot replace it: change the source, or \
                 open the site with LiveRobots::text to publish text",
            ),
            RejectionKind::NotAppended => write!(
                f,
                "the appended list {part:?} has not been read yet; without the list, the crawlers that it names \
                 would be allowed",
                part = self.why.as_deref().unwrap_or_default()
            ),
            RejectionKind::Interrupted => {
                f.write_str("a bug in robotsd or in the crate tower-robots interrupted the reload")
            }
        }
    }
}

robots_core::debug_as_displayed!(Rejection);

impl Error for Rejection {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(bytes: &[u8]) -> Option<RejectionKind> {
        Rejection::of(&RobotsTxt::parse(bytes), None, &"robots.txt".into()).map(|rejection| rejection.kind)
    }

    #[test]
    fn files_that_were_never_a_robots_txt_are_rejected_and_damaged_ones_are_accepted() {
        assert_eq!(kind(b""), Some(RejectionKind::Empty));
        assert_eq!(kind(b"\xEF\xBB\xBF \n<!DOCTYPE html>"), Some(RejectionKind::Html));
        assert_eq!(kind(b"<html>"), Some(RejectionKind::Html));
        assert_eq!(kind(b"\xFF\xFEU\0s\0e\0r\0"), Some(RejectionKind::Binary));
        assert_eq!(kind(b"\x1f\x8b\x08\x00\xa9"), Some(RejectionKind::Binary));
        assert_eq!(kind(b"# caf\xe9\nUser-agent: *\n"), None);
        assert_eq!(kind(&[0; 4096]), Some(RejectionKind::Binary));
        assert_eq!(kind(b"U\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0*\0\n\0"), Some(RejectionKind::Binary));
        assert_eq!(kind(&[&b"User-agent: *\nDisallow: /a\0b\n"[..], &[b'#'; 100]].concat()), None);
        assert_eq!(kind(b"User-agent: *\nDisallow: /a\0b\n"), None, "a person meant it, whatever slipped in");
        assert_eq!(kind(b"# caf\xe9\nUser-agent: *\nDisallow: /x\n\x1a"), None, "an old editor ends a file so");
        assert_eq!(kind(b" \r\n"), Some(RejectionKind::Empty));
        assert_eq!(kind(b"Not Found"), Some(RejectionKind::NoField));
        assert_eq!(kind(&[b'D'; 5000]), Some(RejectionKind::NoField));
        assert_eq!(kind(b"Error: cannot connect to database"), Some(RejectionKind::NoField));
        assert_eq!(kind(b"{\"error\": \"not found\"}"), Some(RejectionKind::NoField));
        assert_eq!(kind(b"<br />\n<b>Warning</b>:  include(): failed"), Some(RejectionKind::Html));
        assert_eq!(kind(b"<pre>\nUser-agent: *\n"), None, "crawlers read its rules");
        assert_eq!(kind(b"# settings\nname: x\n"), Some(RejectionKind::NoField));
        assert_eq!(kind(b"disallow /x\n"), None);
        assert_eq!(kind(b"# nothing is restricted\n"), None);
    }

    #[test]
    fn a_file_that_ends_within_a_field_is_rejected_as_cut_off() {
        let before = b"User-agent: *\nDisallow: /x\n";
        let rejected = |end: &str, before: Option<&[u8]>| {
            let robots = RobotsTxt::parse(format!("User-agent: a\r\nDisallow: /x\r\n{end}"));
            let rejection = Rejection::of(&robots, before, &"robots.txt".into());
            rejection.is_some_and(|rejection| {
                assert_eq!(rejection.kind, RejectionKind::Cut);
                let said = rejection.to_string();
                assert!(said.contains("line 3") && said.ends_with(", and end the file with a line break"), "{said}");
                true
            })
        };
        for end in ["D", "disal", "Disallow", " Allow ", "User-agent", "user a", "Site", "Crawl-del", "Dissal", "Host"]
        {
            assert!(rejected(end, None) && rejected(end, Some(before)), "{end}");
        }
        for end in ["User-agent:", "user-agent: ", "Useragent:"] {
            assert!(rejected(end, Some(before)) && !rejected(end, None), "{end}");
            let same = format!("User-agent: a\r\nDisallow: /x\r\n{end}");
            assert!(!rejected(end, Some(same.as_bytes())), "{end}");
        }
        let ends = "Disal\n~Disallow:~Allow: ~Disal # x~# Disal~Sitemaps of mine~User-agent: a~User-agent:\n~\
            x";
        for end in ends.split('~').chain([""]) {
            assert!(!rejected(end, Some(before)), "{end}");
        }
    }

    /// Checks that among the files of real sites, only HTML pages, other text and empty files are
    /// rejected.
    #[test]
    fn all_but_42_of_1944_files_of_real_sites_are_accepted() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cases/robots_files.jsonl.gz");
        if !path.exists() {
            assert!(std::env::var_os("CI").is_none(), "{} is missing, and CI has to run it", path.display());
            return;
        }
        let file = std::fs::File::open(path).expect("the case data opens");
        let lines = io::BufRead::lines(io::BufReader::new(flate2::read::GzDecoder::new(file)));
        let (mut count, mut rejected, mut others) = (0, 0, Vec::new());
        for line in lines {
            let case: serde_json::Value = serde_json::from_str(&line.expect("a line")).expect("an object");
            let name = case["robots"].as_str().expect("a name");
            if name.starts_with("syn/") {
                continue;
            }
            count += 1;
            let body = case["body_base64"].as_str().expect("a body");
            let body = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, body).expect("base64");
            if let Some(kind) = kind(&body) {
                rejected += 1;
                if kind == RejectionKind::NoField {
                    others.push(name.to_owned());
                }
            }
        }
        // The whole content of this file is "Bye".
        assert_eq!(others, ["protego/www.financialexpress.com"]);
        assert_eq!((count, rejected), (1_944, 42));
    }
}
