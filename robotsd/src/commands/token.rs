//! `token`: creates a token for the admin interface. The token is shown once; the config contains
//! only its hash.

use std::io;
use std::process::ExitCode;

use super::output::print_text;
use super::running::refusal;
use crate::admin::new_token;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token, and print it once, with the table to add to the config
    #[command(after_help = "Exit status: 0, or 2 if there is no source of random numbers.")]
    New {
        /// Name of the token's owner; the audit file shows it for each change by the owner
        name: String,
    },
}

pub(crate) fn run(TokenCommand::New { name }: &TokenCommand) -> io::Result<ExitCode> {
    let (token, hash) = new_token().map_err(refusal)?;
    let name = toml::Value::from(name.as_str());
    print_text(&format!(
        "{token}\n\n# The token is not shown again. Commands read it from ROBOTSD_TOKEN, or from the file in \
         ROBOTSD_TOKEN_FILE.\n\n\
         [[admin.token]]\nname  = {name}\nhash  = \"{hash}\"\nrole  = \"read\"  # or operate, or admin (for every \
         site only)\n\
         sites = [\"*\"]   # every site; or names of sites, as in [\"shop\", \"blog-*\"]\n# until = 2027-03-31\n"
    ));
    Ok(ExitCode::SUCCESS)
}
