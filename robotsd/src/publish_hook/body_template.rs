//! The body of a hook's request: text with placeholders.

use std::fmt::Write as _;

use crate::word_enum::word_enum;

/// Octets of a template.
const MOST: usize = 64 * 1024;

/// Text with placeholders, `{{url}}`. One that begins as JSON is JSON, and values are escaped for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyTemplate {
    pub(super) text: String,
    parts: Vec<BodyPart>,
    is_json: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum BodyPart {
    Literal(String),
    Value(BodyValue),
}

word_enum! {
    /// What a placeholder stands for, by its name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum BodyValue {
        Site = "site",
        Host = "host",
        Version = "version",
        Url = "url",
        /// All URLs: an array of JSON, or a line each.
        Urls = "urls",
    }
}

/// The values of a version that went live.
#[derive(Clone, Debug)]
pub(super) struct BodyValues<'a> {
    pub(super) site: &'a str,
    pub(super) hosts: &'a [String],
    pub(super) version: &'a str,
}

impl BodyTemplate {
    /// Reads a template. `{{{{` stands for two braces.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MOST {
            return Err(format!("the body has at most {} KiB", MOST / 1024));
        }
        let mut parts = Vec::new();
        let (mut literal, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            literal.push_str(before);
            if let Some(after) = after.strip_prefix("{{") {
                literal.push_str("{{");
                rest = after;
                continue;
            }
            let Some((name, after)) = after.split_once("}}") else {
                return Err("a placeholder has no end: write }} behind its name, or {{{{ for two braces".to_owned());
            };
            let Some(value) = BodyValue::ALL.into_iter().find(|known| known.as_str() == name.trim()) else {
                let known = BodyValue::ALL.map(BodyValue::as_str).join(", ");
                let name: String = name.chars().take(40).collect();
                return Err(format!("there is no placeholder {:?}: write one of {known}", name.trim()));
            };
            parts.extend([BodyPart::Literal(std::mem::take(&mut literal)), BodyPart::Value(value)]);
            rest = after;
        }
        literal.push_str(rest);
        parts.push(BodyPart::Literal(literal));
        let is_json = text.trim_start().starts_with(['{', '[']) && !text.trim_start().starts_with("{{");
        let template = Self { text: text.to_owned(), parts, is_json };
        template.check()?;
        Ok(template)
    }

    /// JSON is tried with values, so that no version is the first to find a fault.
    fn check(&self) -> Result<(), String> {
        let hosts = ["a.example".to_owned(), "b.example".to_owned()];
        let tried = self.render(&BodyValues { site: "a \"site\"", hosts: &hosts, version: "sha256:00" });
        let fault = |error: serde_json::Error| {
            format!(
                "the body begins as JSON and is none with its values filled in: {error}; texts stand in quotes, {{{{urls}}}} does not"
            )
        };
        if self.is_json { serde_json::from_str::<serde_json::Value>(&tried).map(drop).map_err(fault) } else { Ok(()) }
    }

    /// Whether it says which host or URL it is about.
    pub(crate) fn needs_host(&self) -> bool {
        let needs =
            |part: &BodyPart| matches!(part, BodyPart::Value(BodyValue::Host | BodyValue::Url | BodyValue::Urls));
        self.parts.iter().any(needs)
    }

    pub(super) const fn content_type(&self) -> &'static str {
        if self.is_json { "application/json" } else { "text/plain; charset=utf-8" }
    }

    pub(super) fn render(&self, values: &BodyValues<'_>) -> String {
        let mut out = String::new();
        let host = values.hosts.first().map_or("", String::as_str);
        for part in &self.parts {
            match part {
                BodyPart::Literal(text) => out.push_str(text),
                BodyPart::Value(BodyValue::Site) => self.push(&mut out, values.site),
                BodyPart::Value(BodyValue::Host) => self.push(&mut out, host),
                BodyPart::Value(BodyValue::Version) => self.push(&mut out, values.version),
                BodyPart::Value(BodyValue::Url) => self.push(&mut out, &url(host)),
                BodyPart::Value(BodyValue::Urls) => self.push_urls(&mut out, values.hosts),
            }
        }
        out
    }

    fn push_urls(&self, out: &mut String, hosts: &[String]) {
        if self.is_json {
            out.push('[');
        }
        for (at, host) in hosts.iter().enumerate() {
            match (self.is_json, at) {
                (true, 0) => out.push('"'),
                (true, _) => out.push_str(",\""),
                (false, 0) => {}
                (false, _) => out.push('\n'),
            }
            self.push(out, &url(host));
            if self.is_json {
                out.push('"');
            }
        }
        if self.is_json {
            out.push(']');
        }
    }

    /// The value, as it may stand in a text of JSON, or without control characters.
    fn push(&self, out: &mut String, value: &str) {
        for char in value.chars() {
            match char {
                '"' | '\\' if self.is_json => out.extend(['\\', char]),
                // Writing to a text does not fail.
                char if char.is_control() && self.is_json => drop(write!(out, "\\u{:04x}", u32::from(char))),
                char if char.is_control() => out.push(char::REPLACEMENT_CHARACTER),
                char => out.push(char),
            }
        }
    }
}

fn url(host: &str) -> String {
    format!("https://{host}/robots.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        let hosts = ["shop.test".to_owned(), "www.shop.test".to_owned()];
        let template = BodyTemplate::parse(text).expect("a template");
        template.render(&BodyValues { site: "a\"\\\n", hosts: &hosts, version: "sha256:12" })
    }

    #[test]
    fn values_are_escaped_for_what_the_body_is() {
        assert_eq!(rendered("{\"site\":\"{{site}}\"}"), r#"{"site":"a\"\\\u000a"}"#);
        assert_eq!(rendered("site={{ site }}"), "site=a\"\\\u{fffd}");
        let want = "{\"files\": [\"https://shop.test/robots.txt\",\"https://www.shop.test/robots.txt\"]}";
        assert_eq!(rendered("{\"files\": {{urls}}}"), want);
        assert_eq!(rendered("{{urls}}"), "https://shop.test/robots.txt\nhttps://www.shop.test/robots.txt");
        let expected = "https://shop.test/robots.txt shop.test sha256:12 {{x}}";
        assert_eq!(rendered("{{url}} {{host}} {{version}} {{{{x}}"), expected);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, begins) in [
            ("{{hosst}}", "there is no placeholder \"hosst\": write one of site, host, version, url, urls"),
            ("{{host", "a placeholder has no end"),
            ("{\"version\": {{version}}}", "the body begins as JSON and is none with its values filled in: "),
            ("{\"files\": \"{{urls}}\"}", "the body begins as JSON and is none"),
            ("[1,]", "the body begins as JSON and is none"),
        ] {
            let message = BodyTemplate::parse(text).expect_err(text);
            assert!(message.starts_with(begins), "{text}: {message}");
        }
        assert!(BodyTemplate::parse(&"x".repeat(MOST + 1)).is_err());
    }
}
