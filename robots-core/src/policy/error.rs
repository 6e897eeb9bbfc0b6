//! Values that a policy refuses, because they would match nothing.

use crate::rules::ValueError;

/// A method that is not made of letters and hyphens.
pub(super) fn method(value: &str) -> ValueError {
    ValueError::new(value, "is not a method: write one such as \"GET\"")
}

/// The name of a cookie that no `Cookie` field can hold.
pub(super) fn cookie_name(value: &[u8]) -> ValueError {
    let value = String::from_utf8_lossy(value);
    ValueError::new(value, "is not a cookie's name: write the part before \"=\", such as \"session\"")
}

/// A text that names no agent: nothing but `*` or blanks, a whole `User-Agent` field, a name with blanks in it. `meant` is the name
/// of the crawler that was meant.
pub(super) fn agent_name(name: &str, meant: Option<&str>) -> ValueError {
    let right = meant.map_or("one such as \"GPTBot\"".to_owned(), |meant| format!("{meant:?}"));
    ValueError::new(name, format_args!("is not a crawler's name: write {right}"))
}

#[cfg(test)]
mod tests {
    use crate::policy::{Mode, Override, Policy};

    #[test]
    fn a_value_that_matches_nothing_is_refused_with_the_right_one() {
        let builder = Policy::builder;
        for (refused, message) in [
            (
                builder().exempt_paths(["/a", "healthz"]).err(),
                "\"healthz\" is not a path pattern: it matches nothing unless it begins with \"/\" or \"*\"",
            ),
            (builder().exempt_paths([""]).err(), "\"\" is not a path pattern"),
            (Override::pattern("a/", Mode::Off).err(), "\"a/\" is not a path pattern: it matches nothing"),
            (builder().star_methods(["GET", "G T"]).err(), "\"G T\" is not a method: write one such as \"GET\""),
            (
                builder().exempt_networks(["10.0.0.0/8".to_owned(), "10.0.0.1/8".to_owned()]).err(),
                "\"10.0.0.1/8\" is not a network: bits after the length must be zero",
            ),
            (builder().star_methods([""]).err(), "\"\" is not a method"),
            (
                builder().exempt_agents(["GPTBot", "*"]).err(),
                "\"*\" is not a crawler's name: write one such as \"GPTBot\"",
            ),
            (Override::agent(" ", Mode::Off).err(), "\" \" is not a crawler's name"),
            (
                builder().exempt_cookies(["sid=1"]).err(),
                "\"sid=1\" is not a cookie's name: write the part before \"=\", such as \"session\"",
            ),
            (builder().session_cookies([""]).err(), "\"\" is not a cookie's name"),
            (builder().session_cookies([" a"]).err(), "\" a\" is not a cookie's name"),
            (builder().session_cookies(["a;b"]).err(), "\"a;b\" is not a cookie's name"),
        ] {
            let error = refused.expect(message);
            assert!(error.to_string().starts_with(message), "{error}");
            assert!(message.starts_with(&format!("{:?}", error.text())), "{error}");
        }
        let policy = builder()
            .exempt_paths(["/.well-known/", "*.css$"])
            .and_then(|policy| policy.star_methods(["get", "VERSION-CONTROL"]))
            .and_then(|policy| policy.exempt_agents(["GPTBot/1.2", "Screaming Frog SEO Spider"]))
            .and_then(|policy| policy.exempt_cookies(["__Host-sid", "caf\u{e9}"]));
        assert_eq!(policy.err(), None);
    }
}
