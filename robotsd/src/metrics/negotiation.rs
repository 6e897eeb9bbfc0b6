//! Which format and coding the text of a scrape has (RFC 9110, section 12).
//!
//! The client's preference counts, and what it does not mention is no reason to refuse it: a scrape that is answered in another
//! format says more than a 406.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderName};

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpositionFormat {
    /// Prometheus's text format, 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentCoding {
    Identity,
    Gzip,
}

impl ExpositionFormat {
    /// The format that a client prefers; text where it has no preference.
    pub(crate) fn accepted(fields: &HeaderMap) -> Self {
        let (mut text, mut open) = ((0, 0), (0, 0));
        for range in list(fields, &ACCEPT) {
            let version = range.parameter("version");
            // A range that is more exact counts for more than `*/*`, whatever its weight (section 12.5.1).
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

impl ContentCoding {
    /// Gzip where the client names it and does not prefer none.
    pub(crate) fn accepted(fields: &HeaderMap) -> Self {
        let (mut gzip, mut identity) = (None, None);
        for coding in list(fields, &ACCEPT_ENCODING) {
            match &*coding.name.to_ascii_lowercase() {
                "gzip" | "x-gzip" => gzip = Some(coding.weight),
                "identity" => identity = Some(coding.weight),
                _ => {}
            }
        }
        match gzip {
            Some(gzip) if gzip > 0 && gzip >= identity.unwrap_or(0) => Self::Gzip,
            _ => Self::Identity,
        }
    }
}

/// A member of `Accept` or `Accept-Encoding`.
struct Member<'f> {
    name: &'f str,
    parameters: &'f str,
    /// In thousandths.
    weight: u16,
}

impl<'f> Member<'f> {
    /// None for what is no member of the list: it is passed over.
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

/// The members of every line of a field.
fn list<'f>(fields: &'f HeaderMap, name: &HeaderName) -> impl Iterator<Item = Member<'f>> {
    let lines = fields.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).filter_map(Member::new)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn fields(name: HeaderName, lines: &[&'static str]) -> HeaderMap {
        lines.iter().map(|line| (name.clone(), HeaderValue::from_static(line))).collect()
    }

    #[test]
    fn the_format_is_the_preferred_one_that_there_is() {
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
            // What Prometheus 2.42 sends, and what its documentation says: the last member is no range.
            (
                &["application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                   text/plain;version=0.0.4;q=0.5,*/*;q=0.1"],
                OpenMetrics,
            ),
            (&["application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.7,/;q=0.1"], OpenMetrics),
            // Prometheus 3.
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
    fn gzip_is_for_those_who_ask_for_it() {
        use ContentCoding::{Gzip, Identity};
        for (lines, want) in [
            (&[][..], Identity),
            (&["gzip"], Gzip),
            (&["deflate, GZIP;q=0.5"], Gzip),
            (&["gzip;q=0"], Identity),
            (&["identity, gzip;q=0.5"], Identity),
            (&["*"], Identity),
            (&["br"], Identity),
        ] {
            assert_eq!(ContentCoding::accepted(&fields(ACCEPT_ENCODING, lines)), want, "{lines:?}");
        }
    }
}
