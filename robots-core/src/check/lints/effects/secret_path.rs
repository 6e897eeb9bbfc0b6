//! `secret-path`: a rule that reveals a path that was meant to be secret.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "secret-path",
    severity: Severity::Warning,
    summary: "a rule that points at something secret",
    why: "A robots.txt is public, and attackers read it. A rule about backups, database dumps, configurations or \
          password files shows them the path, and robots.txt does not prevent them from fetching it.",
    bad: Example::new(b"User-agent: *\nDisallow: /backup/db.sql\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: None,
};

/// Words that suggest a secret, unless a letter or digit is next to them in the path.
const WORDS: &str = "passwords passwd htpasswd secret secrets credential credentials backup backups dump dumps confidential \
                     phpmyadmin phpinfo cpanel";

/// Parts of file and folder names that suggest a secret anywhere in a path.
const NAMES: [&str; 9] = [".env", ".git/", ".svn/", ".sql", ".bak", ".htaccess", "id_rsa", ".pem", "wp-config"];

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if !is_rule(field) || field.directive != Directive::Disallow {
        return;
    }
    let pattern = field.value.to_ascii_lowercase();
    let word = |word: &[u8]| WORDS.split(' ').any(|known| known.as_bytes() == word);
    let points = pattern.split(|byte| !byte.is_ascii_alphanumeric()).any(word)
        || NAMES.iter().any(|name| holds(&pattern, name.as_bytes()));
    if points {
        sink.report(
            field.value_range.clone(),
            format_args!(
                "{path} tells every reader of this public file where something secret is",
                path = Quoted(field.value)
            ),
        )
        .help("protect the files with a login, or remove them from the server");
    }
}

/// Reports whether the pattern contains the name, without a letter or digit directly after it. So
/// `.sql` is not found in `INSTALL.sqlite.txt`. A name that ends with a slash may be followed by
/// anything.
fn holds(pattern: &[u8], name: &[u8]) -> bool {
    let ends = |at: usize| name.ends_with(b"/") || !pattern.get(at + name.len()).is_some_and(u8::is_ascii_alphanumeric);
    memchr::memmem::find_iter(pattern, name).any(ends)
}
