//! A temporary folder with a config and a site's files, in which robotsd runs.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::process::{Ended, Running, robotsd, run};

/// A temporary folder, removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

pub(crate) fn folder(files: &[(&str, &str)]) -> Folder {
    let folder = Folder(tempfile::tempdir().unwrap());
    for (name, text) in files {
        folder.write(name, text);
    }
    folder
}

/// Creates a folder with these files, and starts the proxy with its `robotsd.toml`.
pub(crate) fn serving(files: &[(&str, &str)]) -> (Folder, Running) {
    let folder = folder(files);
    let running = folder.start();
    (folder, running)
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn replace(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        super::process::replace_file(&self.at(name), text);
    }

    pub(crate) fn configure(&self, config: impl Display) {
        self.replace("robotsd.toml", config.to_string());
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    pub(crate) fn remove(&self, name: impl AsRef<Path>) {
        fs::remove_file(self.at(name)).unwrap();
    }

    pub(crate) fn robotsd(&self) -> Command {
        let mut command = robotsd();
        command.current_dir(self.path());
        command
    }

    pub(crate) fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ended {
        run(self.robotsd().args(arguments))
    }

    /// Runs a command. The path of this folder's config is added as its last argument.
    pub(crate) fn configured(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ended {
        run(robotsd().args(arguments).arg(self.at("robotsd.toml")))
    }

    /// Runs a command with this folder's config.
    pub(crate) fn with_config(&self, arguments: &[&str]) -> Ended {
        self.run(arguments.iter().chain(&["--config", "robotsd.toml"]))
    }

    /// Starts the proxy with `robotsd.toml`. Its listener must have port 0.
    pub(crate) fn start(&self) -> Running {
        Running::start_with(&self.at("robotsd.toml"))
    }

    /// Creates a command that starts the proxy with `robotsd.toml`.
    pub(crate) fn serve(&self) -> Command {
        let mut command = robotsd();
        command.args(["serve", "--config"]).arg(self.at("robotsd.toml"));
        command
    }
}
