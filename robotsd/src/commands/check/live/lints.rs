//! The lints about the answers of servers. `--explain` and the page `answers.md` list these lints.

use tower_robots::check::Severity;

use crate::render::AnswerLint;

/// Defines lints. A finding has the severity of its lint, unless the finding sets another severity.
macro_rules! lints {
    ($($name:ident = $severity:ident $code:literal: $summary:literal, $why:literal;)*) => {
        $(pub(super) const $name: AnswerLint =
            AnswerLint { code: $code, severity: Severity::$severity, summary: $summary, why: $why };)*

        /// Every lint, in the order of the documentation page.
        static ALL: &[AnswerLint] = &[$($name),*];
    };
}

lints! {
    SERVER_ERROR = Error "answer-server-error": "the server fails",
        "While robots.txt is answered with 5xx, crawlers must treat the whole site as disallowed (RFC 9309, section \
         2.3.1.4). Crawlers with a cached copy may use it for a while. A site whose robots.txt fails for weeks \
         disappears from search engines.";
    RATE_LIMITED = Error "answer-rate-limited": "the server answers 429",
        "According to RFC 9309 a 4xx means that there are no rules, but Google and others treat 429 as a server \
         error and stay away from the whole site. Exempt /robots.txt from rate limits.";
    TLS = Error "answer-tls": "no TLS session",
        "A crawler that checks certificates, as browsers do, gets no robots.txt and treats the whole site as \
         disallowed; other crawlers read the file anyway. The certificate must be valid now and for this name, and \
         must be sent with its intermediate certificates.";
    TIMEOUT = Error "answer-timeout": "no complete answer in time",
        "Crawlers wait for seconds, not minutes. They treat a missing answer as a server error, and the whole site as \
         disallowed.";
    BROKEN = Error "answer-broken": "an incomplete or invalid HTTP answer",
        "A connection that ends early, a body shorter than announced and an invalid HTTP response are network \
         errors: crawlers treat the whole site as disallowed (RFC 9309, section 2.3.1.4).";
    NOT_FINAL = Error "answer-not-final": "a status that is not a final answer",
        "Crawlers learn nothing about the file from a status below 200 or above 599, or from 304 if the request was \
         not conditional. They treat such answers as failures.";
    REDIRECT_UNREACHABLE = Error "redirect-unreachable": "a redirect to an unreachable server",
        "The redirect leads to a name without an address, to a port without a server, or from a public address to a \
         private one. Crawlers treat such a redirect as a server error, and the whole site as disallowed.";
    UNDECODABLE = Error "answer-undecodable": "a body that does not match its content coding",
        "The body cannot be decoded according to the field Content-Encoding. Crawlers find no rules in such a body, or \
         treat the answer as a failure.";
    REDIRECT_LOOP = Error "redirect-loop": "redirects in a loop",
        "A crawler follows five redirects and then treats the file as missing: everything is allowed (RFC 9309, \
         section 2.3.1.2).";
    REDIRECT_TOO_MANY = Error "redirect-too-many": "more than five redirects",
        "According to RFC 9309 crawlers should follow at least five redirects, and may then treat the file as missing. \
         Some crawlers follow more redirects, so different crawlers may obey different rules.";
    REDIRECT_NOWHERE = Error "redirect-nowhere": "a redirect that leads nowhere",
        "A redirect without a Location, or to something other than an http or https URL, cannot be followed: the \
         file counts as missing, and everything is allowed.";
    RESTRICTED = Warning "answer-restricted": "the server answers 401 or 403",
        "According to RFC 9309, both statuses mean that there are no rules, so everything is allowed. Older robots \
         treat the site as closed. Both effects are rarely intended. Often a firewall or a bot check refuses crawlers \
         on every path, including /robots.txt.";
    CLIENT_ERROR = Warning "answer-client-error": "another 4xx status",
        "Every 4xx means that there are no rules (RFC 9309, section 2.3.1.3). If there is no file, answer 404; other \
         statuses suggest a mistake.";
    MISSING = Note "answer-missing": "there is no robots.txt",
        "404 and 410 mean that everything is allowed, for every crawler. If rules are intended, publish a robots.txt.";
    NOT_200 = Note "answer-not-200": "a 2xx status other than 200",
        "RFC 9309 treats every 2xx alike. Some crawlers accept only 200, and 206 is only part of a file.";
    REDIRECT_OTHER_HOST = Warning "redirect-other-host": "the rules come from another host",
        "Crawlers follow redirects of robots.txt to other hosts, and apply the rules to the host where they started. \
         So the rules of the other host also apply to this host. If every path redirects to a new domain, a login or a \
         parking page, crawlers get no rules at all.";
    REDIRECT_TO_HTTP = Warning "redirect-to-http": "a redirect from https to http",
        "A file sent without TLS can be changed on the way, and some clients do not follow such a redirect.";
    REDIRECT_LONG = Note "redirect-long": "three redirects or more",
        "Each redirect is a request that can fail, and crawlers need not follow more than five. Use at most one.";
    CONTENT_TYPE = Warning "answer-content-type": "not text/plain",
        "RFC 9309 requires text/plain (section 2.3). Crawlers that rely on the Content-Type do not read rules from a \
         file of another type, and browsers offer such a file for download.";
    CHARSET = Warning "answer-charset": "a charset other than UTF-8",
        "Crawlers read robots.txt as UTF-8, whatever charset the Content-Type names (RFC 9309, section 2.3), so \
         crawlers misread or ignore non-ASCII characters in another charset.";
    CODING = Warning "answer-coding": "a content coding that was not accepted",
        "A crawler that does not accept this coding cannot decode the body and finds no rules in it. Compress only \
         for clients that accept it.";
    CACHED_LONG = Note "answer-cached-long": "the file may be cached for more than a day",
        "Crawlers may keep robots.txt for 24 hours (RFC 9309, section 2.4), or longer if Cache-Control allows it. \
         During this time, they see neither a change nor the correction of a mistake.";
    STALE = Note "answer-stale": "a copy that is more than a day old",
        "A cache in front of the site still serves the old file, and crawlers read that copy.";
    OTHER_RULES = Warning "host-other-rules": "the same site under another name or scheme has other rules",
        "A robots.txt applies to one scheme, host and port (RFC 9309, section 2.3). Crawlers that use another name of \
         the site obey the robots.txt under that name. So all names should redirect to one name, or serve the same \
         file.";
    SITEMAP_FAILED = Warning "sitemap-failed": "a sitemap that cannot be fetched",
        "Search engines report such a sitemap to site owners, and without the sitemap, they find new pages later.";
    SITEMAP_KIND = Warning "sitemap-kind": "not a sitemap, or a broken one",
        "If another file is served instead of a sitemap, search engines ignore it, with all URLs that should be in \
         it. From a broken sitemap, they ignore everything after the error.";
    SITEMAP_SIZE = Warning "sitemap-size": "a sitemap that is too large",
        "The protocol allows 50,000 URLs and 50 MiB (52,428,800 bytes) in one sitemap. Search engines ignore the URLs \
         and bytes above this limit, or the whole sitemap.";
    SITEMAP_SCOPE = Warning "sitemap-scope": "URLs of another site in a sitemap",
        "A sitemap is valid for the host that serves the sitemap, and for a host whose robots.txt names the sitemap; \
         scheme and port must be the same. Search engines ignore URLs of other sites, such as http URLs on an https \
         site, or those of a staging server.";
    SITEMAP_ELSEWHERE = Note "sitemap-elsewhere": "a sitemap on another host, or without TLS",
        "A robots.txt may name a sitemap on another host. That host then determines which URLs of this site are \
         listed. After a site has moved, the sitemap is often still on the old host.";
}

pub(crate) fn answer_lints() -> &'static [AnswerLint] {
    ALL
}

pub(crate) fn answer_lint(code: &str) -> Option<&'static AnswerLint> {
    ALL.iter().find(|lint| lint.code == code)
}

#[cfg(test)]
mod tests {
    use tower_robots::check::Lint;

    use super::*;

    #[test]
    fn every_answer_lint_has_a_unique_code() {
        for (at, one) in ALL.iter().enumerate() {
            assert!(Lint::of_code(one.code).is_none(), "{} is a lint of files", one.code);
            assert!(ALL[..at].iter().all(|other| other.code != one.code), "{} is there twice", one.code);
            assert!(one.code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
        }
    }
    #[test]
    fn the_table_in_the_documentation_equals_the_lints_in_the_code() {
        const HEAD: &str = "| code | severity | finds |\n|---|---|---|\n";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docs/answers.md");
        let page = std::fs::read_to_string(&path).expect("the page exists");
        let at = page.find(HEAD).expect("the page contains the table") + HEAD.len();
        let row = |lint: &AnswerLint| {
            let AnswerLint { code, severity, summary, why } = lint;
            // The link of a finding points to the anchor in its row.
            assert!(lint.url().ends_with(&format!("/docs/answers/#{code}")), "{}", lint.url());
            format!("| <a id=\"{code}\"></a>`{code}` | {severity} | {summary}. {why} |\n")
        };
        let table: String = ALL.iter().map(row).collect();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, format!("{}{table}", &page[..at])).expect("the page can be written");
            return;
        }
        assert_eq!(&page[at..], table, "run this test with UPDATE_DOCS=1");
    }
}
