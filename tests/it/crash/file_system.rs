//! A file system that loses unsynced changes, as POSIX allows.
//!
//! The bytes of a file are durable once the file is synced. The creation, replacement or removal of
//! a name is durable once its folder is synced. Until then, each change may be on the disk or not,
//! independently of the others: a later change may be present although an earlier one is missing.
//! Bytes that were written may be present in part, or as zeros. No real file system loses all of
//! this, but each loses some of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::recording::Operation;

type Inode = usize;

/// A file, or a folder with its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Folder(BTreeMap<String, Inode>),
    File(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Lost,
    /// Only the first half of the bytes is kept.
    Cut,
    /// The bytes are replaced by zeros.
    Zeros,
}

#[derive(Clone, Debug)]
enum Change {
    /// Names in a folder that change together, and what they refer to.
    Names(Vec<(Inode, String, Option<Inode>)>),
    Bytes {
        file: Inode,
        at: usize,
        bytes: Vec<u8>,
    },
    Length {
        file: Inode,
        length: usize,
    },
}

/// The files as a program sees them, and as they are on the disk.
#[derive(Clone, Debug)]
pub(crate) struct FileSystem {
    seen: Vec<Node>,
    synced: Vec<Node>,
    unsynced: Vec<Change>,
}

/// Files by path; `None` for folders.
pub(crate) type Files = BTreeMap<PathBuf, Option<Vec<u8>>>;

const ROOT: Inode = 0;

impl FileSystem {
    pub(crate) fn new() -> Self {
        let root = vec![Node::Folder(BTreeMap::new())];
        Self { seen: root.clone(), synced: root, unsynced: Vec::new() }
    }

    pub(crate) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Mark(_) => {}
            Operation::MakeFolder(path) => self.make(path, Node::Folder(BTreeMap::new())),
            Operation::Open { path, is_emptied } => match self.find(path) {
                None => self.make(path, Node::File(Vec::new())),
                Some(file) if *is_emptied => self.change(Change::Length { file, length: 0 }),
                Some(_) => {}
            },
            Operation::Write { path, at, bytes } => {
                let file = self.known(path);
                let at = at.unwrap_or_else(|| self.bytes(file).len());
                self.change(Change::Bytes { file, at, bytes: bytes.clone() });
            }
            Operation::Resize { path, length } => {
                let file = self.known(path);
                self.change(Change::Length { file, length: *length });
            }
            Operation::Rename { from, to } => {
                let inode = self.known(from);
                let ((old, old_name), (new, new_name)) = (self.place(from), self.place(to));
                self.change(Change::Names(vec![(old, old_name, None), (new, new_name, Some(inode))]));
            }
            Operation::Link { from, to } => {
                let inode = self.known(from);
                let (folder, name) = self.place(to);
                self.change(Change::Names(vec![(folder, name, Some(inode))]));
            }
            Operation::Remove(path) => {
                let (folder, name) = self.place(path);
                self.change(Change::Names(vec![(folder, name, None)]));
            }
            Operation::Sync(path) => {
                let synced = self.known(path);
                let (now, later) = self.unsynced.drain(..).partition(|change| change.is_of(synced));
                self.unsynced = later;
                let now: Vec<Change> = now;
                now.iter().for_each(|change| change.apply(&mut self.synced, Fate::Kept));
            }
        }
    }

    pub(crate) fn fates(&self) -> Vec<&'static [Fate]> {
        let fates = |change: &Change| match change {
            Change::Bytes { bytes, .. } if bytes.len() > 1 => &[Fate::Kept, Fate::Lost, Fate::Cut, Fate::Zeros][..],
            _ => &[Fate::Kept, Fate::Lost],
        };
        self.unsynced.iter().map(fates).collect()
    }

    /// Returns the files that exist after a crash with these fates.
    pub(crate) fn after(&self, fates: &[Fate]) -> Files {
        let mut nodes = self.synced.clone();
        self.unsynced.iter().zip(fates).for_each(|(change, fate)| change.apply(&mut nodes, *fate));
        let mut files = Files::new();
        list(&nodes, ROOT, Path::new(""), &mut files);
        files
    }

    /// Returns a description of the changes that were lost, or kept in part.
    pub(crate) fn shown(&self, fates: &[Fate]) -> String {
        let shown = |(change, fate): (&Change, &Fate)| match change {
            Change::Names(names) => format!("{fate:?} {names:?}"),
            Change::Bytes { file, at, bytes } => format!("{fate:?} {} bytes at {at} of {file}", bytes.len()),
            Change::Length { file, length } => format!("{fate:?} length {length} of {file}"),
        };
        let lost = self.unsynced.iter().zip(fates).filter(|(_, fate)| **fate != Fate::Kept);
        lost.map(shown).collect::<Vec<_>>().join(", ")
    }

    fn make(&mut self, path: &Path, node: Node) {
        let (folder, name) = self.place(path);
        let inode = self.seen.len();
        self.seen.push(node.clone());
        // If the name of the file is lost, the file cannot be found.
        self.synced.push(node);
        self.change(Change::Names(vec![(folder, name, Some(inode))]));
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen, Fate::Kept);
        self.unsynced.push(change);
    }

    fn find(&self, path: &Path) -> Option<Inode> {
        path.components().try_fold(ROOT, |inode, part| match &self.seen[inode] {
            Node::Folder(names) => names.get(part.as_os_str().to_str()?).copied(),
            Node::File(_) => None,
        })
    }

    fn known(&self, path: &Path) -> Inode {
        self.find(path).unwrap_or_else(|| panic!("{} was not made while it was recorded", path.display()))
    }

    fn place(&self, path: &Path) -> (Inode, String) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        (self.known(path.parent().unwrap()), name.to_owned())
    }

    fn bytes(&self, file: Inode) -> &[u8] {
        match &self.seen[file] {
            Node::File(bytes) => bytes,
            Node::Folder(_) => panic!("a folder is not written"),
        }
    }
}

impl Change {
    /// Reports whether the change is durable once this file or folder is synced.
    fn is_of(&self, synced: Inode) -> bool {
        match self {
            Self::Names(names) => names.iter().any(|(folder, ..)| *folder == synced),
            Self::Bytes { file, .. } | Self::Length { file, .. } => *file == synced,
        }
    }

    fn apply(&self, nodes: &mut [Node], fate: Fate) {
        if fate == Fate::Lost {
            return;
        }
        match self {
            Self::Names(names) => {
                for (folder, name, inode) in names {
                    let Node::Folder(names) = &mut nodes[*folder] else { panic!("{name} is in a file") };
                    match inode {
                        Some(inode) => names.insert(name.clone(), *inode),
                        None => names.remove(name),
                    };
                }
            }
            Self::Bytes { file, at, bytes } => {
                let Node::File(all) = &mut nodes[*file] else { panic!("a folder is not written") };
                let count = if fate == Fate::Cut { bytes.len() / 2 } else { bytes.len() };
                let zeros = vec![0; bytes.len()];
                let written = if fate == Fate::Zeros { &zeros } else { bytes };
                all.resize(all.len().max(at + count), 0);
                all[*at..at + count].copy_from_slice(&written[..count]);
            }
            Self::Length { file, length } => {
                let Node::File(all) = &mut nodes[*file] else { panic!("a folder has no length") };
                all.resize(*length, 0);
            }
        }
    }
}

fn list(nodes: &[Node], inode: Inode, path: &Path, files: &mut Files) {
    match &nodes[inode] {
        Node::File(bytes) => {
            files.insert(path.to_owned(), Some(bytes.clone()));
        }
        Node::Folder(names) => {
            files.insert(path.to_owned(), None);
            names.iter().for_each(|(name, inode)| list(nodes, *inode, &path.join(name), files));
        }
    }
}

/// Creates files in an existing empty folder.
pub(crate) fn make_files(files: &Files, folder: &Path) {
    // Folders sort before their contents.
    for (path, bytes) in files {
        match bytes {
            _ if path.as_os_str().is_empty() => {}
            None => fs::create_dir(folder.join(path)).unwrap(),
            Some(bytes) => fs::write(folder.join(path), bytes).unwrap(),
        }
    }
}
