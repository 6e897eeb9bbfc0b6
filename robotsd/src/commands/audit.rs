//! `audit`: who changed what, as the file of the audit has it.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use super::output::say;
use super::running::refusal;
use crate::audit::{AuditRecord, read};
use crate::config::{StatePlace, config_if_any};
use crate::exit::complain;
use crate::render::{plural, printable, short_hash};

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// The config file, which says where the audit is [default: $ROBOTSD_CONFIG, else /etc/robotsd/robotsd.toml]
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,

    /// The file of an audit [default: from the config]
    file: Option<PathBuf>,

    /// What concerned this site, or every site
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    /// What this token or user did, or was refused
    #[arg(long, value_name = "NAME")]
    who: Option<String>,

    /// What happened since then: a time such as 2027-03-31T08:00:00Z, a day such as 2027-03-31, or how long ago, as in 7days
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<SystemTime>,

    /// Write JSON, an object a line
    #[arg(long)]
    json: bool,
}

fn since(text: &str) -> Result<SystemTime, String> {
    let ago = |ago: Duration| SystemTime::now().checked_sub(ago);
    let moment = humantime::parse_rfc3339(text).or_else(|_| humantime::parse_rfc3339(&format!("{text}T00:00:00Z")));
    let moment = moment.ok().or_else(|| humantime::parse_duration(text).ok().and_then(ago));
    moment.ok_or_else(|| "write a time such as 2027-03-31T08:00:00Z, a day such as 2027-03-31, or 7days".to_owned())
}

/// Exit status: 0, or 2 where there is no audit to read.
pub(crate) fn run(args: &AuditArgs) -> io::Result<ExitCode> {
    let path = match &args.file {
        Some(file) => file.clone(),
        None => place(args).map_err(refusal)?,
    };
    let (records, broken) = read(&path).map_err(|error| refusal(format_args!("{}: {error}", path.display())))?;
    if broken > 0 {
        complain(&format_args!("{}: {} cannot be read", path.display(), plural(broken, "line")));
    }
    let mut out = String::new();
    for record in records.iter().filter(|record| args.wants(record)) {
        let line = if args.json { serde_json::to_string(record).map_err(io::Error::other)? } else { text(record) };
        let _ = writeln!(out, "{line}");
    }
    say(&out);
    Ok(ExitCode::SUCCESS)
}

fn place(args: &AuditArgs) -> Result<PathBuf, String> {
    let path = config_if_any(args.config.as_deref()).ok_or("there is no config: name it with --config FILE")?;
    let StatePlace { audit, .. } = StatePlace::load(&path).map_err(|error| error.to_string())?;
    let path = path.display();
    audit.ok_or_else(|| {
        format!("{path}: there is no audit but in the log: write state_dir, or audit = \"…\" in [admin]")
    })
}

impl AuditArgs {
    fn wants(&self, record: &AuditRecord) -> bool {
        let of_site = |wanted: &String| record.site.as_ref().is_some_and(|site| site == "*" || site == wanted);
        let is_later = |since: &SystemTime| humantime::parse_rfc3339(&record.ts).is_ok_and(|then| then >= *since);
        self.site.as_ref().is_none_or(of_site)
            && self.who.as_ref().is_none_or(|who| record.who.as_ref() == Some(who))
            && self.since.as_ref().is_none_or(is_later)
    }
}

/// As in `2027-03-31T08:00:00.000Z done: enforce * (on → off), by alice (token, 10.0.0.7) on web-2: "reason"`.
fn text(record: &AuditRecord) -> String {
    let AuditRecord { ts, who, how, from, replica, action, site, before, after, reason, result, .. } = record;
    let short = |text: &Option<String>| short_hash(text.as_deref().unwrap_or("-")).to_owned();
    let mut line = format!("{ts} {result}: {action}");
    let _ = site.iter().try_for_each(|site| write!(line, " {site}"));
    if before.is_some() || after.is_some() {
        let _ = write!(line, " ({} → {})", short(before), short(after));
    }
    let _ = write!(line, ", by {} ({how}", who.as_deref().unwrap_or("someone unknown"));
    let _ = from.iter().try_for_each(|from| write!(line, ", {from}"));
    let _ = write!(line, ") on {replica}");
    let _ = reason.iter().try_for_each(|reason| write!(line, ", reason {reason:?}"));
    let _ = record.message.iter().try_for_each(|message| write!(line, ": {message}"));
    let _ = record.left_out.iter().try_for_each(|more| write!(line, " (and {} before it)", plural(*more, "refusal")));
    printable(line)
}
