//! Parts of a config file that commands need, read also where the rest of the file has faults: the robotsd that runs with an
//! earlier version of the file must stay within reach.
//!
//! Only entries that are certain are read. An entry on a line with a syntax error is left out, and so is one below a header
//! with an error, because the parser adds it to the table before.

use toml::de::DeTable;

use super::reader::certain_places;
use super::{Fault, Keys, Reader, Table, syntax};

/// Reads the top-level entries that a part has; with it the faults of the syntax of the file, and of the values of the part.
///
/// # Errors
///
/// If none of the file can be read.
pub(super) fn read<D: Table>(text: &str) -> Result<(D, Vec<Fault>), Fault> {
    let is_own = |name: &str| D::KEYS.iter().any(|key| key.name == name);
    let (_, errors) = DeTable::parse_recoverable(text);
    let faults: Vec<_> = errors.iter().map(|error| syntax::fault(text, error)).collect();
    let own = if faults.is_empty() { text.to_owned() } else { own_lines(text, is_own) };
    if own.trim().is_empty()
        && let Some(fault) = syntax::recognize(text, errors.first().and_then(toml::de::Error::span))
    {
        return Err(fault);
    }
    let (mut document, errors) = DeTable::parse_recoverable(&own);
    let others: Vec<String> = document.get_ref().keys().map(|name| name.get_ref().to_string()).collect();
    for name in others.iter().filter(|name| !is_own(name)) {
        document.get_mut().remove(name.as_str());
    }
    // Values alone: a table that has a faulty entry keeps the others.
    let is_certain = certain_places(&own, &errors);
    let keys = Keys { top: D::KEYS, name: "the config" };
    let (unread, paths) = (Vec::new(), Vec::new());
    let mut reader = Reader { text: &own, keys, is_certain: &is_certain, guesses: false, faults, unread, paths };
    let part = D::read_table(&mut reader, "", document.get_ref(), &document.span());
    let mut faults = reader.faults;
    match part {
        Some(part) => Ok((part, faults)),
        None => Err(faults.remove(0)),
    }
}

/// The text without the lines of other entries, blank so that every octet keeps its place: a list or a text that is not closed
/// would take what follows into itself.
fn own_lines(text: &str, is_own_name: impl Fn(&str) -> bool) -> String {
    let is_own = |name: &str| {
        let first = name.split(['.', '=']).next().unwrap_or_default();
        is_own_name(first.trim_matches([' ', '\t', '"', '\'']))
    };
    // Before the first header, and of each table.
    let (mut is_below_header, mut is_in_own_table) = (false, false);
    let lines = text.split_inclusive('\n').map(|line| {
        let trimmed = line.trim_start_matches([' ', '\t']);
        let is_header = trimmed.starts_with('[');
        if is_header {
            let name = trimmed.trim_start_matches('[').split_once(']').map(|(name, _)| name);
            (is_below_header, is_in_own_table) = (true, name.is_some_and(is_own));
        }
        let is_kept = if is_below_header { is_in_own_table } else { trimmed.contains('=') && is_own(trimmed) };
        if is_kept { line.to_owned() } else { syntax::blank(line) }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tables::tables;
    use super::*;

    tables! {
        Part {
            state_dir: Option<String>,
            admin: Option<Admin>,
        }

        Admin {
            socket: Option<String>,
            address: Option<String>,
        }
    }

    fn salvaged(text: &str) -> (Option<String>, Option<String>, Option<String>, bool) {
        let (part, faults) = read::<Part>(text).expect("something is read");
        let (socket, address) = part.admin.map(|admin| (admin.socket, admin.address)).unwrap_or_default();
        (part.state_dir, socket, address, faults.is_empty())
    }

    #[test]
    fn what_is_certain_is_read_and_nothing_else() {
        let some = |text: &str| Some(text.to_owned());
        let (state, socket, address) = (some("state"), some("a.sock"), some("127.0.0.1:1"));
        for (text, want) in [
            ("state_dir = \"state\"\n[admin]\nsocket = \"a.sock\"\n", (&state, &socket, &None, true)),
            // A fault elsewhere, before and after.
            ("mode = refuse\nstate_dir = \"state\"\n[admin]\nsocket = \"a.sock\"\n", (&state, &socket, &None, false)),
            (
                "state_dir = \"state\"\n[admin]\nsocket = \"a.sock\"\n[[site]]\nname = \n",
                (&state, &socket, &None, false),
            ),
            // A text that is not closed, before it.
            ("upstreams = [\"http://127.0.0.1:1]\n[admin]\nsocket = \"a.sock\"\n", (&None, &socket, &None, false)),
            (
                "state_dir = \"state\"\n[[site]]\nhosts = [\"a\", \"b\"\n[admin]\nsocket = \"a.sock\"\n",
                (&state, &socket, &None, false),
            ),
            ("[[site]]\nname = \"\"\"shop\"\n[admin]\nsocket = \"a.sock\"\n", (&None, &socket, &None, false)),
            ("<<<<<<< HEAD\nmode refuse\n=======\n[ admin ]\nsocket = \"a.sock\"\n", (&None, &socket, &None, false)),
            // In the part itself: a typo, a wrong type, an unclosed text.
            ("[admin]\nsokcet = \"b.sock\"\naddress = \"127.0.0.1:1\"\n", (&None, &None, &address, false)),
            ("[admin]\nsocket = 1\naddress = \"127.0.0.1:1\"\n", (&None, &None, &address, false)),
            ("state_dir = \"state\n[admin]\nsocket = \"a.sock\"\n", (&None, &socket, &None, false)),
            ("[admin]\nsocket = \"a.so\naddress = \"127.0.0.1:1\"\n", (&None, &None, &address, false)),
            // Keys that follow a broken header are of another table.
            ("[admin]\nsocket = \"a.sock\"\n[listener\naddress = \"127.0.0.1:1\"\n", (&None, &socket, &None, false)),
            ("state_dir = \"state\"\n[admin\nsocket = \"a.sock\"\n", (&state, &None, &None, false)),
        ] {
            let (state_dir, socket, address, is_clean) = salvaged(text);
            assert_eq!((&state_dir, &socket, &address, is_clean), want, "{text}");
        }
        assert!(read::<Part>("server {\n  listen 80;\n}\n").is_err());
    }
}
