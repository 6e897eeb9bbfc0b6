//! The settings of a site's response to refused requests. The template is read together with the
//! config, so an error in the template makes the config invalid.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use toml::Spanned;
use tower_robots::agent::Category;
use tower_robots::internals::{RefusalCase, RefusalTable, is_of_caches, is_of_connection, is_of_content, plain_name};
use tower_robots::policy::Crawlers;
use tower_robots::rules::PathPattern;

use crate::config::{ConfigError, Fault, Faults, ListenerKind, Placed, RawListener, bound, tables, words};
use crate::files;
use crate::refusal::{
    CaseAnswer, CaseServer, Contact, MAX_TEMPLATE, REFUSAL_STATUSES, RefusalPage, SiteRefusals, Template,
    TemplateFormat,
};
use crate::selector::Selector;
use crate::upstream::{Endpoint, HealthPolicy, HttpVersions, OriginsSettings, TlsSettings};

tables! {
    /// The response to refused requests.
    RawRefusal {
        file: Option<Spanned<PathBuf>>,
        status: Option<Spanned<u16>>,
        language: Option<Spanned<String>>,
        contact: Option<Spanned<String>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        case: Vec<Spanned<RawCase>>,
    }

    /// A different response to some of the refused requests.
    RawCase {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        crawlers: Vec<Spanned<String>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        identity: Vec<Spanned<SenderIdentity>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        paths: Vec<Spanned<String>>,
        status: Option<Spanned<u16>>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        fields: BTreeMap<String, Spanned<String>>,
        file: Option<Spanned<PathBuf>>,
        language: Option<Spanned<String>>,
        upstream: Option<Spanned<String>>,
        max_connections: Option<Spanned<NonZeroUsize>> => bound(CONNECTIONS, "\"max_connections\" is {}: write a number from 1 to 10000"),
    }
}

words! {
    /// The result of verifying the sender of a request, with its name in the log.
    SenderIdentity {
        #[default]
        Claimed = "claimed",
        Verified = "verified",
        Refuted = "refuted",
        Undecided = "undecided",
        Unverifiable = "unverifiable",
        Unclaimed = "unclaimed",
    }
}

/// Allowed values of `max_connections`, the maximum number of connections to a case's upstream.
const CONNECTIONS: std::ops::RangeInclusive<NonZeroUsize> = NonZeroUsize::MIN..=NonZeroUsize::new(10_000).unwrap();
const DEFAULT_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(32).unwrap();

/// Maximum number of refusal cases of a site.
const MAX_CASES: usize = 64;
/// Maximum number of header fields of a refusal case.
const MAX_FIELDS: usize = 16;

/// Header fields that a case cannot set, because robotsd sets them.
const RESERVED_FIELDS: [&str; 3] = ["content-language", "server", "x-content-type-options"];

/// Resolves a site's responses to refused requests. `None` if the site uses the default response.
/// If no listener forwards requests, the `upstream` of cases is ignored.
///
/// An error in a template has a position in the template. The function `in_config` adds positions
/// in the config to all other errors.
pub(in crate::config) fn resolve(
    raw: &RawRefusal,
    listeners: &[RawListener],
    folder: &Path,
    in_config: impl Fn(Fault) -> ConfigError,
) -> Result<Option<Arc<SiteRefusals>>, ConfigError> {
    let has_file = raw.file.is_some() || raw.case.iter().any(|case| case.get_ref().file.is_some());
    if let (false, Some(unused)) = (has_file, raw.language.as_ref().or(raw.contact.as_ref())) {
        return Err(in_config(unused.fault(
            "\"language\" and \"contact\" have an effect only with \"file\", because only templates use them",
        )));
    }
    if let Some(further) = raw.case.get(MAX_CASES) {
        return Err(in_config(further.fault(format!("only {MAX_CASES} cases are allowed: remove this one"))));
    }
    let written = PageKeys {
        status: raw.status.as_ref(),
        file: raw.file.as_ref(),
        language: raw.language.as_ref(),
        contact: raw.contact.as_ref(),
    };
    let page = written.resolve(folder, &in_config)?;
    if page.status == StatusCode::UNAUTHORIZED
        && let Some(status) = &raw.status
    {
        let message = "401 requires a challenge: write it in a [[site.refusal.case]] with \"fields\"";
        return Err(in_config(status.fault(message)));
    }
    let cases = raw.case.iter().map(|case| resolve_case(case, written, folder, &in_config));
    let mut cases = RefusalTable(cases.collect::<Result<Vec<_>, _>>()?);
    if listeners.iter().all(|listener| listener.kind == ListenerKind::Decision) {
        cases.0.iter_mut().for_each(|(_, answer)| answer.server = None);
    }
    let is_default = page.file.is_none() && page.status == StatusCode::FORBIDDEN && cases.0.is_empty();
    Ok((!is_default).then(|| Arc::new(SiteRefusals { page, cases })))
}

/// The keys that determine the page of a response. A key that a case does not set has the value
/// that the site sets.
#[derive(Clone, Copy)]
struct PageKeys<'r> {
    status: Option<&'r Spanned<u16>>,
    file: Option<&'r Spanned<PathBuf>>,
    language: Option<&'r Spanned<String>>,
    contact: Option<&'r Spanned<String>>,
}

impl PageKeys<'_> {
    fn resolve(self, folder: &Path, in_config: &impl Fn(Fault) -> ConfigError) -> Result<RefusalPage, ConfigError> {
        let status = self.status.map_or(Ok(StatusCode::FORBIDDEN), status).map_err(in_config)?;
        let language = self.language.map(language).transpose().map_err(in_config)?;
        let Some(file) = self.file else {
            return Ok(RefusalPage { status, file: None, template: None, language: None, contact: None });
        };
        let place = folder.join(file.get_ref());
        let extension = place.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let Some(format) = TemplateFormat::of_extension(extension) else {
            let message = format!(
                "{:?} is not a template: its name must end in .html or .txt",
                file.get_ref().display().to_string()
            );
            return Err(in_config(file.fault(message)));
        };
        let page = read(&place).map_err(|error| in_config(file.fault(format!("{}: {error}", place.display()))))?;
        let contact = if self.contact.is_some() { Contact::Given } else { Contact::Missing };
        let template = Template::parse(&page, format, contact)
            .map_err(|error| Fault::new(error.span, error.message).at(&place, &page))?;
        let contact = self.contact.map(|contact| contact.get_ref().clone());
        Ok(RefusalPage { status, file: Some(place), template: Some(template), language, contact })
    }
}

fn resolve_case(
    written: &Spanned<RawCase>,
    site: PageKeys<'_>,
    folder: &Path,
    in_config: &impl Fn(Fault) -> ConfigError,
) -> Result<(RefusalCase, CaseAnswer), ConfigError> {
    let case = written.get_ref();
    let refusal_case = refusal_case(case).map_err(in_config)?;
    let fields = fields(case).map_err(in_config)?;
    let server = server(case, folder).map_err(in_config)?;
    let keys = PageKeys {
        status: case.status.as_ref().or(site.status),
        file: case.file.as_ref().or(site.file),
        language: case.language.as_ref().or(site.language),
        contact: site.contact,
    };
    if let (None, Some(language)) = (keys.file, &case.language) {
        return Err(in_config(
            language.fault("\"language\" requires \"file\", because only a template has a language"),
        ));
    }
    let page = keys.resolve(folder, in_config)?;
    if page.status == StatusCode::UNAUTHORIZED && !fields.contains_key(WWW_AUTHENTICATE) {
        let message = "401 requires a challenge: write fields = { WWW-Authenticate = \"License\" }, or another status";
        let span = case.status.as_ref().map_or_else(|| written.span(), Spanned::span);
        return Err(in_config(Fault::new(span, message)));
    }
    Ok((refusal_case, CaseAnswer { page, fields, server }))
}

fn refusal_case(case: &RawCase) -> Result<RefusalCase, Fault> {
    let crawlers = crawlers(&case.crawlers)?;
    if let Some(at) = crawlers.iter().position(|one| *one == Crawlers::Category(Category::UserFetch)) {
        let message = "a refusal case cannot contain the category of fetchers that act for a person: write their \
                       names, such as \"ChatGPT-User\"";
        return Err(case.crawlers[at].fault(message));
    }
    let path =
        |path: &Spanned<String>| PathPattern::parse(path.get_ref()).map_err(|error| path.fault(error.to_string()));
    let paths = case.paths.iter().map(path).collect::<Result<_, _>>()?;
    let identities = case.identity.iter().map(|identity| identity.get_ref().as_str()).collect();
    Ok(RefusalCase { crawlers, identities, paths })
}

pub(super) fn crawlers(written: &[Spanned<String>]) -> Result<Vec<Crawlers>, Fault> {
    let crawlers = |text: &Spanned<String>| {
        let selector: Selector = text.get_ref().parse().map_err(|error: String| text.fault(error))?;
        selector.crawlers().map_err(|error| text.fault(error.to_string()))
    };
    written.iter().map(crawlers).collect()
}

fn fields(case: &RawCase) -> Result<HeaderMap, Fault> {
    let mut fields = HeaderMap::new();
    if let Some(further) = case.fields.values().nth(MAX_FIELDS) {
        return Err(further.fault(format!("only {MAX_FIELDS} fields are allowed: remove this one")));
    }
    for (written, value) in &case.fields {
        let wrong = || format!("{written:?} is not a valid field name: write one such as \"crawler-price\"");
        let name = HeaderName::from_bytes(written.as_bytes()).map_err(|_| value.fault(wrong()))?;
        let plain = plain_name(&name);
        if is_of_caches(&plain) {
            return Err(value.fault(
                "robotsd sets Cache-Control: no-store, so that no cache sends a refusal to a person: remove this \
                 field",
            ));
        }
        if is_of_connection(&plain)
            || is_of_content(&plain)
            || RESERVED_FIELDS.contains(&&*plain)
            || plain.starts_with("grpc-")
        {
            return Err(value.fault(format!("a refusal cannot have the field {written:?}: remove it")));
        }
        let parsed = HeaderValue::from_str(value.get_ref()).ok().filter(|value| !value.is_empty());
        let wrong = || format!("{:?} is not a field value: write text without line breaks", value.get_ref());
        let parsed = parsed.ok_or_else(|| value.fault(wrong()))?;
        if fields.insert(name, parsed).is_some() {
            return Err(
                value.fault(format!("{written:?} is written twice: write both values in one field, with a comma"))
            );
        }
    }
    Ok(fields)
}

/// Reports each case whose server is one of the upstreams of the site. An upstream of the site
/// would send the disallowed pages to the refused crawlers.
pub(super) fn check_case_upstreams(
    raw: &RawRefusal,
    upstreams: &[Spanned<String>],
    folder: &Path,
    faults: &mut Faults,
) {
    let endpoint = |url: &Spanned<String>| Endpoint::parse(url.get_ref(), folder).ok();
    let own: Vec<_> = upstreams.iter().filter_map(endpoint).collect();
    for url in raw.case.iter().filter_map(|case| case.get_ref().upstream.as_ref()) {
        if endpoint(url).is_some_and(|server| own.contains(&server)) {
            let message = "this is an upstream of the site, which would send refused crawlers the pages that robots.txt \
                           disallows: write the address of another server";
            faults.push(url.fault(message));
        }
    }
}

/// Resolves the server of a case. An invalid URL is not reported here, but when the upstreams of
/// the site are checked.
fn server(case: &RawCase, folder: &Path) -> Result<Option<CaseServer>, Fault> {
    let Some(url) = &case.upstream else {
        let unused = case.max_connections.as_ref();
        let unused = unused.map(|unused| unused.fault("\"max_connections\" requires \"upstream\""));
        return unused.map_or(Ok(None), Err);
    };
    let Ok(endpoint) = Endpoint::parse(url.get_ref(), folder) else { return Ok(None) };
    let max_connections = case.max_connections.as_ref().map_or(DEFAULT_CONNECTIONS, |limit| *limit.get_ref());
    let origins = OriginsSettings {
        endpoints: vec![endpoint],
        versions: HttpVersions::Http1,
        health: HealthPolicy::default(),
        tls: TlsSettings::default(),
    };
    Ok(Some(CaseServer { origins, max_connections }))
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

fn read(path: &Path) -> Result<String, String> {
    let (bytes, _) = files::read_at_most(path, MAX_TEMPLATE as u64).map_err(|error| error.to_string())?;
    if bytes.len() > MAX_TEMPLATE {
        return Err(format!("the template is larger than {limit} KiB", limit = MAX_TEMPLATE / 1024));
    }
    let text = String::from_utf8(bytes).map_err(|_| "the template is not UTF-8: save it as UTF-8")?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
