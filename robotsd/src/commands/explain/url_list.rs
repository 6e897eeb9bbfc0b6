//! The URLs to explain: words of the command line, and for `-` the lines of standard input.

use std::io::{self, BufRead, BufReader, Read, Stdin};
use std::slice;

use crate::exit::complain;
use crate::target_url::TargetUrl;

/// Octets of a line; a longer one is no URL that a server takes.
const LONGEST: u64 = 1 << 20;

/// URLs, one after the other; a list on standard input may be longer than memory.
#[derive(Debug)]
pub(super) struct UrlList<'a> {
    words: slice::Iter<'a, String>,
    input: Option<ListInput>,
    line: Vec<u8>,
    rejected: usize,
}

#[derive(Debug)]
struct ListInput {
    lines: BufReader<Stdin>,
    number: usize,
    has_urls: bool,
}

impl<'a> UrlList<'a> {
    /// Rejects a word that is neither a path nor a URL before anything is answered.
    pub(super) fn new(words: &'a [String]) -> io::Result<Self> {
        for word in words.iter().filter(|word| *word != "-") {
            TargetUrl::parse(word.as_bytes()).map_err(io::Error::other)?;
        }
        Ok(Self { words: words.iter(), input: None, line: Vec::new(), rejected: 0 })
    }

    /// Whether the next URL may have to be waited for: a client may want the answers until then.
    pub(super) fn may_wait(&self) -> bool {
        self.input.as_ref().is_some_and(|input| input.lines.buffer().is_empty())
    }

    /// The next URL. A line of standard input that is none is reported, and the others are still answered.
    pub(super) fn next(&mut self) -> io::Result<Option<TargetUrl<'_>>> {
        loop {
            match &mut self.input {
                None => match self.words.next() {
                    None => return Ok(None),
                    Some(word) if word == "-" => {
                        self.input = Some(ListInput { lines: BufReader::new(io::stdin()), number: 0, has_urls: false });
                        continue;
                    }
                    Some(word) => {
                        self.line.clear();
                        self.line.extend_from_slice(word.as_bytes());
                    }
                },
                Some(input) => {
                    if !input.read(&mut self.line)? {
                        if !input.has_urls {
                            complain(&"<stdin>: the list is empty: write one URL a line");
                        }
                        self.input = None;
                        continue;
                    }
                    // A path begins with a slash, so this is a comment.
                    if self.line.is_empty() || self.line.starts_with(b"#") {
                        continue;
                    }
                    input.has_urls = true;
                    if let Err(error) = TargetUrl::parse(&self.line) {
                        self.rejected += 1;
                        complain(&format_args!("<stdin>:{}: {error}", input.number));
                        continue;
                    }
                }
            }
            break;
        }
        TargetUrl::parse(&self.line).map(Some).map_err(io::Error::other)
    }

    /// How many lines of standard input were neither a path nor a URL.
    pub(super) const fn rejected(&self) -> usize {
        self.rejected
    }
}

impl ListInput {
    /// Reads the next line without its end and the blanks around it; `false` at the end of the input.
    fn read(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        self.number += 1;
        let named = |error: io::Error| io::Error::new(error.kind(), format!("<stdin>: {error}"));
        if self.lines.by_ref().take(LONGEST).read_until(b'\n', line).map_err(named)? == 0 {
            return Ok(false);
        }
        if line.len() as u64 == LONGEST && !line.ends_with(b"\n") {
            return Err(io::Error::other(format!("<stdin>:{}: the line is longer than 1 MiB", self.number)));
        }
        if line.starts_with(b"\xFF\xFE") || memchr::memchr(0, line).is_some() {
            let message = format!("<stdin>:{}: the list is not text in UTF-8: save it as UTF-8", self.number);
            return Err(io::Error::other(message));
        }
        if self.number == 1 && line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        let trimmed = line.trim_ascii();
        let (start, length) = (line.len() - line.trim_ascii_start().len(), trimmed.len());
        line.truncate(start + length);
        line.drain(..start);
        Ok(true)
    }
}
