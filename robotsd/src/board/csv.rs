//! The crawlers of a board as comma-separated values (RFC 4180), one a line.

use super::report::{BoardReport, CrawlerBoard};

const HEAD: &str = "site,crawler,operator,category,identity,word,last_read,last_read_version,reads,allowed,disallowed,\
                    ignored,not_newest,unread,undecided,refused,tagged,observed,passed,limited,first_disallowed,\
                    last_disallowed,worst_version,worst_line,worst_pattern,worst_hits\r\n";

pub(crate) fn csv(report: &BoardReport) -> String {
    let mut out = HEAD.to_owned();
    for site in &report.sites {
        for crawler in &site.crawlers {
            line(&mut out, &site.site, crawler);
        }
    }
    out
}

fn line(out: &mut String, site: &str, crawler: &CrawlerBoard) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let number = |number: u64| number.to_string();
    let CrawlerBoard { judged, done, .. } = crawler;
    let read = crawler.last_read.as_ref();
    let worst = crawler.worst_line.clone().unwrap_or_default();
    let fields = [
        site.to_owned(),
        crawler.crawler.clone(),
        crawler.operator.clone(),
        crawler.category.clone(),
        crawler.identity.clone(),
        text(&crawler.word),
        read.map(|read| read.when.clone()).unwrap_or_default(),
        read.and_then(|read| read.version.clone()).unwrap_or_default(),
        number(crawler.reads),
        number(crawler.allowed),
        number(crawler.disallowed),
        number(judged.ignored),
        number(judged.not_newest),
        number(judged.unread),
        number(judged.undecided),
        number(done.refused),
        number(done.tagged),
        number(done.observed),
        number(done.passed),
        number(done.limited),
        text(&crawler.first_disallowed),
        text(&crawler.last_disallowed),
        worst.version,
        if worst.line > 0 { worst.line.to_string() } else { String::new() },
        worst.pattern,
        if worst.line > 0 { number(worst.hits) } else { String::new() },
    ];
    out.push_str(&fields.map(|field| quoted(&field)).join(","));
    out.push_str("\r\n");
}

/// A field. Names come from clients: one that a spreadsheet would take for a formula begins with an apostrophe.
fn quoted(field: &str) -> String {
    let is_formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let apostrophe = if is_formula { "'" } else { "" };
    if is_formula || field.contains([',', '"', '\n', '\r']) {
        format!("\"{apostrophe}{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::SiteBoard;
    use super::*;

    #[test]
    fn a_field_stays_one_and_is_no_formula() {
        for (field, want) in [
            ("GPTBot", "GPTBot"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=1+1", "\"'=1+1\""),
            ("@x\n", "\"'@x\n\""),
            ("", ""),
        ] {
            assert_eq!(quoted(field), want);
        }
    }

    #[test]
    fn a_line_has_a_field_for_every_column() {
        let crawler = CrawlerBoard { crawler: "a".into(), ..CrawlerBoard::default() };
        let site =
            SiteBoard { site: "shop".into(), crawlers: vec![crawler], lines: Vec::new(), ..SiteBoard::default() };
        let text = csv(&BoardReport { sites: vec![site], ..BoardReport::default() });
        let columns: Vec<_> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [26, 26]);
    }
}
