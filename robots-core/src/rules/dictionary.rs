//! Parses dictionaries of structured fields (RFC 9651, section 4.2.2).
//!
//! The crate `sfv` also parses dictionaries, but is a dependency of the feature `signatures` only.
//! This parser checks the whole syntax and returns only the part that usage preferences need: keys,
//! and values that are tokens.

/// A member of a dictionary, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member<'t> {
    pub(super) key: &'t str,
    /// Value of the member; `None` if it is not a token.
    pub(super) token: Option<&'t str>,
}

/// Returns the members in their order, including repeated keys; the last member with a key counts.
/// `None` if the text is not a dictionary.
pub(super) fn members(text: &[u8]) -> Option<Vec<Member<'_>>> {
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
        members.push(Member { key, token });
        rest.skip(&[' ', '\t']);
        if rest.0.is_empty() {
            return Some(members);
        }
        rest.take(',').then_some(())?;
        rest.skip(&[' ', '\t']);
    }
}

/// The part of a field that is not parsed yet.
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

    /// Takes the characters at the start that fit.
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

    /// Parses an item or an inner list, without its parameters. Returns the item if it is a token.
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

    /// Parses a value. Returns the value if it is a token.
    fn bare_item(&mut self) -> Option<Option<&'t str>> {
        let first = self.0.chars().next()?;
        if first.is_ascii_alphabetic() || first == '*' {
            let fits = |char: char| char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~:/".contains(char);
            return Some(Some(self.run(fits)));
        }
        let is_valid = match first {
            '?' => self.take('?') && (self.take('0') || self.take('1')),
            '@' => self.take('@') && self.number() == Some(Number::Integer),
            '-' | '0'..='9' => self.number().is_some(),
            ':' => self.take(':') && self.base64(),
            '"' => self.take('"') && self.string(),
            '%' => self.take('%') && self.take('"') && self.display_string(),
            _ => false,
        };
        is_valid.then_some(None)
    }

    fn number(&mut self) -> Option<Number> {
        self.take('-');
        let whole = self.run(|char| char.is_ascii_digit()).len();
        if !self.take('.') {
            return (1..=15).contains(&whole).then_some(Number::Integer);
        }
        let fraction = self.run(|char| char.is_ascii_digit()).len();
        ((1..=12).contains(&whole) && (1..=3).contains(&fraction)).then_some(Number::Decimal)
    }

    /// Parses the rest of a byte sequence.
    fn base64(&mut self) -> bool {
        let content = self.run(|char| char.is_ascii_alphanumeric() || "+/=".contains(char));
        let digits = content.trim_end_matches('=');
        self.take(':') && !digits.contains('=') && digits.len() % 4 != 1 && content.len() - digits.len() <= 2
    }

    /// Parses the rest of a string.
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

    /// Parses the rest of a display string, whose escapes must be UTF-8.
    fn display_string(&mut self) -> bool {
        let Some((content, rest)) = self.0.split_once('"') else { return false };
        self.0 = rest;
        let (mut decoded, mut bytes) = (Vec::new(), content.bytes());
        while let Some(byte) = bytes.next() {
            let digit = |byte: Option<u8>| char::from(byte.filter(|byte| !byte.is_ascii_uppercase())?).to_digit(16);
            decoded.push(match byte {
                b'%' => match (digit(bytes.next()), digit(bytes.next())) {
                    (Some(high), Some(low)) => (high * 16 + low) as u8,
                    _ => return false,
                },
                b' '..=b'~' => byte,
                _ => return false,
            });
        }
        std::str::from_utf8(&decoded).is_ok()
    }
}

#[derive(PartialEq, Eq)]
enum Number {
    Integer,
    Decimal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_is_parsed_as_a_whole_or_not_at_all() {
        let shown = |text: &str| {
            let shown = |member: &Member<'_>| format!("{}={}", member.key, member.token.unwrap_or("?"));
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
            ("a=(n y", None),
            ("a=(n,y)", None),
            ("a=ü", None),
            ("\ta=n", None),
        ] {
            assert_eq!(shown(text).as_deref(), want, "{text}");
        }
    }
}
