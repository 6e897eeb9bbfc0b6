//! Which file of a package imports from which, read from the text of its code.
//!
//! Files are nodes; a path that begins with `crate`, `super` or `self`, in a `use` or anywhere else in code, is an arrow to the
//! file that declares what it names. A re-export is no arrow: what is imported through it is imported from where it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The files of one package, their arrows, and the types they declare.
pub(super) struct Imports {
    arrows: BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>,
    types: BTreeMap<String, BTreeSet<PathBuf>>,
    public_types: BTreeMap<String, BTreeSet<PathBuf>>,
}

/// A file's place in the tree of modules: `layer/refusal.rs` is `["layer", "refusal"]`.
type Module = Vec<String>;

struct Files {
    by_module: BTreeMap<Module, PathBuf>,
    /// What a file re-exports under a name, and the file it comes from.
    reexports: BTreeMap<(PathBuf, String), (PathBuf, String)>,
}

impl Imports {
    /// Reads all files below `folder`, the source folder of a package, but those of unit tests.
    pub(super) fn read(folder: &Path) -> Self {
        let texts: BTreeMap<PathBuf, String> = super::files(folder)
            .into_iter()
            .map(|path| (path.strip_prefix(folder).unwrap().to_owned(), path))
            .filter(|(file, _)| !is_test(file))
            .map(|(file, path)| (file, code(&std::fs::read_to_string(path).unwrap())))
            .collect();
        let by_module = texts.keys().map(|file| (module(file), file.clone())).collect();
        let mut files = Files { by_module, reexports: BTreeMap::new() };
        for (file, text) in &texts {
            for (path, name) in uses(text).filter(|found| found.is_public).flat_map(|found| found.leaves()) {
                if let Some((to, inside)) = files.resolve(file, &path).filter(|(to, _)| to != file) {
                    files.reexports.insert((file.clone(), name), (to, inside));
                }
            }
        }
        let mut imports = Self { arrows: BTreeMap::new(), types: BTreeMap::new(), public_types: BTreeMap::new() };
        for (file, text) in &texts {
            let used = uses(text).filter(|found| !found.is_public).flat_map(|found| found.leaves());
            let named = used.map(|(path, _)| path).chain(paths_in_code(text, &files.modules_of(file)));
            for (to, name) in named.filter_map(|path| files.resolve(file, &path)).map(|found| files.declared(found)) {
                if to != *file {
                    imports.arrows.entry(file.clone()).or_default().entry(to).or_default().insert(name);
                }
            }
            for (is_public, name) in declared_types(text) {
                imports.types.entry(name.clone()).or_default().insert(file.clone());
                if is_public {
                    imports.public_types.entry(name).or_default().insert(file.clone());
                }
            }
        }
        imports
    }

    /// Every group of files that import each other in a loop, with the arrows that tie it, for people to read.
    pub(super) fn loops(&self) -> Vec<String> {
        let mut groups = BTreeSet::new();
        for file in self.arrows.keys() {
            let group: BTreeSet<&PathBuf> =
                self.reachable(file).into_iter().filter(|other| self.reachable(other).contains(file)).collect();
            if group.len() > 1 {
                groups.insert(group);
            }
        }
        groups.into_iter().map(|group| self.describe(&group)).collect()
    }

    /// Names of types that more than one file declares, each with its files.
    pub(super) fn repeated_types(&self) -> Vec<(&str, &BTreeSet<PathBuf>)> {
        repeated(&self.types)
    }

    /// Those of them that are `pub` in more than one.
    pub(super) fn repeated_public_types(&self) -> Vec<(&str, &BTreeSet<PathBuf>)> {
        repeated(&self.public_types)
    }

    fn reachable<'a>(&'a self, from: &'a PathBuf) -> BTreeSet<&'a PathBuf> {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            let next = self.arrows.get(file).into_iter().flat_map(BTreeMap::keys);
            open.extend(next.filter(|file| found.insert(*file)));
        }
        found
    }

    fn describe(&self, group: &BTreeSet<&PathBuf>) -> String {
        let mut text = format!("a loop of {} files:", group.len());
        for file in group {
            for (to, names) in self.arrows.get(*file).into_iter().flatten().filter(|(to, _)| group.contains(to)) {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                text += &format!("\n    {} -> {}: {}", file.display(), to.display(), names.join(", "));
            }
        }
        text
    }
}

impl Files {
    /// The names of a file's own modules.
    fn modules_of(&self, file: &Path) -> Vec<&str> {
        let here = module(file);
        let inside = self.by_module.keys().filter(|module| module.split_last().is_some_and(|(_, above)| above == here));
        inside.filter_map(|module| module.last()).map(String::as_str).collect()
    }

    /// The file a path leads to, and the name in it. `None` where the path leads out of the package.
    fn resolve(&self, file: &Path, path: &[String]) -> Option<(PathBuf, String)> {
        let here = module(file);
        let mut rest = path;
        let mut base: Option<Module> = None;
        loop {
            base = match rest.first().map(String::as_str) {
                Some("crate") => Some(Module::new()),
                Some("self") => Some(base.unwrap_or_else(|| here.clone())),
                Some("super") => {
                    let mut up = base.unwrap_or_else(|| here.clone());
                    up.pop();
                    Some(up)
                }
                _ => break,
            };
            rest = &rest[1..];
        }
        let base = match base {
            Some(base) => base,
            // In a file, a path may begin with one of its own modules.
            None => self.by_module.contains_key(&join(&here, &rest[..rest.len().min(1)])).then_some(here)?,
        };
        (0..=rest.len()).rev().find_map(|length| {
            let file = self.by_module.get(&join(&base, &rest[..length]))?;
            let name = rest.get(length).cloned().unwrap_or_else(|| "(module)".into());
            Some((file.clone(), name))
        })
    }

    /// Where a name stands that a file may only re-export.
    fn declared(&self, mut found: (PathBuf, String)) -> (PathBuf, String) {
        let mut seen = BTreeSet::new();
        while let Some(next) = self.reexports.get(&found).filter(|next| seen.insert((*next).clone())) {
            found = next.clone();
        }
        found
    }
}

fn repeated(types: &BTreeMap<String, BTreeSet<PathBuf>>) -> Vec<(&str, &BTreeSet<PathBuf>)> {
    types.iter().filter(|(_, files)| files.len() > 1).map(|(name, files)| (name.as_str(), files)).collect()
}

fn join(base: &[String], rest: &[String]) -> Module {
    base.iter().chain(rest).cloned().collect()
}

fn is_test(file: &Path) -> bool {
    file.ends_with("tests.rs") || file.components().any(|part| part.as_os_str() == "tests")
}

fn module(file: &Path) -> Module {
    let mut parts: Module =
        file.with_extension("").components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// The text without comments and without the unit tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// A `use` declaration.
struct Use {
    /// Where it stands in the text.
    place: Range<usize>,
    is_public: bool,
    tree: String,
}

impl Use {
    /// Every path in it, and the name each has here.
    fn leaves(&self) -> Vec<(Vec<String>, String)> {
        leaves(&self.tree)
    }
}

fn uses(text: &str) -> impl Iterator<Item = Use> {
    text.match_indices("use ").filter_map(|(at, word)| {
        let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let before = text[line..at].trim();
        let is_public = before == "pub" || (before.starts_with("pub(") && before.ends_with(')'));
        let tree = text[at + word.len()..].split(';').next()?;
        let place = at..at + word.len() + tree.len();
        let tree = tree.split_whitespace().collect::<Vec<_>>().join(" ");
        (before.is_empty() || is_public).then_some(Use { place, is_public, tree })
    })
}

/// Every path in a tree, and the name it has here: `a::{b, c::{d as e}}` is `a::b` and `a::c::d`.
fn leaves(tree: &str) -> Vec<(Vec<String>, String)> {
    let Some((head, rest)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
        let mut path: Vec<String> = path.split("::").map(|part| part.trim().to_owned()).collect();
        path.retain(|part| !part.is_empty());
        let name = alias.map(|alias| alias.trim().to_owned()).or_else(|| path.last().cloned()).unwrap_or_default();
        return vec![(path, name)];
    };
    let mut depth = 1;
    let mut parts = vec![String::new()];
    for letter in rest.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match (letter, depth) {
            (_, 0) => break,
            (',', 1) => parts.push(String::new()),
            _ => parts.last_mut().unwrap().push(letter),
        }
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(|part| leaves(&format!("{}{part}", head.trim()))).collect()
}

/// Paths within the package that stand in code, not in a `use`: they begin with `crate`, `super`, `self`, or a module of the
/// file's own.
fn paths_in_code(text: &str, modules: &[&str]) -> Vec<Vec<String>> {
    let is_in_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let uses: Vec<_> = uses(text).map(|found| found.place).collect();
    let starts = ["crate", "super", "self"].into_iter().chain(modules.iter().copied());
    let found = starts.flat_map(|start| text.match_indices(start).map(move |(at, _)| (at, start.len())));
    let found = found.filter(|(at, length)| {
        let is_start = !text[..*at].ends_with(|letter: char| is_in_name(letter) || letter == ':' || letter == '.');
        // A visibility names a module and imports nothing.
        let is_visibility = text[..*at].ends_with("pub(in ");
        is_start
            && !is_visibility
            && text[at + length..].starts_with("::")
            && !uses.iter().any(|place| place.contains(at))
    });
    let path = |at: usize| text[at..].split(|letter: char| !is_in_name(letter) && letter != ':').next();
    let paths = found.filter_map(|(at, _)| path(at));
    paths.map(|path| path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()).collect()
}

/// The types at the top level of a file, and whether each is public.
fn declared_types(text: &str) -> impl Iterator<Item = (bool, String)> {
    text.lines().filter_map(|line| {
        let (is_public, rest) = match line.strip_prefix("pub") {
            Some(rest) => match rest.strip_prefix('(') {
                Some(scope) => (false, scope.split_once(") ")?.1),
                None => (true, rest.strip_prefix(' ')?),
            },
            None => (false, line),
        };
        let (kind, rest) = rest.split_once(' ')?;
        let name: String = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        ["struct", "enum", "trait", "type", "union"].contains(&kind).then_some((is_public, name))
    })
}
