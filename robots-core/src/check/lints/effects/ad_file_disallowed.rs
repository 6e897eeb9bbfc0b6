//! `ad-file-disallowed`: a rule that blocks a file about the sellers of the site's ad space, such
//! as `/ads.txt`.

use std::collections::{BTreeMap, HashSet};

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "ad-file-disallowed",
    severity: Severity::Warning,
    summary: "a rule that blocks /ads.txt, /app-ads.txt or /sellers.json",
    why: "Buyers of ad space fetch the files /ads.txt and /app-ads.txt of a site, and /sellers.json of a reseller's \
          site, to find out who may sell the ad \
          space. Their crawlers obey robots.txt and treat a blocked file as missing, so the ad \
          space sells for less or not at all. A rule such as \"Disallow: /ads\" may block the file by accident. If \
          only /app-ads.txt or /sellers.json is blocked, the finding is just a note, because few sites have these \
          files.",
    bad: Example::new(b"User-agent: *\nDisallow: /ads\n"),
    good: Example::new(b"User-agent: *\nDisallow: /ads/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::choice(fix)),
};

const FILES: [&str; 3] = ["/ads.txt", "/app-ads.txt", "/sellers.json"];

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    // Each rule is reported only once, with all files that it blocks.
    let mut closing: BTreeMap<usize, (Rule<'_>, Vec<&str>)> = BTreeMap::new();
    let mut seen = HashSet::new();
    let names = file.names();
    let readers =
        names.filter_map(|name| reader(file, name)).filter(|reader| seen.insert(reader.map(|crawler| &crawler.name)));
    for reader in readers {
        let (tokens, fallback) =
            reader.map_or((&[][..], Fallback::Star), |crawler| (&crawler.tokens, Fallback::Nothing));
        let selection = file.rules().select(tokens, fallback);
        for path in FILES {
            let verdict = selection.verdict(&RequestPath::new(path.as_bytes()));
            let Some(rule) = verdict.rule().filter(|_| verdict.access() == Access::Disallow) else { continue };
            // Rules for the whole site are not reported, because a crawler without access to a site
            // needs no information about the site's ad space.
            if matches!(rule.pattern(), b"/" | b"*" | b"/*") {
                continue;
            }
            let (_, paths) = closing.entry(rule.range().start).or_insert_with(|| (rule, Vec::new()));
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    for (rule, paths) in closing.into_values() {
        let severity = if paths.contains(&FILES[0]) { Severity::Warning } else { Severity::Note };
        let list = quoted_list(paths.iter().map(|path| path.as_bytes()));
        sink.report_at(
            severity,
            rule.range(),
            format_args!(
                "{} blocks {list}: buyers of ad space treat a blocked file as missing",
                Quoted(rule.pattern())
            ),
        )
        .help_with(|| {
            let lines: Vec<_> = paths.iter().map(|path| format!("\"Allow: {path}\"")).collect();
            Some(format!("if the site has such a file, add {allow_lines}", allow_lines = lines.join(" and ")))
        });
    }
}

/// Returns the crawler with this name if it fetches files about ad space. Crawlers for ads fetch
/// these files, and so do crawlers of search engines, because search engines sell ads. For `*`,
/// returns `Some(None)`.
fn reader<'a>(file: &CheckedFile<'a>, name: Name<'_>) -> Option<Option<&'a Crawler>> {
    if name.is_star() {
        return Some(None);
    }
    let crawler = file.crawlers.named(name)?;
    (crawler.category == Category::Ads || crawler.is_index_engine).then_some(Some(crawler))
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let pattern = PathPattern::new(file.text_of(finding), Reading::Standard);
    let closed: Vec<String> =
        FILES.iter().filter(|path| pattern.matches(path.as_bytes())).map(|path| format!("Allow: {path}")).collect();
    Some(vec![file.lines_after(file.line_of(finding), closed.iter().map(String::as_bytes))])
}
