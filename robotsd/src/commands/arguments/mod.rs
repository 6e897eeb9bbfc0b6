//! Arguments that several commands take.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use crate::render::printable;
use crate::retrieval::{ConnectTo, RetrievalSettings, is_url};

pub(super) mod site;
pub(super) mod site_hosts;

/// The least and the most time for a request.
const TIMES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(600));

/// What the options stand under in `--help`: as the next heading of a struct it would stay for the options behind it.
const HEADING: &str = "Fetching a robots.txt that is named by its URL";

#[derive(Debug, clap::Args)]
struct RetrievalArgs {
    /// How long a request may take, such as 10s; redirects are requests of their own, and all together take four times as long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time, hide_short_help = true, help_heading = HEADING)]
    timeout: Duration,

    /// Connect to another address for this host and port, such as example.com:443:192.0.2.7:443: a server that the name does
    /// not lead to yet; may be repeated
    ///
    /// The name stays that of the URL, in the request and for the certificate. A part that is empty is any, or the same.
    #[arg(long, value_name = "HOST:PORT:ADDRESS:PORT", hide_short_help = true, help_heading = HEADING)]
    connect_to: Vec<ConnectTo>,

    /// Trust the certificate authorities of this file (PEM) too
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = HEADING)]
    cacert: Option<PathBuf>,
}

fn time(text: &str) -> Result<Duration, String> {
    let (least, most) = TIMES;
    match humantime::parse_duration(text) {
        Ok(time) if (least..=most).contains(&time) => Ok(time),
        _ => Err("write a time from 100ms to 10m, such as 30s".to_owned()),
    }
}

impl RetrievalArgs {
    fn settings(&self) -> RetrievalSettings {
        RetrievalSettings { within: self.timeout, connect_to: self.connect_to.clone(), trusted: self.cacert.clone() }
    }
}

/// Holds what version control keeps of itself, and of its credentials.
const VERSION_CONTROL: &str = ".git";

// What a command may read where others wrote the files. A link of such files may lead to the keys of the machine, whose lines an
// error would show, and a URL into its network.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct WithinArgs {
    /// Read nothing but what is in this folder: no link that leads out of it, nothing of its .git, and no URL
    ///
    /// For files that others wrote, such as those of a pull request. It holds for every file that is named here or is found
    /// beside one; what a config names is read wherever it is.
    #[arg(long, value_name = "FOLDER")]
    within: Option<PathBuf>,
}

impl WithinArgs {
    /// Refuses a file that is elsewhere, and a URL. The error names neither.
    pub(in crate::commands) fn refuse(&self, path: &Path) -> io::Result<()> {
        let Some(folder) = &self.within else { return Ok(()) };
        if path == Path::new("-") {
            return Ok(());
        }
        let shown = printable(folder.as_os_str().as_encoded_bytes()).to_string();
        let refusal = |fault: &str| {
            let message = format!("{fault}, and --within {shown} keeps to that folder: name a file that is in it");
            io::Error::new(io::ErrorKind::PermissionDenied, message)
        };
        if path.to_str().is_some_and(is_url) {
            return Err(refusal("this is a URL"));
        }
        let top = fs::canonicalize(folder)
            .map_err(|error| io::Error::new(error.kind(), format!("--within {shown}: {error}")))?;
        match fs::canonicalize(path)?.strip_prefix(&top) {
            Ok(inside) if inside.iter().any(|name| name == VERSION_CONTROL) => Err(refusal("this leads into a .git")),
            Ok(_) => Ok(()),
            Err(_) => Err(refusal("this leads to another place")),
        }
    }

    /// As [`refuse`](Self::refuse), with an error that names the file.
    pub(in crate::commands) fn refuse_named(&self, path: &Path) -> io::Result<()> {
        self.refuse(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", printable(path.as_os_str().as_encoded_bytes())))
        })
    }
}
