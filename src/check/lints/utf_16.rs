//! `utf-16`: text of two octets a character.

use crate::check::Severity;
use crate::check::checked_file::CheckedFile;
use crate::check::file_kind::{FileKind, utf_16_form};
use crate::check::lint::{Example, Lint, Pass};
use crate::check::sink::Sink;

pub(super) const LINT: Lint = Lint {
    code: "utf-16",
    severity: Severity::Error,
    summary: "text saved as UTF-16",
    why: "A robots.txt is UTF-8 (RFC 9309, section 2.2). In UTF-16 every second octet of ordinary text is NUL, and \
          crawlers read lines only up to the first NUL, so no rule of such a file is in force. No other lint looks at \
          it.",
    bad: Example::new(b"\xFF\xFEU\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0 \0*\0\n\0"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::InsteadOfRules(FileKind::Utf16, run),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    if let Some(form) = utf_16_form(file.bytes()) {
        sink.report(0..2, format_args!("the file is {form}: crawlers find no rule in it"))
            .help(format_args!("save it as UTF-8 without a byte order mark"));
    }
}

#[cfg(test)]
mod tests {
    use crate::check::file_kind::utf_16_form as form;
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
