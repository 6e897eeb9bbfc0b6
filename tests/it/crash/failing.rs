//! Makes system calls of a process fail, using `strace`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Makes the calls of a process fail until this value is dropped.
pub(crate) struct Failing(Child);

impl Failing {
    /// Makes calls fail. A fault consists of a call and the injected error, such as
    /// `openat:error=EIO:when=3`. If paths are given, only calls about them fail.
    pub(crate) fn begin(process: u32, fault: &str, paths: &[PathBuf]) -> Self {
        let (call, _) = fault.split_once(':').unwrap();
        // The process that ends `strace` is started beforehand, because the calls of new processes
        // fail, too. With a signal other than SIGKILL, `strace` could wait forever for a process
        // that ends at the same time.
        let script = format!(
            "strace -f -o /dev/null -p {process} -e trace={call} -e inject={fault} \"$@\" & read end; kill -KILL $!; wait"
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        for path in paths {
            shell.arg("-P").arg(path);
        }
        let mut child = shell.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let mut read = said.read_line(&mut line);
        while read.is_ok() && line.contains("Requested path") {
            // `strace` first prints the file that each path leads to. These lines are skipped.
            line.clear();
            read = said.read_line(&mut line);
        }
        // If reading fails, the injected faults already apply to this process.
        assert!(read.is_err() || line.contains("attached"), "{line}");
        // `strace` may print more. Its output must be read, or `strace` would block.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self(child)
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// Reports whether a process can attach to another process that is not its child, as `strace` must.
pub(crate) fn can_attach() -> bool {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let is_there = Command::new("strace").arg("-V").output().is_ok();
    let can = is_there
        && (scope.trim().is_empty() || scope.trim() == "0" || fs::metadata("/proc/1/mem").is_ok_and(|_| is_root()));
    assert!(can || std::env::var_os("CI").is_none(), "CI has to run strace, as root");
    can
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
