//! Applies fixes to a file in several passes. Each pass applies as many fixes as possible. Fixes
//! with conflicting edits are not applied in the same pass.
//!
//! Fixes may depend on each other. For example, a byte order mark may hide a user-agent line. The
//! rules below the user-agent line then belong to the group above it, and may repeat or contradict
//! the rules of that group. Once the byte order mark is removed, crawlers read the user-agent line,
//! and the findings about the rules below it are gone. So fixes that change the effect are applied
//! one lint at a time, in the order of the table of lints, and the file is checked again after each
//! lint. A fix is safe only if it does not change the file's effect, with or without the other
//! fixes.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use super::candidate::Candidate;
use super::effective_content::{EffectiveContent, NameKeys};
use crate::check::Lint;
use crate::check::diff::{DiffOptions, diff};
use crate::check::finding::Finding;
use crate::check::fixes::{Edit, Fixes, Safety};
use crate::check::options::Options;
use crate::check::report::{Report, check, check_lints};
use crate::rules::{Reading, RobotsTxt};

/// Maximum number of findings per lint that are corrected in one pass.
pub(super) const MAX_FINDINGS: usize = 100_000;

/// Maximum number of bytes that fixes may add to a file. Without this limit, the file could grow by
/// one line for each finding.
const MAX_GROWTH_BYTES: usize = 1 << 20;

/// A file after fixes were applied, and the remaining findings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FixedFile {
    /// The fixed file.
    pub robots: RobotsTxt,
    /// The corrected findings, each with the safety of its fix. The positions of a finding refer to
    /// the file before the pass that corrected it.
    pub applied: Vec<(Finding, Safety)>,
    /// The remaining findings. If [`is_cut`](Self::is_cut) is false, their fixes are included.
    pub report: Report,
    /// Whether fixing ended before all fixable findings were fixed ([`FixedFile::of_while`]).
    pub is_cut: bool,
}

impl FixedFile {
    /// Maximum number of passes over a file. A later pass applies fixes that conflicted with fixes
    /// of earlier passes, or became possible only after them.
    pub const MAX_PASSES: usize = 40;

    /// Fixes a file like [`fix`], but with a time limit. Use this for untrusted files.
    ///
    /// Once `goes_on` returns false, no more findings are fixed and [`FixedFile::is_cut`] is set.
    /// `goes_on` can check a deadline.
    #[doc(hidden)]
    pub fn of_while(robots: &RobotsTxt, options: &Options, most: Safety, goes_on: &dyn Fn() -> bool) -> Self {
        let every = options.clone().findings_per_lint(MAX_FINDINGS);
        let longest = robots.bytes().len() + MAX_GROWTH_BYTES;
        let mut file = robots.clone();
        let mut applied = Vec::new();
        let mut left = None;
        let mut is_cut = false;
        for _ in 0..Self::MAX_PASSES {
            is_cut = !goes_on();
            if is_cut {
                break;
            }
            let report = check(&file, &every);
            let prover = Prover::new(&file, &report, &every);
            let candidates = prover.judge(Candidate::all(&file, &report.findings, &every));
            let of = |safety: Safety| -> Vec<usize> {
                (0..candidates.len()).filter(|at| candidates[*at].safety == safety).collect()
            };
            let mut chosen = prover.apply_together(&candidates, &of(Safety::Safe), EditOutcome::SameEffect);
            if chosen.is_empty() && most == Safety::Unsafe {
                let others = of(Safety::Unsafe);
                let of_lint = |lint: &Lint| {
                    let is_its = |at: &usize| candidates[*at].code == lint.code;
                    let its: Vec<usize> = others.iter().copied().filter(is_its).collect();
                    prover.apply_together(&candidates, &its, EditOutcome::OtherEffect)
                };
                chosen = Lint::all().iter().map(of_lint).find(|chosen| !chosen.is_empty()).unwrap_or_default();
            }
            let edits = chosen.iter().flat_map(|at| &candidates[*at].edits);
            let after = Edit::apply(file.bytes(), edits);
            if chosen.is_empty() || after.len() > longest {
                left = Some((report, candidates));
                break;
            }
            let corrected = chosen.iter().flat_map(|at| {
                let Candidate { findings, safety, .. } = &candidates[*at];
                findings.iter().map(|place| (report.findings[*place].clone(), *safety))
            });
            applied.extend(corrected);
            file = RobotsTxt::parse(after);
        }
        let report = check(&file, options);
        let fixes = match left {
            Some((every, candidates)) => Fixes::judged(candidates).of_some(&every.findings, &report.findings),
            _ if is_cut => Fixes::default(),
            _ => Fixes::of(&file, &report, options),
        };
        Self { robots: file, applied, report: Report { fixes, ..report }, is_cut }
    }
}

/// Fixes the findings of a file. With [`Safety::Safe`], only safe fixes are applied. With
/// [`Safety::Unsafe`], safe fixes are applied first, and then unsafe fixes.
///
/// A finding remains if it has no fix, or if its fix is unsafe but only safe fixes were requested.
/// Findings also remain if their fixes would make the file more than 1 MiB larger, or if
/// [`FixedFile::MAX_PASSES`] passes were not enough.
///
/// ```
/// use robots_core::check::{Options, Safety, fix};
/// use robots_core::rules::RobotsTxt;
///
/// let robots = RobotsTxt::parse(&b"User-agent: *\r\nDissallow: /p\r\nDisallow: b # all\r\n"[..]);
/// let fixed = fix(&robots, &Options::new(), Safety::Safe);
/// assert_eq!(&**fixed.robots.bytes(), b"User-agent: *\r\nDisallow: /p\r\nDisallow: b # all\r\n");
/// assert_eq!((fixed.applied.len(), fixed.report.findings.len()), (1, 1));
/// let fixed = fix(&robots, &Options::new(), Safety::Unsafe);
/// assert_eq!(&**fixed.robots.bytes(), b"User-agent: *\r\nDisallow: /p\r\nDisallow: /b # all\r\n");
/// ```
pub fn fix(robots: &RobotsTxt, options: &Options, most: Safety) -> FixedFile {
    FixedFile::of_while(robots, options, most, &|| true)
}

/// Bounds on the cost of proving the fixes of one file. A fix that cannot be proved safe within
/// these bounds is treated as unsafe.
///
/// - `MAX_BYTES`: total size of the edited files that are checked to examine the fixes. If fixes
///   are then selected to be applied together, the same limit applies again.
/// - `MAX_COMPARED`: total size of the files whose effect is compared path by path. If a file is
///   compared in several readings, its size is counted once for each reading.
/// - `MAX_FINDINGS_OF_LINT`: number of fixes per lint that are examined one by one.
/// - `MAX_CHANGES`: number of changed effects that path-by-path comparisons may find per lint.
///   After that, no more fixes of the lint are compared path by path.
/// - `MAX_CHANGES_TOGETHER`: the same limit as `MAX_CHANGES`, for fixes that are applied together.
const MAX_BYTES: usize = 8 << 20;
const MAX_COMPARED: usize = 4 << 20;
const MAX_FINDINGS_OF_LINT: usize = 256;
const MAX_CHANGES: usize = 12;
const MAX_CHANGES_TOGETHER: usize = 24;

/// Maximum number of rounds to confirm that fixes are safe. Fixes that are not confirmed after the
/// last round are treated as unsafe.
const MAX_ROUNDS: usize = 4;

/// Maximum size of a file whose fixes can be proved safe, in bytes. In larger files, all fixes are
/// unsafe.
const MAX_PROVED_BYTES: usize = 1 << 20;

/// Checks whether the edits of candidates correct the findings, and whether the edits are safe.
pub(super) struct Prover {
    /// The original file. The positions in all edits refer to this file.
    file: RobotsTxt,
    /// Edits that are always applied, in addition to the edits of the tried candidates.
    base: Vec<Edit>,
    /// The file with the edits in `base` applied.
    before: RobotsTxt,
    /// The options of the report, but with a limit of zero findings, because the prover only counts
    /// them.
    options: Options,
    found: BTreeMap<&'static str, usize>,
    content: OnceCell<Option<EffectiveContent>>,
    bytes: Cell<usize>,
    compared: Cell<usize>,
    /// Remaining number of path-by-path comparisons that may find a changed effect (`MAX_CHANGES`).
    changes: Cell<usize>,
    names: RefCell<NameKeys>,
}

/// The outcome of applying edits to a file. Better outcomes come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EditOutcome {
    /// The findings are gone, and the [`EffectiveContent`] is the same as before.
    SameContent,
    /// The findings are gone, and `diff` finds no changed path or delay.
    SameEffect,
    /// The findings are gone, but the effect changes or could not be compared.
    OtherEffect,
    /// Some findings remain, or the check would cost too much.
    NotCorrected,
}

impl Prover {
    /// Creates a prover for a file. `options` must be the options of `report`.
    pub(super) fn new(file: &RobotsTxt, report: &Report, options: &Options) -> Self {
        Self::with(file, Vec::new(), file.clone(), report, options)
    }

    fn with(file: &RobotsTxt, base: Vec<Edit>, before: RobotsTxt, report: &Report, options: &Options) -> Self {
        Self {
            bytes: Cell::new(MAX_BYTES.max(before.bytes().len() + 1)),
            file: file.clone(),
            base,
            before,
            found: counts(report),
            options: options.clone().findings_per_lint(0),
            content: OnceCell::new(),
            compared: Cell::new(MAX_COMPARED),
            changes: Cell::new(0),
            names: RefCell::default(),
        }
    }

    /// Returns the candidates whose edits correct the findings, and sets the `safety` of these
    /// candidates.
    pub(super) fn judge(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        let mut by_code: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, candidate) in candidates.iter().enumerate() {
            by_code.entry(candidate.code).or_default().push(at);
        }
        let mut corrected = vec![false; candidates.len()];
        for of_code in by_code.into_values() {
            self.changes.set(MAX_CHANGES);
            // Many files repeat one mistake on many lines, so all fixes of a lint are first tried
            // together.
            let compatible: BTreeSet<usize> = without_conflicts(&candidates, &of_code).into_iter().collect();
            let of_all = match compatible.len() {
                0 | 1 => EditOutcome::NotCorrected,
                _ => self.outcome(compatible.iter().map(|at| &candidates[*at]), false),
            };
            for (number, at) in of_code.into_iter().enumerate() {
                let outcome = match of_all {
                    EditOutcome::SameContent if compatible.contains(&at) => of_all,
                    _ if number < MAX_FINDINGS_OF_LINT => self.outcome([&candidates[at]], true),
                    _ if compatible.contains(&at) => of_all,
                    _ => EditOutcome::NotCorrected,
                };
                corrected[at] = outcome != EditOutcome::NotCorrected;
                let is_safe = matches!(outcome, EditOutcome::SameContent | EditOutcome::SameEffect);
                if is_safe && !candidates[at].is_choice {
                    candidates[at].safety = Safety::Safe;
                }
            }
        }
        let mut corrected = corrected.into_iter();
        candidates.retain(|_| corrected.next().unwrap_or(false));
        self.confirm(&mut candidates);
        candidates
    }

    /// Marks safe candidates as unsafe if they are no longer safe once the unsafe candidates are
    /// applied. Repeats this step until no candidate is marked; after `MAX_ROUNDS` steps, marks all
    /// candidates as unsafe. Candidates with `is_choice` are not applied, because a person must
    /// choose one of two corrections.
    fn confirm(&self, candidates: &mut [Candidate]) {
        for _ in 0..MAX_ROUNDS {
            let rejected = self.rejected(candidates);
            if rejected.is_empty() {
                return;
            }
            rejected.into_iter().for_each(|at| candidates[at].safety = Safety::Unsafe);
        }
        candidates.iter_mut().for_each(|candidate| candidate.safety = Safety::Unsafe);
    }

    /// Returns the indexes of the safe candidates that conflict with an unsafe candidate, or that
    /// are not safe after the unsafe candidates are applied.
    fn rejected(&self, candidates: &[Candidate]) -> Vec<usize> {
        let (mut safe, others): (Vec<usize>, Vec<usize>) =
            (0..candidates.len()).partition(|at| candidates[*at].safety == Safety::Safe);
        let others: Vec<usize> = others.into_iter().filter(|at| !candidates[*at].is_choice).collect();
        if safe.is_empty() || others.is_empty() {
            return Vec::new();
        }
        let others = without_conflicts(candidates, &others);
        let base: Vec<Edit> = others.iter().flat_map(|at| candidates[*at].edits.iter().cloned()).collect();
        let before = RobotsTxt::parse(Edit::apply(self.file.bytes(), &base));
        let report = check(&before, &self.options);
        let prover = Self::with(&self.file, base, before, &report, &self.options);
        let mut rejected = Vec::new();
        // Candidates that conflict with each other are tried in different rounds.
        for _ in 0..MAX_ROUNDS {
            let tried = without_conflicts_with(&others, candidates, &safe);
            let confirmed = prover.apply_together(candidates, &tried, EditOutcome::SameEffect);
            let (tried, confirmed): (BTreeSet<_>, BTreeSet<_>) =
                (tried.into_iter().collect(), confirmed.into_iter().collect());
            rejected.extend(tried.difference(&confirmed));
            safe.retain(|at| !tried.contains(at));
        }
        rejected.extend(safe);
        rejected
    }

    /// Selects candidates from `of` whose joint application has the outcome `worst` or a better
    /// one. All indexes refer to `candidates`.
    fn apply_together(&self, candidates: &[Candidate], of: &[usize], worst: EditOutcome) -> Vec<usize> {
        self.bytes.set(MAX_BYTES.max(self.before.bytes().len() + 1));
        self.compared.set(MAX_COMPARED);
        self.changes.set(MAX_CHANGES_TOGETHER);
        let mut accepted = Vec::new();
        // The lists of candidates that are still to be tried. If the candidates of a list cannot be
        // applied together, the list is split into halves, and the first half is tried next.
        let mut open = vec![without_conflicts(candidates, of)];
        while let Some(part) = open.pop() {
            if part.is_empty() {
                continue;
            }
            let all: Vec<usize> = accepted.iter().chain(&part).copied().collect();
            if self.outcome(all.iter().map(|at| &candidates[*at]), worst < EditOutcome::OtherEffect) <= worst {
                accepted = all;
            } else if part.len() > 1 {
                let (first, second) = part.split_at(part.len() / 2);
                open.extend([second.to_vec(), first.to_vec()]);
            }
        }
        accepted
    }

    fn outcome<'c>(&self, candidates: impl IntoIterator<Item = &'c Candidate>, may_diff: bool) -> EditOutcome {
        let candidates: Vec<&Candidate> = candidates.into_iter().collect();
        let length = self.before.bytes().len() + 1;
        let Some(left) = self.bytes.get().checked_sub(length) else { return EditOutcome::NotCorrected };
        self.bytes.set(left);
        let edits = candidates.iter().flat_map(|candidate| &candidate.edits);
        let after = RobotsTxt::parse(Edit::apply(self.file.bytes(), self.base.iter().chain(edits)));
        let mut corrected: BTreeMap<&'static str, usize> = BTreeMap::new();
        for candidate in &candidates {
            *corrected.entry(candidate.code).or_default() += candidate.findings.len();
        }
        if !self.are_corrected(&after, &corrected) {
            return EditOutcome::NotCorrected;
        }
        if length > MAX_PROVED_BYTES {
            return EditOutcome::OtherEffect;
        }
        let registry = &self.options.site.registry;
        let content = |robots: &RobotsTxt| EffectiveContent::of(robots, registry, &mut self.names.borrow_mut());
        let (Some(before), Some(content)) = (self.content.get_or_init(|| content(&self.before)), &content(&after))
        else {
            return EditOutcome::OtherEffect;
        };
        if before.is_same(content) {
            return EditOutcome::SameContent;
        }
        if !may_diff || !before.is_same_besides_rules(content) {
            return EditOutcome::OtherEffect;
        }
        let Some(left) = self.changes.get().checked_sub(1) else { return EditOutcome::OtherEffect };
        let is_same = |reading: &Reading| {
            let Some(left) = self.compared.get().checked_sub(length) else { return false };
            self.compared.set(left);
            let options = DiffOptions::new().with_registry(registry.clone()).with_reading(*reading);
            diff(&self.before, &after, &options).is_empty()
        };
        if Reading::ALL.iter().all(is_same) {
            return EditOutcome::SameEffect;
        }
        self.changes.set(left);
        EditOutcome::OtherEffect
    }

    /// Reports whether the edits corrected the findings. For each lint, the number of findings must
    /// have decreased by at least the number of findings in `corrected`.
    fn are_corrected(&self, after: &RobotsTxt, corrected: &BTreeMap<&'static str, usize>) -> bool {
        let left = counts(&check_lints(after, &self.options, |code| corrected.contains_key(code)));
        let count = |counts: &BTreeMap<&str, usize>, code: &str| counts.get(code).copied().unwrap_or(0);
        corrected.iter().all(|(code, gone)| count(&left, code) + gone <= count(&self.found, code))
    }
}

fn counts(report: &Report) -> BTreeMap<&'static str, usize> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for finding in report {
        *counts.entry(finding.code).or_default() += 1;
    }
    for (code, omitted) in &report.omitted_of {
        *counts.entry(code).or_default() += omitted.iter().sum::<usize>();
    }
    counts
}

/// Returns the candidates in `of` that do not conflict with each other. If two candidates conflict,
/// the later one is left out.
pub(super) fn without_conflicts(candidates: &[Candidate], of: &[usize]) -> Vec<usize> {
    without_conflicts_with(&[], candidates, of)
}

/// Returns candidates like [`without_conflicts`], but leaves out candidates that conflict with
/// those in `chosen`.
fn without_conflicts_with(chosen: &[usize], candidates: &[Candidate], of: &[usize]) -> Vec<usize> {
    let edits = chosen.iter().flat_map(|at| &candidates[*at].edits);
    let mut taken: BTreeMap<usize, &Edit> = edits.map(|edit| (edit.start, edit)).collect();
    let mut free = Vec::new();
    for at in of {
        let edits = &candidates[*at].edits;
        let is_free = |edit: &Edit| {
            let mut near = taken.range(..=edit.end).rev().take_while(|(_, other)| other.end >= edit.start);
            !near.any(|(_, other)| other.conflicts(edit))
        };
        if edits.iter().all(is_free) {
            taken.extend(edits.iter().map(|edit| (edit.start, edit)));
            free.push(*at);
        }
    }
    free
}
