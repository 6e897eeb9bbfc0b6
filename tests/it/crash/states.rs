//! Every state that a crash may leave, and how the next start handles it.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::file_system::{Fate, FileSystem, Files};
use super::recording::{Operation, mark};

/// Values by name: the values that a start found, or that were current at the end of a step.
pub(crate) type Values = BTreeMap<String, String>;

/// Environment variable: number of states to try at each point, if a test should try more than
/// usual.
const VARIABLE: &str = "CRASH_STATES";

/// Number of violations after which the search stops.
const ENOUGH: usize = 12;

/// Marks the beginning of a step in a recording.
pub(crate) fn begin() {
    mark("begin");
}

/// Marks the end of a step in a recording, with the current values. From now on `kept` values
/// survive a kill of the process, and `synced` values survive a crash of the machine too.
pub(crate) fn end(values: &Values, kept: &[&str], synced: &[&str]) {
    let sign = |key: &str| match (synced.contains(&key), kept.contains(&key)) {
        (true, _) => "!",
        (false, true) => "+",
        (false, false) => "",
    };
    let shown: Vec<String> = values.iter().map(|(key, value)| format!("{key}{}={value}", sign(key))).collect();
    mark(&format!("end {}", shown.join(" ")));
}

#[derive(Debug, Default)]
struct Step {
    /// Number of operations that were complete when the step began, and when it ended.
    begin: usize,
    end: usize,
    values: Values,
    kept: HashSet<String>,
    synced: HashSet<String>,
}

/// The crash states of a scenario that were tried.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    pub(crate) points: usize,
    pub(crate) states: usize,
    pub(crate) violations: Vec<String>,
    /// Number of points with more possible states than were tried.
    pub(crate) sampled: usize,
}

/// Returns the maximum number of states to try at a point: `usual`, or the number in the
/// environment variable.
pub(crate) fn most(usual: usize) -> usize {
    std::env::var(VARIABLE)
        .map_or(usual, |most| most.parse().unwrap_or_else(|_| panic!("{VARIABLE}={most} is no number")))
}

impl Tried {
    /// Cuts a recording after every `every` operations, and at the end of each step, because the
    /// step's promises apply there. Calls `start` with the files of each state, and with the values
    /// at the end of the step that was in progress.
    pub(crate) fn all(
        operations: &[Operation],
        most: usize,
        every: usize,
        start: impl FnMut(&Files, &Values) -> Values,
    ) -> Self {
        Self::until(ENOUGH, operations, most, every, start)
    }

    /// Like [`Tried::all`], but stops after this many violations.
    pub(crate) fn until(
        enough: usize,
        operations: &[Operation],
        most: usize,
        every: usize,
        mut start: impl FnMut(&Files, &Values) -> Values,
    ) -> Self {
        let steps = steps(operations);
        let (mut tried, mut seen) = (Self::default(), HashSet::new());
        let mut disk = FileSystem::new();
        for point in 0..=operations.len() {
            if let Some(operation) = point.checked_sub(1).map(|last| &operations[last]) {
                disk.apply(operation);
            }
            // The first step describes what exists before the first start.
            let Some(under_way) = steps.iter().rposition(|step| step.begin <= point).filter(|step| *step > 0) else {
                continue;
            };
            if tried.violations.len() >= enough {
                break;
            }
            let is_end = steps.iter().any(|step| step.end == point);
            if !is_end && point % every != 0 {
                continue;
            }
            tried.points += 1;
            let choices = disk.fates();
            let (all, is_sampled) = fates(&choices, most, point as u64);
            tried.sampled += usize::from(is_sampled);
            for (number, fates) in all.iter().enumerate() {
                // In the first state, all changes are kept, because only the process ended.
                let is_killed = number == 0;
                let files = disk.after(fates);
                let allowed = allowed(&steps[..=under_way], point, is_killed);
                let mut hasher = DefaultHasher::new();
                (&files, &allowed, &steps[under_way].values).hash(&mut hasher);
                if !seen.insert(hasher.finish()) {
                    continue;
                }
                tried.states += 1;
                let found = catch_unwind(AssertUnwindSafe(|| start(&files, &steps[under_way].values)));
                let wrong = match &found {
                    Err(_) => vec!["the start panicked".to_owned()],
                    Ok(found) => differences(found, &allowed),
                };
                if !wrong.is_empty() {
                    tried.violations.push(format!(
                        "after {point} operations ({}), in step {under_way}, {}: {}\n  unsynced: {}",
                        point.checked_sub(1).map_or("none".to_owned(), |last| shown(&operations[last])),
                        if is_killed { "killed" } else { "without power" },
                        wrong.join("; "),
                        disk.shown(fates)
                    ));
                }
            }
        }
        tried
    }

    /// Fails with the first violations, or prints how many states were tried.
    #[track_caller]
    pub(crate) fn expect_none(&self, what: &str) {
        let Self { points, states, violations, sampled } = self;
        println!(
            "{what}: {states} crash states at {points} points, of which {sampled} have more; {} violations",
            violations.len()
        );
        assert!(violations.is_empty(), "{}", violations.join("\n"));
        assert!(*states > *points / 2, "nearly every point has a state of its own");
    }
}

fn steps(operations: &[Operation]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (at, operation) in operations.iter().enumerate() {
        let Operation::Mark(mark) = operation else { continue };
        if mark == "begin" {
            steps.push(Step { begin: at + 1, end: usize::MAX, ..Step::default() });
        } else {
            let step = steps.last_mut().expect("a step begins before it ends");
            step.end = at + 1;
            for part in mark.split(' ').skip(1) {
                let (key, value) = part.split_once('=').unwrap();
                let name = key.trim_end_matches(['!', '+']);
                if name != key {
                    step.kept.insert(name.to_owned());
                }
                if key.ends_with('!') {
                    step.synced.insert(name.to_owned());
                }
                step.values.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    assert!(steps.iter().all(|step| step.end != usize::MAX), "every step ends");
    steps
}

/// Returns the values that each key may have: the value of the step in progress, and of the steps
/// before it, back to the last value that was promised to be durable.
fn allowed(steps: &[Step], point: usize, is_killed: bool) -> BTreeMap<String, Vec<String>> {
    let keys = steps.last().into_iter().flat_map(|step| step.values.keys());
    let values = |key: &String| {
        let lasts = |step: &Step| step.end <= point && if is_killed { &step.kept } else { &step.synced }.contains(key);
        let first = steps.iter().rposition(lasts).unwrap_or(0);
        steps[first..].iter().filter_map(|step| step.values.get(key).cloned()).collect()
    };
    keys.map(|key| (key.clone(), values(key))).collect()
}

fn differences(found: &Values, allowed: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let wrong = found.iter().filter(|(key, value)| !allowed.get(*key).is_some_and(|allowed| allowed.contains(value)));
    wrong.map(|(key, value)| format!("{key} is {value} and not one of {:?}", allowed.get(key))).collect()
}

/// Returns combinations of the fates of unsynced changes: all combinations, or at most `most`. The
/// first combination keeps every change. If there are too many combinations, simple ones come
/// first, such as a single lost change. Random combinations from a seed follow.
fn fates(choices: &[&[Fate]], most: usize, seed: u64) -> (Vec<Vec<Fate>>, bool) {
    let count = choices.iter().try_fold(1_usize, |count, choice| count.checked_mul(choice.len()));
    let kept = vec![Fate::Kept; choices.len()];
    if let Some(count) = count.filter(|count| *count <= most) {
        let nth = |mut number: usize| {
            let pick = |choice: &&[Fate]| {
                let fate = choice[number % choice.len()];
                number /= choice.len();
                fate
            };
            choices.iter().map(pick).collect()
        };
        return ((0..count).map(nth).collect(), false);
    }
    let lost = vec![Fate::Lost; choices.len()];
    let mut all = vec![kept.clone(), lost.clone()];
    let with = |before: &[Fate], at: usize, fate: Fate| {
        let mut fates = before.to_vec();
        fates[at] = fate;
        fates
    };
    // The latest changes come first, because they are new at this point.
    for at in (0..choices.len()).rev() {
        all.extend(choices[at].iter().skip(1).map(|fate| with(&kept, at, *fate)));
        all.push(with(&lost, at, Fate::Kept));
        all.push([&kept[..at], &lost[at..]].concat());
    }
    for (one, other) in (0..choices.len()).rev().flat_map(|one| (0..one).rev().map(move |other| (one, other))) {
        all.push(with(&with(&kept, one, Fate::Lost), other, Fate::Lost));
    }
    all.truncate(most);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while all.len() < most {
        let mut draw = |choice: &&[Fate]| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            choice[usize::try_from(state >> 33).unwrap() % choice.len()]
        };
        all.push(choices.iter().map(&mut draw).collect());
    }
    (all, true)
}

/// Formats an operation on one line.
pub(crate) fn shown(operation: &Operation) -> String {
    match operation {
        Operation::Write { path, at, bytes } => format!("Write {path:?} at {at:?}, {} bytes", bytes.len()),
        other => format!("{other:?}"),
    }
}
