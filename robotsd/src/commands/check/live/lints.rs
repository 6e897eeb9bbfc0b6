//! The lints about servers' answers: the table that `--explain` and the chapter `answers` show.

use tower_robots::check::Severity;

use crate::render::AnswerLint;

/// Defines lints; their findings have this severity unless they set another.
macro_rules! lints {
    ($($name:ident = $severity:ident $code:literal: $summary:literal, $why:literal;)*) => {
        $(pub(super) const $name: AnswerLint =
            AnswerLint { code: $code, severity: Severity::$severity, summary: $summary, why: $why };)*

        /// Every lint, in the order of the chapter.
        static ALL: &[AnswerLint] = &[$($name),*];
    };
}

lints! {
    SERVER_ERROR = Error "answer-server-error": "the server fails",
        "RFC 9309 has crawlers take the whole site as disallowed while robots.txt is answered with 5xx (section 2.3.1.4). Those \
         with a copy may go on by it for a while; a site whose robots.txt fails for weeks leaves the indexes of search engines.";
    RATE_LIMITED = Error "answer-rate-limited": "the server answers 429",
        "A 4xx stands for no rules at all in RFC 9309, but Google and others read 429 as a server error and stay away from the \
         whole site. Limits of request rates should leave /robots.txt out.";
    TLS = Error "answer-tls": "no TLS session",
        "A crawler that checks certificates, as browsers do, gets no robots.txt and takes the whole site as disallowed; one that \
         does not goes on. The certificate has to be in date, for this name, and come with its intermediate certificates.";
    TIMEOUT = Error "answer-timeout": "no whole answer in time",
        "Crawlers wait for seconds, not minutes. An answer that does not come is a server error: the whole site is taken as \
         disallowed.";
    BROKEN = Error "answer-broken": "no whole answer, or none that is HTTP",
        "A connection that ends early, a body that is shorter than announced and a response that is no HTTP are network errors: \
         crawlers take the whole site as disallowed (RFC 9309, section 2.3.1.4).";
    NOT_FINAL = Error "answer-not-final": "a status that answers nothing",
        "304 without a condition in the request, and statuses below 200 or above 599, say nothing about the file. Crawlers count \
         them as failures.";
    REDIRECT_UNREACHABLE = Error "redirect-unreachable": "a redirect to a server that does not answer",
        "The redirect leads to a name without an address, to a port without a server, or from a public address to a private one. \
         For a crawler that is as a server that fails: the whole site is taken as disallowed.";
    UNDECODABLE = Error "answer-undecodable": "a body that its content coding does not fit",
        "The field Content-Encoding says how to read the body, and it cannot be read so. Crawlers find no rule in it, or count it \
         as a failure.";
    REDIRECT_LOOP = Error "redirect-loop": "redirects in a loop",
        "A crawler follows five redirects and then takes the file as missing: everything is allowed (RFC 9309, section 2.3.1.2).";
    REDIRECT_TOO_MANY = Error "redirect-too-many": "more than five redirects",
        "RFC 9309 has crawlers follow at least five redirects, and lets them take the file as missing after that. Some follow \
         more, so crawlers do not agree on the rules.";
    REDIRECT_NOWHERE = Error "redirect-nowhere": "a redirect that leads nowhere",
        "A redirect without a Location, or to something that is no http or https URL, cannot be followed: the file is taken as \
         missing, and everything as allowed.";
    RESTRICTED = Warning "answer-restricted": "the server answers 401 or 403",
        "RFC 9309 reads both as no rules at all: everything is allowed. Older robots read them as a closed site. Either is hardly \
         meant. Often a firewall or a bot check refuses crawlers on every path, and /robots.txt with them.";
    CLIENT_ERROR = Warning "answer-client-error": "another status of 4xx",
        "Every 4xx stands for no rules at all (RFC 9309, section 2.3.1.3). If there is no file, 404 says so; another status is a sign \
         of a fault.";
    MISSING = Note "answer-missing": "there is no robots.txt",
        "404 and 410 mean that everything is allowed, for every crawler. That is a fine answer if it is meant.";
    NOT_200 = Note "answer-not-200": "a success other than 200",
        "RFC 9309 reads every 2xx alike. Some crawlers take only 200, and 206 is a part of a file.";
    REDIRECT_OTHER_HOST = Warning "redirect-other-host": "the rules come from another host",
        "Crawlers follow redirects of robots.txt to other hosts, and the rules then hold for the host they began at. So the other \
         host decides what is crawled here; and a redirect of every path to a new domain, a login or a parking page brings no \
         rules at all.";
    REDIRECT_TO_HTTP = Warning "redirect-to-http": "a redirect from https to http",
        "A file that comes without TLS can be changed on the way, and some clients do not follow such a redirect.";
    REDIRECT_LONG = Note "redirect-long": "three redirects or more",
        "Each redirect is a request that can fail, and crawlers need not follow more than five. One is enough.";
    CONTENT_TYPE = Warning "answer-content-type": "not text/plain",
        "RFC 9309 wants text/plain (section 2.3). Crawlers that trust the field do not read rules from a file of another type, and \
         browsers offer it for download.";
    CHARSET = Warning "answer-charset": "another charset than UTF-8",
        "Crawlers read robots.txt as UTF-8 whatever the field says (RFC 9309, section 2.3), so characters beyond ASCII are read as \
         others, or not at all.";
    CODING = Warning "answer-coding": "a content coding that was not accepted",
        "A crawler that names no coding, or not this one, cannot decode the body and finds no rule in it. Compress only for those \
         who say that they accept it.";
    CACHED_LONG = Note "answer-cached-long": "it may be cached for more than a day",
        "Crawlers may keep robots.txt for 24 hours (RFC 9309, section 2.4), and longer where Cache-Control says so: a change, or a \
         mistake that is put right, is seen that much later.";
    STALE = Note "answer-stale": "a copy that is more than a day old",
        "A cache in front of the site still answers with the old file, and crawlers read that copy.";
    OTHER_RULES = Warning "host-other-rules": "the same site under another name or scheme has other rules",
        "A robots.txt is for one scheme, host and port (RFC 9309, section 2.3). Crawlers that come to the site by another name go by \
         what they find there, so each name should redirect to one, or have the same file.";
    SITEMAP_FAILED = Warning "sitemap-failed": "a sitemap that cannot be fetched",
        "Search engines note it in their reports for owners, and find new pages later without it.";
    SITEMAP_KIND = Warning "sitemap-kind": "a sitemap that is none, or is broken",
        "A page or another file in place of a sitemap is ignored, with every URL that should be in it; of a broken one, what follows \
         the fault.";
    SITEMAP_SIZE = Warning "sitemap-size": "a sitemap that is too large",
        "The protocol allows 50,000 URLs and 50 MiB (52,428,800 octets) in one sitemap. Search engines drop what is beyond, or all \
         of it.";
    SITEMAP_SCOPE = Warning "sitemap-scope": "URLs of another site in a sitemap",
        "A sitemap is for the host that serves it, or whose robots.txt names it, with scheme and port. URLs of another one are \
         ignored: http where the site is https, or the name of a staging server.";
    SITEMAP_ELSEWHERE = Note "sitemap-elsewhere": "a sitemap on another host, or without TLS",
        "A robots.txt may name a sitemap on another host. That host then says what the URLs of this one are. After a move of the \
         site it is often the old one.";
}

/// Returns all lints.
pub(crate) fn answer_lints() -> &'static [AnswerLint] {
    ALL
}

/// Returns the lint with this code.
pub(crate) fn answer_lint(code: &str) -> Option<&'static AnswerLint> {
    ALL.iter().find(|lint| lint.code == code)
}

#[cfg(test)]
mod tests {
    use tower_robots::check::Lint;

    use super::*;

    #[test]
    fn a_code_means_one_thing() {
        for (at, one) in ALL.iter().enumerate() {
            assert!(Lint::of_code(one.code).is_none(), "{} is a lint of files", one.code);
            assert!(ALL[..at].iter().all(|other| other.code != one.code), "{} is there twice", one.code);
            assert!(
                one.code.bytes().all(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-')
            );
        }
    }
    #[test]
    fn the_table_of_the_chapter_is_that_of_the_code() {
        const HEAD: &str = "| code | severity | finds |\n|---|---|---|\n";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docs/answers.md");
        let chapter = std::fs::read_to_string(&path).expect("the chapter is there");
        let at = chapter.find(HEAD).expect("the chapter holds the table") + HEAD.len();
        let row = |lint: &AnswerLint| {
            let AnswerLint { code, severity, summary, why } = lint;
            // The link of a finding leads to this anchor.
            assert!(lint.url().ends_with(&format!("/docs/answers/#{code}")), "{}", lint.url());
            format!("| <a id=\"{code}\"></a>`{code}` | {severity} | {summary}. {why} |\n")
        };
        let table: String = ALL.iter().map(row).collect();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, format!("{}{table}", &chapter[..at])).expect("the chapter can be written");
            return;
        }
        assert_eq!(&chapter[at..], table, "run this test with UPDATE_DOCS=1");
    }
}
