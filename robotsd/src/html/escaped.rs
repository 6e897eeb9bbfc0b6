//! Text for HTML and SVG.

use std::fmt;

/// Text that cannot leave its place in the page: markup is escaped, and so is what does not print.
#[derive(Debug)]
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\\' => f.write_str("\\")?,
                // Marks that turn text about would let a path look like another.
                _ => write!(f, "{}", char.escape_debug())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place_in_the_page() {
        let hostile = "<script>alert('1')</script>\"&\u{202e}\u{1b}\\";
        let want = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;\\u{202e}\\u{1b}\\";
        assert_eq!(Escaped(hostile).to_string(), want);
    }
}
