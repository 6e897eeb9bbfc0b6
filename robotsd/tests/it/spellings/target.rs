//! Generates spellings of a target that some server may treat as a given page.
//!
//! Nothing here depends on how robotsd or a server reads the spellings. A superfluous spelling only
//! costs a request, but a missing one may be a bypass.

use std::collections::BTreeMap;

/// A page that a rule disallows.
pub(super) struct Page {
    pub(super) rule: String,
    pub(super) path: String,
}

/// The technique that a spelling uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Escapes,
    Parameters,
    /// A path that begins like a host, or an absolute URL.
    Authority,
    /// Dot segments, empty segments and escaped separators.
    Segments,
    /// `%uXXXX`.
    Unicode,
    /// Dot segments and parameters at the end of the path.
    Trailing,
    /// A combination of several techniques.
    Mixed,
}

impl Family {
    pub(super) const ALL: [Self; 7] =
        [Self::Escapes, Self::Parameters, Self::Authority, Self::Segments, Self::Unicode, Self::Trailing, Self::Mixed];
}

/// Random numbers (SplitMix64). They are the same in every run.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Returns the path of the page with all bytes escaped except unreserved ones. Every server
/// understands this path.
pub(super) fn canonical(page: &Page) -> Vec<u8> {
    write(&page.path, |byte| if is_unreserved(byte) { Hex::Raw } else { Hex::Upper })
}

/// Returns all systematic spellings of a page, and this many random ones. Systematic spellings that
/// only move segments do not depend on the page. Pages that test bytes in names therefore get only
/// random spellings of this kind.
pub(super) fn spellings(page: &Page, by_chance: usize, numbers: &mut Numbers) -> BTreeMap<Vec<u8>, Family> {
    let mut found = BTreeMap::new();
    let mut add = |family: Family, target: Vec<u8>| {
        if !is_another_page(page, &target) {
            found.entry(target).or_insert(family);
        }
    };
    escapes(page, &mut |target| add(Family::Escapes, target));
    let raw = raw(page);
    if !page.path.bytes().any(|byte| !is_unreserved(byte) && byte != b'/') {
        parameters(&raw, &mut |target| add(Family::Parameters, target));
        authorities(&raw, &mut |target| add(Family::Authority, target));
        segments(&raw, &mut |target| add(Family::Segments, target));
    }
    unicode(page, &raw, &mut |target| add(Family::Unicode, target));
    trailing(&raw, &mut |target| add(Family::Trailing, target));
    for _ in 0..by_chance {
        add(Family::Mixed, mixed(page, numbers));
    }
    found
}

/// Methods that a server may treat like GET. They differ from it in case, or are not registered.
pub(super) const METHODS: [&str; 12] =
    ["get", "Get", "gET", "FOO", "foo", "GETT", "BREW", "X-GET", "post", "Delete", "options", "propfind"];

/// How to write a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hex {
    Raw,
    Upper,
    Lower,
    /// `%u0041`. Jetty 9 and IIS decode this form.
    Wide,
}

fn write(path: &str, escape: impl Fn(u8) -> Hex) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in path.bytes() {
        // A slash is a separator, so it is not escaped here. Escaping it is a technique of its own.
        match if byte == b'/' { Hex::Raw } else { escape(byte) } {
            Hex::Raw => out.push(byte),
            Hex::Upper => out.extend(format!("%{byte:02X}").bytes()),
            Hex::Lower => out.extend(format!("%{byte:02x}").bytes()),
            Hex::Wide => out.extend(format!("%u00{byte:02x}").bytes()),
        }
    }
    out
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

const fn must_be_escaped(byte: u8) -> bool {
    matches!(byte, b'%' | b'?' | b'#' | b'\\' | 0..=0x20 | 0x7F..)
}

/// Returns the path of the page with as few escapes as possible.
fn raw(page: &Page) -> String {
    let raw = write(&page.path, |byte| if must_be_escaped(byte) { Hex::Upper } else { Hex::Raw });
    String::from_utf8(raw).unwrap()
}

/// Reports whether the rule does not cover the target as it is written. A rule that ends in `$`
/// allows the same path with a query or a trailing slash.
fn is_another_page(page: &Page, target: &[u8]) -> bool {
    if !page.rule.ends_with('$') {
        return false;
    }
    target.contains(&b'?') || last_segment(target).is_empty()
}

/// Reports whether every server treats the end of a target as a folder: a slash or a dot segment.
pub(super) fn ends_as_folder(target: &[u8]) -> bool {
    matches!(&*last_segment(target), "" | "." | "..")
}

/// Returns the text after the last separator of any kind. It is decoded and has no parameters.
fn last_segment(target: &[u8]) -> String {
    let path = target.split(|byte| matches!(byte, b'#' | b'?')).next().unwrap_or_default();
    let text = String::from_utf8_lossy(path).to_lowercase().replace("%u00", "%");
    let text = ["%2f", "%5c", "\\"].iter().fold(text, |text, slash| text.replace(slash, "/"));
    let last = text.rsplit('/').next().unwrap_or_default();
    last.split([';']).next().unwrap_or_default().replace("%2e", ".")
}

fn escapes(page: &Page, add: &mut dyn FnMut(Vec<u8>)) {
    let optional = |byte: u8, escape: Hex| if must_be_escaped(byte) { Hex::Upper } else { escape };
    add(raw(page).into_bytes());
    add(canonical(page));
    // UTF-8 is not escaped here. Crawlers send such targets, browsers never do.
    add(write(&page.path, |byte| if byte < 0x80 { optional(byte, Hex::Raw) } else { Hex::Raw }));
    for hex in [Hex::Upper, Hex::Lower] {
        add(write(&page.path, |_| hex));
        add(write(&page.path, |byte| if byte.is_ascii_alphanumeric() { Hex::Raw } else { hex }));
        add(write(&page.path, |byte| if byte.is_ascii_alphabetic() { hex } else { optional(byte, Hex::Raw) }));
        let mut bytes: Vec<u8> = page.path.bytes().collect();
        bytes.sort_unstable();
        bytes.dedup();
        for one in bytes {
            add(write(&page.path, |byte| if byte == one { hex } else { optional(byte, Hex::Raw) }));
            add(write(&page.path, |byte| if byte == one { optional(byte, Hex::Raw) } else { hex }));
        }
        // If several places can be changed, only one of them is changed at a time.
        for place in 0..page.path.len() {
            let mut target = Vec::new();
            for (at, byte) in page.path.char_indices() {
                let mut buffer = [0; 4];
                let byte = byte.encode_utf8(&mut buffer);
                let here = at == place;
                target.extend(write(byte, |byte| if here { hex } else { optional(byte, Hex::Raw) }));
            }
            add(target);
        }
    }
}

/// Returns the places between the segments of a path: before each slash, and at the end.
fn places(path: &str) -> impl Iterator<Item = usize> {
    path.match_indices('/').map(|(at, _)| at).chain([path.len()])
}

fn insert(path: &str, at: usize, text: &str) -> Vec<u8> {
    [&path.as_bytes()[..at], text.as_bytes(), &path.as_bytes()[at..]].concat()
}

fn parameters(raw: &str, add: &mut dyn FnMut(Vec<u8>)) {
    for at in places(raw) {
        for parameters in [";", ";a", ";a=b", ";a=b;c=d", ";;", ";a=%2F", ";a=%3B", "%3B", "%3Ba", ";a,b", ";a@b:c"] {
            // The root has no name that parameters could follow. A segment that consists only of
            // parameters is another case.
            let place = if at == 0 { insert(raw, 0, "/") } else { raw.into() };
            add(insert(std::str::from_utf8(&place).unwrap(), at.max(1), parameters));
            add(insert(raw, at, &format!("/{parameters}")));
        }
        for detour in
            r"/x/..; /x/..;a=b /x;a/.. /x;a/..;b /.; /.;a /..; /;a/..; /x/%2e%2e; /.well-known/..;".split_whitespace()
        {
            add(insert(raw, at, detour));
        }
        for detour in ["/;/x/..;", "/x/;/..;", "/x/;a/../..", "/x/;a/..;/..;", "/;/.;"] {
            add(insert(raw, at, detour));
        }
    }
    // All segments are changed at once.
    add(raw.replace('/', "/;a/").into_bytes());
    add(format!("{};a", raw.replace('/', ";a/")).trim_start_matches(";a").into());
}

fn authorities(raw: &str, add: &mut dyn FnMut(Vec<u8>)) {
    let hosts =
        r"h h.example h:80 h: :80 @h u@ u:p@h [::1] 127.0.0.1 h%2E private .well-known h;a %68".split_whitespace();
    for host in hosts {
        for slashes in ["//", "///", "////", "/\\", "/\\\\", "//\\", "/%5C", "/%2F", "//%2F", "/%2f%5c"] {
            add(format!("{slashes}{host}{raw}").into_bytes());
        }
        for between in ["/", "/.", "/x/..", "/..", "\\", "/x/../..", "//x/../..", ";a", "/;a", "%2F", "%5C"] {
            add(format!("//{host}{between}{raw}").into_bytes());
        }
    }
    for slashes in ["/", "//", "///", "/./", "/.//", "//./"] {
        add(format!("{slashes}{}", raw.trim_start_matches('/')).into_bytes());
        add(format!("{slashes}{raw}").into_bytes());
    }
    // In an absolute URL, robotsd uses the host to choose the site, so the right host is inserted.
    for start in r"http://{host} HTTP://{host} http://{host}:80 http://{host}/ http://{host}//h http://{host}/x/.."
        .split_whitespace()
    {
        add(format!("{start}{raw}").into_bytes());
    }
}

fn segments(raw: &str, add: &mut dyn FnMut(Vec<u8>)) {
    let detours =
        r"/. /./. /%2e /%2E/. / // /// /x/.. /x/%2e%2e /x/.%2E /x/%2e. /x/y/../.. /x/./.. /x/../. /x//.. /x/..//
        //x/.. //.. /x//../.. //x//../.. /x/..//x/.. /x///../../.. //a//../../.. /x//..//.. /x/..%2F /x%2F..
        /x/..%5C /x%5C.. /x%2F..%2F. /x/%2e%2e%2f /x%2f%2f.. /x%2F/../.. /%2F.. /%5C.. /.. /../.. /%2e%2e
        /.well-known/.. /.well-known//.. /.well-known//../.. /.well-known/..%2F /.well-known/%2e%2e
        /.well-known/x/../.. /pub/.. /pub//.. /pub//../.. /pub/%2e%2e /robots.txt/.. /robots.txt//../..
        /private/.. /private/pub/../.. /x\.. /x/..\ /%3Bx/.. /x%00/.. /x%0a/.. /<x>/.. /`/.. /%FF/.. /... /x/...
        /x/%252e%252e /x%3F/.. /x/.%00/.. /x/..%00 /.%00 /x/%c0%ae%c0%ae /x#/.. /x?/.. /x%2Fy/..
        /x%2Fy/../z%2F.. /x%2Fy/../z%5C.. /x%5Cy/../z%2F.. /x;%2Fy/..;/z%2F.. /x%2F/../y%2F.. /x%2F../..
        /x/..%2F../y /x%23/.. /#/.. /x#y/.. /x#/..%2F /x/..#/.. /robots.txt#/.. /.well-known/#/../.. /pub#/..
        /private/pub/#/../../.."
            .split_whitespace()
            .chain(["/x/. ."]);
    for at in places(raw) {
        for detour in detours.clone() {
            add(insert(raw, at, detour));
        }
    }
    for (at, _) in raw.match_indices('/') {
        for slash in [
            "%2F", "%2f", "%5C", "%5c", "\\", "//", "/\\", "/%2F", "%2F/", "/%5C", "/./", "/.%2F", "%2F.%2F", "%252F",
            "%c0%af",
        ] {
            let mut target = raw.to_owned();
            target.replace_range(at..=at, slash);
            // A target must begin with a slash.
            let start = if target.starts_with('/') { "" } else { "/" };
            add(format!("{start}{target}").into_bytes());
        }
    }
    // These targets lead to the page only if a server counts empty segments as segments.
    let (folder, name) = raw.rsplit_once('/').unwrap();
    for between in ["//a//../../", "//a/..//../", "/%2Fa//../../", "///..//../"] {
        add(format!("/{folder}{between}{name}").into_bytes());
        add(format!("/x/../{folder}{between}{name}").into_bytes());
        add(format!("/x/%2e%2e/{folder}{between}{name}").into_bytes());
        add(format!("/x/../{folder}{between}{name}").replace("..", "%2E%2E").into_bytes());
    }
    // Before its dot segments are resolved, a longer rule allows such a path, or no rule applies to
    // it.
    for start in ["/private/pub/../..", "/private/pub//../../..", "/private/pub/%2e%2e/..", "/private/pub/..;/..;"] {
        add(format!("{start}{raw}").into_bytes());
    }
    for end in ["?", "?a", "?/../", "#", "#a", "?%2F..", "??"] {
        add(format!("{raw}{end}").into_bytes());
    }
    add(raw.replace("/private/", "/private/pub/../").into_bytes());
    add(raw.replace("/private/", "/private/pub/y/../../").into_bytes());
    add(raw.replace("/private/", "/private/pub//../../").into_bytes());
    add(raw.replace("/private/", "/private/pub/..;/").into_bytes());
    add(raw.replace("/private/", "/private/pub%2F..%2F").into_bytes());
}

fn unicode(page: &Page, raw: &str, add: &mut dyn FnMut(Vec<u8>)) {
    let optional = |byte: u8| if must_be_escaped(byte) { Hex::Upper } else { Hex::Raw };
    add(write(&page.path, |_| Hex::Wide));
    for one in page.path.bytes() {
        let wide = write(&page.path, |byte| if byte == one { Hex::Wide } else { optional(byte) });
        add(wide.iter().map(u8::to_ascii_uppercase).collect::<Vec<_>>());
        // The digits are in upper case, but the `u` must be in lower case.
        let text = String::from_utf8(wide).unwrap();
        let digits = text.split("%u").enumerate().map(|(number, part)| match part.get(..4) {
            Some(digits) if number > 0 => format!("%u{}{}", digits.to_uppercase(), &part[4..]),
            _ => part.to_owned(),
        });
        add(digits.collect::<String>().into_bytes());
        add(text.into_bytes());
    }
    for (at, _) in raw.match_indices('/').skip(1) {
        let mut target = raw.to_owned();
        target.replace_range(at..=at, "%u002f");
        add(target.into_bytes());
    }
    for at in places(raw) {
        for detour in ["/x/%u002e%u002e", "/%u002e", "/x/.%u002e", "/x%u002f..", "%u003ba", "/x%u005c.."] {
            add(insert(raw, at, detour));
        }
    }
}

fn trailing(raw: &str, add: &mut dyn FnMut(Vec<u8>)) {
    for end in r"/. /%2e /./. /x/.. /x/%2E%2E /.; /.;a /x/..; /x/..;a /x;a/.. //. //x/.. /x//../.. /x/y/../.. %2F.
        %2fx%2f.. %5C. /.#a /%u002e \."
        .split_whitespace()
    {
        add(format!("{raw}{end}").into_bytes());
    }
}

/// Returns a random combination of several techniques.
fn mixed(page: &Page, numbers: &mut Numbers) -> Vec<u8> {
    let mut segments: Vec<String> = page.path.split('/').skip(1).map(str::to_owned).collect();
    // Marks the segments of detours, so that only names of the page itself are escaped.
    let mut own: Vec<bool> = vec![true; segments.len()];
    for _ in 0..numbers.below(3) {
        let at = numbers.below(segments.len() + 1);
        let detour = detour(numbers);
        own.splice(at..at, detour.iter().map(|_| false));
        segments.splice(at..at, detour.into_iter().map(str::to_owned));
    }
    let escaping = numbers.below(4);
    let mut target = Vec::new();
    match numbers.below(6) {
        0 => {
            target.extend(numbers.one_of(&["//h", "///h", "//h:80", "//h;a", "/%2Fh", "/%5Ch", "//h/.", "//"]).bytes())
        }
        1 => target.extend(
            numbers.one_of(&["/.well-known/..", "/pub/..", "/private/pub/../..", "/;a", "/.", "//x//../.."]).bytes(),
        ),
        _ => {}
    }
    for (segment, own) in segments.iter().zip(own) {
        let plain = target.is_empty() || !numbers.once_in(6);
        let separator = if plain {
            "/"
        } else {
            numbers.one_of(&["//", "//", "///", "%2F", "%2f", "%5C", "/;/", "/;a/", "/./", "%u002f", "/%2F"])
        };
        target.extend(separator.bytes());
        if own {
            for char in segment.chars() {
                let mut buffer = [0; 4];
                let escape = match (escaping, numbers.below(4)) {
                    (1, 0) => Hex::Upper,
                    (1, 1) => Hex::Lower,
                    (2, _) if !char.is_ascii_alphanumeric() => Hex::Upper,
                    (3, 0) if char.is_ascii() && numbers.once_in(3) => Hex::Wide,
                    _ => Hex::Raw,
                };
                target.extend(write(char.encode_utf8(&mut buffer), |byte| match escape {
                    Hex::Raw if must_be_escaped(byte) => Hex::Upper,
                    escape => escape,
                }));
            }
        } else {
            target.extend(segment.bytes());
        }
        if numbers.once_in(8) {
            target.extend(numbers.one_of(&[";", ";a", ";a=b", ";a;b", ";a%2Fb"]).bytes());
        }
    }
    match numbers.below(8) {
        0 => target.extend(numbers.one_of(&["/.", "/x/..", "/%2e", "/.;a", "//.", "/x//../.."]).bytes()),
        1 => target.extend(numbers.one_of(&["?a", "?/..", ";a", "#a"]).bytes()),
        _ => {}
    }
    target
}

/// Returns segments that go down and, according to some server, up again by as many levels.
fn detour(numbers: &mut Numbers) -> Vec<&'static str> {
    let ups = numbers.below(3);
    let mut detour = Vec::new();
    for _ in 0..ups {
        const DOWN: &str = "x pub   x;a ; %3B .well-known private ... <x> %FF x%2Fy x%5Cy x%2F %2Fx x;a%2Fb";
        detour.push(numbers.one_of(&DOWN.split(' ').collect::<Vec<_>>()));
    }
    for _ in 0..ups {
        let up = numbers.one_of(
            &r".. .. .. %2e%2e .%2E %2E. ..; ..;a=b %u002e%u002e %2F.. ..%2F ..%2f. ..%5C"
                .split_whitespace()
                .collect::<Vec<_>>(),
        );
        // A detour may also come before the segments that it removes.
        let at = if numbers.once_in(6) { numbers.below(detour.len() + 1) } else { detour.len() };
        detour.insert(at, up);
    }
    for _ in 0..numbers.below(3) {
        let at = numbers.below(detour.len() + 1);
        detour.insert(
            at,
            numbers.one_of(&["", "", ".", "%2e", ".;", ";", "y%2F..", "y%5C..", ".%2F.", "%2F", "y;a%2Fb%2F.."]),
        );
    }
    detour
}
