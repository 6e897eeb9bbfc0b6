//! The lists that are appended to a site's robots.txt: `[[site.robots.append]]`.

use std::path::{Path, PathBuf};

use toml::Spanned;
use tower_robots::source::fetch::FetchUrl;

use crate::config::{DocumentSettings, Fault, Faults, Placed, parsed, tables};

tables! {
    /// A part that is appended to a robots.txt.
    RawAppend {
        path: Option<Spanned<PathBuf>>,
        url: Option<Spanned<String>>,
        name: Option<Spanned<String>>,
        ca: Option<Spanned<PathBuf>>,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppendSettings {
    /// Title of the list, for a comment in the served robots.txt.
    pub(crate) title: String,
    pub(crate) source: AppendSource,
}

#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
pub(crate) enum AppendSource {
    #[display("{}", _0.display())]
    File(PathBuf),
    #[display("{}", _0.url)]
    Url(DocumentSettings),
}

/// Maximum number of appended lists per site.
const MAX_PARTS: usize = 16;

/// Maximum length of the name of an appended list, in characters.
const MAX_NAME_LENGTH: usize = 80;

const FOLDER: &str = "fragments";

pub(super) fn resolve(
    written: &[Spanned<RawAppend>],
    state_dir: Option<&Path>,
    folder: &Path,
    faults: &mut Faults,
) -> Option<Vec<AppendSettings>> {
    if let Some(further) = written.get(MAX_PARTS) {
        faults.push(
            further
                .fault(format!("a site may append at most {MAX_PARTS} lists: merge some of the lists into one file")),
        );
        return None;
    }
    let parts = faults.keep_all(written.iter().map(|part| resolve_part(part, state_dir, folder)))?;
    for (at, part) in parts.iter().enumerate() {
        if parts[..at].iter().any(|before| before.source == part.source) {
            faults.push(
                written[at]
                    .fault(format!("{source} is appended twice: remove one of the two entries", source = part.source)),
            );
            return None;
        }
        if parts[..at].iter().any(|before| before.title == part.title) {
            let message = format!(
                "two appended lists are called {title:?}: write a different name for one of them",
                title = part.title
            );
            faults.push(written[at].fault(message));
            return None;
        }
    }
    Some(parts)
}

fn resolve_part(part: &Spanned<RawAppend>, state_dir: Option<&Path>, folder: &Path) -> Result<AppendSettings, Fault> {
    let RawAppend { path, url, name, ca } = part.get_ref();
    let source = match (path, url) {
        (Some(path), None) if path.get_ref().as_os_str().is_empty() => {
            return Err(path.fault("the path is empty: write the path of the file to append"));
        }
        (Some(path), None) => AppendSource::File(folder.join(path.get_ref())),
        (None, Some(written)) => {
            let url: FetchUrl = parsed(written)?;
            let is_secure = written.get_ref().to_ascii_lowercase().starts_with("https:");
            if let Some(ca) = ca.as_ref().filter(|_| !is_secure) {
                return Err(ca.fault("\"ca\" requires a url that begins with \"https://\""));
            }
            AppendSource::Url(DocumentSettings::resolve(url, ca.as_ref(), state_dir, FOLDER, folder)?)
        }
        (Some(_), Some(url)) => {
            return Err(url.fault("an appended list cannot have both \"path\" and \"url\": remove one of the two keys"));
        }
        (None, None) => {
            return Err(
                part.fault("this entry does not say which list to append: write path = \"…\" or url = \"https://…\"")
            );
        }
    };
    if let (Some(ca), AppendSource::File(_)) = (ca, &source) {
        return Err(ca.fault("\"ca\" requires \"url\""));
    }
    let title = match (name, &source) {
        (Some(name), _) => {
            let text = name.get_ref();
            let is_name = !text.trim().is_empty() && text.chars().count() <= MAX_NAME_LENGTH;
            if !is_name || text.chars().any(char::is_control) {
                let message = format!(
                    "{text:?} is not a valid name: write up to {MAX_NAME_LENGTH} characters on one line, such as \"AI crawlers\""
                );
                return Err(name.fault(message));
            }
            text.clone()
        }
        // The title contains only the file name, because readers of the robots.txt need not know
        // the folder.
        (None, AppendSource::File(path)) => {
            path.file_name().map_or_else(|| "a file".to_owned(), |name| name.to_string_lossy().into_owned())
        }
        (None, AppendSource::Url(published)) => published.url.to_string(),
    };
    Ok(AppendSettings { title, source })
}
