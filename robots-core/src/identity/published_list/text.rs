//! Parses lists with one prefix per line, and geofeeds (RFC 8805), which have the prefix in the
//! first column.

use super::{DocumentError, DocumentErrorKind, MAX_PREFIXES};
use crate::agent::Network;

/// Instruction at the end of the error messages for invalid lists.
pub(super) const FORMAT_ADVICE: &str = "write one address or prefix per line, or JSON such as \
                                  {\"prefixes\":[{\"ipv4Prefix\":\"192.0.2.0/24\"}]}";

pub(super) fn read(bytes: &[u8]) -> Result<Vec<Network>, DocumentError> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Err(unknown("the document is not UTF-8", 1, 1)) };
    if text.trim_start().starts_with('<') {
        return Err(unknown("the document is HTML or XML", 1, 1));
    }
    let mut read = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default();
        let field = first_column(content.trim());
        if content.trim().is_empty() {
            continue;
        }
        let column = line.find(field).map_or(1, |at| line[..at].chars().count() + 1);
        let prefix: Network = field.parse().map_err(|error| {
            if read.is_empty() {
                // A document that does not begin with a prefix is probably not a list, so the error
                // kind is about the whole document, not about this line.
                return unknown(&format!("{error}"), number + 1, column);
            }
            DocumentError::new(DocumentErrorKind::InvalidLine, format!("{error}")).at(number + 1, column)
        })?;
        read.push(prefix);
        if read.len() > MAX_PREFIXES {
            let message = format!("the list exceeds the maximum of {MAX_PREFIXES} prefixes");
            return Err(DocumentError::new(DocumentErrorKind::TooMany, message).at(number + 1, column));
        }
    }
    Ok(read)
}

/// Returns the first column of a CSV line, which may be quoted (RFC 4180).
fn first_column(line: &str) -> &str {
    match line.strip_prefix('"') {
        // Without a closing quote, returns the whole line, which is not a valid prefix.
        Some(quoted) => quoted.split_once('"').map_or(line, |(field, _)| field.trim()),
        None => line.split(',').next().unwrap_or_default().trim(),
    }
}

fn unknown(found: &str, line: usize, column: usize) -> DocumentError {
    let message = format!("the list is neither JSON nor a list of prefixes: {found}; {FORMAT_ADVICE}");
    DocumentError::new(DocumentErrorKind::UnknownFormat, message).at(line, column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::RangeList;

    fn refused(text: impl AsRef<[u8]>) -> DocumentError {
        RangeList::parse(text.as_ref()).expect_err("no list")
    }

    #[test]
    fn a_text_list_with_one_prefix_per_line_is_parsed() {
        let text = "\u{FEFF}# UptimeRobot\r\n8.8.8.8\r\n\r\n  9.9.9.0/24  # Dallas\r\n2a00::/32\r\n\t# end";
        let list = RangeList::parse(text.as_bytes()).expect("a list");
        assert_eq!((list.prefixes, list.skipped), (3, 0));
        assert!(list.set.contains("9.9.9.9".parse().expect("an address")));
    }

    #[test]
    fn the_prefixes_of_a_geofeed_are_read_from_its_first_column() {
        let text = "# prefix,country,region,city,postal\n8.8.8.0/24,US,US-TX,\"Dallas, Fort Worth\",\n\
                    \"9.9.9.0/24\",\"DE\",,,\n2a00::/32,,,,\n1.1.1.1,AU\n";
        let list = RangeList::parse(text.as_bytes()).expect("a list");
        assert_eq!(list.prefixes, 4);
        for address in ["8.8.8.8", "9.9.9.9", "2a00::1", "1.1.1.1"] {
            assert!(list.set.contains(address.parse().expect(address)), "{address}");
        }
    }

    #[test]
    fn an_invalid_list_is_refused_with_the_position_of_the_error() {
        use DocumentErrorKind::{Empty, InvalidLine, UnknownFormat};
        for (text, kind, place) in [
            ("<!DOCTYPE html><p>8.8.8.8", UnknownFormat, Some((1, 1))),
            ("\n <html>", UnknownFormat, Some((1, 1))),
            ("Not found", UnknownFormat, Some((1, 1))),
            ("\n# x\n  ip_prefix,country\n8.8.8.8,US", UnknownFormat, Some((3, 3))),
            ("8.8.8.8\n  9.9.9.9/33\n", InvalidLine, Some((2, 3))),
            ("8.8.8.8\n9.9.9.9 1.1.1.1\n", InvalidLine, Some((2, 1))),
            ("8.8.8.8\n9.9.9.0-9.9.9.9\n", InvalidLine, Some((2, 1))),
            ("8.8.8.8\n,US\n", InvalidLine, Some((2, 1))),
            ("8.8.8.8\n\"9.9.9.9\n", InvalidLine, Some((2, 1))),
            ("8.8.8.8\nfe80::1%eth0\n", InvalidLine, Some((2, 1))),
            ("", Empty, None),
            ("# nothing\n\n", Empty, None),
            ("\"\"", UnknownFormat, Some((1, 1))),
        ] {
            let error = refused(text);
            assert_eq!((error.kind, error.position), (kind, place), "{text:?}: {error}");
        }
        assert_eq!(refused(b"8.8.8.8\n\xFF\n").kind, UnknownFormat);
        let want = "2:1: \"9.9.9.9/33\" is not a network: the length after the slash must be a number up to 32";
        assert_eq!(refused("8.8.8.8\n9.9.9.9/33\n").to_string(), want);
        let html = refused("<html>").to_string();
        let expected = "1:1: the list is neither JSON nor a list of prefixes: the document is HTML or XML; write one ";
        assert!(html.starts_with(expected), "{html}");
    }
}
