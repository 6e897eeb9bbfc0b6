//! Evidence that a person made a request.
//!
//! A `User-Agent` can be misleading: a person may use a tool that sends a crawler's name. This
//! module uses other evidence: a session cookie, or fetch metadata as browsers send it. By default,
//! the evidence is only recorded. The records show the operator how many people a `Disallow` rule
//! would affect.

use crate::keyword_enum;
use crate::rules::{Authority, ValueError};

/// The cookies and header fields that may show that a person made the request. Callers collect this
/// evidence only for requests that have a rate limit or would be refused, tagged or recorded.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct HumanEvidence<'a> {
    cookies: Vec<&'a [u8]>,
    is_browsing: bool,
    has_own_referer: bool,
}

/// The signs in a request that suggest that a person made the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HumanSigns {
    session_cookie: bool,
    fetch_metadata: bool,
    own_referer: bool,
}

keyword_enum! {
    /// How a disallowed request is handled if it shows signs that a person made it.
    #[derive(Default)]
    SuspectHuman, "a way to treat requests that seem to come from a person", {
        /// The signs are recorded and do not change the decision. The default.
        #[default]
        Record = "record",
        /// The request passes, and the signs are recorded.
        Exempt = "exempt",
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cookies {
    /// Names of the cookies that exempt a request.
    pub(super) exempt: Vec<Box<[u8]>>,
    /// Names of the cookies that are a sign that a person made the request.
    pub(super) session: Vec<Box<[u8]>>,
}

impl Cookies {
    pub(super) fn names<N: AsRef<[u8]>>(names: impl IntoIterator<Item = N>) -> Result<Vec<Box<[u8]>>, ValueError> {
        let ends = |byte: &u8| matches!(byte, b'=' | b';' | b' ' | 0..=0x1F | 0x7F);
        let name = |name: N| match name.as_ref() {
            name if !name.is_empty() && !name.iter().any(ends) => Ok(name.into()),
            other => Err(ValueError::new(
                String::from_utf8_lossy(other),
                "is not a cookie's name: write the part before \"=\", such as \"session\"",
            )),
        };
        names.into_iter().map(name).collect()
    }
}

impl<'a> HumanEvidence<'a> {
    /// Adds the value of a `Cookie` field.
    pub fn cookies(mut self, value: &'a [u8]) -> Self {
        let pairs = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        self.cookies.extend(pairs.filter_map(|pair| pair.split(|byte| *byte == b'=').next()));
        self
    }

    /// Adds `Sec-Fetch-Site`, `Sec-Fetch-Mode` and `Sec-Fetch-Dest` (W3C Fetch Metadata). These
    /// fields are a sign of a person only if all three are present, in a combination that browsers
    /// send: the destination is a document if and only if the mode is `navigate`.
    pub fn fetch_metadata(mut self, site: &[u8], mode: &[u8], destination: &[u8]) -> Self {
        let known_site = matches!(site, b"same-origin" | b"same-site" | b"cross-site" | b"none");
        let known_mode = matches!(mode, b"navigate" | b"cors" | b"no-cors" | b"same-origin" | b"websocket");
        let document =
            matches!(destination, b"document" | b"iframe" | b"frame" | b"object" | b"embed" | b"fencedframe");
        let fits = (mode == b"navigate") == document && !destination.is_empty();
        self.is_browsing = known_site && known_mode && fits;
        self
    }

    /// Adds a `Referer`, which is compared with the host of the request. Any client can send a
    /// `Referer`, so it is a sign of a person only together with fetch metadata.
    pub fn referer(mut self, referer: &[u8], host: &[u8]) -> Self {
        let authority = Authority::of_url(referer).map(|(_, authority, _)| authority);
        self.has_own_referer = authority.is_some_and(|authority| {
            authority.userinfo.is_none() && authority.host_and_port.eq_ignore_ascii_case(host)
        });
        self
    }

    pub(super) fn is_exempt(&self, cookies: &Cookies) -> bool {
        self.has_any(&cookies.exempt)
    }

    pub(super) fn signs(&self, cookies: &Cookies) -> HumanSigns {
        HumanSigns {
            session_cookie: self.has_any(&cookies.session),
            fetch_metadata: self.is_browsing,
            own_referer: self.is_browsing && self.has_own_referer,
        }
    }

    fn has_any(&self, names: &[Box<[u8]>]) -> bool {
        self.cookies.iter().any(|cookie| names.iter().any(|name| **name == **cookie))
    }
}

impl HumanSigns {
    pub(super) const NONE: Self = Self { session_cookie: false, fetch_metadata: false, own_referer: false };

    /// Reports whether any sign was found.
    pub const fn any(self) -> bool {
        self.session_cookie || self.fetch_metadata || self.own_referer
    }

    /// Returns the names of the signs, in kebab-case.
    #[doc(hidden)]
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let Self { session_cookie, fetch_metadata, own_referer } = self;
        [(session_cookie, "session-cookie"), (fetch_metadata, "fetch-metadata"), (own_referer, "own-referer")]
            .into_iter()
            .filter_map(|(found, name)| found.then_some(name))
    }
}
