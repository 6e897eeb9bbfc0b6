//! `long-line`: a line so long that crawlers read only its beginning.

use crate::check::lint::*;
use crate::rules::MAX_LINE;

pub(crate) const LINT: Lint = Lint {
    code: "long-line",
    severity: Severity::Error,
    summary: "a line longer than 16,663 bytes",
    why: "Crawlers based on the reference parser read only the first 16,663 bytes of each line. A path pattern that \
          is cut in this way is shorter than written and matches more than intended. Comments may have any length.",
    bad: Example::repeated(b"User-agent: *\nDisallow: /", b"a", MAX_LINE),
    good: Example::repeated(b"User-agent: *\nDisallow: /private/ # ", b"a", MAX_LINE),
    pass: Pass::Line(run),
    fix: None,
};

fn run(line: &Line<'_>, _: &LineKind<'_>, sink: &mut Sink) {
    let length = line.bytes().len();
    // Crawlers ignore everything after a `#` or a NUL byte. So if the first `MAX_LINE` bytes
    // contain such a byte, the field ends before the limit and is not cut.
    if length > MAX_LINE && memchr::memchr2(0, b'#', &line.bytes()[..MAX_LINE]).is_none() {
        sink.report(
            line.range.start + MAX_LINE..line.range.end,
            format_args!(
                "the line is {length} bytes long: crawlers ignore everything from byte {first_ignored} on",
                first_ignored = MAX_LINE + 1
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_LINE;
    use crate::check::lints::tests::found;

    #[test]
    fn only_the_part_of_a_line_before_its_comment_must_fit_the_limit() {
        let line = |head: &[u8], length: usize| [head, &vec![b'a'; length - head.len()]].concat();
        assert_eq!(found("long-line", &line(b"Allow: /", MAX_LINE)), [""; 0]);
        assert_eq!(found("long-line", &line(b"Allow: /", MAX_LINE + 1)), [format!("1:{}", MAX_LINE + 1)]);
        assert_eq!(found("long-line", &line(b"Allow: / #", MAX_LINE + 1)), [""; 0]);
    }
}
