//! The parts that are appended to a robots.txt: `[[site.robots.append]]`.

use std::path::Path;

use toml::Spanned;
use tower_robots::source::fetch::{FetchUrl, UrlError};

use super::error::{Fault, Faults};
use super::settings::{AppendSettings, AppendSource};
use super::source;
use super::toml_tables::{RawAppend, RawConfig, RawSite};

/// Parts of one site.
const MOST: usize = 16;

/// Characters of a name.
const MOST_NAME: usize = 80;

/// The folder of the state directory in which fetched parts are kept.
const FOLDER: &str = "fragments";

pub(super) fn resolve(
    file: &RawConfig,
    site: &RawSite,
    folder: &Path,
    faults: &mut Faults,
) -> Option<Vec<AppendSettings>> {
    let written = &site.robots.append;
    if let Some(further) = written.get(MOST) {
        faults.push(Fault::new(
            further.span(),
            format!("a site has at most {MOST} parts to append: put some in one file"),
        ));
        return None;
    }
    let parts = faults.keep_all(written.iter().map(|part| resolve_part(file, part, folder)))?;
    for (at, part) in parts.iter().enumerate() {
        if parts[..at].iter().any(|before| before.source == part.source) {
            faults.push(Fault::new(written[at].span(), format!("{} is appended twice: leave one out", part.source)));
            return None;
        }
        if parts[..at].iter().any(|before| before.title == part.title) {
            let message = format!("another part is called {:?} too: give one of them a name", part.title);
            faults.push(Fault::new(written[at].span(), message));
            return None;
        }
    }
    Some(parts)
}

fn resolve_part(file: &RawConfig, part: &Spanned<RawAppend>, folder: &Path) -> Result<AppendSettings, Fault> {
    let RawAppend { path, url, name, ca } = part.get_ref();
    let source = match (path, url) {
        (Some(path), None) if path.get_ref().as_os_str().is_empty() => {
            return Err(Fault::new(path.span(), "the path of the file to append is empty"));
        }
        (Some(path), None) => AppendSource::File(folder.join(path.get_ref())),
        (None, Some(written)) => {
            let url: FetchUrl =
                written.get_ref().parse().map_err(|error: UrlError| Fault::new(written.span(), error.to_string()))?;
            let is_secure = written.get_ref().to_ascii_lowercase().starts_with("https:");
            if let Some(ca) = ca.as_ref().filter(|_| !is_secure) {
                return Err(Fault::new(ca.span(), "this is for TLS, and the url does not begin with \"https://\""));
            }
            let ca = ca.as_ref().map(|ca| source::authorities(ca, folder)).transpose()?;
            let saved_in = file.state_dir.as_ref().map(|state| folder.join(state.get_ref()).join(FOLDER));
            AppendSource::Url { url, ca, saved_in }
        }
        (Some(_), Some(url)) => return Err(Fault::new(url.span(), "a part has a path or a url, not both")),
        (None, None) => {
            let message = "there is nothing to append: write path = \"…\" or url = \"https://…\"";
            return Err(Fault::new(part.span(), message));
        }
    };
    if let (Some(ca), AppendSource::File(_)) = (ca, &source) {
        return Err(Fault::new(ca.span(), "ca goes with a url"));
    }
    let title = match (name, &source) {
        (Some(name), _) => {
            let text = name.get_ref();
            let is_name = !text.trim().is_empty() && text.chars().count() <= MOST_NAME;
            if !is_name || text.chars().any(char::is_control) {
                let message = format!(
                    "{text:?} is no name: write up to {MOST_NAME} characters in one line, such as \"AI crawlers\""
                );
                return Err(Fault::new(name.span(), message));
            }
            text.clone()
        }
        // Readers of the robots.txt need not know the folder.
        (None, AppendSource::File(path)) => {
            path.file_name().map_or_else(|| "a file".to_owned(), |name| name.to_string_lossy().into_owned())
        }
        (None, AppendSource::Url { url, .. }) => url.to_string(),
    };
    Ok(AppendSettings { title, source })
}
