//! Compares the number of crates that this crate adds to an app's build with the crate page.

use std::collections::BTreeSet;
use std::process::Command;

/// Returns the crates that the library needs with these features, without itself.
fn crates(features: &str) -> BTreeSet<String> {
    crates_of("tower-robots", features)
}

fn crates_of(package: &str, features: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["tree", "--offline", "--quiet", "--package", package]);
    cargo.args(["--edges", "normal", "--prefix", "none", "--format", "{p}", "--no-default-features"]);
    let output = cargo.args(["--features", features]).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("text");
    let names = tree.lines().filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty());
    names.filter(|name| *name != package).map(str::to_owned).collect()
}

/// Returns the rows of the feature table on the crate page: the feature, and the number in the last
/// column.
#[cfg(target_os = "linux")]
fn stated() -> Vec<(String, usize)> {
    let page = include_str!("../../CRATE.md").lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let count = cells.get(4)?.trim_start_matches('+').parse().ok()?;
        Some((cells.get(1)?.trim_matches('`').to_owned(), count))
    };
    page.filter_map(row).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn the_crate_page_states_the_number_of_dependencies_of_each_feature() {
    let layer = crates("layer").len();
    let counted = |feature: &str| match feature {
        "layer" => layer,
        feature => crates(&format!("layer,{feature}")).len() - layer,
    };
    let stated = stated();
    let counted: Vec<_> = stated.iter().map(|(feature, _)| (feature.clone(), counted(feature))).collect();
    assert_eq!(stated, counted, "CRATE.md, and what is true");
    let features = ["layer", "watch", "axum08", "idn", "fetch", "tls", "serde", "tracing", "verify"];
    assert_eq!(stated.iter().map(|(feature, _)| &**feature).collect::<Vec<_>>(), features);
}

#[test]
fn the_layer_alone_has_few_dependencies_and_no_unicode_tables() {
    let layer = crates("layer");
    // An axum app already depends on about half of these crates.
    assert!((10..=24).contains(&layer.len()), "{}: {layer:?}", layer.len());
    let default = crates("layer,watch");
    assert!(default.is_superset(&layer) && default.contains("notify"), "{default:?}");
    for name in ["idna", "notify", "hyper", "rustls", "serde", "tokio", "tracing"] {
        assert!(!layer.contains(name), "{name} is for another feature: {layer:?}");
    }
    for crates in [&layer, &default] {
        assert!(!crates.iter().any(|name| name.starts_with("icu_")), "{crates:?}");
    }
    assert!(crates("idn").contains("idna"));
    for (features, brought) in [("", &["memchr"][..]), ("registry", &["aho-corasick", "memchr"])] {
        assert_eq!(crates_of("robots-core", features).iter().collect::<Vec<_>>(), brought, "{features}");
    }
}
