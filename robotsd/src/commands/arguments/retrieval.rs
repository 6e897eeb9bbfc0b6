//! How what a command line names by URL is fetched.

use std::path::PathBuf;
use std::time::Duration;

use crate::retrieval::{ConnectTo, RetrievalSettings};

/// The least and the most time for a request.
const TIMES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(600));

/// What the options stand under in `--help`: as the next heading of a struct it would stay for the options behind it.
const HEADING: &str = "Fetching a robots.txt that is named by its URL";

#[derive(Debug, clap::Args)]
pub(super) struct RetrievalArgs {
    /// How long a request may take, such as 10s; redirects are requests of their own
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time, hide_short_help = true, help_heading = HEADING)]
    timeout: Duration,

    /// Connect to another address for this host and port, such as example.com:443:192.0.2.7:443: a server that the name does
    /// not lead to yet; may be repeated
    ///
    /// The name stays that of the URL, in the request and for the certificate. A part that is empty is any, or the same.
    #[arg(long, value_name = "HOST:PORT:ADDRESS:PORT", hide_short_help = true, help_heading = HEADING)]
    connect_to: Vec<ConnectTo>,

    /// Trust the certificate authorities of this file (PEM) too
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = HEADING)]
    cacert: Option<PathBuf>,
}

fn time(text: &str) -> Result<Duration, String> {
    let (least, most) = TIMES;
    match humantime::parse_duration(text) {
        Ok(time) if (least..=most).contains(&time) => Ok(time),
        _ => Err("write a time from 100ms to 10m, such as 30s".to_owned()),
    }
}

impl RetrievalArgs {
    pub(super) fn settings(&self) -> RetrievalSettings {
        RetrievalSettings { within: self.timeout, connect_to: self.connect_to.clone(), trusted: self.cacert.clone() }
    }
}
