//! `utf-16`: text of two octets a character.

use crate::check::Severity;
use crate::check::lint::{Example, Lint, Pass, Subject};
use crate::check::sink::Sink;

pub(in crate::check) const LINT: Lint = Lint {
    code: "utf-16",
    severity: Severity::Error,
    summary: "text saved as UTF-16",
    why: "A robots.txt is UTF-8 (RFC 9309, section 2.2). In UTF-16 every second octet of ordinary text is NUL, and \
          crawlers read lines only up to the first NUL, so no rule of such a file is in force. No other lint looks at \
          it.",
    bad: Example::new(b"\xFF\xFEU\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0 \0*\0\n\0"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
};

/// Octets that are looked at where no mark says it.
const SAMPLE: usize = 64;

fn run(subject: &Subject<'_>, sink: &mut Sink) {
    if let Some(form) = form(subject.bytes()) {
        sink.report(0..2, format_args!("the file is {form}: crawlers find no rule in it"))
            .help(format_args!("save it as UTF-8 without a byte order mark"));
    }
}

/// Which UTF-16 a file is.
pub(in crate::check) fn form(file: &[u8]) -> Option<&'static str> {
    const LITTLE: &str = "UTF-16 (little endian)";
    const BIG: &str = "UTF-16 (big endian)";
    match file {
        [0xFF, 0xFE, ..] => return Some(LITTLE),
        [0xFE, 0xFF, ..] => return Some(BIG),
        _ => {}
    }
    let sample = &file[..file.len().min(SAMPLE)];
    if sample.len() < 16 {
        return None;
    }
    let every = |first: usize, zero: bool| sample.iter().skip(first).step_by(2).all(|octet| (*octet == 0) == zero);
    if every(0, false) && every(1, true) {
        Some(LITTLE)
    } else if every(0, true) && every(1, false) {
        Some(BIG)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::form;
    use crate::check::lints::tests::found;

    #[test]
    fn it_is_known_by_its_mark_or_by_its_noughts() {
        let wide = |text: &str, big: bool| -> Vec<u8> {
            text.bytes().flat_map(|octet| if big { [0, octet] } else { [octet, 0] }).collect()
        };
        let text = "User-agent: *\nDisallow: /\n";
        assert_eq!(form(&wide(text, false)), Some("UTF-16 (little endian)"));
        assert_eq!(form(&wide(text, true)), Some("UTF-16 (big endian)"));
        assert_eq!(form(b"\xFE\xFF"), Some("UTF-16 (big endian)"));
        assert_eq!(form(text.as_bytes()), None);
        assert_eq!(form(b"a\0b\0"), None);
        assert_eq!(form(&[0; 64]), None);
        assert_eq!(found("utf-16", b"\xFF\xFE"), ["1:1"]);
        assert_eq!(found("nul-octet", &wide(text, false)), [""; 0]);
    }
}
