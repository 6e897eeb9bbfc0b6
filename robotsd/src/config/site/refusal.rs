//! The settings of a site's response to refused requests. The template is read together with the
//! config. An error in the template is an error of the config.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::StatusCode;
use http::header::HeaderValue;
use toml::Spanned;

use crate::config::{ConfigError, Fault, Placed, tables};
use crate::files;
use crate::refusal::{Contact, MAX_TEMPLATE, REFUSAL_STATUSES, RefusalPage, Template, TemplateFormat};

tables! {
    /// The response to refused requests.
    RawRefusal {
        file: Option<Spanned<PathBuf>>,
        status: Option<Spanned<u16>>,
        language: Option<Spanned<String>>,
        contact: Option<Spanned<String>>,
    }
}

/// Resolves a site's response to refused requests. `None` if the site uses the default response.
///
/// The position of an error in the template is in the template itself. `in_config` adds the
/// position in the config to any other error.
pub(in crate::config) fn resolve(
    raw: &RawRefusal,
    folder: &Path,
    in_config: impl Fn(Fault) -> ConfigError,
) -> Result<Option<Arc<RefusalPage>>, ConfigError> {
    let status = raw.status.as_ref().map_or(Ok(StatusCode::FORBIDDEN), status).map_err(&in_config)?;
    let language = raw.language.as_ref().map(language).transpose().map_err(&in_config)?;
    if let (None, Some(unused)) = (&raw.file, raw.language.as_ref().or(raw.contact.as_ref())) {
        return Err(in_config(unused.fault(
            "\"language\" and \"contact\" have an effect only with \"file\", because they are for a template",
        )));
    }
    let Some(file) = &raw.file else {
        let page = RefusalPage { status, file: None, template: None, language: None, contact: None };
        return Ok((status != StatusCode::FORBIDDEN).then(|| Arc::new(page)));
    };
    let place = folder.join(file.get_ref());
    let extension = place.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let Some(format) = TemplateFormat::of_extension(extension) else {
        let message = format!(
            "{file:?} is not a template: its name must end in .html or .txt",
            file = file.get_ref().display().to_string()
        );
        return Err(in_config(file.fault(message)));
    };
    let page = read(&place).map_err(|error| in_config(file.fault(format!("{}: {error}", place.display()))))?;
    let contact = if raw.contact.is_some() { Contact::Given } else { Contact::Missing };
    let template = Template::parse(&page, format, contact)
        .map_err(|error| Fault::new(error.span, error.message).at(&place, &page))?;
    let contact = raw.contact.as_ref().map(|contact| contact.get_ref().clone());
    Ok(Some(Arc::new(RefusalPage { status, file: Some(place), template: Some(template), language, contact })))
}

fn status(status: &Spanned<u16>) -> Result<StatusCode, Fault> {
    let known = |known: &StatusCode| known.as_u16() == *status.get_ref();
    REFUSAL_STATUSES.into_iter().find(known).ok_or_else(|| {
        let all: Vec<_> = REFUSAL_STATUSES.iter().map(|status| status.as_str().to_owned()).collect();
        status.fault(format!(
            "{status} is not allowed as the status of refusals: write one of {known}",
            status = status.get_ref(),
            known = all.join(", ")
        ))
    })
}

/// Checks the syntax of a language tag (RFC 5646): `de`, `pt-BR`.
fn language(language: &Spanned<String>) -> Result<HeaderValue, Fault> {
    let mut parts = language.get_ref().split('-');
    let first =
        parts.next().is_some_and(|first| first.bytes().all(|byte| byte.is_ascii_alphabetic()) && first.len() > 1);
    let is_part = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_tag = first && language.get_ref().split('-').all(is_part);
    HeaderValue::from_str(language.get_ref()).ok().filter(|_| is_tag).ok_or_else(|| {
        language.fault(format!(
            "{language:?} is not a language tag: write one such as \"de\" or \"pt-BR\"",
            language = language.get_ref()
        ))
    })
}

/// Reads a template from its file.
fn read(path: &Path) -> Result<String, String> {
    let (bytes, _) = files::read_at_most(path, MAX_TEMPLATE as u64).map_err(|error| error.to_string())?;
    if bytes.len() > MAX_TEMPLATE {
        return Err(format!("the template is larger than {limit} KiB", limit = MAX_TEMPLATE / 1024));
    }
    let text = String::from_utf8(bytes).map_err(|_| "the template is not UTF-8: save it as UTF-8")?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
