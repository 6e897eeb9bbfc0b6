//! Prints the table of results from the files that criterion has written.

use std::path::PathBuf;

use serde_json::Value;

/// Returns the median of a benchmark in nanoseconds; `None` if the benchmark was not run.
pub fn median(group: &str, function: &str) -> Option<f64> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from);
    let folder = |name: &str| name.replace(['?', '"', '/', '\\', '*', '<', '>', ':', '|', '^'], "_");
    let path = target.join("criterion").join(folder(group)).join(folder(function)).join("new/estimates.json");
    let estimates: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    estimates["median"]["point_estimate"].as_f64()
}

/// Formats a time as `26.1 ns` or `1.3 ms`.
pub fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        _ if nanoseconds >= 1e6 => format!("{:.1} ms", nanoseconds / 1e6),
        _ if nanoseconds >= 1e3 => format!("{:.1} µs", nanoseconds / 1e3),
        _ => format!("{nanoseconds:.0} ns"),
    }
}

/// Prints a row of a Markdown table.
pub fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}
