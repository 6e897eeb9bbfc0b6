//! The layout of the packages: which module may use which, and how their comments are written.

use std::path::{Path, PathBuf};

/// A module (a folder or file), and the modules above it that it may use.
type Module = (&'static str, &'static str);

const CORE_MODULES: &[Module] = &[
    ("rules", ""),
    ("agent", "rules"),
    ("identity", "rules agent"),
    ("check", "rules agent"),
    ("policy", "rules agent"),
    ("rate", "rules agent"),
];

/// The modules of the library, which may use all of the core.
const MODULES: &[Module] = &[("docs", ""), ("live", ""), ("source", "live"), ("layer", "live source")];

/// Modules within modules of the library, each with its siblings that it must not use.
const INNER_MODULES: &[Module] = &[
    ("source/watch", "directory fetch follow evidence"),
    ("source/directory", "fetch follow evidence"),
    ("source/fetch", "watch directory follow evidence"),
    ("source/follow", "watch directory evidence"),
    ("source/evidence", "watch directory"),
    ("live/versions", "gate grace switch state publisher site"),
    ("live/gate", "grace switch state publisher site"),
    ("live/grace", "gate switch state publisher site"),
    ("live/switch", "versions gate grace state publisher site"),
];

const ROBOTSD_MODULES: &[Module] = &[
    ("date", ""),
    ("docs", ""),
    ("files", ""),
    ("names", ""),
    ("selector", "names"),
    ("word_enum", ""),
    ("render", ""),
    ("exit", "render"),
    ("report", "word_enum"),
    ("html", "date word_enum"),
    ("socket", ""),
    ("target_url", ""),
    ("input", "files render"),
    // Below `sites`, so that served files may be fetched by the same client.
    ("fetch", "input"),
    // The files and sitemaps of pages that matter.
    ("pages", "render input target_url"),
    ("metrics", ""),
    // Who changed what: written by `admin`, and by commands if no server runs.
    ("audit", "date files render"),
    ("http_common", ""),
    ("authorities", "files"),
    ("edge", "date metrics files authorities socket http_common word_enum"),
    ("upstream", "authorities metrics socket http_common word_enum"),
    // Valkey or Redis.
    ("store", "render"),
    ("shared_rate", "store word_enum"),
    ("refusal", "http_common upstream word_enum"),
    ("webhooks", "audit authorities date files report socket upstream word_enum"),
    (
        "config",
        "audit authorities exit files names selector render report input edge upstream store \
        shared_rate refusal webhooks word_enum",
    ),
    ("expectations", "render input target_url config"),
    ("log", "date http_common edge render config word_enum"),
    ("fleet", "audit date files render report store webhooks config log"),
    ("counting", "metrics report word_enum"),
    ("request", "shared_rate counting"),
    ("decision", "metrics http_common edge config log counting request target_url word_enum"),
    ("evaluator", "names config refusal"),
    ("board", "http_common date html files render report config counting word_enum"),
    (
        "sites",
        "audit authorities date files names render report metrics input expectations pages fetch \
        http_common edge upstream refusal shared_rate webhooks config fleet log counting request board",
    ),
    (
        "admin",
        "audit authorities date files render report socket upstream metrics edge config fleet log \
        decision board sites word_enum",
    ),
    (
        "serve",
        "date exit report http_common edge refusal shared_rate config fleet log counting request decision \
        board sites admin",
    ),
    (
        "commands",
        "audit date exit names refusal selector render report html input fetch pages target_url \
        expectations config fleet log evaluator decision board sites admin word_enum",
    ),
    ("fuzzing", "pages edge decision upstream board commands"),
    ("benching", "counting"),
    ("cli", "exit render serve commands"),
];

/// The packages: their source folders, and their modules.
const PACKAGES: [(&str, &[Module]); 3] =
    [("robots-core/src", CORE_MODULES), ("src", MODULES), ("robotsd/src", ROBOTSD_MODULES)];

/// Names that the core must not use, because it has no I/O, clocks and HTTP types. A time may be a
/// value (for example, the end of an override), but the caller passes the current time.
const IMPURE: &str = "std::fs std::net::Tcp std::io::stdin std::thread SystemTime::now Instant .elapsed( \
    http:: bytes:: tracing::";

/// Returns the packages with absolute paths.
fn packages() -> impl Iterator<Item = (PathBuf, &'static [Module])> {
    PACKAGES.into_iter().map(|(source, modules)| (Path::new(env!("CARGO_MANIFEST_DIR")).join(source), modules))
}

fn all_files() -> Vec<PathBuf> {
    packages().flat_map(|(source, _)| files(&source)).collect()
}

/// Returns the Rust files of a folder and of its subfolders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    add_files(folder, &mut found);
    assert!(!found.is_empty(), "{} contains code", folder.display());
    found
}

fn add_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the files of a module: the files of its folder, or its only file.
fn files_of_module(package: &Path, module: &str) -> Vec<PathBuf> {
    let folder = package.join(module);
    if folder.is_dir() { files(&folder) } else { vec![folder.with_extension("rs")] }
}

/// Returns the lines of code in a file, without comments, documentation and unit tests.
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

/// Returns the modules that a line names as `crate::module`.
fn modules_named(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::")
        .skip(1)
        .filter_map(|rest| rest.split(|char: char| !char.is_alphanumeric() && char != '_').next())
}

#[test]
fn a_module_uses_only_modules_above_it_in_the_table() {
    for (package, modules) in packages() {
        for (number, (module, allowed)) in modules.iter().enumerate() {
            let allowed: Vec<_> = allowed.split_whitespace().collect();
            let is_above = |used: &&str| modules[..number].iter().any(|(left, _)| left == used);
            assert!(
                allowed.iter().all(is_above),
                "{module}: the modules that it may use must be above it in the table"
            );
            for file in files_of_module(&package, module) {
                for (number, line) in code(&file) {
                    assert!(!line.contains("use crate::{"), "{}:{number}: write one `use` per module", file.display());
                    for named in modules_named(&line) {
                        let known = modules.iter().any(|(known, _)| *known == named);
                        let fine = named == *module || allowed.contains(&named) || !known;
                        assert!(fine, "{}:{number}: {module} must not use {named}", file.display());
                    }
                }
            }
        }
    }
}

#[test]
fn an_inner_module_does_not_use_its_forbidden_siblings() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (module, others) in INNER_MODULES {
        for file in files_of_module(&package, module) {
            for (number, line) in code(&file) {
                let is_named = |other: &&str| {
                    ["super", "live", "source"].iter().any(|module| line.contains(&format!("{module}::{other}::")))
                };
                let named = others.split(' ').find(is_named);
                assert_eq!(named, None, "{}:{number}: {module} must not use it", file.display());
            }
        }
    }
}

#[test]
fn every_module_is_in_the_table() {
    for (package, modules) in packages() {
        for entry in std::fs::read_dir(&package).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let listed = ["lib", "main"].contains(&name) || modules.iter().any(|(module, _)| *module == name);
            assert!(listed, "{}: add it to the table, with the modules that it may use", path.display());
        }
    }
}

#[test]
fn the_core_does_no_io() {
    for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("robots-core/src")) {
        for (number, line) in code(&file) {
            let named = IMPURE.split(' ').find(|impure| line.contains(impure));
            assert_eq!(named, None, "{}:{number}: the core does no I/O", file.display());
        }
    }
}

/// A started program may depend on files and variables that other users control, so only known
/// places may start programs.
#[test]
fn programs_are_started_only_in_two_known_files() {
    let is_product = |file: &PathBuf| !file.components().any(|part| part.as_os_str() == "tests");
    let starts =
        |file: &PathBuf| code(file).iter().any(|(_, line)| line.contains("process::") && line.contains("Command"));
    let mut places: Vec<_> = all_files().into_iter().filter(is_product).filter(starts).collect();
    places.sort();
    let known = ["commands/replay/history/git.rs", "serve/upgrade/processes.rs"];
    assert_eq!(places.len(), known.len(), "{places:?}");
    assert!(places.iter().zip(known).all(|(place, known)| place.ends_with(known)), "{places:?}");
}

/// The compiler ensures this, unless a file of one package is compiled into another.
#[test]
fn no_package_includes_a_source_file_of_another_package() {
    for file in all_files() {
        for (number, line) in code(&file) {
            let inside = line.contains("#[path") || line.contains("include!(");
            assert!(!inside, "{}:{number}: use the public API of the other package", file.display());
        }
    }
}

#[test]
fn every_file_begins_with_its_purpose() {
    for file in all_files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap_or_default();
        let is_tests = file.file_name().is_some_and(|name| name == "tests.rs");
        assert!(
            is_tests || first.starts_with("//!") || first.starts_with("#!["),
            "{}: begin with `//!` and the purpose of the file",
            file.display()
        );
    }
}

#[test]
fn every_file_has_a_specific_name_and_at_most_550_lines_of_code() {
    for file in all_files() {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        for vague in ["util", "utils", "helper", "helpers", "common", "misc"] {
            assert_ne!(name, vague, "{}: name the file after its idea", file.display());
        }
        assert!(code(&file).len() <= 550, "{}: split the file by idea", file.display());
    }
}

/// Patterns of sentences that a reader has to read twice, with the wording to use instead. Text in
/// quotes or backticks is not compared.
const UNCLEAR: [(&str, &str); 12] = [
    (r"\b(?:that|it|which) (?:is|are|was|were) none\b", "name the noun: `is not a valid X`"),
    (r"\b[Nn]one (?:where|once|while|without)\b", "`None` if …"),
    (r"^Of (?:a|an|the|what|which|these|those|several|each|its|all|one|two)\b", "begin with the subject"),
    (r"(?:^|[.;:] )One (?:that|which|whose|with|without)\b", "name the noun"),
    (r"^Those (?:of|that|which|who|whose|with|without)\b", "name the noun"),
    (r"\b(?:[Ww]hoever|[Ww]hom|[Ww]homever)\b", "name who: a client, an operator, a crawler"),
    (r"\b(?:stands?|stood) (?:in|at|on|there|behind|before|after|so)\b", "is in, is at"),
    (r"\b(?:is|are|was|were|be) (?:said|told)\b|\bsays? so\b", "prints, logs, returns, reports"),
    (r"\b(?:anew|heeds?|mends?|mended|lest|forthwith|as good as|so-many-th)\b", "again, fix, almost"),
    (r"\btroubles?\b|\btexts\b|\b[Oo]ctets?\b", "problem, strings, byte"),
    (r"\b(?:this|each|every|other|which|whose) rooms?\b", "module"),
    (r"\b(?:becomes?|became|makes|made) of (?:it|that|them|this|one|each)\b", "name what happens"),
];

/// Returns the sentences of a file's comments, each with the line of its paragraph.
fn sentences(path: &Path) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']).trim());
        let prose = comment.filter(|words| !words.is_empty() && !words.starts_with(['#', '|', '-', '`']));
        match (prose, paragraphs.last_mut()) {
            (Some(words), Some((_, paragraph))) if is_open => paragraph.extend([" ", words]),
            (Some(words), _) => paragraphs.push((number + 1, words.to_owned())),
            (None, _) => {}
        }
        is_open = prose.is_some();
    }
    let quoted = regex::Regex::new("`[^`]*`|\"[^\"]*\"").unwrap();
    let split = |(line, paragraph): (usize, String)| {
        let plain = quoted.replace_all(&paragraph, "…").into_owned();
        plain.split_inclusive(". ").map(|sentence| (line, sentence.trim().to_owned())).collect::<Vec<_>>()
    };
    paragraphs.into_iter().flat_map(split).collect()
}

/// Patterns that only occur in the names of functions. The last one allows `is no longer`.
const UNCLEAR_IN_NAMES: [(&str, &str); 2] = [
    (r"^(?:What|Who|Those|Of|One that|It|Nobody) ", "begin with a subject that names the thing"),
    (r"\b(?:is|are) no (?:[^l]|l[^o])", "`is not a valid X`, `has no X`"),
];

/// Returns the names of functions as sentences, each with its line. Names of fewer than four words
/// are left out, so most of the names belong to tests.
fn names(path: &Path) -> Vec<(usize, String)> {
    let name = regex::Regex::new(r"\bfn ([a-z])([a-z0-9]*(?:_[a-z0-9]+){3,})").unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let sentence = |(number, line): (usize, &str)| {
        let found = name.captures(line)?;
        Some((number + 1, format!("{}{}", found[1].to_uppercase(), found[2].replace('_', " "))))
    };
    text.lines().enumerate().filter_map(sentence).collect()
}

fn assert_is_clear(files: &[PathBuf], sentences: fn(&Path) -> Vec<(usize, String)>, patterns: &[(&str, &str)]) {
    let patterns: Vec<_> = patterns.iter().map(|(of, instead)| (regex::Regex::new(of).unwrap(), instead)).collect();
    let mut unclear = Vec::new();
    for file in files {
        for (line, sentence) in sentences(file) {
            for (_, instead) in patterns.iter().filter(|(pattern, _)| pattern.is_match(&sentence)) {
                unclear.push(format!("{}:{line}: {sentence:?}: write {instead}", file.display()));
            }
        }
    }
    assert!(unclear.is_empty(), "{} unclear sentences:\n{}", unclear.len(), unclear.join("\n"));
}

/// The rules are in CONTRIBUTING.md. A quotation of an RFC is written in quotes.
#[test]
fn comments_are_plain_english() {
    assert_is_clear(&all_files(), sentences, &UNCLEAR);
}

#[test]
fn test_names_are_plain_english() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = ["examples", "tests", "robots-core/tests", "robotsd/tests"];
    let mut all = all_files();
    all.extend(tests.iter().flat_map(|folder| files(&root.join(folder))));
    assert_is_clear(&all, names, &[&UNCLEAR[..], &UNCLEAR_IN_NAMES].concat());
}
