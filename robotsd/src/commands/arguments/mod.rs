//! Arguments that several commands share: `--within` limits which files a command reads, and
//! [`SiteHosts`] selects the requests to one site of a config.

use std::path::{Path, PathBuf};
use std::{fs, io};

use tower_robots::source::HostMap;

use crate::config::{Config, SiteConfig, host_patterns, owners};
use crate::fetch::is_url;
use crate::input::named;
use crate::names::quoted_list;
use crate::render::printable_path;
use crate::report::is_of;

pub(super) mod site;

/// Folder with the internal files of version control, including credentials.
const VERSION_CONTROL: &str = ".git";

// Arguments that restrict which files a command reads, for commands that read untrusted files. A
// symbolic link among these files may point to a secret file on this machine, and an error message
// would then show a line of that file. A URL may point to a server in the network of this machine.
#[derive(Debug, Default, clap::Args)]
pub(in crate::commands) struct WithinArgs {
    /// Read only files in this folder: no link that leads out of it, nothing in its .git, and no
    /// URL
    ///
    /// Use this option for files that others wrote, such as the files of a pull request. The option
    /// applies to every file on the command line, and to files that are found next to these files.
    /// Files that a config names may be anywhere.
    #[arg(long, value_name = "FOLDER")]
    within: Option<PathBuf>,
}

impl WithinArgs {
    /// Returns an error for a URL, for a file outside the folder of `--within`, or for a file in a
    /// `.git` folder. The error does not contain the URL or path.
    pub(in crate::commands) fn check_path(&self, path: &Path) -> io::Result<()> {
        let Some(folder) = &self.within else { return Ok(()) };
        if path == Path::new("-") {
            return Ok(());
        }
        let shown = printable_path(folder).to_string();
        let refusal = |fault: &str| {
            let message = format!("{fault}, but --within allows only files in {shown}: specify a file in that folder");
            io::Error::new(io::ErrorKind::PermissionDenied, message)
        };
        if path.to_str().is_some_and(is_url) {
            return Err(refusal("this is a URL"));
        }
        let top = fs::canonicalize(folder)
            .map_err(|error| io::Error::new(error.kind(), format!("--within {shown}: {error}")))?;
        match fs::canonicalize(path)?.strip_prefix(&top) {
            Ok(inside) if inside.iter().any(|name| name == VERSION_CONTROL) => {
                Err(refusal("this path leads into a .git folder"))
            }
            Ok(_) => Ok(()),
            Err(_) => Err(refusal("this path leads to another folder")),
        }
    }

    /// Like [`check_path`](Self::check_path), but the error contains the path.
    pub(in crate::commands) fn check_path_named(&self, path: &Path) -> io::Result<()> {
        self.check_path(path).map_err(|error| named(path, &error))
    }
}

/// The hosts of one site of a config. A host belongs to the site with the most specific matching
/// pattern, as on the server. A host that matches no pattern belongs to the site that serves all
/// other hosts.
#[derive(Clone, Debug)]
pub(in crate::commands) struct SiteHosts {
    pub(in crate::commands) site: String,
    /// Name of the site in robotsd's log; `NAME/HOST` if the site has one robots.txt per host.
    logged: String,
    sites: Vec<String>,
    patterns: Vec<String>,
    /// Host maps, each with the value that it must return for a host of the selection: the name of
    /// the selected site or file. The first map assigns hosts to the sites of the config. If the
    /// selected site has one file per host, a second map assigns hosts to these files.
    owners: Vec<(HostMap<String>, String)>,
}

impl SiteHosts {
    fn of(config: &Config, site: &SiteConfig) -> Self {
        let all =
            config.sites.iter().flat_map(|site| host_patterns(&site.hosts).map(|pattern| (pattern, site.name.clone())));
        let owners = vec![(owners(all), site.name.clone())];
        Self {
            site: site.name.clone(),
            logged: site.name.clone(),
            sites: config.sites.iter().map(|site| site.name.clone()).collect(),
            patterns: host_patterns(&site.hosts).map(str::to_owned).collect(),
            owners,
        }
    }

    /// Restricts the selection to hosts with the same robots.txt as `host`. `files` contains the
    /// names of the site's files, which are host patterns.
    fn restricted_to_file_of(mut self, host: &str, files: &[String]) -> Self {
        let files = owners(files.iter().map(|pattern| (pattern.as_str(), pattern.clone())));
        if let Some(file) = files.get(host).cloned() {
            self.patterns = vec![file.clone()];
            self.logged = format!("{}/{file}", self.site);
            self.owners.push((files, file));
        }
        self
    }

    /// Reports whether a request to `host` is for the site. `host` may contain a port, and is empty
    /// if the request has no host.
    pub(in crate::commands) fn contains_host(&self, host: &[u8]) -> bool {
        self.owners.iter().all(|(owners, meant)| owners.get(host) == Some(meant))
    }

    /// Reports whether a line of robotsd's log with this site name is about the selected site.
    /// `None` if the config has no site with this name.
    pub(in crate::commands) fn matches_log_name(&self, name: &[u8]) -> Option<bool> {
        let name = std::str::from_utf8(name).ok()?;
        self.sites.iter().any(|site| is_of(site, name)).then(|| is_of(&self.logged, name))
    }

    pub(in crate::commands) fn has_every_host(&self) -> bool {
        self.owners.iter().all(|(owners, _)| owners.len() == 1 && owners.any().is_some())
    }

    pub(in crate::commands) fn list(&self) -> String {
        quoted_list(self.patterns.iter())
    }
}

fn sites_of(config: &Config) -> HostMap<&SiteConfig> {
    owners(config.sites.iter().flat_map(|site| host_patterns(&site.hosts).map(move |pattern| (pattern, site))))
}
