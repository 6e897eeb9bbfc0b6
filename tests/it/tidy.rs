//! The layout is a house: which room may use which.

use std::path::{Path, PathBuf};

/// A room, a folder or file of the source folder, and the rooms it may use, which stand above it in the table.
type Room = (&'static str, &'static [&'static str]);

/// The rooms of the core.
const CORE_ROOMS: &[Room] = &[
    ("rules", &[]),
    ("agent", &["rules"]),
    ("identity", &["rules", "agent"]),
    ("check", &["rules", "agent"]),
    ("policy", &["rules", "agent"]),
    ("rate", &["rules", "agent"]),
];

/// The rooms of the library, which may use all of the core.
const ROOMS: &[Room] = &[("docs", &[]), ("live", &[]), ("source", &["live"]), ("layer", &["live", "source"])];

/// Rooms within rooms of the library, each with those beside it that it must not use.
const INNER_ROOMS: &[Room] = &[
    ("source/watch", &["directory", "fetch", "follow", "evidence"]),
    ("source/directory", &["fetch", "follow", "evidence"]),
    ("source/fetch", &["watch", "directory", "follow", "evidence"]),
    ("source/follow", &["watch", "directory", "evidence"]),
    ("source/evidence", &["watch", "directory"]),
    ("live/versions", &["gate", "grace", "switch", "state", "publisher", "site"]),
    ("live/gate", &["grace", "switch", "state", "publisher", "site"]),
    ("live/grace", &["gate", "switch", "state", "publisher", "site"]),
    ("live/switch", &["versions", "gate", "grace", "state", "publisher", "site"]),
];

/// The rooms of the binary.
const ROBOTSD_ROOMS: &[Room] = &[
    ("date", &[]),
    ("docs", &[]),
    ("files", &[]),
    ("names", &[]),
    ("selector", &["names"]),
    ("word_enum", &[]),
    ("render", &[]),
    ("exit", &["render"]),
    ("report", &["word_enum"]),
    ("html", &["date", "word_enum"]),
    ("socket", &[]),
    ("target_url", &[]),
    ("input", &["files", "render"]),
    // Below `sites`, so that served files may be fetched by the same client.
    ("fetch", &["input"]),
    // The files and sitemaps of pages that matter.
    ("pages", &["render", "input", "target_url"]),
    ("metrics", &[]),
    // Who changed what: written by `admin` and by commands where no server runs.
    ("audit", &["date", "files", "render"]),
    ("http_common", &[]),
    ("authorities", &["files"]),
    ("edge", &["date", "metrics", "files", "authorities", "socket", "http_common", "word_enum"]),
    ("upstream", &["authorities", "metrics", "socket", "http_common", "word_enum"]),
    // Valkey or Redis.
    ("store", &[]),
    ("shared_rate", &["store", "word_enum"]),
    ("refusal", &["word_enum"]),
    ("webhooks", &["audit", "authorities", "date", "files", "report", "socket", "upstream", "word_enum"]),
    (
        "config",
        &[
            "audit",
            "authorities",
            "exit",
            "files",
            "names",
            "selector",
            "render",
            "report",
            "input",
            "edge",
            "upstream",
            "store",
            "shared_rate",
            "refusal",
            "webhooks",
            "word_enum",
        ],
    ),
    ("expectations", &["render", "input", "target_url", "config"]),
    ("log", &["date", "http_common", "edge", "render", "config", "word_enum"]),
    ("fleet", &["audit", "date", "files", "render", "report", "store", "webhooks", "config", "log"]),
    ("counting", &["metrics", "report", "word_enum"]),
    ("request", &["shared_rate", "counting"]),
    (
        "decision",
        &["metrics", "http_common", "edge", "config", "log", "counting", "request", "target_url", "word_enum"],
    ),
    ("evaluator", &["names", "config"]),
    ("board", &["http_common", "date", "html", "files", "render", "report", "config", "counting", "word_enum"]),
    (
        "sites",
        &[
            "audit",
            "authorities",
            "date",
            "files",
            "names",
            "render",
            "report",
            "metrics",
            "input",
            "expectations",
            "pages",
            "fetch",
            "http_common",
            "edge",
            "upstream",
            "shared_rate",
            "webhooks",
            "config",
            "fleet",
            "log",
            "counting",
            "request",
            "board",
        ],
    ),
    (
        "admin",
        &[
            "audit",
            "authorities",
            "date",
            "files",
            "report",
            "socket",
            "upstream",
            "metrics",
            "edge",
            "config",
            "fleet",
            "log",
            "decision",
            "board",
            "sites",
            "word_enum",
        ],
    ),
    (
        "serve",
        &[
            "date",
            "exit",
            "report",
            "http_common",
            "edge",
            "shared_rate",
            "config",
            "fleet",
            "log",
            "counting",
            "request",
            "decision",
            "board",
            "sites",
            "admin",
        ],
    ),
    (
        "commands",
        &[
            "audit",
            "date",
            "exit",
            "names",
            "selector",
            "render",
            "report",
            "html",
            "input",
            "fetch",
            "pages",
            "target_url",
            "expectations",
            "config",
            "fleet",
            "log",
            "evaluator",
            "decision",
            "board",
            "sites",
            "admin",
            "word_enum",
        ],
    ),
    ("fuzzing", &["pages", "edge", "decision", "upstream", "board", "commands"]),
    ("benching", &["counting"]),
    ("cli", &["exit", "render", "serve", "commands"]),
];

/// The packages: their source folders, and their rooms.
const PACKAGES: [(&str, &[Room]); 3] =
    [("robots-core/src", CORE_ROOMS), ("src", ROOMS), ("robotsd/src", ROBOTSD_ROOMS)];

/// The names that the core, without I/O, clocks and HTTP types, never uses. A moment may be a value
/// there (an override ends); the caller hands the current time over.
const IMPURE: [&str; 10] = [
    "std::fs",
    "std::net::Tcp",
    "std::io::stdin",
    "std::thread",
    "SystemTime::now",
    "Instant",
    ".elapsed(",
    "http::",
    "bytes::",
    "tracing::",
];

/// The packages, with paths that lead from anywhere.
fn packages() -> impl Iterator<Item = (PathBuf, &'static [Room])> {
    PACKAGES.into_iter().map(|(source, rooms)| (Path::new(env!("CARGO_MANIFEST_DIR")).join(source), rooms))
}

fn all_files() -> Vec<PathBuf> {
    packages().flat_map(|(source, _)| files(&source)).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    assert!(!found.is_empty(), "{} holds code", folder.display());
    found
}

/// The files of a room: those of its folder, or the one that is a room by itself.
fn files_of_room(package: &Path, room: &str) -> Vec<PathBuf> {
    let folder = package.join(room);
    if folder.is_dir() { files(&folder) } else { vec![folder.with_extension("rs")] }
}

/// The code of a file, without comments, documentation and unit tests, by line.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let is_test_file = path.file_name().is_some_and(|name| name == "tests.rs");
    let text = if is_test_file { "" } else { text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default() };
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(number, line)| (number + 1, line.to_owned()))
        .collect()
}

/// The rooms a line names: `crate::room` and the parts in the braces of `use crate::{…}` one a line.
fn rooms_named(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::")
        .skip(1)
        .filter_map(|rest| rest.split(|char: char| !char.is_alphanumeric() && char != '_').next())
}

#[test]
fn a_room_uses_only_rooms_to_its_left() {
    for (package, rooms) in packages() {
        for (number, (room, allowed)) in rooms.iter().enumerate() {
            let to_the_left = |used: &&str| rooms[..number].iter().any(|(left, _)| left == used);
            assert!(allowed.iter().all(to_the_left), "{room}: the rooms it may use stand above it");
            for file in files_of_room(&package, room) {
                for (number, line) in code(&file) {
                    assert!(!line.contains("use crate::{"), "{}:{number}: one `use` a room, please", file.display());
                    for named in rooms_named(&line) {
                        let known = rooms.iter().any(|(known, _)| *known == named);
                        let fine = named == *room || allowed.contains(&named) || !known;
                        assert!(fine, "{}:{number}: {room} must not use {named}", file.display());
                    }
                }
            }
        }
    }
}

#[test]
fn a_room_within_a_room_keeps_to_itself() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (room, others) in INNER_ROOMS {
        for file in files_of_room(&package, room) {
            for (number, line) in code(&file) {
                let is_named = |other: &&&str| {
                    ["super", "live", "source"].iter().any(|room| line.contains(&format!("{room}::{other}::")))
                };
                let named = others.iter().find(is_named);
                assert_eq!(named, None, "{}:{number}: {room} must not use it", file.display());
            }
        }
    }
}

#[test]
fn every_room_is_in_the_table() {
    for (package, rooms) in packages() {
        for entry in std::fs::read_dir(&package).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let listed = ["lib", "main"].contains(&name) || rooms.iter().any(|(room, _)| *room == name);
            assert!(listed, "{}: which rooms may it use?", path.display());
        }
    }
}

#[test]
fn the_core_does_no_io() {
    for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("robots-core/src")) {
        for (number, line) in code(&file) {
            let named = IMPURE.iter().find(|impure| line.contains(**impure));
            assert_eq!(named, None, "{}:{number}: the core is pure", file.display());
        }
    }
}

/// A program that is started obeys files and variables that others may have written, so each place answers for what it starts.
#[test]
fn programs_are_started_in_two_places() {
    let is_product = |file: &PathBuf| !file.components().any(|part| part.as_os_str() == "tests");
    let starts =
        |file: &PathBuf| code(file).iter().any(|(_, line)| line.contains("process::") && line.contains("Command"));
    let mut places: Vec<_> = all_files().into_iter().filter(is_product).filter(starts).collect();
    places.sort();
    let known = ["commands/replay/history/git.rs", "serve/upgrade/processes.rs"];
    assert_eq!(places.len(), known.len(), "{places:?}");
    assert!(places.iter().zip(known).all(|(place, known)| place.ends_with(known)), "{places:?}");
}

/// The compiler sees to that, as long as no file of a package is compiled into another.
#[test]
fn a_package_uses_what_another_exports() {
    for file in all_files() {
        for (number, line) in code(&file) {
            let inside = line.contains("#[path") || line.contains("include!(");
            assert!(!inside, "{}:{number}: a package is a user like any other", file.display());
        }
    }
}

#[test]
fn every_room_says_what_it_is_for() {
    for file in all_files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap_or_default();
        let is_tests = file.file_name().is_some_and(|name| name == "tests.rs");
        assert!(
            is_tests || first.starts_with("//!") || first.starts_with("#!["),
            "{}: what is it for?",
            file.display()
        );
    }
}

#[test]
fn no_file_holds_everything() {
    for file in all_files() {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        for vague in ["util", "utils", "helper", "helpers", "common", "misc"] {
            assert_ne!(name, vague, "{}: name the idea", file.display());
        }
        assert!(code(&file).len() <= 550, "{}: split it by idea", file.display());
    }
}
