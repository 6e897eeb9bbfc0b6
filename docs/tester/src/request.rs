//! Requests of the page: a line with the operation, the reading and the lengths of four parts,
//! followed by the parts. A share link contains a request in the same form.
//!
//! ```text
//! verdicts standard 24 - 2 6
//! ```
//!
//! The parts are the robots.txt, the version to compare it with (`-` if there is none), the URLs
//! and the names of the crawlers, each in a line of its own. The parts are bytes, because a
//! robots.txt and a URL need not be UTF-8.

use robots_core::rules::Reading;

/// Maximum number of URLs and of crawlers. Further ones are only counted.
pub(super) const MAX_URLS: usize = 1000;
pub(super) const MAX_CRAWLERS: usize = 100;

/// What the page asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// The verdicts about each URL and crawler.
    Verdicts,
    /// The findings, and the effect of a change.
    Findings,
    /// The file with all safe fixes.
    Fix,
}

#[derive(Clone, Debug)]
pub(super) struct Request<'a> {
    pub(super) operation: Operation,
    pub(super) reading: Reading,
    pub(super) file: &'a [u8],
    /// The version that the file is compared with.
    pub(super) old: Option<&'a [u8]>,
    pub(super) urls: Vec<&'a [u8]>,
    pub(super) crawlers: Vec<String>,
}

impl<'a> Request<'a> {
    /// Parses the request at the start of `input`, and returns the rest of the input.
    pub(super) fn parse(input: &'a [u8]) -> Result<(Self, &'a [u8]), String> {
        let end = input.iter().position(|byte| *byte == b'\n').ok_or("the first line has no end")?;
        let head = str::from_utf8(&input[..end]).map_err(|_| "the first line is not text")?;
        let words: Vec<_> = head.split(' ').collect();
        let [operation, reading, lengths @ ..] = &*words else { return Err("the first line is incomplete".to_owned()) };
        let mut rest = &input[end + 1..];
        let mut parts = Vec::new();
        for length in lengths {
            if *length == "-" {
                parts.push(None);
                continue;
            }
            let length = length.parse::<usize>().map_err(|_| format!("{length:?} is not a length"))?;
            let (part, after) = rest.split_at_checked(length).ok_or("a part is shorter than its length")?;
            parts.push(Some(part));
            rest = after;
        }
        let [Some(file), old, Some(urls), Some(crawlers)] = *parts else {
            return Err("the first line must contain four lengths".to_owned());
        };
        let operation = match *operation {
            "verdicts" => Operation::Verdicts,
            "findings" => Operation::Findings,
            "fix" => Operation::Fix,
            other => return Err(format!("{other:?} is not an operation")),
        };
        let reading = reading.parse::<Reading>().map_err(|error| error.to_string())?;
        let crawlers = lines(crawlers).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        Ok((Self { operation, reading, file, old, urls: lines(urls).collect(), crawlers }, rest))
    }
}

/// Returns the lines of a part, without blank lines and without white space around each line.
fn lines(part: &[u8]) -> impl Iterator<Item = &[u8]> {
    part.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}
