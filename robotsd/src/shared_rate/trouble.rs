//! Why a store cannot be used, said to the operator: the cause, what would be right, and the server's own words.

use redis::{ErrorKind, RedisError};

use super::settings::StoreSettings;

/// Characters of a server's words that are shown: it may write what it likes.
const LONGEST: usize = 200;

/// Why a question was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoreTrouble {
    /// Not in time.
    Late,
    /// Of the connection, or of a server that cannot be used.
    Broken(String),
}

impl StoreTrouble {
    /// An answer that the script does not give.
    pub(super) fn garbage() -> Self {
        Self::Broken("its answer is none of the script's: something else answers there".to_owned())
    }

    pub(super) fn of(error: &RedisError, settings: &StoreSettings) -> Self {
        if error.is_timeout() { Self::Late } else { Self::Broken(describe(error, settings)) }
    }

    /// For status and log.
    pub(super) fn message(self, settings: &StoreSettings) -> String {
        match self {
            Self::Late => format!("no answer within {} ms", settings.deadline.as_millis()),
            Self::Broken(why) => why,
        }
    }
}

/// What marks an error in its text, the server's word or the library's, and what it means. A cluster's client wraps errors in others, so
/// their kinds say too little.
const MEANINGS: &[(&[&str], &str)] = &[
    (
        &["WRONGPASS", "invalid password", "AuthenticationFailed"],
        "the login is refused: check the user of the URL, and the password there or in password_file",
    ),
    (
        &["NOAUTH", "unauthenticated"],
        "it wants a password: name the file with password_file, and the user in the URL where there is one",
    ),
    (
        &["NOPERM", "NoPerm"],
        "its user may not do what is needed: allow EVAL, EVALSHA, TIME, GET and SET for keys of the prefix",
    ),
    (&["READONLY", "ReadOnly"], "it is a replica and takes no writes: name the primary, or a name that follows it"),
    (&["cluster support disabled"], "it is no node of a cluster: leave out cluster = true"),
    (
        &["CLUSTERDOWN", "ClusterDown", "MASTERDOWN", "MasterDown"],
        "the cluster does not serve these keys: one of its nodes is out",
    ),
    (&["MOVED", "Moved", "CROSSSLOT", "CrossSlot"], "it is a node of a cluster: set cluster = true"),
    (&["LOADING", "BusyLoading"], "it is loading its data, and is used after that"),
    (&["OOM"], "its memory is full: raise its maxmemory, or let it evict keys that expire"),
    (&["MISCONF"], "it takes no writes because it cannot save its data: see its log"),
    (&["BUSY"], "a script of another client keeps it busy"),
    (
        &["UnknownIssuer"],
        "its certificate is of an authority that is not trusted: name that authority's certificate with ca",
    ),
    (
        &["NotValidForName", "not valid for name"],
        "its certificate is for another name: write the URL with a name that the certificate has",
    ),
    (
        &["Expired", "NotValidYet", "certificate expired", "not valid yet"],
        "its certificate is not valid today: renew it, or set the clock",
    ),
    (&["invalid peer certificate"], "its certificate cannot be trusted"),
    (&["InvalidContentType", "corrupt message"], "it does not speak TLS at this port: write the URL with \"redis://\""),
    (&["Connection refused"], "nothing listens there"),
    (&["unknown command", "max number of clients"], "it does not serve this client"),
];

/// An error in one line: its meaning where it is known, and the words of the library or the server.
pub(super) fn describe(error: &RedisError, settings: &StoreSettings) -> String {
    let text = shown(&error.to_string(), settings);
    let found = MEANINGS.iter().find(|(marks, _)| marks.iter().any(|mark| text.contains(mark)));
    let late = || error.is_timeout().then_some("no answer in time while connecting");
    let closed = || {
        let said = if settings.url.is_encrypted() {
            "it closed the connection"
        } else {
            "it closed the connection: it may want TLS, which is \"rediss://\""
        };
        error.is_connection_dropped().then_some(said)
    };
    let garbage = || (error.kind() == ErrorKind::Parse).then_some("what answers is no Valkey or Redis");
    match found.map(|(_, meaning)| *meaning).or_else(late).or_else(garbage).or_else(closed) {
        Some(meaning) => format!("{meaning} ({text})"),
        None => text,
    }
}

/// Without what is secret, which a server may send back, without control characters, and not too long.
fn shown(text: &str, settings: &StoreSettings) -> String {
    let mut text: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    for secret in settings.secrets() {
        text = text.replace(&secret, "***");
    }
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use redis::make_extension_error;

    use super::super::settings::StoreUrl;
    use super::*;

    fn settings(url: &str) -> StoreSettings {
        StoreSettings::new(StoreUrl::new(url).unwrap())
    }

    #[test]
    fn an_error_says_what_would_be_right() {
        let said = |code: &str, detail: &str| {
            describe(&make_extension_error(code.to_owned(), Some(detail.to_owned())), &settings("redis://cache"))
        };
        for (code, detail, expected) in [
            ("WRONGPASS", "invalid username-password pair or user is disabled.", "password_file"),
            ("NOAUTH", "Authentication required.", "password_file"),
            ("NOPERM", "this user has no permissions to run the 'eval' command", "EVALSHA"),
            ("READONLY", "You can't write against a read only replica.", "name the primary"),
            ("ERR", "This instance has cluster support disabled", "leave out cluster = true"),
            ("CLUSTERDOWN", "Hash slot not served", "one of its nodes is out"),
            ("MOVED", "866 10.0.0.5:6379", "set cluster = true"),
            ("OOM", "command not allowed when used memory > 'maxmemory'.", "maxmemory"),
        ] {
            let said = said(code, detail);
            assert!(said.contains(expected) && said.contains(detail), "{code}: {said}");
        }
        let refused =
            RedisError::from(io::Error::new(io::ErrorKind::ConnectionRefused, "Connection refused (os error 111)"));
        let want = "nothing listens there (Connection refused (os error 111))";
        assert_eq!(describe(&refused, &settings("redis://cache")), want);
    }

    #[test]
    fn what_a_server_writes_is_one_short_line_without_a_password() {
        let password = Some("swordfish".to_owned());
        let settings = StoreSettings { password, ..settings("redis://robotsd:hunter%202@cache") };
        let text = format!("AUTH hunter 2 hunter%202 swordfish\r\n\x1b[2J{}", "x".repeat(10_000));
        let said = describe(&make_extension_error("ERR".to_owned(), Some(text)), &settings);
        assert!(!said.contains("hunter") && !said.contains("swordfish"), "{said}");
        assert!(said.chars().count() < 300 && !said.contains(char::is_control), "{said}");
    }
}
