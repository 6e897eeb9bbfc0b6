//! A version that is live, as hooks announce it.

/// A version that is live.
#[derive(Clone, Debug)]
pub(crate) struct PublishedVersion {
    /// The site, by which its hooks are known.
    pub(crate) site: String,
    /// The name of the robots.txt: `SITE`, or `SITE/HOST`.
    pub(crate) name: String,
    /// Its hosts, patterns left out.
    pub(crate) hosts: Vec<String>,
    /// Its hash; `none` where there is no robots.txt any more.
    pub(crate) version: String,
}

impl PublishedVersion {
    /// The hash as the log shows it.
    pub(crate) fn short(&self) -> &str {
        let hash = self.version.rsplit(':').next().unwrap_or_default();
        hash.get(..16).unwrap_or(hash)
    }
}
