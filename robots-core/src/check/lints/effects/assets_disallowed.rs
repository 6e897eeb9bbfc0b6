//! `assets-disallowed`: a rule that disallows scripts or style sheets for search engines. Without
//! these files, search engines cannot render pages as people see them.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "assets-disallowed",
    severity: Severity::Warning,
    summary: "scripts or styles that search engines may not fetch",
    why: "Search engines render pages, and need scripts and style sheets for this. If these files are disallowed, \
          pages look broken or empty to search engines, and are ranked accordingly. For folders that often contain \
          such files, such as /assets/ and /static/, the finding is only a note.",
    bad: Example::new(b"User-agent: *\nDisallow: /*.css$\n"),
    good: Example::new(b"User-agent: ExampleBot\nDisallow: /*.css$\n\nUser-agent: *\nDisallow: /private/\n"),
    pass: Pass::Group(run),
    fix: None,
};

const CERTAIN: [&str; 8] =
    ["/js/", "/css/", "/javascript/", "/javascripts/", "/scripts/", "/styles/", "/stylesheets/", "/wp-includes/"];
const LIKELY: [&str; 3] = ["/assets/", "/static/", "/dist/"];

fn run(file: &CheckedFile<'_>, group: Group<'_>, sink: &mut Sink) {
    if !group.names().any(|name| file.crawlers.is_read_by_search(name)) {
        return;
    }
    for rule in group.rules().filter(|rule| rule.access() == Access::Disallow) {
        let Some(severity) = severity(rule.pattern()) else { continue };
        sink.report_at(
            severity,
            rule.range(),
            format_args!("{pattern} blocks scripts or styles for search engines", pattern = Quoted(rule.pattern())),
        )
        .help("allow the files that are needed to render pages");
    }
}

fn severity(pattern: &[u8]) -> Option<Severity> {
    let open = pattern.strip_suffix(b"$").unwrap_or(pattern);
    let open = open.strip_suffix(b"*").unwrap_or(open);
    let ends = |extension: &str| {
        open.strip_suffix(extension.as_bytes()).is_some_and(|rest| rest.ends_with(b"*") || rest.ends_with(b"/"))
    };
    let is = |folder: &&str| {
        let name = folder.trim_end_matches('/').as_bytes();
        open == folder.as_bytes() || open == name
    };
    if ends(".js") || ends(".css") || CERTAIN.iter().any(is) {
        Some(Severity::Warning)
    } else {
        LIKELY.iter().any(is).then_some(Severity::Note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_for_scripts_and_styles_are_warnings_and_asset_folders_are_notes() {
        for pattern in ["/*.js", "/*.js$", "/*.css*", "/js/", "/wp-includes/", "/css", "*.css$"] {
            assert_eq!(severity(pattern.as_bytes()), Some(Severity::Warning), "{pattern}");
        }
        for pattern in ["/assets/", "/static"] {
            assert_eq!(severity(pattern.as_bytes()), Some(Severity::Note), "{pattern}");
        }
        for pattern in ["/", "", "/*.json$", "/main.js", "/x/js/", "/node.js", "/*.jsp"] {
            assert_eq!(severity(pattern.as_bytes()), None, "{pattern}");
        }
    }
}
