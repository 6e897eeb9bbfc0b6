//! The URLs by which clients come to one site: with and without TLS, with and without `www.`.

use std::net::IpAddr;

use tower_robots::source::fetch::{FetchUrl, UrlError};

use crate::retrieval::robots_url;

/// The robots.txt of a host, and those of its other names.
#[derive(Debug)]
pub(super) struct SiteVariants {
    pub(super) named: FetchUrl,
    pub(super) others: Vec<FetchUrl>,
}

impl SiteVariants {
    /// Of a URL of the command line.
    ///
    /// # Errors
    ///
    /// If it is no URL that can be fetched, or not one of a robots.txt.
    pub(super) fn of(word: &str) -> Result<Self, String> {
        let named = robots_url(word).map_err(|error: UrlError| error.to_string())?;
        let scheme = if named.is_https() { "https" } else { "http" };
        if named.target().as_str() != "/robots.txt" {
            return Err(format!(
                "{named}: crawlers read robots.txt at the top of a host and nowhere else (RFC 9309, section 2.3): write \
                 {scheme}://{}",
                named.authority()
            ));
        }
        let others = if named.authority().ends_with(&format!(":{}", named.port())) {
            // There is no telling what listens on other ports.
            Vec::new()
        } else {
            let hosts: Vec<_> =
                [Some(named.host().to_owned()), counterpart(named.host())].into_iter().flatten().collect();
            let schemes = [scheme, if named.is_https() { "http" } else { "https" }];
            let brackets = |host: &str| if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            let urls = hosts.iter().flat_map(|host| schemes.map(|scheme| format!("{scheme}://{}", brackets(host))));
            urls.filter_map(|url| robots_url(&url).ok()).filter(|url| *url != named).collect()
        };
        Ok(Self { named, others })
    }
}

/// The name with `www.`, or without it.
fn counterpart(host: &str) -> Option<String> {
    if host.parse::<IpAddr>().is_ok() || !host.trim_end_matches('.').contains('.') {
        return None;
    }
    match host.strip_prefix("www.") {
        Some(rest) => rest.trim_end_matches('.').contains('.').then(|| rest.to_owned()),
        None => Some(format!("www.{host}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_four_names_at_most() {
        for (word, want) in [
            ("https://example.com", "http://example.com https://www.example.com http://www.example.com"),
            ("http://www.example.com/robots.txt", "https://www.example.com http://example.com https://example.com"),
            ("https://example.com:443/", "http://example.com https://www.example.com http://www.example.com"),
            ("https://example.com:8443", ""),
            ("https://192.0.2.7", "http://192.0.2.7"),
            ("http://[2001:db8::7]", "https://[2001:db8::7]"),
            ("http://localhost", "https://localhost"),
            ("http://www.localhost", "https://www.localhost"),
        ] {
            let variants = SiteVariants::of(word).expect(word);
            let others: Vec<_> = variants.others.iter().map(|url| url.to_string().replace("/robots.txt", "")).collect();
            assert_eq!(others.join(" "), want, "{word}");
        }
    }

    #[test]
    fn a_file_elsewhere_is_no_robots_txt() {
        let error = SiteVariants::of("https://example.com/folder/robots.txt").expect_err("not at the top");
        assert!(error.contains("at the top of a host") && error.ends_with("write https://example.com"), "{error}");
        let error = SiteVariants::of("ftp://example.com").expect_err("ftp");
        assert!(error.contains("ftp is not spoken here"), "{error}");
    }
}
