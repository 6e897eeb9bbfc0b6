//! The services that send people to a site, recognised by the host in a `Referer`. For example,
//! `chatgpt.com` belongs to OpenAI.
//!
//! A host is looked up among the `referers` of all registry rows in three ways: as a whole, as a
//! subdomain of a listed host, and as a name under a country's domain. These are a few accesses to
//! a hash table, and no allocation is needed, because all keys are slices of the host.

use std::collections::HashMap;
use std::sync::Arc;

use crate::rules::Authority;

/// Maximum length of a host that is looked up, in bytes.
const MAX_HOST_LENGTH: usize = 64;

/// Accepted URL schemes. Android applications send their own scheme:
/// `android-app://com.google.android.googlequicksearchbox/`.
const SCHEMES: [&[u8]; 3] = [b"https", b"http", b"android-app"];

/// A service of a crawler's operator that sends people to pages, such as a search engine or a
/// chatbot.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Referrer {
    /// Name of the operator, as in the registry.
    pub operator: String,
    /// The host as written in the registry, such as `chatgpt.com`, `.bing.com` or `google.*`.
    pub host: String,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ReferrerIndex {
    /// The services by key. Examples of keys are `chatgpt.com` for a single host, `.bing.com` for a
    /// host and its subdomains, and `google.` for a name under all country domains.
    services: HashMap<Box<[u8]>, Arc<Referrer>>,
}

impl ReferrerIndex {
    /// Creates an index of the hosts of each operator. If two rows contain the same host, the host
    /// belongs to the operator of the first row.
    pub(super) fn new<'c>(rows: impl Iterator<Item = (&'c str, &'c [String])>) -> Self {
        let mut services = HashMap::new();
        for (operator, hosts) in rows {
            for host in hosts {
                let service = || Arc::new(Referrer { operator: operator.to_owned(), host: host.clone() });
                let key = host.strip_suffix('*').unwrap_or(host).as_bytes();
                services.entry(key.into()).or_insert_with(service);
            }
        }
        Self { services }
    }

    pub(super) fn of_url(&self, referer: &[u8]) -> Option<&Arc<Referrer>> {
        let (scheme, authority, _) = Authority::of_url(referer)?;
        let host = authority.host.strip_suffix(b".").unwrap_or(authority.host);
        if host.is_empty()
            || host.len() > MAX_HOST_LENGTH
            || !SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known))
        {
            return None;
        }
        // The buffer contains a dot and the host in lower case, so that every key, such as
        // `.bing.com`, is a slice of the buffer.
        let mut bytes = [b'.'; MAX_HOST_LENGTH + 1];
        let dotted = &mut bytes[..=host.len()];
        dotted[1..].copy_from_slice(host);
        dotted.make_ascii_lowercase();
        let dotted = &*dotted;
        let name = dotted[1..].strip_prefix(b"www.").unwrap_or(&dotted[1..]);
        let of_country = name.len() - country_domain(name).unwrap_or(name.len());
        let dots = memchr::memchr_iter(b'.', dotted);
        let find = |key: &[u8]| self.services.get(key);
        find(name).or_else(|| find(&name[..of_country])).or_else(|| dots.map(|at| &dotted[at..]).find_map(find))
    }
}

/// Returns the length of the domain after the name of the site. For `google.co.uk`, this is the
/// length of `co.uk`. `None` if the host does not end with a country's domain, `com` or `cat`.
fn country_domain(name: &[u8]) -> Option<usize> {
    let is_country = |label: &[u8]| label.len() == 2 && label.iter().all(u8::is_ascii_lowercase);
    let (before, last) = name.split_at(memchr::memrchr(b'.', name)? + 1);
    let second = before[..before.len() - 1].rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    if is_country(last) && matches!(second, b"co" | b"com") && before.len() > second.len() + 1 {
        return Some(second.len() + 1 + last.len());
    }
    (is_country(last) || matches!(last, b"com" | b"cat")).then_some(last.len())
}

pub(super) fn is_host(host: &str) -> bool {
    let name = host.strip_prefix('.').unwrap_or(host);
    let name = name.strip_suffix(".*").filter(|_| !host.starts_with('.')).unwrap_or(name);
    let is_label = |label: &str| {
        let is_byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(is_byte)
    };
    name.len() < MAX_HOST_LENGTH && !name.starts_with("www.") && name.split('.').all(is_label) && host.contains('.')
}

#[cfg(test)]
mod tests {
    use crate::agent::{Category, Crawler, Registry};

    #[test]
    fn a_referer_is_matched_to_a_service_only_by_its_host() {
        let registry = Registry::builtin();
        let operator = |url: &str| registry.referrer(url.as_bytes()).map(|service| service.operator.as_str());
        for (url, want) in [
            ("https://chatgpt.com/", Some("OpenAI")),
            ("https://chat.openai.com/c/1?q=google.com", Some("OpenAI")),
            ("https://www.perplexity.ai/search/x", Some("Perplexity")),
            ("HTTPS://WWW.GOOGLE.DE/", Some("Google")),
            ("https://google.com", Some("Google")),
            ("https://www.google.co.uk:443/url?q=x", Some("Google")),
            ("http://images.google.com.br/imgres", Some("Google")),
            ("https://gemini.google.com/app", Some("Google")),
            ("https://www.google.cat/#x", Some("Google")),
            ("android-app://com.google.android.googlequicksearchbox/", Some("Google")),
            ("https://www.bing.com/search?q=x", Some("Microsoft")),
            ("https://cn.bing.com./", Some("Microsoft")),
            ("https://copilot.microsoft.com/", Some("Microsoft")),
            ("https://yandex.ru/", Some("Yandex")),
            ("https://www.yandex.com.tr/search/", Some("Yandex")),
            ("https://ya.ru/", Some("Yandex")),
            ("https://m.baidu.com/s", Some("Baidu")),
            ("https://duckduckgo.com/", Some("DuckDuckGo")),
            ("https://claude.ai/chat", Some("Anthropic")),
            ("https://kagi.com/", Some("Kagi")),
            ("https://you.com/", Some("You.com")),
        ] {
            assert_eq!(operator(url), want, "{url}");
        }
        // Hosts for storage, mail and documents do not send visitors to other sites.
        let others = "https://lh3.googleusercontent.com/ https://mail.google.com/ https://www.microsoft.com/ \
            https://notgoogle.com/ https://google.com.evil.example/ https://google.evil.example/ https://google.xyz/ \
            https://www.google/ https://evil.example/https://google.com/ https://google.com@evil.example/ \
            https://co.uk/ https://notbing.com/ ftp://google.com/ https:///google.com google.com -";
        for url in others.split(' ').chain([""]) {
            assert_eq!(operator(url), None, "{url}");
        }
        assert_eq!(operator(&format!("https://{}.google.com/", "x".repeat(500))), None);
    }

    #[test]
    fn referer_hosts_must_be_written_in_canonical_form() {
        let row = |host: &str| Crawler { referers: vec![host.to_owned()], ..Crawler::new("A", Category::Search) };
        for host in ["a.test", ".a.test", "a.*", "news.a.*", "com.a.b"] {
            assert!(Registry::default().extended_with([row(host)]).is_ok(), "{host}");
        }
        for host in
            ["", "a", "A.test", "https://a.test", "a.test/x", "www.a.test", "*.a.test", ".a.*", "a..test", "a.te*"]
        {
            let error = Registry::default().extended_with([row(host)]).unwrap_err();
            assert!(error.field == "referers" && error.message.contains("chatgpt.com"), "{host}: {error}");
        }
    }
}
