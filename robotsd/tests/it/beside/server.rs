//! Runs a server with its files from `config/beside`, in front of a site and next to robotsd.

use super::super::daemon::{Daemon, find, free_ports};
use super::site;
use crate::harness::*;

/// A server that `config/beside` has files for.
pub(super) struct Server {
    pub(super) name: &'static str,
    program: &'static Program,
    /// Paths of the files in the project. They are copied to one folder. Files from a subfolder of
    /// `config/beside` are copied to one subfolder. The program is started with the first file as
    /// its config.
    files: &'static [&'static str],
}

/// How to run the server in its folder. In arguments, `CONFIG` represents the config, and `FOLDER`
/// the folder.
struct Program {
    /// Where the program is: in `PATH`, or at a path in the folder that `ROBOTSD_BESIDE_BIN` names.
    place: Place,
    version: &'static str,
    arguments: &'static str,
    /// Command that only checks the files.
    check: &'static str,
}

/// In arguments, `+` represents a space within one argument.
const NGINX: Program = Program {
    place: Place::Path("nginx"),
    version: "-v",
    arguments: "-p . -c CONFIG -e stderr -g daemon+off;+pid+nginx.pid;",
    check: "-t -q -p . -c CONFIG -e stderr -g pid+nginx.pid;",
};

const HAPROXY: Program =
    Program { place: Place::Path("haproxy"), version: "-v", arguments: "-db -f CONFIG", check: "-c -f CONFIG" };

const CADDY: Program = Program {
    place: Place::Path("caddy"),
    version: "version",
    arguments: "run --config CONFIG --adapter caddyfile",
    check: "validate --config CONFIG --adapter caddyfile",
};

const ENVOY: Program = Program {
    place: Place::Beside("envoy/_bin/envoy"),
    version: "--version",
    arguments: "-c CONFIG --concurrency 1 --disable-hot-restart -l warn",
    check: "--mode validate -c CONFIG -l warn",
};

const TRAEFIK: Program = Program {
    place: Place::Beside("bin/traefik"),
    version: "version",
    arguments: "--configFile=CONFIG",
    check: "version",
};

/// Varnish's file does not contain the address for clients, so the address is an argument. The path
/// of the file is absolute, because Varnish searches relative paths in its system folders.
const VARNISH: Program = Program {
    place: Place::Path("varnishd"),
    version: "-V",
    arguments: "-F -j none -n FOLDER/work -s malloc,16m -a 127.0.0.1:8080 -f FOLDER/CONFIG",
    check: "-C -j none -n FOLDER/checked -f FOLDER/CONFIG",
};

const fn server(name: &'static str, program: &'static Program, files: &'static [&'static str]) -> Server {
    Server { name, program, files }
}

enum Place {
    Path(&'static str),
    Beside(&'static str),
}

pub(super) const SERVERS: &[Server] = &[
    server(
        "nginx",
        &NGINX,
        &[
            "config/beside/nginx.conf",
            "config/beside/nginx/robotsd-http.conf",
            "config/beside/nginx/robotsd-server.conf",
            "config/beside/nginx/robotsd-location.conf",
        ],
    ),
    server("HAProxy", &HAPROXY, &["config/beside/haproxy.cfg", "config/beside/robotsd.lua"]),
    server("HAProxy, SPOE", &HAPROXY, &["config/beside/haproxy-spoe.cfg", "config/beside/robotsd-spoe.conf"]),
    server("Caddy 2.6", &CADDY, &["config/beside/Caddyfile"]),
    server("Caddy 2.11", &Program { place: Place::Beside("bin/caddy"), ..CADDY }, &["config/beside/Caddyfile"]),
    server("Traefik", &TRAEFIK, &["config/beside/traefik.yaml", "config/beside/traefik-dynamic.yaml"]),
    server("Envoy", &ENVOY, &["config/beside/envoy.yaml"]),
    server("Envoy, gRPC", &ENVOY, &["config/beside/envoy-grpc.yaml"]),
    server("Varnish", &VARNISH, &["config/beside/varnish.vcl"]),
    server("ingress-nginx", &NGINX, &["robotsd/tests/it/beside/ingress-nginx.conf"]),
];

/// An nginx with sites that existed before robotsd was installed.
pub(super) const VHOSTS: Server = server(
    "nginx with sites of its own",
    &NGINX,
    &[
        "robotsd/tests/it/beside/vhosts.conf",
        "robotsd/tests/it/beside/vhosts-passwords",
        "config/beside/nginx/robotsd-http.conf",
        "config/beside/nginx/robotsd-server.conf",
        "config/beside/nginx/robotsd-location.conf",
    ],
);

/// An nginx with sites in two forms: with robotsd and without it.
pub(super) const LAYOUTS: Server = server(
    "nginx with sites in two forms",
    &NGINX,
    &[
        "robotsd/tests/it/beside/layouts.conf",
        "robotsd/tests/it/beside/layouts.diff",
        "robotsd/tests/it/beside/vhosts-passwords",
        "config/beside/nginx/robotsd-http.conf",
        "config/beside/nginx/robotsd-server.conf",
        "config/beside/nginx/robotsd-location.conf",
        "config/beside/nginx/robotsd-in-place.conf",
    ],
);

impl Server {
    /// Returns the path of the program, or the reason why it is not available.
    pub(super) fn find(&self) -> Result<PathBuf, String> {
        match self.program.place {
            Place::Path(name) => find(name),
            Place::Beside(path) => {
                let folder = std::env::var_os("ROBOTSD_BESIDE_BIN").ok_or("ROBOTSD_BESIDE_BIN is not set")?;
                let program = Path::new(&folder).join(path);
                if program.is_file() { Ok(program) } else { Err(format!("{} is not there", program.display())) }
            }
        }
    }
}

/// The running server, robotsd and site of a scene.
pub(super) struct Stage {
    _server: Daemon,
    pub(super) robotsd_folder: Folder,
    version: String,
    address: SocketAddr,
    pub(super) robotsd: Running,
    folder: Folder,
}

impl Stage {
    /// Starts the site, robotsd and the server, with additional text in robotsd's config. `adapt`
    /// changes that config and the server's files. The server waits up to a minute for robotsd, so
    /// that no request passes because the machine is busy.
    pub(super) fn set(server: &Server, program: &Path, config: &str, adapt: &dyn Fn(String) -> String) -> Self {
        Self::set_as(server, program, config, adapt, &patient)
    }

    /// Like [`Self::set`], but with the timeouts of the shipped files, for scenes in which robotsd
    /// hangs or is down.
    pub(super) fn set_as_shipped(server: &Server, program: &Path, adapt: &dyn Fn(String) -> String) -> Self {
        Self::set_as(server, program, "", adapt, &|text| text)
    }

    fn set_as(
        server: &Server,
        program: &Path,
        config: &str,
        adapt: &dyn Fn(String) -> String,
        set_times: &dyn Fn(String) -> String,
    ) -> Self {
        let version = run(Command::new(program).arg(server.program.version)).said();
        let version = version.lines().map(str::trim).filter(|line| !line.is_empty()).take(2).collect::<Vec<_>>();
        let (robotsd, robotsd_folder) = beside(config, adapt);
        let site = site::start().address;
        // Another program may take a free port before the server uses it. In this case, the server
        // is started with other ports.
        for _ in 0..10 {
            let folder = folder(&[]);
            let [front, helper] = free_ports(2)[..] else { unreachable!() };
            for name in server.files {
                let file = project(name);
                let text = set_times(adapt(fs::read_to_string(&file).unwrap()));
                let text = text
                    .replace(":8080", &format!(":{front}"))
                    .replace("port_value: 8080", &format!("port_value: {front}"))
                    .replace(":9181", &format!(":{helper}"))
                    .replace("\"127.0.0.1\", 9180", &format!("\"127.0.0.1\", {}", robotsd.address.port()))
                    .replace(":9180", &format!(":{}", robotsd.address.port()))
                    .replace("port_value: 9180", &format!("port_value: {}", robotsd.address.port()))
                    .replace(".port = \"9180\"", &format!(".port = \"{}\"", robotsd.address.port()))
                    .replace(".port = \"3000\"", &format!(".port = \"{}\"", site.port()))
                    .replace(":3000", &format!(":{}", site.port()))
                    .replace("port_value: 3000", &format!("port_value: {}", site.port()));
                let beside = name.strip_prefix("config/beside/").map(Path::new);
                folder.write(beside.unwrap_or(file.file_name().unwrap().as_ref()), text);
            }
            let whole = folder.path().display().to_string();
            let config = Path::new(server.files[0]).file_name().unwrap().to_str().unwrap();
            let with = |arguments: &str| {
                let filled = |argument: &str| {
                    let argument = argument.replace(":8080", &format!(":{front}")).replace("FOLDER", &whole);
                    argument.replace("CONFIG", config).replace('+', " ")
                };
                let mut command = Command::new(program);
                command.args(arguments.split(' ').map(filled)).current_dir(folder.path()).env("HOME", folder.path());
                command
            };
            let checked = run(&mut with(server.program.check));
            assert!(checked.code == Some(0), "{}: {}", server.name, checked.error);
            let mut process = Daemon::logging(&mut with(server.program.arguments), &folder);
            let address = ([127, 0, 0, 1], front).into();
            // The server may respond with errors until it has found the site.
            let request = b"GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
            if process.comes_to(|| try_send(address, request).is_some_and(|bytes| Answer::parse(&bytes).status == 200))
            {
                let version = version.join(", ");
                return Self { _server: process, robotsd_folder, version, address, robotsd, folder };
            }
            println!("{}: {}", server.name, folder.read("log"));
        }
        panic!("{} does not start", server.name);
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Sends a request with these fields in addition to `Host`, and returns the response.
    pub(super) fn ask(&self, method: &str, target: &[u8], fields: &[(&str, &[u8])], body: &str) -> Answer {
        self.send(&request(method, "site.test", target, fields, body))
    }

    /// Like [`Self::ask`], but connects from this address of the machine.
    pub(super) fn ask_from(&self, address: [u8; 4], target: &[u8], fields: &[(&str, &[u8])]) -> Answer {
        self.ask_host_from(address, "site.test", target, fields)
    }

    /// Like [`Self::ask_from`], but for another host.
    pub(super) fn ask_host_from(
        &self,
        address: [u8; 4],
        host: &str,
        target: &[u8],
        fields: &[(&str, &[u8])],
    ) -> Answer {
        let stream = connect_from(address, self.address).unwrap();
        Answer::parse(&offer(stream, request("GET", host, target, fields, "")).expect("an answer"))
    }

    /// Sends bytes unchanged, and returns the response.
    pub(super) fn send(&self, request: &[u8]) -> Answer {
        Answer::parse(&self.send_raw(request))
    }

    /// Sends bytes unchanged, and returns the response as bytes.
    pub(super) fn send_raw(&self, request: &[u8]) -> Vec<u8> {
        try_send(self.address, request).unwrap_or_else(|| panic!("no answer: {}", self.log()))
    }

    /// Sends bytes unchanged to a server that may not respond within two seconds. Stops reading at
    /// the end of a response whose length is known, because some servers keep the connection open:
    /// Envoy for a second after a request that it rejects, nginx after a request for another
    /// protocol.
    pub(super) fn offer(&self, request: &[u8]) -> Option<Answer> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        stream.write_all(request).ok()?;
        let (mut bytes, mut room) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = stream.read(&mut room) {
            bytes.extend_from_slice(&room[..read]);
            if is_whole(&bytes) {
                break;
            }
        }
        bytes.starts_with(b"HTTP/1.").then(|| Answer::parse(&bytes))
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.at("log")).unwrap_or_default()
    }
}

/// Sets the timeouts in a server's file to a minute, and makes its health checks tolerate 1000
/// failures.
fn patient(text: String) -> String {
    let times = [
        ("250ms", "60s"),
        ("0.25s", "60s"),
        ("patience = 0.25", "patience = 60"),
        ("timeout 1s;", "timeout 60s;"),
        (" max_fails=2", " max_fails=1000"),
        (" fall 2", " fall 1000"),
    ];
    times.into_iter().fold(text, |text, (shipped, here)| text.replace(shipped, here))
}

/// Reports whether a response states the length of its body, and is complete.
fn is_whole(bytes: &[u8]) -> bool {
    let end = bytes.windows(4).position(|end| end == b"\r\n\r\n");
    end.is_some_and(|end| {
        let length = Answer::parse(&bytes[..end]).field("content-length").and_then(|length| length.parse().ok());
        length.is_some_and(|length: usize| bytes.len() >= end + 4 + length)
    })
}

fn request(method: &str, host: &str, target: &[u8], fields: &[(&str, &[u8])], body: &str) -> Vec<u8> {
    let mut request = [method.as_bytes(), b" ", target, b" HTTP/1.1\r\nHost: ", host.as_bytes(), b"\r\n"].concat();
    for (name, value) in fields {
        request.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    if !body.is_empty() {
        request.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    request.extend_from_slice(b"Connection: close\r\n\r\n");
    request.extend_from_slice(body.as_bytes());
    request
}

/// Starts robotsd for another proxy, in the mode `refuse`. `more` is appended to the shipped
/// config. The port is reserved, so that after a kill no process of another test gets the proxy's
/// requests.
fn beside(more: &str, adapt: &dyn Fn(String) -> String) -> (Running, Folder) {
    let mut config = adapt(fs::read_to_string(project("config/beside/robotsd.toml")).unwrap());
    let address = free().to_string();
    for (shipped, here) in [
        ("mode = \"observe\"", "mode = \"refuse\""),
        ("grace = \"24h\"", "grace = \"0s\""),
        ("/var/lib/robotsd", "state"),
        ("127.0.0.1:9180", &*address),
        ("127.0.0.1:9145", "127.0.0.1:0"),
    ] {
        assert!(config.contains(shipped), "{shipped}");
        config = config.replace(shipped, here);
    }
    serving_text(&(config + super::scene::EXEMPT + more), super::scene::ROBOTS)
}

fn try_send(address: SocketAddr, request: &[u8]) -> Option<Vec<u8>> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    offer(stream, request)
}

/// Starts robotsd with a config that the caller has written.
pub(super) fn serving_text(config: &str, robots: &str) -> (Running, Folder) {
    let folder = folder(&[("robotsd.toml", config), ("robots.txt", robots)]);
    (folder.start(), folder)
}
