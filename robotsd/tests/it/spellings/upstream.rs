//! Starts the upstreams. They are real servers, each with the same files at the same paths.

use super::super::daemon::{Daemon, find, free_ports};
use crate::harness::*;

/// A kind of server that a site behind robotsd may have.
pub(super) struct Server {
    pub(super) name: &'static str,
    /// Programs in the order of their start. The last program listens on `{port}`, all others on
    /// `{helper}`.
    programs: &'static [Program],
    /// Files of `upstreams/`, and where they are put in the folder of the server.
    files: &'static [(&'static str, &'static str)],
    /// More placeholders in files and arguments, and their values.
    settings: &'static [(&'static str, &'static str)],
}

struct Program {
    name: &'static str,
    arguments: &'static [&'static str],
}

const NGINX: Program =
    program("nginx", &["-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off; pid nginx.pid;"]);

const NODE: &[(&str, &str)] = &[("node.js", "node.js")];

const fn node(way: &'static [&'static str]) -> Program {
    program("node", way)
}

const fn program(name: &'static str, arguments: &'static [&'static str]) -> Program {
    Program { name, arguments }
}

const fn server(
    name: &'static str,
    programs: &'static [Program],
    files: &'static [(&'static str, &'static str)],
) -> Server {
    Server { name, programs, files, settings: &[] }
}

/// Servers that start within a fraction of a second.
pub(super) const SERVERS: &[Server] = &[
    Server {
        name: "nginx",
        programs: &[NGINX],
        files: &[("nginx.conf", "nginx.conf")],
        settings: &[("merge_slashes", "on")],
    },
    Server {
        name: "nginx without merging",
        programs: &[NGINX],
        files: &[("nginx.conf", "nginx.conf")],
        settings: &[("merge_slashes", "off")],
    },
    server(
        "Caddy",
        &[program("caddy", &["run", "--config", "Caddyfile", "--adapter", "caddyfile"])],
        &[("Caddyfile", "Caddyfile")],
    ),
    server(
        "Apache",
        &[program("apache2", &["-d", "{files}", "-f", "apache.conf", "-DFOREGROUND"])],
        &[("apache.conf", "apache.conf")],
    ),
    server("Node, new URL", &[node(&["node.js", "url", "{port}", "{tree}"])], NODE),
    server("Node, url.parse", &[node(&["--no-deprecation", "node.js", "legacy", "{port}", "{tree}"])], NODE),
    server("Node, decoded path", &[node(&["node.js", "decode", "{port}", "{tree}"])], NODE),
    server("Node, decoded target", &[node(&["node.js", "whole", "{port}", "{tree}"])], NODE),
    server("Node, by segment", &[node(&["node.js", "match", "{port}", "{tree}"])], NODE),
    server("PHP, files", &[program("php", &["-S", "127.0.0.1:{port}", "-t", "{tree}"])], &[]),
    server(
        "PHP, parse_url",
        &[program("php", &["-S", "127.0.0.1:{port}", "-t", "{tree}", "router.php"])],
        &[("router.php", "router.php")],
    ),
    server(
        "PHP behind nginx",
        &[program("php-cgi", &["-b", "127.0.0.1:{helper}"]), NGINX],
        &[("nginx-php.conf", "nginx.conf"), ("front.php", "front.php")],
    ),
];

/// Servers that take seconds to start.
pub(super) const JAVA: &[Server] = &[
    server(
        "Tomcat",
        &[program("/usr/share/tomcat10/bin/catalina.sh", &["run"])],
        &[("tomcat-server.xml", "conf/server.xml"), ("tomcat-web.xml", "conf/web.xml")],
    ),
    server(
        "Jetty",
        &[program(
            "java",
            &[
                "-jar",
                "/usr/share/jetty9/start.jar",
                "jetty.home=/usr/share/jetty9",
                "jetty.base={files}",
                "--module=http,deploy",
                "jetty.http.host=127.0.0.1",
                "jetty.http.port={port}",
            ],
        )],
        &[("jetty.xml", "webapps/root.xml")],
    ),
];

impl Server {
    /// Returns an error that names what is missing, if the server cannot run on this machine.
    fn available(&self) -> Result<(), String> {
        for program in self.programs {
            find(program.name).map_err(|why| format!("{}: {why}", self.name))?;
            // A program may run a file from another package, which may not be installed.
            for argument in program.arguments.iter().filter(|argument| argument.starts_with("/usr/")) {
                if !Path::new(argument).is_file() {
                    return Err(format!("{}: {argument} is not there", self.name));
                }
            }
        }
        Ok(())
    }
}

pub(super) struct Upstream {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    _processes: Vec<Daemon>,
    _files: Folder,
}

/// Starts the available servers at the same time. In CI, all of them must be available.
pub(super) fn start(servers: &'static [Server], tree: &Path) -> Vec<Upstream> {
    let is_there = |server: &&Server| crate::programs::present(server.available()).is_some();
    let available: Vec<_> = servers.iter().filter(is_there).collect();
    // All ports are reserved at once, so that no two servers get the same port.
    let ports = free_ports(2 * available.len());
    let starting: Vec<_> = available
        .into_iter()
        .zip(ports.chunks(2))
        .map(|(server, ports)| {
            let (tree, ports) = (tree.to_owned(), ports.to_owned());
            thread::spawn(move || Upstream::start(server, &tree, ports))
        })
        .collect();
    starting.into_iter().map(|starting| starting.join().expect("see above")).collect()
}

impl Upstream {
    fn start(server: &Server, tree: &Path, mut ports: Vec<u16>) -> Self {
        // A free port may be taken before the server uses it. Then other ports are tried.
        for _ in 0..5 {
            let files = readable_folder();
            let (port, helper) = (ports[0], ports[1]);
            let fill = |text: &str| {
                let filled = text
                    .replace("{port}", &port.to_string())
                    .replace("{helper}", &helper.to_string())
                    .replace("{files}", files.path().to_str().unwrap())
                    .replace("{tree}", tree.to_str().unwrap());
                let settings = server.settings.iter();
                settings.fold(filled, |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
            };
            for (source, place) in server.files {
                let source = project("robotsd/tests/it/spellings/upstreams").join(source);
                files.write(place, fill(&fs::read_to_string(source).unwrap()));
            }
            let start = |program: &Program| {
                let mut command = Command::new(find(program.name).unwrap());
                command.args(program.arguments.iter().map(|argument| fill(argument)));
                command.env("HOME", files.path()).env("CATALINA_BASE", files.path());
                // Without this, php-cgi would end after 500 requests.
                Daemon::logging(command.env("PHP_FCGI_MAX_REQUESTS", "0"), &files)
            };
            let mut processes: Vec<_> = server.programs.iter().map(start).collect();
            let address = ([127, 0, 0, 1], port).into();
            let began = Instant::now();
            while began.elapsed() < PATIENCE && processes.iter_mut().all(Daemon::is_running) {
                if answers(address) {
                    return Self { name: server.name, address, _processes: processes, _files: files };
                }
                thread::sleep(Duration::from_millis(20));
            }
            println!("{}: {}", server.name, files.read("log"));
            ports = free_ports(2);
        }
        panic!("{} does not start", server.name);
    }
}

/// Creates a folder that servers can read even after they have given up their privileges.
pub(super) fn readable_folder() -> Folder {
    let folder = folder(&[]);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Reports whether a server serves a page for `/`. A server that is not ready yet may refuse the
/// request.
fn answers(address: SocketAddr) -> bool {
    let request = b"GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
    TcpStream::connect(address)
        .ok()
        .and_then(|stream| offer(stream, request))
        .is_some_and(|answer| answer.get(9..12).is_some_and(|status| status == b"200"))
}
