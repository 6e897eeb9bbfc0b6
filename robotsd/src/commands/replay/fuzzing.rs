//! Entries for fuzzing: lines of access logs.

use super::format::ReplayLogFormat;

/// A line in every format. The format that is found for it is one that reads it, if any does.
pub fn log_line(octets: &[u8]) {
    for format in [
        ReplayLogFormat::Auto,
        ReplayLogFormat::Common,
        ReplayLogFormat::Combined,
        ReplayLogFormat::VhostCombined,
        ReplayLogFormat::Json,
    ] {
        if let Some(request) = format.read(octets) {
            assert!(request.target.len() <= octets.len() && request.agent.len() <= octets.len() * 3);
        }
        assert!(format.detect(octets) != ReplayLogFormat::Auto, "a format that is not found");
    }
}
