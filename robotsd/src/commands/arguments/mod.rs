//! Arguments that several commands take.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::input::named;
use crate::render::printable_path;
use crate::retrieval::is_url;

pub(super) mod site;
pub(super) mod site_hosts;

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
        let shown = printable_path(folder).to_string();
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
        self.refuse(path).map_err(|error| named(path, &error))
    }
}
