//! Builds the text of a scrape, in Prometheus's format 0.0.4 or in OpenMetrics 1.0.
//!
//! Samples are added site by site, but the text must be ordered by family. Therefore, the lines of
//! each family are collected in a separate string until all samples have been added. The number of
//! series is limited. Above the limit, series of the last families are dropped and counted, so that
//! the first families are complete.
//!
//! The format and the content coding depend on the request (RFC 9110, section 12). A client that
//! accepts none of the supported formats gets the text format, not a 406.

use std::fmt::{Display, Write as _};
use std::time::SystemTime;

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderName};

use super::family::{self, ALL, Family, FamilyKind};
use super::histogram::Histogram;

/// Maximum number of series in one scrape, about 30 MB of text. Prometheus has no limit by default.
const MAX_SERIES: usize = 250_000;

pub(crate) type Labels<'a> = &'a [(&'static str, &'a str)];

#[derive(Debug)]
pub(crate) struct Exposition {
    format: ExpositionFormat,
    texts: Vec<FamilyText>,
}

#[derive(Clone, Debug, Default)]
struct FamilyText {
    lines: String,
    /// For each metric: the offset in `lines` after its last line, and its number of series. In
    /// this list, a histogram is one metric, so that it is kept or dropped as a whole.
    metrics: Vec<(usize, usize)>,
}

impl Exposition {
    pub(crate) fn new(format: ExpositionFormat) -> Self {
        Self { format, texts: vec![FamilyText::default(); ALL.len()] }
    }

    /// Adds a sample of a counter, gauge or info family. The value of an info family is 1.
    pub(crate) fn sample(&mut self, family: &Family, labels: Labels<'_>, value: impl Display) {
        let suffix = match family.kind {
            FamilyKind::Counter => "_total",
            FamilyKind::Info => "_info",
            _ => "",
        };
        let text = self.text(family);
        line(&mut text.lines, (family.name, suffix), labels, None, value);
        text.end_metric(1);
    }

    pub(crate) fn flag(&mut self, family: &Family, labels: Labels<'_>, flag: bool) {
        self.sample(family, labels, u8::from(flag));
    }

    /// Adds a sample with a time, in seconds since 1970. Omits times before 1970.
    pub(crate) fn timestamp(&mut self, family: &Family, labels: Labels<'_>, at: SystemTime) {
        if let Ok(since) = at.duration_since(SystemTime::UNIX_EPOCH) {
            self.sample(family, labels, since.as_secs_f64());
        }
    }

    pub(crate) fn samples_by_label<W: AsRef<str>>(
        &mut self,
        family: &Family,
        labels: Labels<'_>,
        label: &'static str,
        values: impl IntoIterator<Item = (W, impl Display)>,
    ) {
        for (word, value) in values {
            self.sample(family, &[labels, &[(label, word.as_ref())]].concat(), value);
        }
    }

    /// Adds a state set: one series per state, with the value 1 for the current state.
    pub(crate) fn state(&mut self, family: &Family, labels: Labels<'_>, states: &[&str], now: &str) {
        let text = self.text(family);
        for state in states {
            line(&mut text.lines, (family.name, ""), labels, Some((family.name, state)), u8::from(*state == now));
        }
        text.end_metric(states.len());
    }

    pub(crate) fn histogram(&mut self, family: &Family, labels: Labels<'_>, durations: &Histogram) {
        let text = self.text(family);
        let mut count = 0;
        for (bound, in_bucket) in durations.buckets() {
            count += in_bucket;
            line(&mut text.lines, (family.name, "_bucket"), labels, Some(("le", bound)), count);
        }
        line(&mut text.lines, (family.name, "_sum"), labels, None, durations.sum());
        line(&mut text.lines, (family.name, "_count"), labels, None, count);
        text.end_metric(durations.buckets().count() + 2);
    }

    pub(crate) fn finish(self) -> String {
        self.finish_within(MAX_SERIES)
    }

    fn finish_within(mut self, most: usize) -> String {
        let (mut written, mut dropped) = (0, 0);
        for text in &mut self.texts {
            let mut end = 0;
            for (metric_end, series) in &text.metrics {
                if dropped == 0 && written + series <= most {
                    written += series;
                    end = *metric_end;
                } else {
                    dropped += series;
                }
            }
            text.lines.truncate(end);
        }
        self.sample(&family::SERIES, &[], written);
        self.sample(&family::SERIES_DROPPED, &[], dropped);
        let mut text = String::with_capacity(self.texts.iter().map(|text| text.lines.len() + 256).sum());
        for (family, FamilyText { lines, .. }) in ALL.iter().zip(&self.texts).filter(|(_, text)| !text.lines.is_empty())
        {
            head(&mut text, family, self.format);
            text.push_str(lines);
        }
        if self.format == ExpositionFormat::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }

    fn text(&mut self, family: &Family) -> &mut FamilyText {
        &mut self.texts[family.place()]
    }
}

impl FamilyText {
    fn end_metric(&mut self, series: usize) {
        self.metrics.push((self.lines.len(), series));
    }
}

/// Writes the HELP, TYPE and UNIT lines of a family. Format 0.0.4 has neither UNIT lines nor the
/// types `info` and `stateset`. In format 0.0.4, family names include the suffix of the samples.
fn head(text: &mut String, family: &Family, format: ExpositionFormat) {
    let (suffix, kind) = match (format, family.kind) {
        (ExpositionFormat::Text, FamilyKind::Counter) => ("_total", "counter"),
        (ExpositionFormat::Text, FamilyKind::Info) => ("_info", "gauge"),
        (ExpositionFormat::OpenMetrics, FamilyKind::Counter) => ("", "counter"),
        (ExpositionFormat::OpenMetrics, FamilyKind::Info) => ("", "info"),
        (ExpositionFormat::OpenMetrics, FamilyKind::StateSet) => ("", "stateset"),
        (_, FamilyKind::Gauge | FamilyKind::StateSet) => ("", "gauge"),
        (_, FamilyKind::Histogram) => ("", "histogram"),
    };
    let name = family.name;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name}{suffix} {}", family.help);
    let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
    if format == ExpositionFormat::OpenMetrics && !family.unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name}{suffix} {}", family.unit);
    }
}

/// Writes the line of one sample. `last` is an additional label after `labels`.
fn line(
    text: &mut String,
    (name, suffix): (&str, &str),
    labels: Labels<'_>,
    last: Option<(&str, &str)>,
    value: impl Display,
) {
    text.push_str(name);
    text.push_str(suffix);
    let mut before = '{';
    for (name, value) in labels.iter().copied().chain(last) {
        text.push(before);
        before = ',';
        text.push_str(name);
        text.push_str("=\"");
        for letter in value.chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                letter => text.push(letter),
            }
        }
        text.push('"');
    }
    if before == ',' {
        text.push('}');
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, " {value}");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpositionFormat {
    Text,
    OpenMetrics,
}

impl ExpositionFormat {
    /// Returns the format that a client prefers, or the text format if it has no preference.
    pub(crate) fn accepted(fields: &HeaderMap) -> Self {
        let (mut text, mut open) = ((0, 0), (0, 0));
        for range in list(fields, &ACCEPT) {
            let version = range.parameter("version");
            // The more specific media range counts, even if `*/*` has a higher weight (RFC 9110,
            // section 12.5.1).
            let (text_fits, open_fits, exactness) = match &*range.name.to_ascii_lowercase() {
                "text/plain" => (version.is_none_or(|version| version == "0.0.4"), false, 3),
                "application/openmetrics-text" => (false, version.is_none_or(|version| version == "1.0.0"), 3),
                "text/*" => (true, false, 2),
                "application/*" => (false, true, 2),
                "*/*" => (true, true, 1),
                _ => (false, false, 0),
            };
            for (found, fits) in [(&mut text, text_fits), (&mut open, open_fits)] {
                if fits {
                    *found = (exactness, range.weight).max(*found);
                }
            }
        }
        if open.1 > text.1 { Self::OpenMetrics } else { Self::Text }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
        }
    }
}

/// Reports whether to compress the text. The client must accept gzip and must not prefer
/// `identity`.
pub(crate) fn accepts_gzip(fields: &HeaderMap) -> bool {
    let (mut gzip, mut identity) = (0, 0);
    for coding in list(fields, &ACCEPT_ENCODING) {
        match &*coding.name.to_ascii_lowercase() {
            "gzip" | "x-gzip" => gzip = coding.weight,
            "identity" => identity = coding.weight,
            _ => {}
        }
    }
    gzip > 0 && gzip >= identity
}

struct Member<'f> {
    name: &'f str,
    parameters: &'f str,
    /// The quality value (`q`), in thousandths.
    weight: u16,
}

impl<'f> Member<'f> {
    /// Parses a list member. Returns `None` if the member is invalid and must be ignored.
    fn new(text: &'f str) -> Option<Self> {
        let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
        let mut member = Self { name: name.trim(), parameters, weight: 1000 };
        if let Some(weight) = member.parameter("q") {
            let weight: f32 = weight.parse().ok().filter(|weight| (0.0..=1.0).contains(weight))?;
            member.weight = (weight * 1000.0).round() as u16;
        }
        Some(member)
    }

    fn parameter(&self, wanted: &str) -> Option<&'f str> {
        self.parameters.split(';').find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().trim_matches('"'))
        })
    }
}

fn list<'f>(fields: &'f HeaderMap, name: &HeaderName) -> impl Iterator<Item = Member<'f>> {
    let lines = fields.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).filter_map(Member::new)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::metrics::histogram::{DECISION_BUCKETS, Histogram};

    fn exposition(format: ExpositionFormat) -> Exposition {
        let mut exposition = Exposition::new(format);
        let site = ("site", "a\"b\\c\nd");
        exposition.sample(&family::DECISIONS, &[site, ("outcome", "refused")], 17);
        exposition.sample(&family::BUILD, &[("version", "1.2.3")], 1);
        exposition.state(&family::SITE_STATE, &[site], &["live", "none"], "none");
        exposition.sample(&family::DECISIONS, &[("site", "other"), ("outcome", "refused")], 1);
        exposition.sample(&family::PROCESS_CPU, &[], 1.5);
        let mut histogram = Histogram::new(&DECISION_BUCKETS);
        histogram.observe(std::time::Duration::from_nanos(300));
        exposition.histogram(&family::DECISION_DURATION, &[], &histogram);
        exposition
    }

    #[test]
    fn the_series_of_a_family_are_contiguous_and_have_the_types_of_the_format() {
        let text = exposition(ExpositionFormat::Text).finish();
        let wanted = "# TYPE robotsd_decisions_total counter\n\
                      robotsd_decisions_total{site=\"a\\\"b\\\\c\\nd\",outcome=\"refused\"} 17\n\
                      robotsd_decisions_total{site=\"other\",outcome=\"refused\"} 1\n#";
        assert!(text.contains(wanted), "{text}");
        assert!(text.contains("# TYPE robotsd_build_info gauge\nrobotsd_build_info{version=\"1.2.3\"} 1\n"), "{text}");
        assert!(text.contains("process_cpu_seconds_total 1.5\n") && !text.contains("# UNIT"), "{text}");
        assert!(text.ends_with("robotsd_decision_duration_seconds_count 1\n"), "{text}");

        let text = exposition(ExpositionFormat::OpenMetrics).finish();
        assert!(text.contains("# TYPE robotsd_decisions counter\nrobotsd_decisions_total{"), "{text}");
        assert!(text.contains("# TYPE robotsd_build info\nrobotsd_build_info{version=\"1.2.3\"} 1\n"), "{text}");
        assert!(text.contains("# UNIT process_cpu_seconds seconds\nprocess_cpu_seconds_total 1.5\n"), "{text}");
        let want = "\nrobotsd_site_state{site=\"a\\\"b\\\\c\\nd\",robotsd_site_state=\"none\"} 1\n";
        assert!(text.contains(want), "{text}");
        assert!(text.ends_with("_count 1\n# EOF\n") && !text.contains("\n\n"), "{text}");
    }

    #[test]
    fn a_bucket_includes_the_counts_of_all_smaller_buckets() {
        let text = exposition(ExpositionFormat::Text).finish();
        for line in ["le=\"2.5e-07\"} 0", "le=\"5e-07\"} 1", "le=\"0.001\"} 1", "le=\"+Inf\"} 1"] {
            assert!(text.contains(&format!("robotsd_decision_duration_seconds_bucket{{{line}\n")), "{line}: {text}");
        }
    }

    #[test]
    fn series_beyond_the_limit_are_dropped_from_the_end_and_counted() {
        let text = exposition(ExpositionFormat::Text).finish_within(5);
        assert!(text.contains("robotsd_metrics_series 5\n"), "{text}");
        // Fourteen series are dropped: one of the two decision series, and the thirteen series of
        // the histogram.
        assert!(text.contains("robotsd_metrics_series_dropped 14\n"), "{text}");
        assert!(text.contains("} 17\n") && !text.contains("duration"), "{text}");
    }

    #[test]
    fn family_names_end_with_their_unit_and_each_family_has_its_own_place() {
        for (place, family) in ALL.iter().enumerate() {
            assert!(family.unit.is_empty() || family.name.ends_with(&format!("_{}", family.unit)), "{}", family.name);
            assert!(!family.name.ends_with("_total") && !family.name.ends_with("_info"), "{}", family.name);
            assert!(!family.help.contains(['\\', '"', '\n']) && family.help.ends_with('.'), "{}", family.name);
            assert_eq!(family.place(), place, "{}", family.name);
        }
    }

    fn fields(name: HeaderName, lines: &[&'static str]) -> HeaderMap {
        lines.iter().map(|line| (name.clone(), HeaderValue::from_static(line))).collect()
    }

    #[test]
    fn the_exposition_format_is_the_available_one_that_the_client_prefers() {
        use ExpositionFormat::{OpenMetrics, Text};
        for (lines, want) in [
            (&[][..], Text),
            (&["*/*"], Text),
            (&["text/html"], Text),
            (&["application/json"], Text),
            (&["application/openmetrics-text"], OpenMetrics),
            (&["Application/OpenMetrics-Text; version=\"1.0.0\""], OpenMetrics),
            (&["application/openmetrics-text;version=0.0.1"], Text),
            (&["text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0;q=0.4"], Text),
            (&["text/plain;q=0.4", "application/openmetrics-text;q=0.5"], OpenMetrics),
            (&["application/openmetrics-text;q=0,*/*"], Text),
            (&["text/plain;q=0, */*;q=0.1"], OpenMetrics),
            (&["application/openmetrics-text;q=2, text/plain"], Text),
            // The headers of Prometheus 2.42 and of its documentation, with an invalid last member.
            (
                &["application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                   text/plain;version=0.0.4;q=0.5,*/*;q=0.1"],
                OpenMetrics,
            ),
            (&["application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.7,/;q=0.1"], OpenMetrics),
            // The header of Prometheus 3.
            (
                &["application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                   application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                   text/plain;version=0.0.4;q=0.3,*/*;q=0.2"],
                OpenMetrics,
            ),
        ] {
            assert_eq!(ExpositionFormat::accepted(&fields(ACCEPT, lines)), want, "{lines:?}");
        }
    }

    #[test]
    fn gzip_is_used_only_if_the_client_prefers_it() {
        for (lines, want) in [
            (&[][..], false),
            (&["gzip"], true),
            (&["deflate, GZIP;q=0.5"], true),
            (&["gzip;q=0"], false),
            (&["identity, gzip;q=0.5"], false),
            (&["*"], false),
            (&["br"], false),
        ] {
            assert_eq!(accepts_gzip(&fields(ACCEPT_ENCODING, lines)), want, "{lines:?}");
        }
    }
}
