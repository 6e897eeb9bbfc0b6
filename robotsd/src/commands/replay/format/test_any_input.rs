//! Entry point for fuzzing log lines, which contain what clients sent.

use clap::ValueEnum;

use super::{ChunkReader, FIELDS, JsonKeys, LogLine, ReplayLogFormat};

/// Parses a line in every format. Detection must always return a format.
pub fn log_line(bytes: &[u8]) {
    let keys = JsonKeys::default();
    for format in ReplayLogFormat::value_variants() {
        if let Some(request) = format.read(bytes, &keys) {
            assert!(request.target.len() <= bytes.len() && request.agent.len() <= bytes.len() * 3);
        }
        assert!(format.detect(&keys, bytes) != ReplayLogFormat::Auto, "a format that is not found");
    }
    let mut reader = ChunkReader::new(ReplayLogFormat::W3c, &keys, bytes);
    reader.read(&[FIELDS, b" date time c-ip cs-method cs-uri-stem cs-uri-query cs(User-Agent)"].concat());
    if let LogLine::Request(request) = reader.read(bytes) {
        assert!(request.target.len() <= bytes.len() && request.agent.len() <= bytes.len());
    }
    // A line inside a wrapper is no longer than the wrapper.
    if let LogLine::Request(request) = ChunkReader::new(ReplayLogFormat::Auto, &keys, bytes).read(bytes) {
        assert!(request.target.len() <= bytes.len() && request.agent.len() <= bytes.len() * 3);
    }
}
