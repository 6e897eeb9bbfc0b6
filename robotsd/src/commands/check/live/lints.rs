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
        "By RFC 9309, crawlers treat the whole site as disallowed while robots.txt is answered with 5xx (section \
         2.3.1.4). Crawlers with a copy may use it for a while; if robots.txt fails for weeks, search engines drop \
         the site from their indexes.";
    RATE_LIMITED = Error "answer-rate-limited": "the server answers 429",
        "In RFC 9309, every 4xx means that there are no rules, but Google and others treat 429 like 5xx, and do not \
         crawl the site. Exclude /robots.txt from request rate limits.";
    TLS = Error "answer-tls": "no TLS session",
        "A crawler that verifies certificates, as browsers do, gets no robots.txt and treats the whole site as \
         disallowed; other crawlers continue. The certificate must be valid now and for this name, and be sent with \
         its intermediate certificates.";
    TIMEOUT = Error "answer-timeout": "no whole answer in time",
        "Crawlers wait for seconds, not minutes. A missing answer counts as a server error: crawlers treat the whole \
         site as disallowed.";
    BROKEN = Error "answer-broken": "an incomplete answer, or one that is not HTTP",
        "A connection that ends early, a body that is shorter than announced and a response that is not HTTP are \
         network errors: crawlers treat the whole site as disallowed (RFC 9309, section 2.3.1.4).";
    NOT_FINAL = Error "answer-not-final": "a status that answers nothing",
        "304 without a condition in the request, and statuses below 200 or above 599, say nothing about the file. Crawlers count \
         them as failures.";
    REDIRECT_UNREACHABLE = Error "redirect-unreachable": "a redirect to an unreachable address",
        "The redirect leads to a name without addresses, to a port that nobody listens on, or from a public address \
         to a private one. Crawlers treat this as a server error, and the whole site as disallowed.";
    UNDECODABLE = Error "answer-undecodable": "a body that does not match its content coding",
        "The body cannot be decoded as the field Content-Encoding declares. Crawlers find no rules in it, or count it \
         as a failure.";
    REDIRECT_LOOP = Error "redirect-loop": "redirects in a loop",
        "A crawler follows five redirects and then treats the file as missing: everything is allowed (RFC 9309, \
         section 2.3.1.2).";
    REDIRECT_TOO_MANY = Error "redirect-too-many": "more than five redirects",
        "By RFC 9309, crawlers follow at least five redirects, and may treat the file as missing after that. Some \
         follow more, so crawlers do not agree on the rules.";
    REDIRECT_NOWHERE = Error "redirect-nowhere": "a redirect that leads nowhere",
        "A redirect without a Location, or to something other than an http or https URL, cannot be followed: crawlers \
         treat the file as missing, and everything as allowed.";
    RESTRICTED = Warning "answer-restricted": "the server answers 401 or 403",
        "By RFC 9309, both mean that there are no rules: everything is allowed. For older robots they mean that \
         nothing is allowed. Neither is likely to be intended. Often a firewall or a bot check refuses crawlers on \
         every path, including /robots.txt.";
    CLIENT_ERROR = Warning "answer-client-error": "another status of 4xx",
        "Every 4xx means that there are no rules (RFC 9309, section 2.3.1.3). If there is no file, the status should \
         be 404; any other status is probably an error.";
    MISSING = Note "answer-missing": "there is no robots.txt",
        "404 and 410 mean that everything is allowed, for every crawler. That is fine if it is intended.";
    NOT_200 = Note "answer-not-200": "a success other than 200",
        "In RFC 9309, all 2xx statuses are equal. Some crawlers accept only 200, and a 206 contains only part of a \
         file.";
    REDIRECT_OTHER_HOST = Warning "redirect-other-host": "the rules come from another host",
        "Crawlers follow redirects of robots.txt to other hosts, and apply the rules to the original host. So the \
         other host decides what is crawled here. If every path is redirected to a new domain, a login or a parking \
         page, crawlers find no rules.";
    REDIRECT_TO_HTTP = Warning "redirect-to-http": "a redirect from https to http",
        "A file that is sent without TLS can be modified in transit, and some clients do not follow such a redirect.";
    REDIRECT_LONG = Note "redirect-long": "three redirects or more",
        "Each redirect is another request that can fail, and crawlers need not follow more than five. A single \
         redirect is enough.";
    CONTENT_TYPE = Warning "answer-content-type": "not text/plain",
        "RFC 9309 requires text/plain (section 2.3). Crawlers that trust the field read no rules from a file of \
         another type, and browsers offer to download it.";
    CHARSET = Warning "answer-charset": "another charset than UTF-8",
        "Crawlers read robots.txt as UTF-8 whatever the field says (RFC 9309, section 2.3), so non-ASCII characters \
         are read as others, or not at all.";
    CODING = Warning "answer-coding": "a content coding that was not accepted",
        "A crawler that does not list this coding cannot decode the body, and finds no rules in it. Compress only for \
         clients that accept it.";
    CACHED_LONG = Note "answer-cached-long": "it may be cached for more than a day",
        "Crawlers may keep robots.txt for 24 hours (RFC 9309, section 2.4), and longer if Cache-Control allows it: \
         they see a change, or a corrected mistake, that much later.";
    STALE = Note "answer-stale": "a copy that is more than a day old",
        "A cache in front of the site still serves the old file, and crawlers read that copy.";
    OTHER_RULES = Warning "host-other-rules": "the same site under another name or scheme has other rules",
        "A robots.txt is for one scheme, host and port (RFC 9309, section 2.3). Crawlers that use another name of the \
         site obey the file that they find there, so all names should redirect to one, or have the same file.";
    SITEMAP_FAILED = Warning "sitemap-failed": "a sitemap that cannot be fetched",
        "Search engines show this in their reports for owners, and find new pages later without the sitemap.";
    SITEMAP_KIND = Warning "sitemap-kind": "a sitemap that is broken, or a different file",
        "Search engines ignore a page or other file instead of a sitemap, and thus all URLs that should be in it. In \
         a broken sitemap they ignore everything after the error.";
    SITEMAP_SIZE = Warning "sitemap-size": "a sitemap that is too large",
        "The protocol allows 50,000 URLs and 50 MiB (52,428,800 bytes) per sitemap. Search engines ignore the excess, \
         or the whole sitemap.";
    SITEMAP_SCOPE = Warning "sitemap-scope": "URLs of another site in a sitemap",
        "A sitemap is for the host that serves it, or whose robots.txt names it, with scheme and port. URLs of other \
         sites are ignored, such as http URLs of a site with https, or URLs of a staging server.";
    SITEMAP_ELSEWHERE = Note "sitemap-elsewhere": "a sitemap on another host, or without TLS",
        "A robots.txt may name a sitemap on another host. That host then controls the list of this site's URLs. After \
         a move of the site it is often the old host.";
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
