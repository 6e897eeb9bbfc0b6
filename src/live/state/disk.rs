//! Access to the files of a state directory. The functions replace a file as a whole, append lines
//! to a file, or overwrite a file in place.

use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::error::StateError;
use super::replacement::{create_or_replace, owner_only_options, put, with_folder};
use crate::live::rejection::MAX_FILE;
use crate::live::{Clock, Durability, Rejection, RejectionKind};

const PROBE: &str = ".probe";

pub(super) const SWITCH: &str = "enforcement";

/// Names of the files in a state directory, except the files of versions, which are named after the
/// hash of the version.
const OWN_FILES: [&str; 5] = ["state.json", "history.jsonl", "live", SWITCH, PROBE];

/// The file system of the state directory. All access to the files of the directory goes through
/// this type.
#[derive(Clone, Default)]
pub(in crate::live) struct Disk {
    /// Whether the directory was opened read-only, so that every write is skipped and reported as
    /// successful.
    pub(in crate::live) is_read_only: bool,
    pub(in crate::live) clock: Clock,
    /// How long to wait for the lock of a folder that another handle has locked.
    pub(in crate::live) lock_patience: Duration,
    /// In tests, a callback that observes each operation, and can block it or make it fail like a
    /// real file system.
    #[cfg(test)]
    pub(in crate::live) before: Option<BeforeEach>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum Access {
    Look,
    /// A write that needs free disk space.
    Write,
    /// An overwrite in place, which needs no free disk space.
    Overwrite,
    Remove,
}

#[cfg(test)]
pub(in crate::live) type BeforeEach = Arc<dyn Fn(Access, &Path) -> io::Result<()> + Send + Sync>;

impl Disk {
    pub(super) fn read_only() -> Self {
        Self { is_read_only: true, ..Self::default() }
    }

    /// Lets tests block a file operation or make it fail. Must be called before every file
    /// operation.
    pub(super) fn reach(&self, access: Access, path: &Path) -> io::Result<()> {
        #[cfg(test)]
        if let Some(before) = &self.before {
            return before(access, path);
        }
        let _ = (access, path);
        Ok(())
    }

    /// Returns the names of the files and folders in a folder. The list is empty if the folder
    /// cannot be read.
    pub(super) fn names(&self, folder: &Path) -> Vec<String> {
        self.entries(folder).filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn entries(&self, folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
        let entries = self.reach(Access::Look, folder).and_then(|()| fs::read_dir(folder));
        entries.into_iter().flatten().flatten()
    }

    pub(super) fn write(&self, path: &Path, bytes: &[u8], durability: Durability) -> Result<(), StateError> {
        if self.is_read_only {
            return Ok(());
        }
        let written = self.reach(Access::Write, path).and_then(|()| put(path, &aside(path), bytes, durability));
        written.map_err(|cause| StateError::new(path, cause))
    }

    /// Appends lines to a file, and returns the number of lines that were written completely. A
    /// crash or a full disk may truncate the last line. The next `append` then begins with a line
    /// break, and readers skip the truncated line.
    pub(super) fn append(&self, path: &Path, lines: &[Vec<u8>]) -> (usize, Result<(), StateError>) {
        if self.is_read_only {
            return (lines.len(), Ok(()));
        }
        let mut count = 0;
        let written = self.append_counted(path, lines, &mut count);
        (count, written.map_err(|cause| StateError::new(path, cause)))
    }

    fn append_counted(&self, path: &Path, lines: &[Vec<u8>], count: &mut usize) -> io::Result<()> {
        self.reach(Access::Write, path)?;
        let open = || nonblocking(owner_only_options()).read(true).create(true).append(true).open(path);
        let mut file = with_folder(path, open)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "this is not a regular file"));
        }
        if is_cut(&mut file)? {
            file.write_all(b"\n")?;
        }
        for line in lines {
            file.write_all(line)?;
            *count += 1;
        }
        Ok(())
    }

    /// Removes temporary files of killed processes. `began` is when this process opened the
    /// directory.
    pub(super) fn clean(&self, folder: &Path, began: SystemTime) {
        if self.is_read_only {
            return;
        }
        for entry in self.entries(folder) {
            let name = entry.file_name();
            let Some(process) = name.to_str().and_then(writer_process) else { continue };
            let Ok(metadata) = fs::symlink_metadata(entry.path()) else { continue };
            if metadata.is_file() && metadata.modified().is_ok_and(|modified| is_abandoned(process, modified, began)) {
                // Errors are ignored, because a file that cannot be removed only wastes space. If
                // the file is removed while the process that wrote it is still running, that
                // process writes it again.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Reads a file of at most [`MAX_FILE`] bytes; `None` if the file does not exist.
    pub(super) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        let origin: Arc<str> = path.to_string_lossy().into();
        let rejected = |kind| Err(Rejection::new(kind, &origin).to_string());
        let failed = |error| Rejection::io(error, &origin).to_string();
        // For a path below a regular file, the system returns `NotADirectory` instead of
        // `NotFound`.
        let is_absent =
            |error: io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        if fs::symlink_metadata(path).is_err_and(is_absent) {
            return Ok(None);
        }
        self.reach(Access::Look, path).map_err(failed)?;
        let file = open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return rejected(RejectionKind::NotAFile);
        }
        // If another handle appends to the history while it is read, only the last line can be
        // incomplete.
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_FILE {
            return rejected(RejectionKind::TooLarge);
        }
        Ok(Some(bytes))
    }

    /// Tests whether the folder can be written to, so that a problem is reported before there is
    /// something to write. Returns the problem, if any.
    pub(super) fn probe(&self, folder: &Path) -> Option<String> {
        if self.is_read_only {
            return None;
        }
        let aside = aside(&folder.join(PROBE));
        let written = self.write_probe(&aside);
        let _ = fs::remove_file(&aside);
        let cause = written.err()?;
        let folder = folder.display();
        Some(format!(
            "{folder}: the state directory cannot be written: {cause}; the write is retried, but a restart would \
             forget changes that are not saved"
        ))
    }

    /// Writes a test file about as long as a site's state, because an empty file can be created
    /// even on a full disk. Fails if the folder does not exist, so that a removed folder is
    /// reported.
    fn write_probe(&self, path: &Path) -> io::Result<()> {
        self.reach(Access::Write, path)?;
        let mut file = create_or_replace(path)?;
        file.write_all(&[b'\n'; 4096])?;
        file.sync_all()
    }

    /// Opens the lock file for reading. Creates the file and its folder if they do not exist. The
    /// file is not opened for writing, because opening would fail on a read-only file system, and
    /// because an operator could not remount the file system read-only while a file is open for
    /// writing.
    pub(super) fn open_lock(&self, path: &Path) -> io::Result<File> {
        self.reach(Access::Look, path)?;
        let open = || nonblocking(OpenOptions::new()).read(true).open(path);
        match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The file is not truncated, because another process may have just created and
                // written it.
                drop(with_folder(path, || self.open_lock_for_writing(path))?);
                open()
            }
            opened => opened,
        }
    }

    pub(super) fn open_lock_for_writing(&self, path: &Path) -> io::Result<File> {
        self.reach(Access::Write, path)?;
        nonblocking(owner_only_options()).write(true).create(true).truncate(false).open(path)
    }

    /// Removes a file that is no longer needed. Errors are ignored, because a file that cannot be
    /// removed only wastes space.
    pub(super) fn remove(&self, path: &Path) {
        if !self.is_read_only {
            let _ = self.reach(Access::Remove, path).and_then(|()| fs::remove_file(path));
        }
    }

    /// Returns the length of a file in bytes, if it exists.
    pub(super) fn length(&self, path: &Path) -> Option<u64> {
        self.reach(Access::Look, path).and_then(|()| fs::symlink_metadata(path)).ok().map(|metadata| metadata.len())
    }

    pub(super) fn modified(&self, path: &Path) -> Option<SystemTime> {
        self.reach(Access::Look, path).and_then(|()| fs::metadata(path)?.modified()).ok()
    }
}

/// Reports whether the last line of a file lacks its line break, for example because the disk was
/// full when the line was written.
pub fn is_cut(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Returns the process ID in the name of a temporary file, `.NAME.PROCESS.ThreadId(THREAD).tmp`.
fn writer_process(name: &str) -> Option<u32> {
    let (rest, thread) = name.strip_prefix('.')?.strip_suffix(").tmp")?.rsplit_once(".ThreadId(")?;
    let (name, process) = rest.rsplit_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_own_file(name) || !is_number(thread) || !is_number(process) {
        return None;
    }
    process.parse().ok()
}

fn is_own_file(name: &str) -> bool {
    let is_hash = |name: &str| name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    OWN_FILES.contains(&name) || name.strip_suffix(".txt").is_some_and(is_hash)
}

/// Reports whether the process that wrote a temporary file has ended. `modified` is compared with
/// `began`, because the process ID may be reused, for example at every start of a container.
fn is_abandoned(process: u32, modified: SystemTime, began: SystemTime) -> bool {
    if process == std::process::id() {
        // 50 ms are added, because the time of a file may be a few milliseconds behind the clock.
        return modified + Duration::from_millis(50) < began;
    }
    let processes = Path::new("/proc");
    if processes.join("self").exists() {
        return !processes.join(process.to_string()).exists();
    }
    began.duration_since(modified).is_ok_and(|age| age >= Duration::from_secs(60))
}

/// Opens a file for reading. Unlike `File::open`, does not wait for a writer if the file is a FIFO.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    options.custom_flags(libc::O_NONBLOCK);
    options.open(path)
}

/// Returns the path of a temporary file that will replace the file at `path`. The name contains the
/// IDs of the process and the thread. The name is unique, because a thread writes only one file at
/// a time.
pub(crate) fn aside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{:?}.tmp", std::process::id(), std::thread::current().id()))
}

/// Adds options so that `open` fails on a symbolic link at the path, and does not wait for the
/// writer of a FIFO.
pub(super) fn nonblocking(#[cfg_attr(not(unix), expect(unused_mut))] mut options: OpenOptions) -> OpenOptions {
    #[cfg(unix)]
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn state_files_are_private_to_the_owner_and_symbolic_links_are_not_followed() {
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
    fn only_stale_temporary_files_are_removed_from_the_state_directory() {
        let folder = tempfile::tempdir().expect("a folder");
        let hash = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        // The system assigns no process IDs above 2^22.
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
            // Process 1 is always running.
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
    fn a_probe_creates_no_folder_and_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let why = Disk::default().probe(&state).expect("there is no folder");
        assert!(why.contains("the state directory cannot be written: "), "{why}");
        assert!(!state.exists());
        fs::create_dir(&state).expect("made");
        // One temporary file is from another process, and one is from a dead process that had the
        // ID of this process.
        fs::write(state.join(format!("..probe.{}.ThreadId(1).tmp", 1 << 30)), "").expect("written");
        fs::write(aside(&state.join(PROBE)), "").expect("written");
        assert_eq!(Disk::default().probe(&state), None);
        assert_eq!(Disk::default().names(&state), [format!("..probe.{}.ThreadId(1).tmp", 1 << 30)]);
    }

    #[test]
    fn lines_are_appended_on_a_new_line_after_a_truncated_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        fs::write(&path, "1\n2").expect("written");
        let (count, written) = Disk::default().append(&path, &[b"3\n".to_vec(), b"4\n".to_vec()]);
        assert!(written.is_ok());
        assert_eq!((count, fs::read(&path).expect("read")), (2, b"1\n2\n3\n4\n".to_vec()));
    }
}
