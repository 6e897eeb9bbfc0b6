//! `over-500-kib`: a file so large that crawlers read only its beginning.

use crate::check::lint::*;

const STANDARD_LIMIT: usize = Reading::STANDARD_LIMIT;

pub(crate) const LINT: Lint = Lint {
    code: "over-500-kib",
    severity: Severity::Error,
    summary: "lines past the first 500 KiB of the file",
    why: "A crawler must read the first 500 KiB of a robots.txt (RFC 9309, section 2.5), and large crawlers read no \
          more. They ignore the lines after this limit, and the line that is cut at the limit.",
    bad: Example::repeated(b"User-agent: *\nDisallow: /private/\n", b"# Nothing to see here.\n", STANDARD_LIMIT / 20),
    good: Example::repeated(b"User-agent: *\nDisallow: /private/\n", b"# Nothing to see here.\n", STANDARD_LIMIT / 30),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let length = file.bytes().len();
    if length <= STANDARD_LIMIT {
        return;
    }
    let lost = |line: &Line<'_>| line.range.end > STANDARD_LIMIT && line.kind() != LineKind::Blank;
    if let Some(line) = file.robots.lines().find(lost) {
        sink.report(
            line.range,
            format_args!(
                "the file is {length} bytes long: crawlers need not read more than {STANDARD_LIMIT} bytes, so they \
                 may ignore the lines from this line on"
            ),
        )
        .help("shorten the file: one pattern with \"*\" can often replace many rules");
    }
}

#[cfg(test)]
mod tests {
    use super::STANDARD_LIMIT;
    use crate::check::lints::tests::found;

    #[test]
    fn the_first_line_that_is_lost_is_found() {
        let filler = [&b"#"[..], &vec![b'.'; STANDARD_LIMIT - 6]].concat();
        let file = |tail: &[u8]| [&filler[..], b"\n", tail].concat();
        assert_eq!(found("over-500-kib", &file(b"#...")), [""; 0]);
        assert_eq!(found("over-500-kib", &file(b"#...\n\n\n")), [""; 0]);
        assert_eq!(found("over-500-kib", &file(b"#....")), ["2:1"]);
        assert_eq!(found("over-500-kib", &file(b"#...\n\n# x\n# y")), ["4:1"]);
    }
}
