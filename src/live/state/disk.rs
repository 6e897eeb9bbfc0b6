//! The files of a state directory: each is whole or missing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::error::StateError;
use crate::live::rejection::MAX_FILE;
use crate::live::{Clock, Durability, Rejection, RejectionKind, VersionHash};

const PROBE: &str = ".probe";

/// The file of a kill switch.
pub(super) const SWITCH: &str = "enforcement";

/// The files in a state directory, besides those that are named by a hash.
const OURS: [&str; 5] = ["state.json", "history.jsonl", "live", SWITCH, PROBE];

/// The file system, through which every file of a state directory is reached. Cheap to clone.
#[derive(Clone, Default)]
pub(in crate::live) struct Disk {
    /// Whether nothing is changed: every write is left out, and counts as done.
    pub(in crate::live) is_read_only: bool,
    /// The clock by which files are stamped.
    pub(in crate::live) clock: Clock,
    /// How long to wait for the lock of a folder that another handle has.
    pub(in crate::live) lock_patience: Duration,
    /// A test can block, observe or fail each operation here; a file system does so too.
    #[cfg(test)]
    pub(in crate::live) before: Option<BeforeEach>,
}

/// What an operation does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum Access {
    Look,
    /// It takes room.
    Write,
    /// It takes none.
    Overwrite,
    Remove,
}

/// Called before each operation, with its path.
#[cfg(test)]
pub(in crate::live) type BeforeEach = Arc<dyn Fn(Access, &Path) -> io::Result<()> + Send + Sync>;

impl Disk {
    /// On which nothing is changed.
    pub(super) fn read_only() -> Self {
        Self { is_read_only: true, ..Self::default() }
    }

    /// Called before every operation on a file.
    pub(super) fn reach(&self, access: Access, path: &Path) -> io::Result<()> {
        #[cfg(test)]
        if let Some(before) = &self.before {
            return before(access, path);
        }
        let _ = (access, path);
        Ok(())
    }

    /// The names of what is in a folder; none where it cannot be read.
    pub(super) fn names(&self, folder: &Path) -> Vec<String> {
        let entries = self.reach(Access::Look, folder).and_then(|()| fs::read_dir(folder));
        let entries = entries.into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Writes a file aside and renames it.
    pub(super) fn write(&self, path: &Path, bytes: &[u8], durability: Durability) -> Result<(), StateError> {
        if self.is_read_only {
            return Ok(());
        }
        let is_durable = durability == Durability::Machine;
        let written = self.reach(Access::Write, path).and_then(|()| put(path, &aside(path), bytes, is_durable));
        written.map_err(|cause| StateError::new(path, cause))
    }

    /// Adds lines to a file, and returns how many of them are in it, whole. They are written at once. A line that was cut, by the
    /// end of the process or of the room on the disk, is skipped when read, and the next one begins behind it.
    pub(super) fn append(&self, path: &Path, lines: &[Vec<u8>]) -> (usize, Result<(), StateError>) {
        if self.is_read_only {
            return (lines.len(), Ok(()));
        }
        let open = || at_once(for_owner()).read(true).create(true).append(true).open(path);
        let file = self.reach(Access::Write, path).and_then(|()| open()).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => make(path.parent().unwrap_or(Path::new("."))).and_then(|()| open()),
            _ => Err(error),
        });
        let mut count = 0;
        let written = file.and_then(|mut file| {
            if !file.metadata()?.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "this is not a regular file"));
            }
            if is_cut(&mut file)? {
                file.write_all(b"\n")?;
            }
            for line in lines {
                file.write_all(line)?;
                count += 1;
            }
            Ok(())
        });
        (count, written.map_err(|cause| StateError::new(path, cause)))
    }

    /// Removes unfinished files of processes that were killed. `began` is when this process opened the
    /// directory: its own writes are later.
    pub(super) fn clean(&self, folder: &Path, began: SystemTime) {
        let entries = self.reach(Access::Look, folder).and_then(|()| fs::read_dir(folder));
        let Some(entries) = entries.ok().filter(|_| !self.is_read_only) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(process) = name.to_str().and_then(writer_of) else { continue };
            let Ok(metadata) = fs::symlink_metadata(entry.path()) else { continue };
            if metadata.is_file() && metadata.modified().is_ok_and(|modified| is_left(process, modified, began)) {
                // One that cannot be removed costs its size; one of a process that lives all the same is written again.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Reads a file of bounded size: `None` where there is none.
    pub(super) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        let origin: Arc<str> = path.to_string_lossy().into();
        let trouble = |kind| Err(Rejection::new(kind, &origin).to_string());
        // Below a file there is nothing: an io error of its own, but no trouble.
        let is_absent =
            |error: io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        if fs::symlink_metadata(path).is_err_and(is_absent) {
            return Ok(None);
        }
        let failed = |error| Rejection::io(error, &origin).to_string();
        let file = self.reach(Access::Look, path).and_then(|()| open(path)).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return trouble(RejectionKind::NotAFile);
        }
        // Another handle may append to a history meanwhile: the text that is read is whole up to some line.
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_FILE {
            return trouble(RejectionKind::TooLarge);
        }
        Ok(Some(bytes))
    }

    /// Why the folder cannot be written to, if it cannot: found out before it matters. It takes the room of a state, because a disk that
    /// is full takes a name without octets. A folder that was removed is not made again: whoever removed it should know.
    pub(super) fn probe(&self, folder: &Path) -> Option<String> {
        if self.is_read_only {
            return None;
        }
        let aside = aside(&folder.join(PROBE));
        let reached = self.reach(Access::Write, &aside);
        let written = reached.and_then(|()| create_or_replace(&aside)).and_then(|mut file| {
            file.write_all(&[b'\n'; 4096])?;
            file.sync_all()
        });
        // It may be gone, or never have been there.
        let _ = fs::remove_file(&aside);
        let cause = written.err()?;
        let folder = folder.display();
        Some(format!(
            "{folder}: cannot be written, so a restart would forget every change from now on: {cause}; it is tried again"
        ))
    }

    /// Opens the file of a lock for reading, which also works on a file system that is mounted read-only, and keeps none
    /// from being so mounted. It is made where there is none, and so is its folder.
    pub(super) fn open_lock(&self, path: &Path) -> io::Result<File> {
        self.reach(Access::Look, path)?;
        let open = || at_once(OpenOptions::new()).read(true).open(path);
        open().or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                make(path.parent().unwrap_or(Path::new(".")))?;
                // Not truncated: another process may be quicker.
                drop(self.open_lock_for_writing(path)?);
                open()
            }
            _ => Err(error),
        })
    }

    /// Opens the file of a lock for writing.
    pub(super) fn open_lock_for_writing(&self, path: &Path) -> io::Result<File> {
        self.reach(Access::Write, path)?;
        at_once(for_owner()).write(true).create(true).truncate(false).open(path)
    }

    /// Removes a file that nothing refers to; one that cannot be removed costs its size.
    pub(super) fn remove(&self, path: &Path) {
        if !self.is_read_only {
            let _ = self.reach(Access::Remove, path).and_then(|()| fs::remove_file(path));
        }
    }

    /// How long a file is, if it is there.
    pub(super) fn length(&self, path: &Path) -> Option<u64> {
        self.reach(Access::Look, path).and_then(|()| fs::symlink_metadata(path)).ok().map(|metadata| metadata.len())
    }

    /// When a file was changed last, as far as that is known.
    pub(super) fn modified(&self, path: &Path) -> Option<SystemTime> {
        self.reach(Access::Look, path).and_then(|()| fs::metadata(path)?.modified()).ok()
    }
}

/// Writes a file aside and renames it; a durable one outlasts the machine. The folder is made where there is none. Both are for
/// their owner alone, and a symbolic link in their place is replaced, not followed.
pub(crate) fn put(path: &Path, aside: &Path, bytes: &[u8], is_durable: bool) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = (|| {
        let mut file = create_or_replace(aside).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => make(folder).and_then(|()| create(aside)),
            _ => Err(error),
        })?;
        file.write_all(bytes)?;
        // Without power a name may last while its octets do not: what stood there would be lost with them.
        if is_durable || fs::symlink_metadata(path).is_ok() {
            file.sync_all()?;
        }
        drop(file);
        fs::rename(aside, path)?;
        if is_durable { sync(folder) } else { Ok(()) }
    })();
    // A file that could not be finished may not be there either.
    written.inspect_err(|_| drop(fs::remove_file(aside)))
}

/// Whether a file ends within a line, as a full disk leaves it.
pub fn is_cut(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// The process that wrote a file aside, by its name: `.NAME.PROCESS.ThreadId(THREAD).tmp`, where NAME is one of ours.
fn writer_of(name: &str) -> Option<u32> {
    let (rest, thread) = name.strip_prefix('.')?.strip_suffix(").tmp")?.rsplit_once(".ThreadId(")?;
    let (name, process) = rest.rsplit_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_hash = |name: &str| name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_ours = OURS.contains(&name) || name.strip_suffix(".txt").is_some_and(is_hash);
    (is_ours && is_number(thread) && is_number(process)).then(|| process.parse().ok()).flatten()
}

/// Whether no process is going to rename it any more. Process numbers are used again, in a container at every start.
fn is_left(process: u32, modified: SystemTime, began: SystemTime) -> bool {
    if process == std::process::id() {
        // The time of files may stand still for a few milliseconds.
        return modified + Duration::from_millis(50) < began;
    }
    let processes = Path::new("/proc");
    if processes.join("self").exists() {
        return !processes.join(process.to_string()).exists();
    }
    began.duration_since(modified).is_ok_and(|age| age >= Duration::from_secs(60))
}

/// Opens without waiting: a FIFO in place of a file would block until a writer comes.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    options.custom_flags(libc::O_NONBLOCK);
    options.open(path)
}

/// Where a file is written before it has its name. A thread writes one file at a time, and another process has another number.
fn aside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{:?}.tmp", std::process::id(), std::thread::current().id()))
}

/// A file that is new: neither a file that stands there under its name is written to, nor one that a link there leads to.
fn create(path: &Path) -> io::Result<File> {
    for_owner().write(true).create_new(true).open(path)
}

/// The same, where a process of that number which was killed may have left one.
fn create_or_replace(path: &Path) -> io::Result<File> {
    create(path).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => fs::remove_file(path).and_then(|()| create(path)),
        _ => Err(error),
    })
}

fn for_owner() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    options.mode(0o600);
    options
}

/// Follows no link that stands in place of the file, and waits for no writer of a FIFO.
pub(super) fn at_once(#[cfg_attr(not(unix), expect(unused_mut))] mut options: OpenOptions) -> OpenOptions {
    #[cfg(unix)]
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// The rename itself lasts once the folder is written, and the folder once those around it are: they may be new too.
fn sync(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file, and renames last by themselves.
    if cfg!(not(unix)) {
        return Ok(());
    }
    let sync = |folder: &Path| File::open(folder)?.sync_all();
    sync(folder)?;
    // Those that may not be read are of others, and were there.
    folder.ancestors().skip(1).filter(|outer| !outer.as_os_str().is_empty()).for_each(|outer| drop(sync(outer)));
    Ok(())
}

/// The length that a name which is too long is cut to; `%` and 16 digits of its hash follow.
const CUT: usize = 60;

/// A site's name as the name of a folder: letters in lower case, digits, `-`, `_` and inner dots stand for themselves.
/// Different names stay different, on file systems without case too, and none leaves its folder.
pub fn folder_name(site: &str) -> String {
    let plain = |at: usize, byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_') || byte == b'.' && at > 0
    };
    let escape = |(at, byte)| if plain(at, byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    let name: String = site.bytes().enumerate().map(escape).collect();
    match name.len() {
        0 => "%".to_owned(),
        1..=120 => name,
        _ => format!("{}%{}", &name[..CUT], VersionHash::of(site.as_bytes()).short()),
    }
}

/// The site whose folder has this name; none for a name that was cut, or that no site has.
pub(super) fn site_of_folder(name: &str) -> Option<String> {
    // The digits of a hash may look like an escaped octet.
    if name.len() == CUT + 17 && name.as_bytes()[CUT] == b'%' {
        return None;
    }
    let mut parts = name.split('%');
    let mut octets = parts.next()?.as_bytes().to_vec();
    for part in parts {
        octets.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        octets.extend_from_slice(&part.as_bytes()[2..]);
    }
    // Another spelling is no folder of ours.
    String::from_utf8(octets).ok().filter(|site| folder_name(site) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_a_folder_of_its_own() {
        for (site, name) in [
            ("shop.example.com", "shop.example.com"),
            ("Shop", "%53hop"),
            ("..", "%2e."),
            (".", "%2e"),
            ("a/b\\c", "a%2fb%5cc"),
            ("", "%"),
            ("%", "%25"),
            ("m\u{fc}nchen", "m%c3%bcnchen"),
        ] {
            assert_eq!(folder_name(site), name);
            assert_eq!(site_of_folder(name).as_deref(), Some(site).filter(|site| !site.is_empty()), "{name}");
        }
        for name in ["Shop", "%53HOP", "%73hop", "%5", "%zz", "%ff", ".hidden"] {
            assert_eq!(site_of_folder(name), None, "{name}");
        }
        let long = "x".repeat(300);
        assert_eq!(site_of_folder(&folder_name(&long)), None);
        assert!(folder_name(&long).len() < 100);
        assert_ne!(folder_name(&long), folder_name(&"x".repeat(301)));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_written_is_for_its_owner_and_no_link_leads_elsewhere() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        let inner = folder.path().join("a/b");
        Disk::default().write(&inner.join("state"), b"1", Durability::Machine).expect("written");
        Disk::default().append(&inner.join("lines"), &[b"1\n".to_vec()]).1.expect("written");
        assert_eq!((mode(&inner), mode(&inner.join("state")), mode(&inner.join("lines"))), (0o700, 0o600, 0o600));
        let foreign = folder.path().join("foreign");
        fs::write(&foreign, "theirs").expect("written");
        for name in ["state", "lines"] {
            fs::remove_file(inner.join(name)).expect("removed");
            symlink(&foreign, inner.join(name)).expect("a link");
        }
        let aside = format!(".state.{}.{:?}.tmp", std::process::id(), std::thread::current().id());
        symlink(&foreign, inner.join(aside)).expect("a link");
        Disk::default().write(&inner.join("state"), b"2", Durability::Process).expect("written in place of the links");
        assert!(Disk::default().append(&inner.join("lines"), &[b"2\n".to_vec()]).1.is_err());
        assert_eq!(fs::read(&foreign).expect("read"), b"theirs");
        assert_eq!(fs::read(inner.join("state")).expect("read"), b"2");
        assert!(fs::symlink_metadata(inner.join("state")).expect("it is there").is_file());
    }

    #[test]
    fn what_is_left_by_processes_that_were_killed_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let hash = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        // No process has this number: the system gives none beyond 2^22.
        let gone = 1 << 30;
        let left = [
            format!(".state.json.{gone}.ThreadId(7).tmp"),
            format!(".history.jsonl.{gone}.ThreadId(7).tmp"),
            format!(".live.{gone}.ThreadId(7).tmp"),
            format!(".enforcement.{gone}.ThreadId(12).tmp"),
            format!("..probe.{gone}.ThreadId(1).tmp"),
            format!(".{hash}.txt.{gone}.ThreadId(7).tmp"),
            format!(".state.json.{}.ThreadId(7).tmp", std::process::id()),
        ];
        let others = [
            format!(".state.json.{gone}.ThreadId(7)"),
            format!(".foreign.{gone}.ThreadId(7).tmp"),
            format!("state.json.{gone}.ThreadId(7).tmp"),
            format!(".state.json.{gone}.ThreadId().tmp"),
            ".state.json.x.ThreadId(7).tmp".to_owned(),
            ".state.json.tmp".to_owned(),
            "state.json".to_owned(),
            format!("{hash}.txt"),
            // The process that started this one lives.
            ".state.json.1.ThreadId(7).tmp".to_owned(),
        ];
        for name in left.iter().chain(&others) {
            fs::write(folder.path().join(name), "x").expect("written");
        }
        fs::create_dir(folder.path().join(format!(".state.json.{gone}.ThreadId(8).tmp"))).expect("made");
        Disk::default().clean(folder.path(), SystemTime::now() + Duration::from_secs(1));
        for name in &left {
            assert!(!folder.path().join(name).exists(), "{name}");
        }
        for name in &others {
            assert!(folder.path().join(name).exists(), "{name}");
        }
        assert!(folder.path().join(format!(".state.json.{gone}.ThreadId(8).tmp")).is_dir());
        let own = folder.path().join(format!(".state.json.{}.ThreadId(7).tmp", std::process::id()));
        let before = SystemTime::now() - Duration::from_secs(1);
        fs::write(&own, "x").expect("written");
        Disk::default().clean(folder.path(), before);
        assert!(own.exists(), "it may be being written");
    }

    #[test]
    fn a_probe_makes_no_folder_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let why = Disk::default().probe(&state).expect("there is no folder");
        assert!(why.contains("cannot be written, so a restart would forget every change from now on"), "{why}");
        assert!(!state.exists());
        fs::create_dir(&state).expect("made");
        // Another process's, and one of this number that was killed.
        fs::write(state.join(format!("..probe.{}.ThreadId(1).tmp", 1 << 30)), "").expect("written");
        fs::write(aside(&state.join(PROBE)), "").expect("written");
        assert_eq!(Disk::default().probe(&state), None);
        assert_eq!(Disk::default().names(&state), [format!("..probe.{}.ThreadId(1).tmp", 1 << 30)]);
    }

    #[test]
    fn lines_go_on_behind_one_that_was_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        fs::write(&path, "1\n2").expect("written");
        let (count, written) = Disk::default().append(&path, &[b"3\n".to_vec(), b"4\n".to_vec()]);
        assert!(written.is_ok());
        assert_eq!((count, fs::read(&path).expect("read")), (2, b"1\n2\n3\n4\n".to_vec()));
    }
}
