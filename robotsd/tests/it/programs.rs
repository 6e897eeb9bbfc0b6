//! Finds third-party programs that tests run: those of Prometheus, and Python packages.
//!
//! They are searched in `PATH` and in the folder that `ROBOTSD_BESIDE_BIN` names (`pip install
//! --target`). If a program is missing, its tests are skipped with a message; in CI they fail.

use std::fmt::Display;
use std::process::{Command, Stdio};

/// Returns a program of Prometheus, or `jsonnet`; `None` if it is not installed.
pub(super) fn debian(program: &str, package: &str) -> Option<Command> {
    let mut check = Command::new(program);
    let is_there = check.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_there {
        skip(&format!("{program:?}, of Debian's package {package}"));
    }
    is_there.then(|| Command::new(program))
}

/// Returns a program that parses OpenMetrics text as strictly as the specification.
pub(super) fn openmetrics_parser() -> Option<Command> {
    const READ: &str = "import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as read; \
                        list(read(sys.stdin.read()))";
    let mut python = python_with("prometheus_client.openmetrics.parser", "prometheus-client")?;
    python.args(["-c", READ]);
    Some(python)
}

/// Returns Python, if it has this module of a PyPI package.
pub(super) fn python_with(module: &str, package: &str) -> Option<Command> {
    let python = || {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", std::env::var_os("ROBOTSD_BESIDE_BIN").unwrap_or_default());
        python
    };
    let mut check = python();
    check.args(["-c", &format!("import {module}")]);
    let is_there = check.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !is_there {
        skip(&format!("python3 with {package}, from PyPI"));
    }
    is_there.then(python)
}

/// Returns the program that was found. If it is missing, prints a message; in CI the test fails.
pub(super) fn present<T>(found: Result<T, impl Display>) -> Option<T> {
    let missing = found.as_ref().err().map(ToString::to_string);
    if let Some(why) = missing {
        assert!(std::env::var_os("CI").is_none(), "{why}");
        println!("skipped: {why}");
    }
    found.ok()
}

/// Prints which test is skipped; in CI the test fails.
pub(super) fn skip(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "{what} is missing, and CI has to run it");
    println!("skipped: {what} is not here");
}
