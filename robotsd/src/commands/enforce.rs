//! `robotsd enforce`: switches enforcement, of a site or of all.

use std::process::ExitCode;

use tower_robots::live::{Enforcement, StateDir, StateDirInUse};

use super::arguments::running::{Running, query};
use super::operator_decision::{send, without_config, without_state};
use crate::config::StatePlace;
use crate::report::ChangeReport;
use crate::sites::unknown;

#[derive(Debug, clap::Args)]
pub(crate) struct EnforceArgs {
    #[command(flatten)]
    running: Running,

    /// Whether disallowed requests are refused, tagged and logged
    to: To,

    /// Switch this site only
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum To {
    /// The mode of each site decides
    On,
    /// Every request passes; /robots.txt is served as before
    Off,
}

pub(crate) fn run(args: &EnforceArgs) -> ExitCode {
    let to = match args.to {
        To::On => Enforcement::On,
        To::Off => Enforcement::Off,
    };
    let mut pairs = vec![("to", to.as_str())];
    pairs.extend(args.site.as_deref().map(|site| ("site", site)));
    send(&args.running, &query("/enforce", &pairs), &|running| {
        // Read by itself: the switch has to work while the rest of the config does not.
        let path = running.config_path().ok_or_else(without_config)?;
        let StatePlace { folder, sites } = StatePlace::load(&path).map_err(|error| error.to_string())?;
        let folder = folder.ok_or_else(|| without_state(&path))?;
        let state = StateDir::open(&folder).map_err(|error| in_use(&error))?;
        let (of, written) = match &args.site {
            Some(name) if !sites.contains(name) => return Err(unknown(name, &sites)),
            Some(name) => (format!("site {name:?}"), state.set_enforcement_of(name, to)),
            None => ("every site".to_owned(), state.set_enforcement(to)),
        };
        written.map_err(|error| error.to_string())?;
        Ok(ChangeReport {
            site: args.site.clone(),
            enforcement: Some(to.as_str().to_owned()),
            kept: true,
            ..ChangeReport::new(format!("enforcement of {of} is switched {to} in {}", folder.display()))
        })
    })
}

/// The switch of a process that runs is in its memory, so what is written behind its back would change nothing.
fn in_use(error: &StateDirInUse) -> String {
    let stop = match error.process() {
        Some(process) => format!("`kill {process}`"),
        None => "stop that process".to_owned(),
    };
    format!(
        "{error}. To switch it while it runs, name its admin interface with --admin PLACE; else end it first ({stop}), and \
         switch before the next start"
    )
}
