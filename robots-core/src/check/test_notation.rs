//! A short form of robots.txt files, for tables of tests.

/// Expands `U:`, `D:` and `A:` at the start of lines to `User-agent:`, `Disallow:` and `Allow:`.
pub(super) fn written_out(file: &str) -> String {
    let fields = [("U:", "User-agent:"), ("D:", "Disallow:"), ("A:", "Allow:")];
    file.split_inclusive(['\n', '\r']).fold(String::new(), |text, line| {
        let field = fields.iter().find_map(|(short, long)| Some(format!("{long}{}", line.strip_prefix(short)?)));
        text + field.as_deref().unwrap_or(line)
    })
}
