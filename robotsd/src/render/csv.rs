//! Comma-separated values, for spreadsheets.

/// A row (RFC 4180). Fields hold what clients and files say: one that a spreadsheet would take for a formula begins with an
/// apostrophe.
pub(crate) fn csv_row<const N: usize>(fields: [String; N]) -> String {
    let quoted = fields.map(|field| {
        let is_formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let field = if is_formula { format!("'{field}") } else { field };
        let is_quoted = field.contains(['"', ',', ';', '\n', '\r', '\'']);
        if is_quoted { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
    });
    quoted.join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_is_a_formula_and_none_ends_early() {
        for (field, want) in [
            ("GPTBot", "GPTBot"),
            ("/a?b=c", "/a?b=c"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("/a,b\"c", "\"/a,b\"\"c\""),
            ("=HYPERLINK(1)", "\"'=HYPERLINK(1)\""),
            ("=1+1", "\"'=1+1\""),
            ("@bot", "\"'@bot\""),
            ("@x\n", "\"'@x\n\""),
            ("-1+1", "\"'-1+1\""),
            ("+x", "\"'+x\""),
            ("", ""),
        ] {
            assert_eq!(csv_row([field.to_owned()]), format!("{want}\r\n"));
        }
    }
}
