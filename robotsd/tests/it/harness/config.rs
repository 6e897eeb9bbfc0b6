//! Builds a config from the parts that a test needs, with the files next to it.

use std::fmt::{self, Display};

use super::folder::{Folder, folder};
use super::process::Running;

/// A config with one listener on a free port, and the parts that a test adds.
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

    pub(crate) fn refusing() -> Self {
        Self::new().keys("mode = \"refuse\"")
    }

    /// Creates a config with the mode `refuse` and a decision listener for other proxies.
    pub(crate) fn deciding() -> Self {
        Self::refusing().listener("kind = \"decision\"")
    }

    /// Adds keys at the top, above all tables.
    pub(crate) fn keys(mut self, keys: impl Display) -> Self {
        self.keys += &format!("{keys}\n");
        self
    }

    /// Adds keys or tables to the listener.
    pub(crate) fn listener(mut self, keys: impl Display) -> Self {
        self.listener += &format!("{keys}\n");
        self
    }

    /// Adds tables at the end, or keys to the last table.
    pub(crate) fn tables(mut self, tables: impl Display) -> Self {
        self.tables += &format!("{tables}\n");
        self
    }

    /// Adds a site with these keys and tables.
    pub(crate) fn site(self, name: &str, keys: impl Display) -> Self {
        self.tables(format!("[[site]]\nname = {name:?}\n{keys}"))
    }

    /// Adds a site that serves the files in the folder, including its robots.txt.
    pub(crate) fn files_of(self, name: &str) -> Self {
        self.site(name, "root = \".\"")
    }

    /// Adds a site with an upstream. Its robots.txt is in the folder.
    pub(crate) fn upstream(self, name: &str, origin: impl Display) -> Self {
        self.site(name, format!("upstreams = [\"http://{origin}\"]\nrobots.path = \"robots.txt\""))
    }

    /// Adds an admin interface on a free port.
    pub(crate) fn admin(self) -> Self {
        self.tables("[admin]\naddress = \"127.0.0.1:0\"")
    }

    /// Adds an admin interface on a socket next to the config.
    pub(crate) fn admin_socket(self) -> Self {
        self.tables("[admin]\nsocket = \"admin.sock\"")
    }

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

    pub(crate) fn folder(&self) -> Folder {
        let folder = folder(&[("robotsd.toml", &self.to_string())]);
        for (name, content) in &self.files {
            folder.write(name, content);
        }
        folder
    }

    pub(crate) fn start(&self) -> (Folder, Running) {
        let folder = self.folder();
        let running = folder.start();
        (folder, running)
    }
}

impl Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, listener, tables, files: _ } = self;
        write!(f, "{keys}[[listener]]\naddress = \"127.0.0.1:0\"\n{listener}{tables}")
    }
}
