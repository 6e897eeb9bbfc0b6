//! Runs `robotsd` and talks to it.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Answer, PATIENCE, admin_answer_with, exchange};

pub(crate) const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
pub(crate) const GPTBOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
pub(crate) const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

pub(crate) fn robotsd() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_robotsd"));
    command.current_dir(project(""));
    // Configs without `[admin]` use a socket in this folder, not the socket of a real installation.
    command.env("RUNTIME_DIRECTORY", env!("CARGO_TARGET_TMPDIR"));
    command.env_remove("ROBOTSD_CONFIG").env_remove("ROBOTSD_ADMIN");
    command
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("what is written is UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
    }
}

impl Ended {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that the command ended with this exit status.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Returns the standard output of a command that must succeed.
    #[track_caller]
    pub(crate) fn succeeded(self) -> String {
        self.ends_with(0).out
    }

    /// Returns the standard error of a command that must end with this exit status.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        self.ends_with(code).error
    }

    /// Parses the output as JSON, with one document per line.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns standard output and standard error, one after the other.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.out, self.error)
    }
}

/// Runs a command to its end, without input and with a time limit.
pub(crate) fn run(command: &mut Command) -> Ended {
    ended(command.stdin(Stdio::null()), b"")
}

/// Like [`run`], with text on standard input.
pub(crate) fn run_with(command: &mut Command, input: &[u8]) -> Ended {
    ended(command.stdin(Stdio::piped()), input)
}

/// Runs a command to its end with this standard input.
pub(crate) fn ended(command: &mut Command, input: &[u8]) -> Ended {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if let Some(mut pipe) = child.stdin.take() {
        let input = input.to_owned();
        // A command that does not read its input may end before the whole input is written.
        std::thread::spawn(move || drop(pipe.write_all(&input)));
    }
    let (done, output) = std::sync::mpsc::channel();
    // The pipes are read while the process runs. Otherwise, a long output would block the process.
    std::thread::spawn(move || done.send(child.wait_with_output()));
    // For example, promtool takes 13 s of processor time for the shipped rules. While other tests
    // run, this can be two minutes. The limit still detects a command that hangs.
    let output = output.recv_timeout(PATIENCE * 5).unwrap_or_else(|_| panic!("{command:?} does not end")).unwrap();
    output.into()
}

/// A process that is killed when the test ends.
#[derive(Debug)]
pub(crate) struct KillOnDrop(pub(crate) Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running proxy. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Value>>>,
}

impl Running {
    pub(crate) fn start_with(config: &Path) -> Self {
        Self::spawn(robotsd().args(["serve", "--config"]).arg(config))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        // This also covers commands that start robotsd through a shell, and callers that do not set
        // the folder.
        if !command.get_envs().any(|(name, _)| name == "RUNTIME_DIRECTORY") {
            command.env("RUNTIME_DIRECTORY", env!("CARGO_TARGET_TMPDIR"));
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = log.clone();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // Every line of the log is one JSON object. When the test ends, the thread of the
                // test checks whether the lines match the schema.
                lines.lock().unwrap().push(serde_json::from_str::<Value>(&line).unwrap());
            }
        });
        let mut running = Self { child, address: ([127, 0, 0, 1], 0).into(), log };
        let listening = wait_for("a line of the log that says where robotsd listens", || {
            let is_alive = is_alive(running.id());
            let found = running.all("listening").into_iter().next();
            assert!(found.is_some() || is_alive, "robotsd has ended before it listened");
            found
        });
        running.address = listening["message"].as_str().unwrap().rsplit('/').next().unwrap().parse().unwrap();
        running
    }

    pub(crate) fn wait_for_event(&self, event: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = || self.log.lock().unwrap().iter().find(|line| line["event"] == event && fits(line)).cloned();
        wait_for(&format!("the event {event}"), found)
    }

    /// Waits for a line of the log that has this event and contains `part` in its message.
    pub(crate) fn wait_for_message(&self, event: &str, part: &str) -> Value {
        self.wait_for_event(event, |line| line["message"].as_str().is_some_and(|said| said.contains(part)))
    }

    /// Waits for the first line of the log with this event.
    pub(crate) fn event(&self, event: &str) -> Value {
        self.wait_for_event(event, |_| true)
    }

    pub(crate) fn has_event(&self, event: &str, fits: impl Fn(&Value) -> bool) -> bool {
        self.log.lock().unwrap().iter().any(|line| line["event"] == event && fits(line))
    }

    /// Returns all lines of the log with this event so far, in order.
    pub(crate) fn all(&self, event: &str) -> Vec<Value> {
        self.log.lock().unwrap().iter().filter(|line| line["event"] == event).cloned().collect()
    }

    pub(crate) fn count(&self, event: &str, fits: impl Fn(&Value) -> bool) -> usize {
        self.all(event).iter().filter(|line| fits(line)).count()
    }

    pub(crate) fn event_names(&self) -> std::collections::BTreeSet<String> {
        self.log.lock().unwrap().iter().filter_map(|line| line["event"].as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn events(&self, event: &str) -> usize {
        self.all(event).len()
    }

    pub(crate) fn get(&self, path: &str, agent: &str) -> Answer {
        self.request("GET", path, &[("User-Agent", agent)])
    }

    pub(crate) fn request(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let host = [("Host", "site.test")];
        let fields = host.iter().filter(|_| !fields.iter().any(|(name, _)| *name == "Host")).chain(fields);
        let fields: String = fields.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.send(format!("{method} {path} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n").as_bytes())
    }

    pub(crate) fn send(&self, request: &[u8]) -> Answer {
        exchange(self.address, request)
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        let listening = self.wait_for_message("admin-listening", "http://");
        message(&listening).trim_start_matches("http://").split(' ').next().unwrap().parse().unwrap()
    }

    pub(crate) fn ask_admin(&self, request: &str) -> Answer {
        // A GET request needs no token, so it also works while the state directory cannot be read.
        let token = if request.starts_with("POST ") { self.local_token() } else { String::new() };
        admin_answer_with(self.admin(), request, &token)
    }

    /// Returns the header field with the local token; empty if the log names no file with a token.
    pub(crate) fn local_token(&self) -> String {
        let listening = self.wait_for_message("admin-listening", "http://");
        let file = message(&listening).split_once(" the token in ").map(|(_, file)| file.trim_end_matches(')'));
        let field = |file| format!("Authorization: Bearer {}\r\n", fs::read_to_string(file).unwrap().trim());
        file.map(field).unwrap_or_default()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Ended {
        run(robotsd().args(arguments).arg("--admin").arg(self.admin().to_string()))
    }

    /// Runs a command, and returns its report. Status 1 is allowed, as for a pending version.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.command(&[arguments, &["--json"]].concat());
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        ended.json()
    }

    pub(crate) fn signal(&self, name: &str) {
        assert!(signal(name, self.id()));
    }

    /// Returns the resident memory of the process, as the kernel reports it.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    pub(crate) fn peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops all threads. The kernel still accepts connections, but nothing is answered.
    pub(crate) fn freeze(&self) {
        stop(self.id());
    }

    /// Ends the process as a supervisor does. It must exit successfully.
    pub(crate) fn end(&mut self) {
        self.signal("TERM");
        assert!(self.wait_for_end().success());
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        let child = RefCell::new(&mut self.child);
        wait_for("the end of robotsd", || child.borrow_mut().try_wait().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            let log = self.log.lock().unwrap();
            assert_eq!(log.iter().find_map(crate::log_schema::disagreement), None);
        }
    }
}

/// Sends a signal to a process. Returns whether the process exists.
pub(crate) fn signal(name: &str, process: u32) -> bool {
    let output = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).output().unwrap();
    output.status.success()
}

/// Stops a process, and waits for all of its threads if the system shows their states.
pub(crate) fn stop(process: u32) {
    signal("STOP", process);
    let is_stopped = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    };
    wait_until("every thread to stop", || {
        fs::read_dir(format!("/proc/{process}/task")).map_or(true, |tasks| tasks.flatten().all(is_stopped))
    });
}

/// Reports whether a process exists and has not ended yet.
pub(crate) fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

pub(crate) fn message(line: &Value) -> &str {
    line["message"].as_str().unwrap()
}

/// Reports whether long tests should try all cases. If not, they try a sample.
pub(crate) fn is_long() -> bool {
    std::env::var_os("ROBOTSD_LONG").is_some()
}

/// Calls `answer` until it returns a value, and returns that value.
pub(crate) fn wait_for<T>(what: &str, answer: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(pause);
        // The pause grows, because polling takes processor time that other tests need.
        pause = (pause * 3 / 2).min(Duration::from_millis(50));
    }
}

pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// Replaces a file atomically, as editors do: writes the new file next to it and renames it.
pub(crate) fn replace_file(path: &Path, text: impl AsRef<[u8]>) {
    let aside = path.with_extension("new");
    fs::write(&aside, text).unwrap();
    fs::rename(aside, path).unwrap();
}

/// Returns a path in the project. The root of the project is above this package.
pub(crate) fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a package in a workspace").join(path)
}
