//! An entry for fuzzing: lines of logs, which hold what clients sent.

use clap::ValueEnum;

use super::{ChunkReader, FIELDS, JsonKeys, LogLine, ReplayLogFormat};

/// A line in every format. The format that is found for it is one that reads it, if any does.
pub fn log_line(octets: &[u8]) {
    let keys = JsonKeys::default();
    for format in ReplayLogFormat::value_variants() {
        if let Some(request) = format.read(octets, &keys) {
            assert!(request.target.len() <= octets.len() && request.agent.len() <= octets.len() * 3);
        }
        assert!(format.detect(&keys, octets) != ReplayLogFormat::Auto, "a format that is not found");
    }
    let mut reader = ChunkReader::new(ReplayLogFormat::W3c, &keys, octets);
    reader.read(&[FIELDS, b" date time c-ip cs-method cs-uri-stem cs-uri-query cs(User-Agent)"].concat());
    if let LogLine::Request(request) = reader.read(octets) {
        assert!(request.target.len() <= octets.len() && request.agent.len() <= octets.len());
    }
    // A line that is wrapped has no more than the wrapper.
    if let LogLine::Request(request) = ChunkReader::new(ReplayLogFormat::Auto, &keys, octets).read(octets) {
        assert!(request.target.len() <= octets.len() && request.agent.len() <= octets.len() * 3);
    }
}
