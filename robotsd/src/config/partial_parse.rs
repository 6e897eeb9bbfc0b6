//! Reads only the keys of a config file that a command needs. Errors elsewhere in the file are
//! ignored: commands must be able to reach robotsd even if the file has become invalid since
//! robotsd was started.

use toml::de::DeTable;

use super::reader::syntax_fault;
use super::{Fault, Keys, Reader, Table};

/// Reads the top-level keys that `D` declares. Also returns the first syntax error of the file and
/// the problems with the values of these keys. After a syntax error, the parser reads as much of
/// the file as it can.
///
/// # Errors
///
/// Returns an error if `D` cannot be read at all, for example because a required key is missing.
pub(super) fn read<D: Table>(text: &str) -> Result<(D, Vec<Fault>), Fault> {
    let is_own = |name: &str| D::KEYS.iter().any(|key| key.name == name);
    let (mut document, errors) = DeTable::parse_recoverable(text);
    let mut faults: Vec<_> = errors.first().map(syntax_fault).into_iter().collect();
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
            audit: Option<String>,
        }
    }

    #[test]
    fn a_part_of_a_config_is_read_despite_errors_elsewhere() {
        for (text, want, is_clean) in [
            ("state_dir = \"state\"\n[admin]\naudit = \"a.log\"\n", (Some("state"), Some("a.log")), true),
            (
                "mode = refuse\nstate_dir = \"state\"\n[admin]\naudit = \"a.log\"\n",
                (Some("state"), Some("a.log")),
                false,
            ),
            (
                "state_dir = \"state\"\n[admin]\naudit = \"a.log\"\n[[site]]\nname = \n",
                (Some("state"), Some("a.log")),
                false,
            ),
            ("state_dir = \"state\"\n[[site]]\nname = \"\"\"shop\"\n", (Some("state"), None), false),
            ("state_dir = \"state\"\n[[site]]\nhosts = [\"a\", \"b\"\n", (Some("state"), None), false),
            ("state_dir = \"state\"\nmode \"refuse\"\n", (Some("state"), None), false),
            // The following files have a mistake in the keys that are read.
            ("state_dir = \"state\"\n[admin]\naduit = \"a.log\"\n", (Some("state"), None), false),
            ("state_dir = \"state\"\n[admin]\naudit = 1\n", (Some("state"), None), false),
            ("state_dir = 1\n[admin]\naudit = \"a.log\"\n", (None, Some("a.log")), false),
            ("server {\n  listen 80;\n}\n", (None, None), false),
        ] {
            let (part, faults) = read::<Part>(text).expect("something is read");
            let audit = part.admin.and_then(|admin| admin.audit);
            assert_eq!((part.state_dir.as_deref(), audit.as_deref()), want, "{text}");
            assert_eq!(faults.is_empty(), is_clean, "{text}: {faults:?}");
        }
    }
}
