//! Where in an HTML document a placeholder stands: whether a value there is text, whatever it holds.

/// The part of a document that has been read up to some octet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum HtmlContext {
    /// Between tags, or in an element of text such as `title`.
    #[default]
    Text,
    /// In a tag, outside quotes.
    Tag {
        name: String,
    },
    /// In the quoted value of an attribute.
    Attribute {
        name: String,
        quote: u8,
    },
    /// In an element whose content is not text: `script`, `style`.
    Raw {
        name: String,
    },
    Comment,
}

/// Elements in which no character is escaped.
const RAW: [&str; 7] = ["script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"];

impl HtmlContext {
    /// The context after some more of the document.
    pub(super) fn after(mut self, text: &[u8]) -> Self {
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
                        // Also at the very end: a value behind it would be read as a name.
                        let length = after.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                        next = &after[length..];
                        Self::Tag { name: String::from_utf8_lossy(&after[..length]).to_ascii_lowercase() }
                    } else {
                        Self::Text
                    }
                }
                Self::Text => Self::Text,
                Self::Tag { name } => match byte {
                    b'>' if RAW.contains(&&*name) => Self::Raw { name },
                    b'>' => Self::Text,
                    b'"' | b'\'' => Self::Attribute { name, quote: byte },
                    _ => Self::Tag { name },
                },
                Self::Attribute { name, quote } if byte == quote => Self::Tag { name },
                Self::Attribute { name, quote } => Self::Attribute { name, quote },
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
                Self::Comment => Self::Comment,
            };
            rest = next;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_text_only_between_tags() {
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
