//! `binary-file`: an image, an archive or other octets in place of text.

use crate::check::file_kind::FileKind;
use crate::check::lint::{CheckedFile, Example, Lint, Pass, Severity, Sink};

pub(crate) const LINT: Lint = Lint {
    code: "binary-file",
    severity: Severity::Error,
    summary: "a file that is no text",
    why: "A robots.txt that was published packed, or another file under its name, holds no line that a crawler reads, \
          so no rule is in force. No other lint looks at such a file.",
    bad: Example::new(b"\x1F\x8B\x08\0\0\0\0\0\0\x03\xD3\xE2\xE2\x02\0\xF3"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::InsteadOfRules(FileKind::Binary, run),
    fix: None,
};

fn run(_: &CheckedFile<'_>, sink: &mut Sink) {
    sink.report(0..1, format_args!("the file is not text: crawlers find no rule in it"))
        .help(format_args!("write it as UTF-8, and not packed"));
}

#[cfg(test)]
mod tests {
    use crate::check::file_kind::is_binary;
    use crate::check::lints::tests::found;

    #[test]
    fn text_in_another_encoding_or_with_a_control_character_is_still_text() {
        let gzip = super::LINT.bad.bytes();
        assert!(
            is_binary(&gzip)
                && is_binary(&[0; 4096])
                && is_binary(&[b"PK\x03\x04\x14\0\0\0\x08\0".as_slice(), &gzip].concat())
        );
        for text in [
            &b""[..],
            b"# caf\xe9 \xfc\xe4\xf6\nUser-agent: *\n",
            b"# \x83\x8d\x83{\x83b\x83g\n",
            b"User-agent: *\nDisallow: /a\0b\n",
            b"\x1b[31mUser-agent\xff: *\n\x0c",
        ] {
            assert!(!is_binary(text), "{text:?}");
        }
        assert_eq!(found("nul-octet", &gzip), [""; 0], "no other lint looks at it");
    }
}
