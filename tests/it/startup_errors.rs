//! Tests errors that `main` returns. Rust prints such errors with `Debug`, and operators read the
//! output.

use std::error::Error;

use tower_robots::live::{LiveRobots, StateDir};
use tower_robots::policy::Policy;
use tower_robots::source::{Directory, HostMap};

#[test]
fn the_debug_output_of_a_startup_error_equals_its_message() {
    let folder = tempfile::tempdir().unwrap();
    let state = StateDir::open(folder.path().join("state")).unwrap();
    let mut hosts = HostMap::new();
    let errors: [Box<dyn Error>; 6] = [
        LiveRobots::text("<html>").open().unwrap_err().into(),
        LiveRobots::file(folder.path().join("robots.txt")).open().unwrap_err().into(),
        StateDir::open(state.path()).unwrap_err().into(),
        Policy::builder().exempt_paths(["drafts"]).unwrap_err().into(),
        hosts.insert("two words", ()).unwrap_err().into(),
        Directory::new(folder.path().join("sites")).open().unwrap_err().into(),
    ];
    for error in errors {
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}
