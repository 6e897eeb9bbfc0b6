//! `unknown-directive`: a field that no crawler knows.

use crate::check::directives::{nearest, visible_name};
use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "unknown-directive",
    severity: Severity::Warning,
    summary: "a directive that no crawler knows",
    why: "Crawlers silently ignore unknown directives, so a misspelled rule has no effect. Common extensions are not \
          reported, even if few crawlers support them: Crawl-delay, Clean-param, Request-rate, Visit-time, Noindex, \
          Host, Content-Usage, Content-Signal, License. If a directive is correct except for an invisible character, \
          such as a byte order mark from joined files, the finding is an error, because nobody can see why the line \
          is ignored.",
    bad: Example::new(b"User-agent: *\nDisalllow: /private/\nDisallow: /drafts/\n"),
    good: Example::new(b"User-agent: *\nCrawl-delay: 10\nDisallow: /private/\nDisallow: /drafts/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if !field.has_colon || is_known(field) || directive_without_colon(field).is_some() {
        return;
    }
    let name = field.name;
    if let Some(visible) = visible_name(name) {
        let is_marked = memchr::memmem::find(name, "\u{feff}".as_bytes()).is_some();
        let what = if is_marked { "a byte order mark" } else { "an invisible character" };
        sink.report_at(
            Severity::Error,
            field.name_range.clone(),
            format_args!("{what} hides the directive in {name}: crawlers ignore the line", name = Quoted(name)),
        )
        .help(format_args!("write \"{visible}\" without the invisible characters"));
        return;
    }
    let draft = sink.report(
        field.name_range.clone(),
        format_args!("{name} is not a known directive: crawlers ignore the line", name = Quoted(name)),
    );
    draft.help_with(|| guess(field));
}

fn guess(field: &Field<'_>) -> Option<String> {
    let name = field.name;
    if name.eq_ignore_ascii_case(b"http") || name.eq_ignore_ascii_case(b"https") {
        let address = [b"Sitemap: ", name, b":", field.value].concat();
        return Some(format!("for a sitemap write {}", Quoted(&address)));
    }
    nearest(name).map(|nearest| format!("did you mean \"{nearest}\"?"))
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let (name, range) = (field.name, field.name_range);
    if name.eq_ignore_ascii_case(b"http") || name.eq_ignore_ascii_case(b"https") {
        return Some(vec![Edit::insert(range.start, "Sitemap: ")]);
    }
    let mut edits = vec![Edit::new(range, nearest(name)?)];
    // Some spreadsheets export a whole line in quotes, with separators after the closing quote.
    if let [quote @ (b'"' | b'\''), ..] = name {
        let value = field.value;
        let quoted = value.trim_ascii_end().iter().rposition(|byte| !matches!(byte, b',' | b';'))?;
        if value[quoted] != *quote {
            return None;
        }
        edits.push(Edit::remove(field.value_range.start + quoted..field.value_range.end));
    }
    Some(edits)
}
