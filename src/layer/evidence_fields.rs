//! The header fields that suggest a person behind a request.

use http::HeaderName;
use http::header::{COOKIE, REFERER};

use super::original::Original;
use crate::policy::HumanEvidence;

/// Fetch Metadata Request Headers, section 2.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The evidence in the fields of a disallowed request.
pub(super) fn of<'a>(request: &Original<'a>) -> HumanEvidence<'a> {
    let field = |name: &HeaderName| request.headers().get(name).map_or(&b""[..], |value| value.as_bytes());
    let cookies = request.headers().get_all(COOKIE).into_iter();
    let evidence = cookies.fold(HumanEvidence::new(), |evidence, value| evidence.cookies(value.as_bytes()));
    let site = field(&SEC_FETCH_SITE);
    if site.is_empty() {
        // Most crawlers: the other fields only count beside this one.
        return evidence;
    }
    evidence
        .fetch_metadata(site, field(&SEC_FETCH_MODE), field(&SEC_FETCH_DEST))
        .referer(field(&REFERER), request.host().unwrap_or_default().as_bytes())
}
