//! Defines the settings of a hook, the template of its request body, and the notice that it sends.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Uri};
use tower_robots::live::VersionHash;

use super::destination::HookScope;
use crate::authorities::Authorities;
use crate::date::rfc3339;
use crate::word_enum::word_enum;

/// Default timeout of one attempt.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, PartialEq)]
pub(crate) struct HookSettings {
    pub(crate) target: HookTarget,
    pub(crate) method: Method,
    pub(crate) headers: Vec<(HeaderName, HookHeader)>,
    pub(crate) body: Option<BodyTemplate>,
    pub(crate) timeout: Duration,
    pub(crate) trust: Option<Authorities>,
    /// Events that a `[[notify]]` hook reports. Empty for a site's hook, which reports every
    /// version that goes live.
    pub(crate) on: Vec<NotifyEvent>,
    /// File with the secret for signatures, which is read for each attempt.
    pub(crate) secret: Option<PathBuf>,
    pub(crate) scope: Arc<HookScope>,
}

word_enum! {
    /// An event that `[[notify]]` can report to people.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub(crate) enum NotifyEvent {
        /// The gate holds a version back.
        Waits = "waits",
        Accepted = "accepted",
        RolledBack = "rolled-back",
        /// Enforcement was switched off or on. The switch may concern one site or all sites, on
        /// this machine or in the whole fleet.
        Enforcement = "enforcement",
        /// A replica of the fleet does not respond.
        ReplicaMissing = "replica-missing",
        /// The config, or a file that it includes, is not valid.
        ConfigRejected = "config-rejected",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HookHeader {
    Text(HeaderValue),
    /// File with the value of the header, which is read for each attempt.
    File(PathBuf),
}

/// Absolute URL of a hook. The URL is displayed without its path, because the path may contain a
/// secret.
#[derive(Clone, PartialEq, Eq, derive_more::Debug, derive_more::Display)]
#[debug("{}", self.to_string())]
#[display("{}://{}", _0.scheme_str().unwrap_or_default(), self.authority())]
pub(crate) struct HookTarget(Uri);

impl HookSettings {
    /// Returns a fingerprint that identifies the hook within its site, even across restarts. Hooks
    /// with the same fingerprint send the same request.
    pub(crate) fn fingerprint(&self) -> String {
        let mut text = format!("{} {}{}\n", self.method, self.target, self.target.path());
        for (name, value) in &self.headers {
            let _ = writeln!(text, "{name}: {value:?}");
        }
        text.push_str(self.body.as_ref().map_or("", |body| &body.text));
        VersionHash::of(text.as_bytes()).to_string()
    }

    /// Returns an ID of the request that this hook sends for a notice: the `mark` of the notice
    /// and, if the body contains hosts, a hash of the hosts.
    pub(super) fn announcement(&self, notice: &Notice) -> String {
        match self.needs_host() {
            true => format!("{} {}", notice.mark, VersionHash::of(notice.hosts.join(" ").as_bytes()).short()),
            false => notice.mark.clone(),
        }
    }

    /// Returns the reason why requests to the hook's URL are never allowed.
    pub(crate) fn objection(&self) -> Option<String> {
        self.scope.objection(self.target.host(), self.target.port())
    }

    pub(super) fn needs_host(&self) -> bool {
        self.body.as_ref().is_some_and(BodyTemplate::needs_host)
    }
}

impl HookTarget {
    pub(crate) fn new(uri: Uri) -> Result<Self, &'static str> {
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err("the URL must begin with \"https://\" or \"http://\"");
        }
        let authority = uri.authority().ok_or("the URL has no host")?;
        if authority.as_str().contains('@') {
            return Err("the URL contains a user name or a password: remove them, and add \
                headers = { Authorization = { file = \"…\" } }");
        }
        let host = authority.host();
        if host.is_empty() {
            return Err("the URL has no host");
        }
        let has_port = authority.as_str().strip_prefix(host).is_some_and(|port| !port.is_empty());
        if has_port && authority.port_u16().is_none_or(|port| port == 0) {
            return Err("the port in the URL is not valid");
        }
        Ok(Self(uri))
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.0.scheme() == Some(&Scheme::HTTPS)
    }

    /// Reports whether other parties on the network could read and change the request.
    pub(crate) fn is_open(&self) -> bool {
        let is_loopback = |address: IpAddr| address.is_loopback();
        !self.is_secure() && self.host() != "localhost" && !self.host().parse().is_ok_and(is_loopback)
    }

    /// Returns the host to connect to, without the brackets of an IPv6 address, as in certificates.
    pub(super) fn host(&self) -> &str {
        self.0.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.0.port_u16().unwrap_or(if self.is_secure() { 443 } else { 80 })
    }

    /// Returns the value of the `Host` header.
    pub(super) fn authority(&self) -> &str {
        self.0.authority().map_or("", Authority::as_str)
    }

    pub(super) fn path(&self) -> PathAndQuery {
        self.0.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
    }
}

/// The news that a hook sends: a version has gone live, or an event has occurred.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notice {
    /// The event; `None` if a version has gone live.
    pub(crate) event: Option<NotifyEvent>,
    /// Name of the site whose hooks send the notice; empty for `[[notify]]`.
    pub(crate) site: String,
    /// What the notice is about: a robots.txt (`SITE` or `SITE/HOST`), a config file, or a replica;
    /// empty for all sites.
    pub(crate) name: String,
    /// The hosts of the robots.txt, without host patterns.
    pub(crate) hosts: Vec<String>,
    /// Hash of the version; `none` if the robots.txt was removed; empty if the event is not about a
    /// version.
    pub(crate) version: String,
    /// String that distinguishes the notice from the previous notice with the same subject.
    pub(crate) mark: String,
    /// Additional part of the ID, so that a notice is sent although the same notice was already
    /// sent, possibly by another replica. Empty if not needed.
    pub(crate) occasion: String,
    pub(crate) is_of_fleet: bool,
    /// Whether to send the notice if no earlier notice with the same subject is known. If `false`,
    /// the notice counts as already sent in this case.
    pub(crate) is_news: bool,
    /// The event in one sentence. `next` is the command that the operator should run next.
    pub(crate) message: String,
    pub(crate) next: String,
    pub(crate) replica: String,
    pub(crate) time: String,
}

impl Notice {
    pub(crate) fn new(event: Option<NotifyEvent>, name: &str, version: &str) -> Self {
        Self {
            event,
            name: name.to_owned(),
            version: version.to_owned(),
            mark: version.to_owned(),
            is_news: true,
            time: rfc3339(SystemTime::now()),
            ..Self::default()
        }
    }

    /// Returns the hash of the version in the short form that the log uses.
    pub(crate) fn short(&self) -> &str {
        let hash = self.version.rsplit(':').next().unwrap_or_default();
        hash.get(..16).unwrap_or(hash)
    }

    /// Returns the name of the robots.txt that the notice is about, if any.
    pub(crate) fn robots(&self) -> Option<&str> {
        let is_of_another = matches!(self.event, Some(NotifyEvent::ConfigRejected | NotifyEvent::ReplicaMissing));
        Some(&*self.name).filter(|name| !name.is_empty() && !is_of_another)
    }

    /// Reports whether the notice must not wait for other notices, because enforcement has changed,
    /// or because a replica may have missed a change.
    pub(super) const fn is_urgent(&self) -> bool {
        matches!(self.event, Some(NotifyEvent::Enforcement | NotifyEvent::ReplicaMissing))
    }

    /// Returns the subject of the notice. A notice replaces an earlier notice with the same
    /// subject.
    pub(super) fn subject(&self) -> String {
        let of = if self.is_of_fleet { "\nfleet" } else { "" };
        self.event.map_or_else(|| self.name.clone(), |event| format!("{}\n{}{of}", event.as_str(), self.name))
    }

    /// Returns the ID of the notice, so that receivers can drop duplicates. All replicas send the
    /// same ID, unless the notice is about a single replica.
    pub(crate) fn id(&self) -> String {
        VersionHash::of([&*self.subject(), &self.mark, &self.occasion].join("\n").as_bytes()).short()
    }

    /// Describes the consequence of a notice that is not sent.
    pub(super) const fn lost(&self) -> &'static str {
        if self.event.is_some() {
            "nobody was notified"
        } else {
            "caches may keep the old robots.txt until their copy expires"
        }
    }

    pub(super) fn label(&self) -> String {
        match self.event {
            None => format!("version {}", self.short()),
            Some(event) if self.name.is_empty() => event.as_str().to_owned(),
            Some(event) => format!("{} of {}", event.as_str(), self.name),
        }
    }
}

/// Default body of a notification to people.
pub(crate) const DEFAULT_BODY: &str = "{\"type\":\"{{event}}\",\"timestamp\":\"{{time}}\",\"data\":{\"site\":\"{{site}}\",\
    \"version\":\"{{version}}\",\"replica\":\"{{replica}}\",\"message\":\"{{message}}\",\"next\":\"{{next}}\"}}";

const MAX_TEMPLATE_BYTES: usize = 64 * 1024;

word_enum! {
    /// Format of a body. The format determines how values are escaped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub(crate) enum BodyFormat {
        Text = "text",
        Json = "json",
        /// JSON with Slack's markup in its strings. For example, `<!channel>` notifies everyone,
        /// and `<URL|text>` is a link.
        Slack = "slack",
    }
}

/// Top-level keys of a JSON message with Slack's markup. Other services, such as Mattermost, use
/// the same keys.
const SLACK_KEYS: [&str; 3] = ["text", "blocks", "attachments"];

/// Body of a request, with placeholders such as `{{url}}`. Values are escaped according to the
/// format of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyTemplate {
    pub(super) text: String,
    format: BodyFormat,
    needs_host: bool,
}

/// The names of the placeholders. The value of `urls` is a JSON array, or one URL per line if the
/// body has the format `text`. The value of `replica` is the replica's name in the fleet, or the
/// name of the machine. The value of `next` is the command that the operator should run next.
const PLACEHOLDERS: [&str; 11] =
    ["site", "host", "version", "url", "urls", "event", "id", "time", "replica", "message", "next"];

impl BodyTemplate {
    /// Parses a template. If `format` is `None`, a template that looks like JSON is treated as
    /// JSON, or as a Slack message if it has one of Slack's keys. JSON is validated with sample
    /// values, so that an error is found before a version goes live.
    pub(crate) fn parse(text: &str, format: Option<BodyFormat>) -> Result<Self, String> {
        if text.len() > MAX_TEMPLATE_BYTES {
            return Err(format!("the body is longer than {limit} KiB", limit = MAX_TEMPLATE_BYTES / 1024));
        }
        let start = text.trim_start();
        let begins_as_json = start.starts_with(['{', '[']) && !start.starts_with("{{");
        let usual = if begins_as_json { BodyFormat::Json } else { BodyFormat::Text };
        let mut template = Self { text: text.to_owned(), format: format.unwrap_or(usual), needs_host: false };
        let hosts = vec!["a.example".to_owned(), "b.example".to_owned()];
        let notice = Notice { hosts, ..Notice::new(None, "a \"site\"", "sha256:00") };
        let mut names = Vec::new();
        let tried = fill(text, |name| {
            names.push(name.to_owned());
            template.value(name, &notice)
        })?;
        if template.format != BodyFormat::Text {
            let is = if format.is_some() { "the body must be JSON" } else { "the body begins like JSON" };
            let fault = |error: serde_json::Error| {
                format!(
                    "{is}, but is not valid JSON after the placeholders are replaced: {error}; write placeholders in \
                     quotes, but {{{{urls}}}} without quotes"
                )
            };
            let tried: serde_json::Value = serde_json::from_str(&tried).map_err(fault)?;
            if format.is_none() && SLACK_KEYS.iter().any(|key| tried.get(key).is_some()) {
                template.format = BodyFormat::Slack;
            }
        }
        template.needs_host = names.iter().any(|name| matches!(&**name, "host" | "url" | "urls"));
        Ok(template)
    }

    pub(crate) const fn needs_host(&self) -> bool {
        self.needs_host
    }

    pub(super) const fn content_type(&self) -> &'static str {
        match self.format {
            BodyFormat::Text => "text/plain; charset=utf-8",
            BodyFormat::Json | BodyFormat::Slack => "application/json",
        }
    }

    pub(super) fn render(&self, notice: &Notice) -> String {
        // Filling the template cannot fail, because the template was validated when it was parsed.
        fill(&self.text, |name| self.value(name, notice)).unwrap_or_default()
    }

    fn value(&self, name: &str, notice: &Notice) -> Option<String> {
        let host = notice.hosts.first().map_or("", String::as_str);
        let urls = notice.hosts.iter().map(|host| url(host));
        Some(match name {
            "site" => self.escaped(notice.robots().unwrap_or_default()),
            "host" => self.escaped(host),
            "version" => self.escaped(&notice.version),
            "url" => self.escaped(&url(host)),
            "urls" if self.format == BodyFormat::Text => {
                urls.map(|url| self.escaped(&url)).collect::<Vec<_>>().join("\n")
            }
            "urls" => serde_json::Value::from_iter(urls).to_string(),
            "event" => notice.event.map_or("published", NotifyEvent::as_str).to_owned(),
            "id" => notice.id(),
            "time" => notice.time.clone(),
            "replica" => self.escaped(&notice.replica),
            "message" => self.escaped(&notice.message),
            "next" => self.escaped(&notice.next),
            _ => return None,
        })
    }

    /// Escapes a value so that it can be inserted into a string of the body.
    fn escaped(&self, value: &str) -> String {
        let in_json = |value: &str| {
            let quoted = serde_json::Value::from(value).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        match self.format {
            BodyFormat::Text => value.replace(char::is_control, "\u{fffd}"),
            BodyFormat::Json => in_json(value),
            // Slack requires only that `&`, `<` and `>` are escaped:
            // https://api.slack.com/reference/surfaces/formatting#escaping
            BodyFormat::Slack => in_json(&value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")),
        }
    }
}

/// Replaces the placeholders in `text` by their values. `{{{{` is replaced by `{{`.
fn fill(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        if let Some(after) = after.strip_prefix("{{") {
            filled.push_str("{{");
            rest = after;
            continue;
        }
        let Some((name, after)) = after.split_once("}}") else {
            return Err(
                "the end of a placeholder is missing: write }} after its name, or {{{{ for two braces".to_owned()
            );
        };
        let Some(value) = value(name.trim()) else {
            let name: String = name.chars().take(40).collect();
            return Err(format!(
                "there is no placeholder {name:?}: write one of {known}",
                name = name.trim(),
                known = PLACEHOLDERS.join(", ")
            ));
        };
        filled.push_str(&value);
        rest = after;
    }
    Ok(filled + rest)
}

fn url(host: &str) -> String {
    format!("https://{host}/robots.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        let hosts = vec!["shop.test".to_owned(), "www.shop.test".to_owned()];
        let template = BodyTemplate::parse(text, None).expect("a template");
        template.render(&Notice { hosts, ..Notice::new(None, "a\"\\\n", "sha256:12") })
    }

    #[test]
    fn placeholder_values_are_escaped_for_the_format_of_the_body() {
        assert_eq!(rendered("{\"site\":\"{{site}}\"}"), r#"{"site":"a\"\\\n"}"#);
        assert_eq!(rendered("site={{ site }}"), "site=a\"\\\u{fffd}");
        let want = "{\"files\": [\"https://shop.test/robots.txt\",\"https://www.shop.test/robots.txt\"]}";
        assert_eq!(rendered("{\"files\": {{urls}}}"), want);
        assert_eq!(rendered("{{urls}}"), "https://shop.test/robots.txt\nhttps://www.shop.test/robots.txt");
        let expected = "https://shop.test/robots.txt shop.test sha256:12 {{x}}";
        assert_eq!(rendered("{{url}} {{host}} {{version}} {{{{x}}"), expected);
    }

    #[test]
    fn placeholder_values_cannot_add_markup_to_a_slack_message() {
        let hostile = "<!channel> <https://evil.test|approve> & \"x\"";
        let rendered = |text: &str, format| {
            let template = BodyTemplate::parse(text, format).expect(text);
            template.render(&Notice { message: hostile.to_owned(), ..Notice::new(None, "", "") })
        };
        let escaped = "&lt;!channel&gt; &lt;https://evil.test|approve&gt; &amp; \\\"x\\\"";
        for (text, format) in [
            ("{\"text\": \"*{{message}}*\"}", None),
            ("{\"attachments\": [{\"text\": \"*{{message}}*\"}]}", None),
            ("{\"blocks\": [{\"text\": {\"text\": \"*{{message}}*\"}}]}", None),
            ("{\"fields\": {\"a\": \"*{{message}}*\"}}", Some(BodyFormat::Slack)),
        ] {
            assert_eq!(rendered(text, format), text.replace("{{message}}", escaped));
        }
        let json = "<!channel> <https://evil.test|approve> & \\\"x\\\"";
        let cases = [("{\"content\": \"{{message}}\"}", None), ("{\"text\": \"{{message}}\"}", Some(BodyFormat::Json))];
        for (text, format) in cases {
            assert_eq!(rendered(text, format), text.replace("{{message}}", json));
        }
        for (text, format) in [("{{message}}", None), ("{\"text\": {{message}}}", Some(BodyFormat::Text))] {
            assert_eq!(rendered(text, format), text.replace("{{message}}", hostile));
        }
        let why = BodyTemplate::parse("text {{message}}", Some(BodyFormat::Slack)).expect_err("no JSON");
        let want = "the body must be JSON, but is not valid JSON after the placeholders are replaced: ";
        assert!(why.starts_with(want), "{why}");
    }

    #[test]
    fn the_error_for_an_invalid_body_template_explains_the_problem() {
        for (text, begins) in [
            (
                "{{hosst}}",
                "there is no placeholder \"hosst\": write one of site, host, version, url, urls, event, id, ",
            ),
            ("{{host", "the end of a placeholder is missing"),
            (
                "{\"version\": {{version}}}",
                "the body begins like JSON, but is not valid JSON after the placeholders are replaced: ",
            ),
            ("{\"files\": \"{{urls}}\"}", "the body begins like JSON, but is not valid JSON"),
            ("[1,]", "the body begins like JSON, but is not valid JSON"),
        ] {
            let message = BodyTemplate::parse(text, None).expect_err(text);
            assert!(message.starts_with(begins), "{text}: {message}");
        }
        assert!(BodyTemplate::parse(&"x".repeat(MAX_TEMPLATE_BYTES + 1), None).is_err());
    }
}
