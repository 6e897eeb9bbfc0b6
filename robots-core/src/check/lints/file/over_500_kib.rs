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
    let (read, unread) = (file.bytes().len(), file.robots.unread());
    let length = read + unread;
    if length <= STANDARD_LIMIT {
        return;
    }
    let is_lost = |line: &Line<'_>| line.range.end > STANDARD_LIMIT && line.kind() != LineKind::Blank;
    let lost = match unread {
        0 => file.robots.lines().find(is_lost).map(|line| line.range),
        _ => Some(read..read),
    };
    if let Some(lost) = lost {
        sink.report(
            lost,
            format_args!(
                "the file is {length} bytes long: crawlers need not read more than {STANDARD_LIMIT} bytes, so they \
                 may ignore this line and all lines below it"
            ),
        )
        .help("shorten the file: one pattern with \"*\" can often replace many rules");
    }
}

#[cfg(test)]
mod tests {
    use super::STANDARD_LIMIT;
    use crate::check::lints::tests::found;
    use crate::check::{Options, check};
    use crate::rules::RobotsTxt;

    #[test]
    fn the_first_line_that_does_not_fit_the_limit_is_reported() {
        let filler = [&b"#"[..], &vec![b'.'; STANDARD_LIMIT - 6]].concat();
        let file = |tail: &[u8]| [&filler[..], b"\n", tail].concat();
        assert_eq!(found("over-500-kib", &file(b"#...")), [""; 0]);
        assert_eq!(found("over-500-kib", &file(b"#...\n\n\n")), [""; 0]);
        assert_eq!(found("over-500-kib", &file(b"#....")), ["2:1"]);
        assert_eq!(found("over-500-kib", &file(b"#...\n\n# x\n# y")), ["4:1"]);
    }

    #[test]
    fn the_parsed_beginning_of_a_long_file_ends_with_its_last_complete_line() {
        let filler = [&b"User-agent: *\n#"[..], &vec![b'.'; STANDARD_LIMIT - 21]].concat();
        let found = |tail: &[u8]| {
            let file = [&filler[..], tail].concat();
            let beginning = RobotsTxt::parse_beginning(&file);
            assert!(file.starts_with(beginning.bytes()));
            let report = check(&beginning, &Options::new());
            let lost = report.findings.iter().filter(|finding| finding.code == "over-500-kib");
            let lost: Vec<_> = lost.map(|finding| (finding.line, finding.message.clone())).collect();
            assert_eq!(lost.is_empty(), beginning.unread() == 0);
            (
                beginning.bytes().len(),
                lost.first().map(|(line, message)| (*line, message.contains(&file.len().to_string()))),
            )
        };
        let limit = STANDARD_LIMIT;
        for (tail, want) in [
            (&b"\nab: c"[..], (limit, None)),
            (b"\nab: c\n", (limit + 1, None)),
            (b"\nab: c\r\n", (limit + 1, None)),
            (b"\nab: c\n\n\n", (limit + 1, None)),
            (b"\nab: c\nd", (limit + 1, Some((4, true)))),
            (b"\nab: cd", (limit - 5, Some((3, true)))),
            (b"\rab: cde\nf", (limit - 5, Some((3, true)))),
        ] {
            assert_eq!(found(tail), want, "{:?}", String::from_utf8_lossy(tail));
        }
        let long = RobotsTxt::parse_beginning(vec![b'a'; limit + 1]);
        assert_eq!((long.bytes().len(), long.unread()), (0, limit + 1));
    }
}
