//! Masks passwords in lines and messages about files that people write, such as the config.

/// Schemes of store URLs. A store URL may contain a password.
const STORE_SCHEMES: [&str; 2] = ["redis://", "rediss://"];

/// Masks a line with a syntax error, from the first position where a password may begin to the end
/// of the line. The end of the password is unknown, because the syntax error may be inside the
/// password.
pub(super) fn mask_secret(line: &str) -> String {
    let of_store = line.match_indices("store").find_map(|(at, key)| {
        let is_part = line[..at].ends_with(|before: char| before.is_alphanumeric() || matches!(before, '_' | '-'));
        let value = line[at + key.len()..].trim_start_matches(['"', '\'']).trim_start().strip_prefix('=')?;
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let hidden = STORE_SCHEMES.into_iter().find_map(|scheme| value.strip_prefix(scheme));
        (!is_part).then(|| line.len() - hidden.unwrap_or(value).len())
    });
    let of_login = line.match_indices("://").find_map(|(at, slashes)| {
        let login = at + slashes.len();
        line[login..].rsplit_once('@').filter(|(login, _)| login.contains(':')).map(|_| login)
    });
    let of_scheme = STORE_SCHEMES.into_iter().find_map(|scheme| Some(line.find(scheme)? + scheme.len()));
    match of_store.into_iter().chain(of_login).chain(of_scheme).min() {
        Some(shown) if shown < line.len() => format!("{}***", &line[..shown]),
        _ => line.to_owned(),
    }
}

pub(super) fn mask_passwords(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = (&rest[..at], &rest[at + 3..]);
        let is_of_scheme = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '+' | '-' | '.' | ':' | '@');
        let scheme = before.trim_end_matches(is_of_scheme).len();
        // A URL in quotes ends at the closing quote, and any other URL at whitespace.
        let quote = before[..scheme].chars().next_back().filter(|quote| matches!(quote, '"' | '\'' | '`'));
        let (url, next) = after.split_at(end_of_value(after, quote));
        shown.push_str(&before[..scheme]);
        shown.push_str(&mask_password(&before[scheme..], url));
        rest = next;
    }
    shown.push_str(rest);
    shown
}

fn end_of_value(text: &str, quote: Option<char>) -> usize {
    let mut is_escaped = false;
    let end = text.find(|byte: char| {
        let ends = quote.map_or_else(|| byte.is_whitespace(), |quote| byte == quote && !is_escaped);
        is_escaped = byte == '\\' && !is_escaped;
        ends
    });
    end.unwrap_or(text.len())
}

pub(crate) fn mask_password(scheme: &str, url: &str) -> String {
    if scheme.contains('@') {
        // The text before `://` contains a user name and a password, not only a scheme.
        return "***".to_owned();
    }
    if let Some((login, host)) = url.rsplit_once('@') {
        let Some((user, _)) = login.split_once(':') else { return format!("{scheme}://{url}") };
        return format!("{scheme}://{user}:***@{host}");
    }
    // If the URL was truncated before the "@", everything after a colon may be a password, except a
    // port.
    let is_of_store = scheme.starts_with("redis");
    match url.split_once(':').filter(|_| is_of_store && !url.starts_with('[')) {
        Some((user, rest)) if !rest.bytes().take_while(|byte| *byte != b'/').all(|byte| byte.is_ascii_digit()) => {
            format!("{scheme}://{user}:***")
        }
        _ => format!("{scheme}://{url}"),
    }
}
