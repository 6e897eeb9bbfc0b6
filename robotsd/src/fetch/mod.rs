//! Fetches documents by URL for commands, such as a robots.txt or a sitemap.
//!
//! Requests are made one at a time, with limits for the number of hops, the size of the body before
//! and after decoding, the time, and the number of requests per run. Proxies from the environment
//! (`HTTPS_PROXY` and others) are not used, because a crawler connects to the server directly. An
//! [`AnswerKind`] describes how crawlers interpret the response to a request for a robots.txt.

mod answer_kind;
mod coding;
mod retriever;

use tower_robots::rules::ValueError;
use tower_robots::source::fetch::FetchUrl;

pub(crate) use self::answer_kind::{AnswerKind, AnswerReading, CrawlerAccess, DocumentError};
pub(crate) use self::coding::{DecodedBody, codings, decoder};
pub(crate) use self::retriever::{ChainEnd, RetrievalChain, RetrievalRequest, RetrievalSettings, Retriever};

/// Arguments with these prefixes are URLs. The prefixes include schemes that cannot be fetched,
/// because an argument such as `ftp://…` must not be treated as a file path.
const SCHEMES: [&str; 6] = ["http://", "https://", "ftp://", "ftps://", "sftp://", "file://"];

pub(crate) fn is_url(word: &str) -> bool {
    SCHEMES.iter().any(|scheme| word.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

/// Parses a URL. If the URL has no path, returns the URL of the host's `/robots.txt`.
pub(crate) fn robots_url(word: &str) -> Result<FetchUrl, ValueError> {
    let url: FetchUrl = word.parse()?;
    if url.target().as_str() != "/" {
        return Ok(url);
    }
    format!("{}/robots.txt", site_of(&url)).parse()
}

/// Returns the scheme and the host of a URL, such as `https://example.com`.
pub(crate) fn site_of(url: &FetchUrl) -> String {
    format!("{}://{}", if url.is_https() { "https" } else { "http" }, url.authority())
}

/// Formats a URL for messages, without user information and query, because both may contain
/// secrets.
pub(crate) fn shown_url(word: &str) -> String {
    match word.parse::<FetchUrl>() {
        Ok(url) => url.to_string(),
        Err(error) => error.text().escape_debug().to_string(),
    }
}

/// Returns advice if the name of a missing file looks like a host.
pub(crate) fn site_hint(word: &str) -> Option<String> {
    let host = word.strip_suffix("/robots.txt").unwrap_or(word);
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let is_label = |label: &str| !label.is_empty() && label.chars().all(|char| char.is_alphanumeric() || char == '-');
    let is_name = name.contains('.') && name.split('.').all(is_label) && !name.ends_with(".txt");
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    (is_name && is_port).then(|| format!("if you mean the site, write https://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_means_the_robots_txt_of_the_host() {
        for (word, want) in [
            ("https://example.com", "https://example.com/robots.txt"),
            ("HTTPS://Example.com:443/", "https://example.com/robots.txt"),
            ("http://[::1]:8080", "http://[::1]:8080/robots.txt"),
            ("https://müller.example", "https://xn--mller-kva.example/robots.txt"),
            ("https://example.com/staging/robots.txt", "https://example.com/staging/robots.txt"),
        ] {
            assert!(is_url(word), "{word}");
            assert_eq!(robots_url(word).expect(word).to_string(), want);
        }
    }

    #[test]
    fn shown_urls_contain_no_credentials_and_no_query() {
        for (word, want) in [
            ("https://u:p@example.com/a?key=s", "https://…@example.com/a?…"),
            ("ftp://u:p@example.com/a", "ftp://…@example.com/a"),
            ("sftp://u:p/?#w@example.com/a", "sftp://…@example.com/a"),
            ("http://example.com/@u?key=s", "http://example.com/@u?…"),
            ("ftp://[::1]:21/@u?key=s", "ftp://[::1]:21/@u?…"),
            ("file:///a/b", "file:///a/b"),
        ] {
            assert_eq!(shown_url(word), want);
        }
    }

    #[test]
    fn an_argument_that_is_not_a_url_is_a_file_and_a_host_name_gets_a_hint() {
        for word in ["robots.txt", "http", "http:/x", "./https://x", "-", "C:\\robots.txt"] {
            assert!(!is_url(word), "{word}");
        }
        for (word, host) in [("example.com", "example.com"), ("müller.example:8443/robots.txt", "müller.example:8443")]
        {
            assert_eq!(site_hint(word), Some(format!("if you mean the site, write https://{host}")));
        }
        for word in ["robots.txt", "a/b.c", "..", "example", "", "example.com/x", "a.b:c"] {
            assert_eq!(site_hint(word), None, "{word}");
        }
        let error = robots_url("ftp://example.com/robots.txt").expect_err("ftp").to_string();
        assert!(is_url("ftp://example.com/") && error.contains("ftp is not supported"), "{error}");
    }
}
