//! Parts of a config file that commands need, read also if the rest of the file has errors: the robotsd that runs with an
//! earlier version of the file must stay within reach.

use toml::de::DeTable;

use super::reader::parse;
use super::{Fault, Keys, Reader, Table};

/// Reads the top-level entries that a part has, and returns it with the problems of the syntax of the file and of the values of the part.
///
/// # Errors
///
/// If what is left of the part cannot be read either, such as a table that occurs twice.
pub(super) fn read<D: Table>(text: &str) -> Result<(D, Vec<Fault>), Fault> {
    let is_own = |name: &str| D::KEYS.iter().any(|key| key.name == name);
    let own;
    let (mut document, mut faults) = match parse(text) {
        Ok(document) => (document, Vec::new()),
        Err(fault) => {
            own = own_lines(text, is_own);
            (parse(&own)?, vec![fault])
        }
    };
    let others: Vec<String> = document.get_ref().keys().map(|name| name.get_ref().to_string()).collect();
    for name in others.iter().filter(|name| !is_own(name)) {
        document.get_mut().remove(name.as_str());
    }
    let mut reader = Reader::new(text, Keys { top: D::KEYS, name: "the config" });
    let part = D::read_table(&mut reader, "", document.get_ref(), &document.span());
    faults.append(&mut reader.faults);
    match part {
        Some(part) => Ok((part, faults)),
        None => Err(faults.remove(0)),
    }
}

/// Returns the lines of a part in a text with an error of the syntax: its entries above the first header, and its tables without their
/// inner tables. If a table has an error, only its lines that are valid by themselves are kept. All other lines are blanked, so that every
/// byte keeps its place.
fn own_lines(text: &str, is_own: impl Fn(&str) -> bool) -> String {
    let is_header = |line: &str| line.trim_start().starts_with('[');
    let (mut chunks, mut is_below_header) = (Vec::<String>::new(), false);
    for line in text.split_inclusive('\n') {
        is_below_header |= is_header(line);
        match chunks.last_mut() {
            Some(chunk) if is_below_header && !is_header(line) => chunk.push_str(line),
            _ => chunks.push(line.to_owned()),
        }
    }
    let is_valid = |text: &str| DeTable::parse(text).is_ok();
    let is_of_part = |chunk: &str| {
        let first = chunk.split_inclusive('\n').next().unwrap_or_default();
        let is_inner = is_header(first) && first.split(']').next().is_some_and(|name| name.contains('.'));
        let entry = DeTable::parse(first).ok().filter(|_| !is_inner);
        entry.is_some_and(|entry| entry.get_ref().keys().any(|name| is_own(name.get_ref())))
    };
    let mut own = String::with_capacity(text.len());
    for chunk in chunks {
        let (is_of_part, is_whole) = (is_of_part(&chunk), is_valid(&chunk));
        for line in chunk.split_inclusive('\n') {
            if is_of_part && (is_whole || is_valid(line)) {
                own.push_str(line);
            } else {
                own.extend(line.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { char::from(byte) } else { ' ' }));
            }
        }
    }
    own
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
        assert_eq!(salvaged("server {\n  listen 80;\n}\n"), (None, None, None, false));
    }
}
