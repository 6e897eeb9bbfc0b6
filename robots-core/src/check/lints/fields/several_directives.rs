//! `several-directives`: a line with several directives, because line ends were lost.

use std::ops::Range;

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "several-directives",
    severity: Severity::Error,
    summary: "several directives on one line",
    why: "Crawlers read one directive per line, and treat everything after the directive as its value. If a server \
          writes \"\\n\" as two characters, the tag \"<br>\" or a Unicode line separator instead of line breaks, or if \
          a shell joins lines with spaces, the file looks complete but has lost its rules. Other lints do not check \
          such a line. There is no automatic fix, because only the author knows where the lines ended.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/ Disallow: /drafts/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: /drafts/\n"),
    pass: Pass::Joined(run),
    fix: None,
};

fn run(line: &Line<'_>, second: Range<usize>, sink: &mut Sink) {
    let start = line.range.start;
    let name = Quoted(&line.bytes()[second.start - start..second.end - start]);
    sink.report(
        second,
        format_args!("one line contains several directives: crawlers read only one per line, so {name} has no effect"),
    )
    .help("write one directive per line: the line breaks were lost, or written as other characters");
}
