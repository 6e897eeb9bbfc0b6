//! A config, written as far as a test cares, and the files beside it.

use std::fmt::{self, Display};

use super::folder::{Folder, folder};
use super::process::Running;

/// One listener on a free port, and the additions of a test.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    keys: String,
    listener: String,
    tables: String,
    files: Vec<(String, Vec<u8>)>,
}

impl Config {
    pub(crate) const fn new() -> Self {
        Self { keys: String::new(), listener: String::new(), tables: String::new(), files: Vec::new() }
    }

    /// A request that robots.txt disallows is refused.
    pub(crate) fn refusing() -> Self {
        Self::new().keys("mode = \"refuse\"")
    }

    /// It refuses, and answers questions of other proxies.
    pub(crate) fn deciding() -> Self {
        Self::refusing().listener("kind = \"decision\"")
    }

    /// Keys above all tables.
    pub(crate) fn keys(mut self, keys: impl Display) -> Self {
        self.keys += &format!("{keys}\n");
        self
    }

    /// Keys of the listener, and tables of its own.
    pub(crate) fn listener(mut self, keys: impl Display) -> Self {
        self.listener += &format!("{keys}\n");
        self
    }

    /// Tables below those there are, or keys of the last one.
    pub(crate) fn tables(mut self, tables: impl Display) -> Self {
        self.tables += &format!("{tables}\n");
        self
    }

    /// A site with these keys, and tables of its own.
    pub(crate) fn site(self, name: &str, keys: impl Display) -> Self {
        self.tables(format!("[[site]]\nname = {name:?}\n{keys}"))
    }

    /// A site of the files in the folder, among them its robots.txt.
    pub(crate) fn files_of(self, name: &str) -> Self {
        self.site(name, "root = \".\"")
    }

    /// A site in front of an upstream; its robots.txt is in the folder.
    pub(crate) fn upstream(self, name: &str, origin: impl Display) -> Self {
        self.site(name, format!("upstreams = [\"http://{origin}\"]\nrobots.path = \"robots.txt\""))
    }

    /// An admin interface on a free port.
    pub(crate) fn admin(self) -> Self {
        self.tables("[admin]\naddress = \"127.0.0.1:0\"")
    }

    /// One on a socket beside the config.
    pub(crate) fn admin_socket(self) -> Self {
        self.tables("[admin]\nsocket = \"admin.sock\"")
    }

    /// Every request is a line of the log.
    pub(crate) fn log_requests(self) -> Self {
        self.tables("[log]\naccess = \"json\"")
    }

    pub(crate) fn file(mut self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.files.push((name.to_owned(), content.as_ref().to_vec()));
        self
    }

    pub(crate) fn robots(self, text: impl AsRef<[u8]>) -> Self {
        self.file("robots.txt", text)
    }

    /// A folder with the config and the files.
    pub(crate) fn folder(&self) -> Folder {
        let folder = folder(&[("robotsd.toml", &self.to_string())]);
        for (name, content) in &self.files {
            folder.write(name, content);
        }
        folder
    }

    /// The folder, and the proxy that serves it.
    pub(crate) fn start(&self) -> (Folder, Running) {
        let folder = self.folder();
        let running = folder.start();
        (folder, running)
    }
}

/// The text of the config.
impl Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, listener, tables, files: _ } = self;
        write!(f, "{keys}[[listener]]\naddress = \"127.0.0.1:0\"\n{listener}{tables}")
    }
}
