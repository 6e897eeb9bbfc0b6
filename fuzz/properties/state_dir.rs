//! The files of a state directory in any condition: the live version is one of the known versions,
//! and switches match their files. The next start finds the same state again.

use std::fs;
use std::sync::LazyLock;

use tower_robots::live::{Enforcement, Gate, LiveRobots, StateDir, VersionHash};

/// Separates two files in the input.
const SEPARATOR: &[u8] = b"\n--\n";

/// The content of the source. Only this version and those of the input can be live.
const TEXT: &[u8] = b"User-agent: *\nDisallow: /cart\n";

static FOLDER: LazyLock<std::path::PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("fuzz-state-{}", std::process::id())));

/// Reads the file of a switch as an operator would: an empty file and `on` mean on, anything else
/// means off.
fn says(bytes: &[u8]) -> Enforcement {
    let is_on = bytes.iter().all(|byte| *byte == 0) || bytes.trim_ascii() == b"on";
    if is_on { Enforcement::On } else { Enforcement::Off }
}

/// Returns the digits of the hash, which are the file name of a version.
fn digits(bytes: &[u8]) -> String {
    VersionHash::of(bytes).to_string().trim_start_matches("sha256:").to_owned()
}

/// Builds the record of the live version: two slots with a valid digest if the input starts with
/// `!`, else the bytes unchanged.
fn record(bytes: &[u8]) -> Vec<u8> {
    let Some(texts) = bytes.strip_prefix(b"!") else { return bytes.to_vec() };
    let slot = |text: &[u8]| {
        let text = text.trim_ascii();
        let mut slot = format!("{:.16} ", digits(text)).into_bytes();
        slot.extend(text);
        slot.resize(1023, b' ');
        slot.push(b'\n');
        slot
    };
    texts.splitn(2, |byte| *byte == b'\n').flat_map(slot).collect()
}

/// Splits the input: the switches of all sites and of one site, then that site's state, record,
/// history and versions.
fn parts(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let Some(end) = bytes.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
        parts.push(&bytes[..end]);
        bytes = &bytes[end + SEPARATOR.len()..];
    }
    parts.push(bytes);
    parts
}

/// Opens a site from these files. Returns the live content, both switches, and the number of
/// history entries.
fn opened(given: &[&[u8]]) -> (Vec<u8>, Enforcement, Enforcement, usize) {
    let state = StateDir::open(&*FOLDER).expect("a folder that nobody else has");
    let live = LiveRobots::text(TEXT).gate(Gate::new()).state(&state, "shop").open().expect("a site");
    let bytes = live.with(|snapshot| snapshot.content.as_ref().map(|content| content.body().to_vec()));
    let bytes = bytes.expect("a source that has a text");
    assert!(
        bytes == TEXT || given.contains(&&bytes[..]),
        "a version that nobody gave: {:?}",
        String::from_utf8_lossy(&bytes)
    );
    let own = live.with(|snapshot| snapshot.enforcement());
    (bytes, state.enforcement(), own, live.history().len())
}

pub(crate) fn holds(bytes: &[u8]) {
    let parts = parts(bytes);
    let _ = fs::remove_dir_all(&*FOLDER);
    let own = FOLDER.join("sites/shop");
    fs::create_dir_all(&own).expect("a folder");
    let names = [
        FOLDER.join("enforcement"),
        own.join("enforcement"),
        own.join("state.json"),
        own.join("live"),
        own.join("history.jsonl"),
    ];
    for (at, (path, bytes)) in names.iter().zip(&parts).enumerate() {
        let bytes = if at == 3 { record(bytes) } else { bytes.to_vec() };
        fs::write(path, bytes).expect("a file");
    }
    let given = parts.get(names.len()..).unwrap_or_default();
    for version in given {
        fs::write(own.join(format!("{}.txt", digits(version))), version).expect("a file");
    }
    let (first, all, one, entries) = opened(given);
    let [all_said, one_said] = [0, 1].map(|at| parts.get(at).map_or(Enforcement::On, |bytes| says(bytes)));
    assert!(all == all_said, "the switch of all sites");
    let both = if all_said == Enforcement::On { one_said } else { all_said };
    assert!(one == both, "the switch of the site");
    let (second, all_again, one_again, more) = opened(given);
    assert!(second == first, "another version after a second start");
    assert!((all_again, one_again) == (all, one), "switches that turn by themselves");
    assert!(more >= entries, "a history that is forgotten");
}
