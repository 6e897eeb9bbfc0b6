//! `audit`: shows who changed what, from the audit file.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use askama::Template;

use super::output::print_text;
use super::running::refusal;
use crate::audit::{AuditRecord, read};
use crate::config::{StateSettings, config_if_any};
use crate::exit::complain;
use crate::render::{plural, short_hash};
use crate::report::is_of;
use crate::sites::unknown;

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// The config file, which contains the path of the audit file [default: $ROBOTSD_CONFIG, else
    /// /etc/robotsd/robotsd.toml]
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,

    /// The audit file [default: from the config]
    file: Option<PathBuf>,

    /// Show only entries about this site and entries about all sites
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    /// Show only entries of this token or user
    #[arg(long, value_name = "NAME")]
    who: Option<String>,

    /// Show only entries since this time: a time such as 2027-03-31T08:00:00Z, a day such as
    /// 2027-03-31, or a duration such as 7days
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<SystemTime>,

    /// Print the entries as JSON, one object per line
    #[arg(long)]
    json: bool,
}

fn parse_since(text: &str) -> Result<SystemTime, String> {
    let ago = |ago: Duration| SystemTime::now().checked_sub(ago);
    let moment = humantime::parse_rfc3339(text).or_else(|_| humantime::parse_rfc3339(&format!("{text}T00:00:00Z")));
    let moment = moment.ok().or_else(|| humantime::parse_duration(text).ok().and_then(ago));
    moment.ok_or_else(|| "write a time such as 2027-03-31T08:00:00Z, a day such as 2027-03-31, or 7days".to_owned())
}

pub(crate) fn run(args: &AuditArgs) -> io::Result<ExitCode> {
    let (path, sites) = match &args.file {
        Some(file) => (file.clone(), Vec::new()),
        None => audit_file_and_sites(args).map_err(refusal)?,
    };
    let (records, broken) = match read(&path) {
        Err(error) if args.file.is_none() && error.kind() == io::ErrorKind::NotFound => {
            complain(&format_args!(
                "{}: the audit file does not exist yet, because no command or config has changed anything",
                path.display()
            ));
            (Vec::new(), 0)
        }
        read => read.map_err(|error| refusal(format_args!("{}: {error}", path.display())))?,
    };
    if broken > 0 {
        complain(&format_args!("{}: {} cannot be read", path.display(), plural(broken, "line")));
    }
    // A site that is only in the audit file also counts as known, because it may have been removed
    // from the config.
    let mut known = sites.iter().chain(records.iter().filter_map(|record| record.site.as_ref()));
    if let Some(name) =
        args.site.as_ref().filter(|name| !sites.is_empty() && !known.any(|known| are_related(known, name)))
    {
        return Err(refusal(unknown(name, &sites)));
    }
    let mut out = String::new();
    for record in records.iter().filter(|record| args.matches_filters(record)) {
        match args.json {
            true => out.push_str(&serde_json::to_string(record).map_err(io::Error::other)?),
            false => out.push_str(&RecordText { record }.to_string()),
        }
        out.push('\n');
    }
    print_text(&out);
    Ok(ExitCode::SUCCESS)
}

fn audit_file_and_sites(args: &AuditArgs) -> Result<(PathBuf, Vec<String>), String> {
    let path = config_if_any(args.config.as_deref()).ok_or("no config was found: give one with --config FILE")?;
    let StateSettings { audit, sites, .. } = StateSettings::load(&path).map_err(|error| error.to_string())?;
    let path = path.display();
    let none = || format!("{path}: the config names no audit file: set state_dir, or write audit = \"…\" in [admin]");
    Ok((audit.ok_or_else(none)?, sites))
}

impl AuditArgs {
    fn matches_filters(&self, record: &AuditRecord) -> bool {
        let of_site =
            |wanted: &String| record.site.as_ref().is_some_and(|site| site == "*" || are_related(site, wanted));
        let is_later = |since: &SystemTime| humantime::parse_rfc3339(&record.ts).is_ok_and(|then| then >= *since);
        self.site.as_ref().is_none_or(of_site)
            && self.who.as_ref().is_none_or(|who| record.who.as_ref() == Some(who))
            && self.since.as_ref().is_none_or(is_later)
    }
}

/// Reports whether the names refer to the same site, or to a site and one of its robots.txt files.
fn are_related(site: &str, other: &str) -> bool {
    is_of(site, other) || is_of(other, site)
}

#[derive(Template)]
#[template(path = "commands/audit.txt", whitespace = "preserve")]
struct RecordText<'a> {
    record: &'a AuditRecord,
}

fn short_or_dash(text: Option<&str>) -> &str {
    short_hash(text.unwrap_or("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_filter_includes_entries_about_the_files_of_the_site() {
        let args = |site: &str| {
            let site = Some(site.to_owned());
            AuditArgs { config: None, file: None, site, who: None, since: None, json: false }
        };
        for (wanted, site, is_shown) in [
            ("docs", "docs/a.test", true),
            ("docs/a.test", "docs/a.test", true),
            ("docs/a.test", "docs", true),
            ("docs/a.test", "*", true),
            ("docs/a.test", "docs/b.test", false),
            ("docs", "docs-2", false),
        ] {
            let record = AuditRecord { site: Some(site.to_owned()), ..AuditRecord::default() };
            assert_eq!(args(wanted).matches_filters(&record), is_shown, "{wanted} {site}");
        }
    }
}
