//! Parses dictionaries of structured fields (RFC 9651, section 4.2.2).
//!
//! The crate `sfv` also parses dictionaries, but is not used here, because only the feature
//! `signatures` depends on it. This parser checks the whole syntax, but returns only what usage
//! preferences need: keys, and values that are tokens.

/// Returns the members of a dictionary in order, without parameters. A value that is not a token is
/// `None`. If a key is repeated, every member with this key is returned, and the caller must use
/// the last one. Returns `None` if the text is not a dictionary.
pub(super) fn members(text: &[u8]) -> Option<Vec<(&str, Option<&str>)>> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
    let mut rest = Rest(text.trim_matches(' '));
    let mut members = Vec::new();
    if rest.0.is_empty() {
        return Some(members);
    }
    loop {
        let key = rest.key()?;
        let token = if rest.take('=') { rest.item_or_list()? } else { None };
        rest.parameters()?;
        members.push((key, token));
        rest.skip(&[' ', '\t']);
        if rest.0.is_empty() {
            return Some(members);
        }
        rest.take(',').then_some(())?;
        rest.skip(&[' ', '\t']);
    }
}

struct Rest<'t>(&'t str);

impl<'t> Rest<'t> {
    fn take(&mut self, char: char) -> bool {
        let rest = self.0.strip_prefix(char);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn skip(&mut self, chars: &[char]) {
        self.0 = self.0.trim_start_matches(chars);
    }

    fn run(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let (run, rest) = self.0.split_at(self.0.find(|char| !fits(char)).unwrap_or(self.0.len()));
        self.0 = rest;
        run
    }

    fn key(&mut self) -> Option<&'t str> {
        let starts = self.0.starts_with(|first: char| first.is_ascii_lowercase() || first == '*');
        let fits = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || "_-.*".contains(char);
        starts.then(|| self.run(fits))
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take(';') {
            self.skip(&[' ']);
            self.key()?;
            if self.take('=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    /// Parses an item or an inner list, without its parameters. Returns `Some(None)` for a valid
    /// inner list, or for a valid item that is not a token.
    fn item_or_list(&mut self) -> Option<Option<&'t str>> {
        if !self.take('(') {
            return self.bare_item();
        }
        loop {
            self.skip(&[' ']);
            if self.take(')') {
                return Some(None);
            }
            self.bare_item()?;
            self.parameters()?;
            self.0.starts_with([' ', ')']).then_some(())?;
        }
    }

    /// Parses a value. Returns `Some(None)` for a valid value that is not a token.
    fn bare_item(&mut self) -> Option<Option<&'t str>> {
        let first = self.0.chars().next()?;
        if first.is_ascii_alphabetic() || first == '*' {
            let fits = |char: char| char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~:/".contains(char);
            return Some(Some(self.run(fits)));
        }
        let is_valid = match first {
            '?' => self.take('?') && (self.take('0') || self.take('1')),
            '@' => self.take('@') && self.number() == Some(0),
            '-' | '0'..='9' => self.number().is_some(),
            ':' => self.take(':') && self.base64(),
            '"' => self.take('"') && self.string(),
            '%' => self.take('%') && self.take('"') && self.display_string().is_some(),
            _ => false,
        };
        is_valid.then_some(None)
    }

    /// Parses a number. Returns the number of digits after the decimal point.
    fn number(&mut self) -> Option<usize> {
        self.take('-');
        let whole = self.run(|char| char.is_ascii_digit()).len();
        if !self.take('.') {
            return (1..=15).contains(&whole).then_some(0);
        }
        let decimals = self.run(|char| char.is_ascii_digit()).len();
        ((1..=12).contains(&whole) && (1..=3).contains(&decimals)).then_some(decimals)
    }

    /// Parses a byte sequence after its first colon, and reports whether it is valid.
    fn base64(&mut self) -> bool {
        let content = self.run(|char| char.is_ascii_alphanumeric() || "+/=".contains(char));
        let digits = content.trim_end_matches('=');
        self.take(':') && !digits.contains('=') && digits.len() % 4 != 1 && content.len() - digits.len() <= 2
    }

    /// Parses a string after its first quote, and reports whether it is valid.
    fn string(&mut self) -> bool {
        loop {
            self.run(|char| matches!(char, ' '..='~') && !matches!(char, '"' | '\\'));
            if self.take('"') {
                return true;
            }
            if !self.take('\\') || !(self.take('"') || self.take('\\')) {
                return false;
            }
        }
    }

    /// Parses a display string after its first quote. The decoded content must be UTF-8.
    fn display_string(&mut self) -> Option<()> {
        let (content, rest) = self.0.split_once('"')?;
        self.0 = rest;
        let mut parts = content.split('%');
        let mut decoded = parts.next()?.as_bytes().to_vec();
        for part in parts {
            let (escape, text) = part.split_at_checked(2)?;
            let is_hex = escape.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            decoded.push(u8::from_str_radix(escape, 16).ok().filter(|_| is_hex)?);
            decoded.extend_from_slice(text.as_bytes());
        }
        let is_printable = content.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        (is_printable && std::str::from_utf8(&decoded).is_ok()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_is_parsed_as_a_whole_or_not_at_all() {
        let shown = |text: &str| {
            let shown = |(key, token): &(&str, Option<&str>)| format!("{key}={}", token.unwrap_or("?"));
            members(text.as_bytes()).map(|members| members.iter().map(shown).collect::<Vec<_>>().join(" "))
        };
        for (text, want) in [
            ("", Some("")),
            ("  ", Some("")),
            ("a=n", Some("a=n")),
            (" a=n ,\tb=y ", Some("a=n b=y")),
            ("a=n,a=y", Some("a=n a=y")),
            (
                "a, b=?1, c=1, d=-1.5, e=\"n\\\"\", f=:YQ==:, g=@12, h=%\"%c3%bc\", i=(n \"x\";q y)",
                Some("a=? b=? c=? d=? e=? f=? g=? h=? i=?"),
            ),
            ("a;b;c=1=n", None),
            ("a=n;b=\"x, y\";c", Some("a=n")),
            ("a=n;  b=1, *c.d_e-9=T:/t", Some("a=n *c.d_e-9=T:/t")),
            ("a=()", Some("a=?")),
            ("A=n", None),
            ("a=n,", None),
            ("a = n", None),
            ("a=n b=y", None),
            ("a=", None),
            ("a=n;", None),
            ("a;has;parameters=\"?\";", None),
            ("=n", None),
            ("a=\"n", None),
            ("a=\"\\n\"", None),
            ("a=1.", None),
            ("a=1.2345", None),
            ("a=1234567890123456", None),
            ("a=@1.5", None),
            ("a=?2", None),
            ("a=:a b:", None),
            ("a=:YQ", None),
            ("a=%\"%C3%BC\"", None),
            ("a=%\"%ff\"", None),
            ("a=%\"%c\"", None),
            ("a=%\"%+1\"", None),
            ("a=%\"\t\"", None),
            ("a=%\"100%25\";b, c=%\"\"", Some("a=? c=?")),
            ("a=(n y", None),
            ("a=(n,y)", None),
            ("a=ü", None),
            ("\ta=n", None),
        ] {
            assert_eq!(shown(text).as_deref(), want, "{text}");
        }
    }
}
