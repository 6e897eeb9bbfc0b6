//! `robotsd rollback`: publishes the version of a site that was accepted before.

use std::process::ExitCode;

use super::arguments::running::{Running, query};
use super::operator_decision::decide;
use crate::sites::roll_back_at_rest;

#[derive(Debug, clap::Args)]
pub(crate) struct RollbackArgs {
    #[command(flatten)]
    running: Running,

    /// The site, by its name
    site: String,
}

pub(crate) fn run(args: &RollbackArgs) -> ExitCode {
    let target = query("/rollback", &[("site", &args.site)]);
    decide(&args.running, &target, &|config| roll_back_at_rest(config, &args.site))
}
