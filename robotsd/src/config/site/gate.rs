//! The settings of the gate, which holds back new versions of a robots.txt.

use std::path::{Path, PathBuf};

use toml::Spanned;
use tower_robots::check::Severity;
use tower_robots::live::{Gate, VersionHashPrefix};

use super::source::{RawRobots, SourceKind};
use crate::config::{Fault, Placed, parsed, tables, words};

tables! {
    /// Conditions for a version to go live without being accepted by hand.
    RawGate {
        enabled: bool = true,
        refuse_findings: RefuseFindings,
        /// Whether the pages in a site's own sitemaps must stay allowed.
        sitemaps: bool = true,
        /// File with pages that must stay allowed, for every site.
        urls: Option<Spanned<PathBuf>>,
        must_allow: Vec<RawMustAllow>,
        accept: Vec<Spanned<String>>,
    }

    RawMustAllow {
        agents: Spanned<Vec<String>>,
        paths: Spanned<Vec<String>>,
    }
}

words! {
    /// The lowest severity of findings that hold a version back.
    RefuseFindings {
        #[default]
        None = "none",
        Error = "error",
        Warning = "warning",
    }
}

pub(in crate::config) fn resolve(file: &RawGate) -> Result<Option<Gate>, Fault> {
    let accepted = file.accept.iter().map(parsed::<VersionHashPrefix>).collect::<Result<Vec<_>, _>>()?;
    let mut gate = Gate::new().accept(accepted);
    gate = match file.refuse_findings {
        RefuseFindings::None => gate,
        RefuseFindings::Error => gate.refuse_findings(Severity::Error),
        RefuseFindings::Warning => gate.refuse_findings(Severity::Warning),
    };
    for must in &file.must_allow {
        let (agents, paths) = (must.agents.get_ref(), must.paths.get_ref());
        if agents.is_empty() || agents.iter().any(|agent| agent.trim().is_empty()) {
            return Err(must.agents.fault("\"must_allow\" requires agents: write names such as \"Googlebot\", or \"*\" for crawlers without a group"));
        }
        if paths.is_empty() || !paths.iter().all(|path| path.starts_with('/')) {
            return Err(must.paths.fault("\"must_allow\" requires paths: write paths that begin with \"/\""));
        }
        gate = gate.must_allow(agents, paths);
    }
    Ok((file.enabled).then_some(gate))
}

/// The files that the gate of a site uses to check a new version, except the file of expectations.
///
/// A comparison with `==` ignores the positions of [`Spanned`] values in the config.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GateBasis {
    /// File in version control whose content counts as the last accepted version.
    pub(crate) baseline: Option<Spanned<PathBuf>>,
    /// File with pages that must stay allowed.
    pub(crate) urls: Option<Spanned<PathBuf>>,
    /// Whether the pages in the site's own sitemaps must stay allowed.
    pub(crate) sitemaps: bool,
}

impl GateBasis {
    /// Resolves the files of a site. A site with one robots.txt per host cannot have a baseline or
    /// a list of pages, because one file would not suit all hosts.
    pub(in crate::config) fn resolve(gate: &RawGate, robots: &RawRobots, folder: &Path) -> Result<Self, Fault> {
        let is_directory = robots.source.as_ref().is_some_and(|source| *source.get_ref() == SourceKind::Directory);
        let own = [("baseline", &robots.baseline), ("urls", &robots.urls)];
        for (key, written) in own.into_iter().filter(|_| is_directory) {
            if let Some(written) = written {
                let message = format!(
                    "{key:?} is for one robots.txt, but source = \"directory\" has one for each host: write a separate \
                     [[site]] for each host that needs this key"
                );
                return Err(written.fault(message));
            }
        }
        let of_gate = gate.urls.as_ref().filter(|_| !is_directory);
        let file = |written: &Spanned<PathBuf>| match written.get_ref() {
            path if path.as_os_str().is_empty() => Err(written.fault("the path is empty: write the path of a file")),
            path => Ok(Spanned::new(written.span(), folder.join(path))),
        };
        Ok(Self {
            baseline: robots.baseline.as_ref().map(file).transpose()?,
            urls: robots.urls.as_ref().or(of_gate).map(file).transpose()?,
            sitemaps: gate.sitemaps && !is_directory,
        })
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.baseline.iter().chain(&self.urls).map(|file| &**file.get_ref())
    }
}
