//! Cases of the lints about the file as a whole, and its lines.

use super::{Case, found};
use crate::check::file_kind::{Utf16Form, is_binary, utf_16_form as form};
use crate::check::{Options, Severity, check};
use crate::rules::RobotsTxt;

#[test]
fn lints_about_the_file_report_the_expected_findings() {
    Case("byte-order-mark", "whole and partial marks are found at the start only")
        .found(b"\xEF\xBB\xBF# x\n", &["1:1"])
        .found(b"\xEF\xBB# x\n", &["1:1"])
        .found(b"\xEF# x\n", &["1:1"])
        .found(b"# \xEF\xBB\xBF\n", &[]);
    Case("byte-order-mark", "one inside is found where it hides nothing")
        .found("# a\n\u{feff}# b\n\u{feff}\u{feff}\nAllow: /\u{feff}\n\u{feff}Allow: /\n", &["2:1", "3:1"]);
    Case("cr-line-end", "the first is found")
        .found("Allow: /\rAllow: /\r", &["1:9"])
        .found("# x\r\nAllow: /\rAllow: /\n", &["2:9"])
        .found("Allow: /\r\n\r\n", &[])
        .found("Allow: /\r", &["1:9"]);
    Case("empty-file", "white space is empty and a comment is not")
        .found_each("{}", &["", " ", "\r\n\t\n\x0b", "\u{FEFF}"], &["1:1"])
        .found_each("{}", &["#", "\n\nx", "\0"], &[]);
    Case("html-instead-of-text", "pages are found by how they begin")
        .found("<!DocType html><html>", &["1:1"])
        .found("\u{FEFF}\n  <HTML lang=en>\nfoo\n", &["2:3"])
        .found("<?xml version='1.0'?>", &["1:1"])
        .found("# <html>\n", &[])
        .found("<pre>User-agent: *", &["1:1"])
        .found("<pre>\nUser-agent: *\n", &[])
        .found("User-agent: *\nDisallow: /\n<html>", &[])
        .found("<", &[]);
    Case("invalid-utf-8", "the first place of each line is found")
        .found(b"# caf\xe9 \xe9\nAllow: /caf\xc3\xa9\nAllow: /\xff\xfe\nAllow: /\xc3", &["1:6", "3:9", "4:9"]);
    Case("invalid-utf-8", "the help guesses the encoding of a path")
        .helps(
            b"Allow: /\xea\xe0\xf2\xe0\xeb\xee\xe3/",
            &["save the file as UTF-8: if its encoding is windows-1251, the path is \
               \"/\u{43a}\u{430}\u{442}\u{430}\u{43b}\u{43e}\u{433}/\", which requests contain as \
               \"/%D0%BA%D0%B0%D1%82%D0%B0%D0%BB%D0%BE%D0%B3/\""],
        )
        .helps(
            b"Allow: /\xaf\xe6\xe0\xea",
            &["save the file as UTF-8: if its encoding is windows-1251, the path is \"/\u{407}\u{436}\u{430}\u{43a}\", \
               which requests contain as \"/%D0%87%D0%B6%D0%B0%D0%BA\""],
        )
        .helps(
            b"Allow: /caf\xe9/",
            &["save the file as UTF-8: if its encoding is ISO-8859-1, the path is \"/caf\u{e9}/\", which requests \
               contain as \"/caf%C3%A9/\""],
        )
        .says(
            b"Allow: /\x83\x8d/",
            &["\"/\\x83\\x8d/\" is not UTF-8: it matches no path, because requests contain \
                                         paths in UTF-8"],
        )
        .helps(b"Allow: /\x83\x8d/", &["save the file as UTF-8, and write letters outside ASCII as \"%\" escapes"])
        // These bytes are lower-case letters in KOI8-R, upper-case letters in windows-1251, and two
        // characters in GB 2312.
        .helps(
            b"Allow: /\xd0\xc2\xce\xc5/",
            &["save the file as UTF-8, and write letters outside ASCII as \"%\" escapes"],
        );
    let other_texts = ["404: Not Found", "{\"error\": \"not found\"}\n", "Not Found\n", "# x\nError: y\n"];
    let others = ["", "# x\n", "Sitemap: https://example.com/s.xml\n", "x: y\nDisalow: /\n", "<html>x"];
    Case("no-known-field", "other texts are found and comments are not")
        .found_each("{}", &other_texts, &["1:1"])
        .found_each("{}", &others, &[]);
    Case("nul-octet", "the first of each line is found").found("# a\0\0b\nAllow: /\n\0", &["1:4", "3:1"]);
}

#[test]
fn a_complete_byte_order_mark_is_a_note_and_a_partial_one_is_a_warning() {
    let worst = |file: &[u8]| check(&RobotsTxt::parse(file), &Options::new()).worst();
    assert_eq!(worst(b"\xEF\xBB\xBFUser-agent: *\nDisallow: /x\n"), Some(Severity::Note));
    assert_eq!(worst(b"\xEF\xBBUser-agent: *\nDisallow: /x\n"), Some(Severity::Warning));
}

#[test]
fn text_in_another_encoding_or_with_a_control_character_is_not_binary() {
    let gzip = super::Lint::of_code("binary-file").expect("a lint").bad.bytes();
    assert!(is_binary(&gzip));
    assert!(is_binary(&[0; 4096]));
    assert!(is_binary(&[b"PK\x03\x04\x14\0\0\0\x08\0".as_slice(), &gzip].concat()));
    // An archive that contains a long robots.txt uncompressed, and a robots.txt with a lost block.
    let rules = b"User-agent: *\nDisallow: /x\n".repeat(4096);
    let tar = [b"robots.txt".as_slice(), &[0; 502], &rules].concat();
    let zip = [b"PK\x03\x04\x14\0\0\0\0\0\x21\0\x21\0\xd8\x9e\x01\0".as_slice(), &rules].concat();
    let holed = [&rules[..], &[0; 4096], &rules].concat();
    assert!([tar, zip, holed].iter().all(|file| is_binary(file)));
    for text in [
        &b""[..],
        b"# caf\xe9 \xfc\xe4\xf6\nUser-agent: *\n",
        b"# \x83\x8d\x83{\x83b\x83g\n",
        b"User-agent: *\nDisallow: /a\0b\n",
        b"\x1b[31mUser-agent\xff: *\n\x0c",
        b"# caf\xe9\nUser-agent: *\nDisallow: /x\n\x1a",
    ] {
        assert!(!is_binary(text), "{text:?}");
    }
    assert_eq!(found("nul-octet", &gzip), [""; 0], "no other lint looks at it");
}

#[test]
fn utf_16_is_recognized_by_its_byte_order_mark_or_its_null_bytes() {
    let wide = |text: &str, big: bool| -> Vec<u8> {
        text.bytes().flat_map(|byte| if big { [0, byte] } else { [byte, 0] }).collect()
    };
    let text = "User-agent: *\nDisallow: /\n";
    assert_eq!(form(&wide(text, false)), Some(Utf16Form::LittleEndian));
    assert_eq!(form(&wide(text, true)), Some(Utf16Form::BigEndian));
    assert_eq!(form(b"\xFE\xFF"), Some(Utf16Form::BigEndian));
    assert_eq!(form(text.as_bytes()), None);
    assert_eq!(form(b"a\0b\0"), None);
    assert_eq!(form(&[0; 64]), None);
    assert_eq!(found("utf-16", b"\xFF\xFE"), ["1:1"]);
    assert_eq!(found("nul-octet", &wide(text, false)), [""; 0]);
}
