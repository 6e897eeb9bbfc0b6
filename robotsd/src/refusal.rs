//! The response to a refused request: the default page, which `tower_robots` writes as text or
//! JSON, or a page from the template of the site.
//!
//! The template is read together with the config, and an invalid template is an error of the
//! config. Rendering cannot fail. A placeholder is rejected if escaping would not make its value
//! safe in the surrounding HTML.

mod cases;

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use bytes::Bytes;
use http::header::{CONTENT_LANGUAGE, CONTENT_TYPE, HeaderValue, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use tower_robots::layer::Event;

pub(crate) use self::cases::{AnsweringCase, CaseAnswer, CaseServer, ExpectedRefusal, SiteRefusals};

use crate::word_enum::word_enum;

/// Allowed statuses of the response to a refused request. 2xx and 3xx are excluded because they do
/// not refuse a request, and 5xx because crawlers treat them as a problem of the site. A 401
/// response needs a challenge, so the config can set this status only in a `[[site.refusal.case]]`.
pub(crate) const REFUSAL_STATUSES: [StatusCode; 7] = [
    StatusCode::FORBIDDEN,
    StatusCode::PAYMENT_REQUIRED,
    StatusCode::NOT_FOUND,
    StatusCode::GONE,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
    StatusCode::UNAUTHORIZED,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusalPage {
    pub(crate) status: StatusCode,
    /// Path of the template file. robotsd watches both the config and this file for changes.
    pub(crate) file: Option<PathBuf>,
    pub(crate) template: Option<Template>,
    /// `Content-Language` of responses from the template.
    pub(crate) language: Option<HeaderValue>,
    pub(crate) contact: Option<String>,
}

impl RefusalPage {
    /// Returns the response to a refused request. Clients that accept only JSON get problem
    /// details, and gRPC calls get a gRPC status, even if there is a template.
    pub(crate) fn respond(&self, event: &Event<'_>) -> Response<Bytes> {
        // The template quotes the rule that disallows the request, so it is not used if there is no
        // rule. Requests of impostors may be refused without a rule.
        let is_quoted = event.record.is_disallowed() && !event.wants_json() && !event.request.is_grpc_call();
        let Some(template) = self.template.as_ref().filter(|_| is_quoted) else {
            return event.refusal_with_status(self.status);
        };
        let body = template.render(event, self.status, self.contact.as_deref().unwrap_or_default());
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(template.format.content_type()));
        if let Some(language) = &self.language {
            headers.insert(CONTENT_LANGUAGE, language.clone());
        }
        headers.insert(VARY, HeaderValue::from_static("User-Agent, Accept"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

/// Maximum size of a template file, in bytes.
pub(crate) const MAX_TEMPLATE: usize = 64 * 1024;

/// Maximum number of placeholders in a template. The limit bounds the size of a response, because
/// clients control the lengths of the values.
const MAX_PLACEHOLDERS: usize = 32;

/// The format of a template. The format determines how values are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TemplateFormat {
    Html,
    Text,
}

/// A string with placeholders such as `{{agent}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    format: TemplateFormat,
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Value(Placeholder),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TemplateError {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
}

/// Whether the config of the site sets `contact`. If so, the template can contain the placeholder
/// `{{contact}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    Given,
    Missing,
}

impl TemplateFormat {
    pub(crate) fn of_extension(extension: &str) -> Option<Self> {
        match &*extension.to_ascii_lowercase() {
            "html" | "htm" => Some(Self::Html),
            "txt" => Some(Self::Text),
            _ => None,
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
        }
    }

    /// Appends a character of a value, escaped for this format. Control characters are replaced,
    /// because they could be used to forge lines or to send commands to a terminal.
    fn push_escaped(self, out: &mut String, char: char) {
        match (self, char) {
            (_, char) if char.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            (Self::Html, '&') => out.push_str("&amp;"),
            (Self::Html, '<') => out.push_str("&lt;"),
            (Self::Html, '>') => out.push_str("&gt;"),
            (Self::Html, '"') => out.push_str("&quot;"),
            (Self::Html, '\'') => out.push_str("&#39;"),
            (_, char) => out.push(char),
        }
    }
}

impl Template {
    /// Parses a template. `{{{{` produces two literal braces.
    pub(crate) fn parse(text: &str, format: TemplateFormat, contact: Contact) -> Result<Self, TemplateError> {
        if text.trim().is_empty() {
            return Err(TemplateError::new(0..0, "the template is empty: write the page for refused clients"));
        }
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut context = HtmlContext::default();
        let (mut at, mut count) = (0, 0);
        while let Some(found) = text[at..].find("{{") {
            let start = at + found;
            literal.push_str(&text[at..start]);
            if text[start..].starts_with("{{{{") {
                literal.push_str("{{");
                at = start + 4;
                continue;
            }
            let (placeholder, end) = placeholder_at(text, start)?;
            let span = start..end;
            count += 1;
            if count > MAX_PLACEHOLDERS {
                let message = format!("the template has more than {MAX_PLACEHOLDERS} placeholders: use fewer");
                return Err(TemplateError::new(span, message));
            }
            if placeholder == Placeholder::Contact && contact == Contact::Missing {
                let message = "the site has no contact: set contact in [site.refusal], or leave the placeholder out";
                return Err(TemplateError::new(span, message));
            }
            if format == TemplateFormat::Html {
                context = context.after(literal.as_bytes());
                let name = text[start + 2..end - 2].trim();
                refuse_unsafe(&context, placeholder, name).map_err(|message| TemplateError::new(span, message))?;
            }
            parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
            parts.push(TemplatePart::Value(placeholder));
            at = end;
        }
        literal.push_str(&text[at..]);
        parts.push(TemplatePart::Literal(literal));
        Ok(Self { format, parts })
    }

    fn render(&self, event: &Event<'_>, status: StatusCode, contact: &str) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => out.push_str(text),
                TemplatePart::Value(placeholder) => {
                    let value = placeholder.value(event, status, contact);
                    value.chars().for_each(|char| self.format.push_escaped(&mut out, char));
                }
            }
        }
        out
    }
}

impl TemplateError {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }
}

/// Parses the placeholder that begins at byte `start`. Returns the placeholder and the byte offset
/// of its end.
fn placeholder_at(text: &str, start: usize) -> Result<(Placeholder, usize), TemplateError> {
    let line = text[start..].split('\n').next().unwrap_or_default();
    let Some(length) = line.find("}}") else {
        let message = "the end of this placeholder is missing: write }} after its name, or {{{{ for two braces";
        return Err(TemplateError::new(start..start + 2, message));
    };
    let end = start + length + 2;
    let name = text[start + 2..start + length].trim();
    match Placeholder::ALL.into_iter().find(|known| known.as_str() == name) {
        Some(placeholder) => Ok((placeholder, end)),
        None => {
            let known = Placeholder::ALL.map(Placeholder::as_str).join(", ");
            let message = format!("there is no placeholder {name:?}: write one of {known}");
            Err(TemplateError::new(start..end, message))
        }
    }
}

/// Returns an error if escaping does not make the value of a placeholder safe in its context.
fn refuse_unsafe(context: &HtmlContext, placeholder: Placeholder, name: &str) -> Result<(), String> {
    match context {
        HtmlContext::Text => Ok(()),
        HtmlContext::Attribute { .. } if placeholder.is_trusted() => Ok(()),
        HtmlContext::Attribute { .. } => Err(format!(
            "{{{{{name}}}}} contains text that clients sent, which is unsafe in an attribute: use the placeholder \
             only between tags"
        )),
        HtmlContext::Tag { .. } => Err(format!(
            "{{{{{name}}}}} is inside a tag: use the placeholder between tags, or in the quotes of an attribute"
        )),
        HtmlContext::Raw { name: element } => Err(format!(
            "{{{{{name}}}}} is inside <{element}>, and values cannot be escaped in this element: use the \
             placeholder outside of it"
        )),
        HtmlContext::Comment => Err(format!("{{{{{name}}}}} is inside a comment: use the placeholder outside of it")),
    }
}

/// Maximum length of a value in a refusal page, in characters. Longer values are truncated,
/// except the contact.
const SHOWN: usize = 512;

word_enum! {
    /// A placeholder, with its name in the template.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Placeholder {
        Agent = "agent",
        Contact = "contact",
        Group = "group",
        Host = "host",
        Line = "line",
        Path = "path",
        RequestId = "request_id",
        Rule = "rule",
        Status = "status",
        Title = "title",
    }
}

impl Placeholder {
    /// Reports whether the value is free of text from requests and from robots.txt files. Such text
    /// is not safe in every attribute, because clients control requests, and a robots.txt may be
    /// fetched from another server.
    const fn is_trusted(self) -> bool {
        matches!(self, Self::Contact | Self::Line | Self::Status | Self::Title)
    }

    /// Returns the value of the placeholder for a refused request. The value is truncated, but not
    /// escaped.
    fn value<'e>(self, event: &Event<'e>, status: StatusCode, contact: &'e str) -> Cow<'e, str> {
        let record = event.record;
        let value = match self {
            Self::Agent => record.claimed_name().unwrap_or("this client").into(),
            Self::Contact => return contact.into(),
            Self::Group => record.group.as_deref().unwrap_or_default().into(),
            Self::Host => event.request.host().unwrap_or_default().into(),
            Self::Line => record.line.unwrap_or_default().to_string().into(),
            Self::Path => String::from_utf8_lossy(event.request.target()),
            Self::RequestId => event.request_id().unwrap_or_default().into(),
            Self::Rule => record.rule.as_deref().unwrap_or_default().into(),
            Self::Status => status.as_u16().to_string().into(),
            Self::Title => status.canonical_reason().unwrap_or_default().into(),
        };
        match value.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &value[..end]).into(),
            None => value,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum HtmlContext {
    /// The position is between tags, or in an element that contains only text, such as `title`.
    #[default]
    Text,
    /// The position is in a tag, but not in quotes.
    Tag {
        name: String,
    },
    /// The position is in the quoted value of an attribute.
    Attribute {
        name: String,
        quote: u8,
    },
    /// The position is in an element that does not support HTML escapes, such as `script` or
    /// `style`.
    Raw {
        name: String,
    },
    Comment,
}

/// Names of elements that do not support HTML escapes.
const RAW: [&str; 7] = ["script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"];

impl HtmlContext {
    /// Returns the context at the end of `text`. `self` is the context at the beginning of `text`.
    fn after(mut self, text: &[u8]) -> Self {
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            let mut next = after;
            self = match self {
                Self::Text if byte == b'<' => {
                    if let Some(comment) = after.strip_prefix(b"!--") {
                        next = comment;
                        Self::Comment
                    } else if after
                        .first()
                        .is_none_or(|first| matches!(first, b'/' | b'!' | b'?') || first.is_ascii_alphabetic())
                    {
                        // A `<` at the end of `text` also counts as the beginning of a tag, because
                        // the value that follows would be parsed as the name of the tag.
                        let length = after.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                        next = &after[length..];
                        Self::Tag { name: String::from_utf8_lossy(&after[..length]).to_ascii_lowercase() }
                    } else {
                        Self::Text
                    }
                }
                Self::Tag { name } => match byte {
                    b'>' if RAW.contains(&&*name) => Self::Raw { name },
                    b'>' => Self::Text,
                    b'"' | b'\'' => Self::Attribute { name, quote: byte },
                    _ => Self::Tag { name },
                },
                Self::Attribute { name, quote } if byte == quote => Self::Tag { name },
                Self::Raw { name } => {
                    let end = after.strip_prefix(b"/").and_then(|after| after.get(..name.len()));
                    if byte == b'<' && end.is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes())) {
                        next = &after[1 + name.len()..];
                        Self::Tag { name: String::new() }
                    } else {
                        Self::Raw { name }
                    }
                }
                Self::Comment if byte == b'-' && after.starts_with(b"->") => {
                    next = &after[2..];
                    Self::Text
                }
                same @ (Self::Text | Self::Attribute { .. } | Self::Comment) => same,
            };
            rest = next;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str, format: TemplateFormat) -> (String, String) {
        let error = Template::parse(text, format, Contact::Missing).expect_err(text);
        (text[error.span.clone()].to_owned(), error.message)
    }

    #[test]
    fn the_error_for_an_invalid_template_contains_its_place() {
        use TemplateFormat::{Html, Text};
        for (text, format, at, message) in [
            ("hello {{agnet}}", Text, "{{agnet}}", "there is no placeholder \"agnet\": write one of agent, contact,"),
            ("a\n{{agent\n}}", Text, "{{", "the end of this placeholder is missing: write }} after its name"),
            ("{{}}", Text, "{{}}", "there is no placeholder \"\""),
            ("{{ contact }}", Text, "{{ contact }}", "the site has no contact: set contact in [site.refusal]"),
            (" \n", Text, "", "the template is empty"),
            (
                "<a href=\"{{path}}\">",
                Html,
                "{{path}}",
                "{{path}} contains text that clients sent, which is unsafe in an attribute",
            ),
            (
                "<p {{line}}>",
                Html,
                "{{line}}",
                "{{line}} is inside a tag: use the placeholder between tags, or in the quotes",
            ),
            ("<{{agent}}>", Html, "{{agent}}", "{{agent}} is inside a tag"),
            (
                "<script>x=\"{{line}}\"",
                Html,
                "{{line}}",
                "{{line}} is inside <script>, and values cannot be escaped in this element",
            ),
            ("<style>{{agent}}", Html, "{{agent}}", "{{agent}} is inside <style>"),
            ("<!-- {{agent}} -->", Html, "{{agent}}", "{{agent}} is inside a comment"),
            ("<p title=\"{{line}}\" {{agent}}>", Html, "{{agent}}", "{{agent}} is inside a tag"),
        ] {
            let (place, said) = fault(text, format);
            assert_eq!(place, at, "{text}");
            assert!(said.starts_with(message), "{text}: {said}");
        }
        let many = "{{line}}".repeat(33);
        assert_eq!(fault(&many, Text).1, "the template has more than 32 placeholders: use fewer");
    }

    #[test]
    fn a_template_is_split_into_literals_and_values() {
        let page = "<style>a{b:c}</style>{{{{x}} {{ agent }}<a href='{{contact}}'>{{line}}</a> {";
        let template = Template::parse(page, TemplateFormat::Html, Contact::Given).expect("a template");
        let literal = |text: &str| TemplatePart::Literal(text.to_owned());
        let want = [
            literal("<style>a{b:c}</style>{{x}} "),
            TemplatePart::Value(Placeholder::Agent),
            literal("<a href='"),
            TemplatePart::Value(Placeholder::Contact),
            literal("'>"),
            TemplatePart::Value(Placeholder::Line),
            literal("</a> {"),
        ];
        assert_eq!(template.parts, want);
    }

    #[test]
    fn every_placeholder_is_found_by_its_name() {
        for placeholder in Placeholder::ALL {
            let name = placeholder.as_str();
            let text = format!("{{{{{name}}}}}");
            let template = Template::parse(&text, TemplateFormat::Text, Contact::Given).expect("a template");
            assert!(template.parts.contains(&TemplatePart::Value(placeholder)), "{text}");
        }
    }

    #[test]
    fn values_are_escaped_for_the_format_of_the_template() {
        let escaped = |format: TemplateFormat, value: &str| {
            let mut out = String::new();
            value.chars().for_each(|char| format.push_escaped(&mut out, char));
            out
        };
        let value = "<b a='\"'>&\x1b\n\u{85}é";
        assert_eq!(escaped(TemplateFormat::Html, value), "&lt;b a=&#39;&quot;&#39;&gt;&amp;\u{fffd}\u{fffd}\u{fffd}é");
        assert_eq!(escaped(TemplateFormat::Text, value), "<b a='\"'>&\u{fffd}\u{fffd}\u{fffd}é");
    }

    #[test]
    fn the_html_context_is_text_only_outside_tags_comments_and_raw_elements() {
        for text in [
            "",
            "<p>",
            "a < b ",
            "1<2",
            "<!doctype html><title>",
            "<!-- <script> --><b>",
            "<script>x</script>",
            "<style>a{}</STYLE >",
        ] {
            assert_eq!(HtmlContext::default().after(text.as_bytes()), HtmlContext::Text, "{text}");
        }
        for text in ["<", "<p", "<p class=", "</p", "<!", "<p title=\"a\" ", "<a title='>' x", "<?x"] {
            let context = HtmlContext::default().after(text.as_bytes());
            assert!(matches!(context, HtmlContext::Tag { .. }), "{text}: {context:?}");
        }
        for text in ["<a href=\"", "<a href='mailto:", "<a x=\">", "<a x='\"<script>"] {
            let context = HtmlContext::default().after(text.as_bytes());
            assert!(matches!(context, HtmlContext::Attribute { .. }), "{text}: {context:?}");
        }
        for text in ["<script>", "<SCRIPT src=x>\"</scrip", "<style media=\"a\">b{"] {
            let context = HtmlContext::default().after(text.as_bytes());
            assert!(matches!(context, HtmlContext::Raw { .. }), "{text}: {context:?}");
        }
        for text in ["<!--", "<!-- -> <p>"] {
            assert_eq!(HtmlContext::default().after(text.as_bytes()), HtmlContext::Comment, "{text}");
        }
    }
}
