//! `HOST:PORT:ADDRESS:PORT`: where to connect for a host and a port, as curl's `--connect-to` has it.

use std::str::FromStr;

use tower_robots::source::fetch::FetchUrl;

/// A host and a port of URLs, each of them or any, and what to connect to for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectTo {
    from: (Option<String>, Option<u16>),
    to: (Option<String>, Option<u16>),
}

impl ConnectTo {
    /// The host and port to connect to, if this is about these.
    pub(crate) fn place(&self, host: &str, port: u16) -> Option<(String, u16)> {
        let (of_host, of_port) = &self.from;
        let is_meant = of_host.as_deref().is_none_or(|of| of == host) && of_port.is_none_or(|of| of == port);
        let (to_host, to_port) = &self.to;
        is_meant.then(|| (to_host.clone().unwrap_or_else(|| host.to_owned()), to_port.unwrap_or(port)))
    }
}

impl FromStr for ConnectTo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = split(text);
        let [from_host, from_port, to_host, to_port] = *parts.as_slice() else {
            return Err(format!(
                "{} parts: write HOST:PORT:ADDRESS:PORT, such as \"example.com:443:192.0.2.7:443\"; IPv6 addresses in brackets",
                parts.len()
            ));
        };
        Ok(Self { from: (host(from_host)?, port(from_port)?), to: (host(to_host)?, port(to_port)?) })
    }
}

/// The parts between colons that stand in no brackets.
fn split(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    text.split(|char| {
        match char {
            '[' => is_inside = true,
            ']' => is_inside = false,
            _ => {}
        }
        char == ':' && !is_inside
    })
    .collect()
}

/// A host as URLs have it; none where any is meant.
fn host(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let url: FetchUrl = format!("http://{text}/").parse().map_err(|_| format!("{text:?} is no host and no address"))?;
    Ok(Some(url.host().to_owned()))
}

fn port(text: &str) -> Result<Option<u16>, String> {
    match text.parse() {
        _ if text.is_empty() => Ok(None),
        Ok(port) if port != 0 => Ok(Some(port)),
        _ => Err(format!("{text:?} is no port: write a number from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rule: &str, host: &str, port: u16) -> Option<String> {
        let rule: ConnectTo = rule.parse().expect(rule);
        rule.place(host, port).map(|(host, port)| format!("{host} {port}"))
    }

    #[test]
    fn each_part_may_be_left_out() {
        for (rule, host, port, want) in [
            ("example.com:443:192.0.2.7:8443", "example.com", 443, Some("192.0.2.7 8443")),
            ("example.com:443:192.0.2.7:8443", "example.com", 80, None),
            ("example.com:443:192.0.2.7:8443", "www.example.com", 443, None),
            ("Example.com::[::1]:", "example.com", 80, Some("::1 80")),
            (":443::8443", "a.example", 443, Some("a.example 8443")),
            (":::", "a.example", 1, Some("a.example 1")),
            ("[::1]:80:127.0.0.1:81", "::1", 80, Some("127.0.0.1 81")),
            ("müller.example:80:127.0.0.1:81", "xn--mller-kva.example", 80, Some("127.0.0.1 81")),
        ] {
            assert_eq!(place(rule, host, port).as_deref(), want, "{rule}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (rule, want) in [
            ("", "1 parts: write HOST:PORT:ADDRESS:PORT"),
            ("example.com:443:192.0.2.7", "3 parts"),
            ("example.com:443:::1:80", "6 parts"),
            ("example.com:0:192.0.2.7:80", "\"0\" is no port"),
            ("example.com:https:192.0.2.7:80", "\"https\" is no port"),
            ("a b:80:192.0.2.7:80", "\"a b\" is no host"),
            ("a/b:80:192.0.2.7:80", ""),
        ] {
            match rule.parse::<ConnectTo>() {
                Ok(read) => assert_eq!((rule, read.from.0.as_deref()), ("a/b:80:192.0.2.7:80", Some("a"))),
                Err(error) => assert!(error.starts_with(want), "{rule}: {error}"),
            }
        }
    }
}
