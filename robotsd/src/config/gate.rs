//! The gate, without the expectations of each site.

use toml::Spanned;
use tower_robots::check::Severity;
use tower_robots::live::{Gate, GateBuilder, VersionHash};

use super::error::Fault;
use super::toml_tables::{self, GateMode, RefuseFindings};

/// `None` where the gate is off.
pub(super) fn resolve(file: &toml_tables::RawGate) -> Result<Option<GateBuilder>, Fault> {
    let hash = |text: &Spanned<String>| {
        text.get_ref().parse::<VersionHash>().map_err(|error| Fault::new(text.span(), error.to_string()))
    };
    let mut gate = Gate::builder().accept(file.accept.iter().map(hash).collect::<Result<Vec<_>, _>>()?);
    gate = match file.refuse_findings {
        RefuseFindings::None => gate,
        RefuseFindings::Error => gate.refuse_findings(Severity::Error),
        RefuseFindings::Warning => gate.refuse_findings(Severity::Warning),
    };
    for must in &file.must_allow {
        let (agents, paths) = (must.agents.get_ref(), must.paths.get_ref());
        if agents.is_empty() || agents.iter().any(|agent| agent.trim().is_empty()) {
            let message = "must_allow needs agents: write \"*\" for a crawler that no group names";
            return Err(Fault::new(must.agents.span(), message));
        }
        if paths.is_empty() || !paths.iter().all(|path| path.starts_with('/')) {
            return Err(Fault::new(must.paths.span(), "must_allow needs paths, such as \"/\""));
        }
        gate = gate.must_allow(agents, paths);
    }
    Ok((file.mode == GateMode::On).then_some(gate))
}
