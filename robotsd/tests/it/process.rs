//! Running `robotsd` and speaking to it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Far more than anything here takes; a machine may be busy.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
pub(super) const GPTBOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
pub(super) const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

pub(super) fn robotsd() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_robotsd"));
    command.current_dir(project(""));
    // Where a config has no [admin], its socket is here, and not where one that serves in earnest has it.
    command.env("RUNTIME_DIRECTORY", env!("CARGO_TARGET_TMPDIR")).env_remove("ROBOTSD_CONFIG");
    command
}

/// A folder with files in it.
pub(super) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Runs to the end, with a bound on how long that may take.
pub(super) fn run(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (done, output) = std::sync::mpsc::channel();
    // The pipes have to be read while the process runs, or a long answer would never end.
    std::thread::spawn(move || done.send(child.wait_with_output()));
    output.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{command:?} does not end")).unwrap()
}

/// A running proxy; killed when dropped.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    pub(super) address: SocketAddr,
    log: Arc<Mutex<Vec<Value>>>,
}

impl Running {
    /// Starts with the config `robotsd.toml` of a folder; its listener must be on port 0.
    pub(super) fn start(folder: &Path) -> Self {
        Self::start_with(&folder.join("robotsd.toml"))
    }

    pub(super) fn start_with(config: &Path) -> Self {
        Self::spawn(robotsd().args(["serve", "--config"]).arg(config))
    }

    /// Starts with a command that ends in being robotsd.
    pub(super) fn spawn(command: &mut Command) -> Self {
        // Also where a shell starts it, and where the caller does not say which runtime folder it has.
        if !command.get_envs().any(|(name, _)| name == "RUNTIME_DIRECTORY") {
            command.env("RUNTIME_DIRECTORY", env!("CARGO_TARGET_TMPDIR"));
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = log.clone();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // Every line of the log is one object. Whether it is as documented is asserted at the end, on the test's thread.
                lines.lock().unwrap().push(serde_json::from_str::<Value>(&line).unwrap());
            }
        });
        let mut running = Self { child, address: ([127, 0, 0, 1], 0).into(), log };
        let listening = running.wait_for_event("listening", |_| true);
        running.address = listening["message"].as_str().unwrap().rsplit('/').next().unwrap().parse().unwrap();
        running
    }

    /// Waits for a line of the log.
    pub(super) fn wait_for_event(&self, event: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = || self.log.lock().unwrap().iter().find(|line| line["event"] == event && fits(line)).cloned();
        wait_for(&format!("the event {event}"), found)
    }

    pub(super) fn has_event(&self, event: &str, fits: impl Fn(&Value) -> bool) -> bool {
        self.log.lock().unwrap().iter().any(|line| line["event"] == event && fits(line))
    }

    /// Every line of this event, in their order.
    pub(super) fn all(&self, event: &str) -> Vec<Value> {
        self.log.lock().unwrap().iter().filter(|line| line["event"] == event).cloned().collect()
    }

    pub(super) fn count(&self, event: &str, fits: impl Fn(&Value) -> bool) -> usize {
        self.all(event).iter().filter(|line| fits(line)).count()
    }

    /// The names of all events so far.
    pub(super) fn event_names(&self) -> std::collections::BTreeSet<String> {
        self.log.lock().unwrap().iter().filter_map(|line| line["event"].as_str().map(str::to_owned)).collect()
    }

    pub(super) fn events(&self, event: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|line| line["event"] == event).count()
    }

    pub(super) fn get(&self, path: &str, agent: &str) -> Answer {
        self.request("GET", path, &[("User-Agent", agent)])
    }

    pub(super) fn request(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let host = [("Host", "site.test")];
        let fields = host.iter().filter(|_| !fields.iter().any(|(name, _)| *name == "Host")).chain(fields);
        let fields: String = fields.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.send(format!("{method} {path} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n").as_bytes())
    }

    pub(super) fn send(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        Answer::parse(&answer)
    }

    #[cfg(unix)]
    pub(super) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// What the kernel says it holds in memory.
    #[cfg(target_os = "linux")]
    pub(super) fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops every thread; connections are still made, and nothing is answered.
    #[cfg(unix)]
    pub(super) fn freeze(&self) {
        self.signal("STOP");
        // The signal is taken when the process next runs, which may be after an answer. Where nothing tells, that is that.
        let tasks = PathBuf::from(format!("/proc/{}/task", self.child.id()));
        wait_for("a process that is stopped", || {
            let Ok(tasks) = fs::read_dir(&tasks) else { return Some(()) };
            let is_stopped = |task: fs::DirEntry| {
                let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
                stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
            };
            tasks.flatten().all(is_stopped).then_some(())
        });
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn wait_for_end(&mut self) -> ExitStatus {
        let child = &mut self.child;
        let mut ended = || child.try_wait().unwrap();
        let start = Instant::now();
        loop {
            if let Some(status) = ended() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "robotsd does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            let log = self.log.lock().unwrap();
            assert_eq!(log.iter().find_map(super::log_schema::disagreement), None);
        }
    }
}

/// A connection that is kept open for one request after another.
#[derive(Debug)]
pub(super) struct Kept {
    reader: BufReader<TcpStream>,
    host: String,
}

impl Kept {
    pub(super) fn open(address: SocketAddr, host: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::new(stream), host: host.to_owned() }
    }

    /// Status and body of the answer to one request; the body must have a length.
    pub(super) fn get(&mut self, path: &str, agent: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {agent}\r\n\r\n", self.host);
        self.reader.get_mut().write_all(request.as_bytes()).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(self.reader.read_line(&mut head).unwrap(), 0, "closed after {head:?}");
        }
        let answer = Answer::parse(head.as_bytes());
        let length = answer.field("content-length").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).unwrap();
        (answer.status, String::from_utf8(body).unwrap())
    }
}

/// An HTTP/1.1 response that was read to the end of its connection.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Self {
            status: status.unwrap_or_else(|| panic!("no response: {text:?}")),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Tells others to stop when it goes, also because a test has failed: who waits for them would wait for ever.
pub(super) struct StopAtEnd<'a>(pub(super) &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until a question has an answer.
pub(super) fn wait_for<T>(what: &str, answer: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Replaces a file in one step, as editors and deployments do: the new one is written beside it and renamed over it.
pub(super) fn replace_file(path: &Path, text: impl AsRef<[u8]>) {
    let aside = path.with_extension("new");
    fs::write(&aside, text).unwrap();
    fs::rename(aside, path).unwrap();
}

/// A path in the project, whose root is above this package.
pub(super) fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a package in a workspace").join(path)
}
