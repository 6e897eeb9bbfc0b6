//! The settings of a store: its address, login, keys and time limit.

use std::fmt;
use std::time::Duration;

use redis::{ConnectionInfo, IntoConnectionInfo};

/// The settings of a store.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
pub struct StoreSettings {
    /// The URL of the store.
    pub url: StoreUrl,
    /// Password that is used instead of the password in the URL.
    #[debug(skip)]
    pub password: Option<String>,
    /// Certificate authorities, in PEM, that are trusted instead of the system's certificate
    /// authorities.
    #[debug(skip)]
    pub ca: Option<Vec<u8>>,
    /// Whether the store is a single server or a cluster.
    pub nodes: StoreNodes,
    /// The prefix of all keys.
    pub prefix: String,
    /// Maximum time that a request waits for the store, at most
    /// [`MAX_DEADLINE`](Self::MAX_DEADLINE).
    pub deadline: Duration,
}

/// Kind of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreNodes {
    /// A single server.
    #[default]
    One,
    /// A cluster. The server in the URL is a node of the cluster.
    Cluster,
}

/// The URL of a store: `redis://…`, or `rediss://…` with TLS.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("{:?}", self.to_string())]
pub struct StoreUrl(String);

/// End of the messages about an invalid URL, with examples of valid URLs.
const URL_HINT: &str =
    "write a URL such as \"redis://10.0.0.5:6379\", or with a user and TLS \"rediss://robotsd@cache.internal:6380\"";

impl StoreUrl {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the string is not a valid URL of a store. The error does not contain the
    /// string, because the string may contain a password.
    pub fn new(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!("the store is not a URL: {URL_HINT}"));
        };
        if !matches!(scheme, "redis" | "rediss") {
            return Err(format!(
                "the URL of a store must begin with \"redis://\", or \"rediss://\" with TLS: {URL_HINT}"
            ));
        }
        if rest.contains(['?', '#']) {
            return Err(format!("the URL of a store must not contain \"?\" or \"#\": {URL_HINT}"));
        }
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        if host.is_empty() || host.starts_with(['/', ':']) {
            return Err(format!("the URL of the store has no host: {URL_HINT}"));
        }
        match text.into_connection_info() {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => {
                // The library's message is fixed text up to the separator. The text after the
                // separator may contain the URL, so it is left out.
                let why = error.to_string();
                let why =
                    why.split(" - ").next().unwrap_or_default().trim_end_matches(|end: char| !end.is_alphanumeric());
                Err(format!("the URL of the store cannot be used ({why}): {URL_HINT}"))
            }
        }
    }

    /// Reports whether the connection uses TLS.
    pub fn is_encrypted(&self) -> bool {
        self.0.starts_with("rediss:")
    }

    /// Reports whether the URL contains a password.
    pub fn has_password(&self) -> bool {
        self.info().is_ok_and(|info| info.redis_settings().password().is_some())
    }

    pub(crate) fn info(&self) -> Result<ConnectionInfo, String> {
        self.0.as_str().into_connection_info().map_err(|_| format!("the URL of the store cannot be used: {URL_HINT}"))
    }
}

/// Formats only scheme, host and port, which are not secret.
impl fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or_default();
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        write!(formatter, "{scheme}://{}", host.trim_end_matches('/'))
    }
}

impl StoreSettings {
    /// Default prefix of keys.
    pub const PREFIX: &str = "robotsd:rate:";
    /// Default of [`deadline`](Self::deadline). This default is less than
    /// [`MAX_DEADLINE`](Self::MAX_DEADLINE), because timers have a resolution of one millisecond
    /// and workers may be busy.
    pub const DEADLINE: Duration = Duration::from_millis(12);
    /// Upper limit of [`deadline`](Self::deadline).
    pub const MAX_DEADLINE: Duration = Duration::from_millis(20);

    /// Creates settings with the defaults.
    pub fn new(url: StoreUrl) -> Self {
        Self {
            url,
            password: None,
            ca: None,
            nodes: StoreNodes::default(),
            prefix: Self::PREFIX.to_owned(),
            deadline: Self::DEADLINE,
        }
    }

    /// Returns the address of the store, without secrets.
    pub fn place(&self) -> String {
        self.url.to_string()
    }

    /// Returns the settings for the connection, including the password.
    pub(crate) fn info(&self) -> Result<ConnectionInfo, String> {
        let info = self.url.info()?;
        let Some(password) = &self.password else { return Ok(info) };
        let login = info.redis_settings().clone().set_password(password);
        Ok(info.set_redis_settings(login))
    }

    /// Returns all strings that contain a password: decoded from the URL, as written in the URL,
    /// and from `password`.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let sent = self.url.info().ok().and_then(|info| info.redis_settings().password().map(str::to_owned));
        let login = self.url.0.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        let written = login.and_then(|(login, _)| login.split_once(':')).map(|(_, password)| password.to_owned());
        [sent, written, self.password.clone()].into_iter().flatten().filter(|secret| !secret.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_an_unusable_store_url_does_not_contain_its_password() {
        let refused = [
            ("", "is not a URL"),
            ("10.0.0.5:6379", "is not a URL"),
            ("http://10.0.0.5:6379", "must begin with \"redis://\""),
            ("redis+unix:///run/redis.sock", "must begin with \"redis://\""),
            ("redis://", "has no host"),
            ("redis://:6379", "has no host"),
            ("redis://u:hunter2@/0", "has no host"),
            ("redis://u:hunter2@cache:port", "cannot be used"),
            ("redis://u:hunter2@cache:6379/zero", "cannot be used"),
            ("rediss://cache:6379/#insecure", "or \"#\""),
            ("redis://cache:6379?protocol=resp3", "not contain \"?\""),
        ];
        for (url, why) in refused {
            let error = StoreUrl::new(url).unwrap_err();
            assert!(error.contains(why) && error.contains("\"redis://10.0.0.5:6379\""), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn store_settings_are_shown_without_user_name_and_password() {
        let url = StoreUrl::new("rediss://robotsd:hunter2@cache.internal:6380/2").unwrap();
        assert!(url.is_encrypted() && url.has_password());
        let (password, ca) = (Some("swordfish".to_owned()), Some(b"PEM".to_vec()));
        let settings = StoreSettings { password, ca, ..StoreSettings::new(url) };
        assert_eq!(settings.place(), "rediss://cache.internal:6380/2");
        let shown = format!("{settings:?} {settings:#?}");
        assert!(!shown.contains("hunter2") && !shown.contains("swordfish") && !shown.contains("robotsd@"), "{shown}");
        let info = settings.info().unwrap();
        assert_eq!(info.redis_settings().username(), Some("robotsd"));
        assert_eq!(info.redis_settings().password(), Some("swordfish"));
        for plain in ["redis://cache", "redis://[::1]:6379", "redis://10.0.0.5:6379/0", "redis://u@cache"] {
            let url = StoreUrl::new(plain).unwrap();
            assert!(!url.is_encrypted() && !url.has_password(), "{plain}");
        }
    }
}
