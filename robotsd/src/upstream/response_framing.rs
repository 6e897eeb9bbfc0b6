//! One framing for each response, whichever of them the upstream announced.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue};

use super::http1_fast;

/// Leaves a response the one framing by which hyper read it. The error says why its framing is refused.
pub(super) fn unify_framing(headers: &mut HeaderMap) -> Result<(), &'static str> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        // hyper undoes `chunked` only; the rest would reach the client as if it were the content.
        if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err("unsupported transfer coding");
        }
        headers.remove(CONTENT_LENGTH);
        return Ok(());
    }
    // RFC 9112, section 6.3: the same number several times is that number once. hyper sees to it where there is a body,
    // and leaves all of them where there is none.
    let lines = headers.get_all(CONTENT_LENGTH).iter().map(HeaderValue::as_bytes);
    let mut said = lines.flat_map(|line| line.split(|octet| *octet == b',')).map(<[u8]>::trim_ascii);
    let Some(first) = said.next() else { return Ok(()) };
    match http1_fast::number(first) {
        Some(length) if said.all(|other| other == first) => {
            headers.insert(CONTENT_LENGTH, length.into());
            Ok(())
        }
        _ => Err("invalid Content-Length"),
    }
}
