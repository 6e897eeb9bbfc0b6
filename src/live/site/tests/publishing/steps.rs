//! The steps of the simulation, and how often each occurs.

use super::super::simulation::Random;
use super::model::{Held, ModelGate, TEXTS, Text};
use super::process::{Fault, Files};
use crate::live::{Enforcement, RejectionKind};

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) gate: ModelGate,
    pub(super) has_grace: bool,
    /// Whether there is a state directory. Without it, a process loses all state when it ends.
    pub(super) has_state: bool,
    pub(super) has_faults: bool,
    pub(super) has_jumps: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Hold(Held),
    Poll,
    /// A replaced process that is still draining polls the source, too.
    PollBefore,
    Reload {
        is_settled: bool,
    },
    SetGate(ModelGate),
    AcceptWaiting,
    Accept(Text),
    RollBack,
    SwitchSite(Enforcement),
    SwitchAll(Enforcement),
    /// The writer's thread writes the queued changes.
    Write,
    /// Time passes, or the clock is set back.
    Pass(i64),
    Fail(Option<Fault>),
    /// The process is killed after this number of disk operations, in the middle of the next one.
    DieAfter(i64),
    /// The process ends or is killed, and the next process is started.
    Restart {
        is_killed: bool,
        folder: Folder,
    },
    /// The site is opened again in the same process, as after a change of the config.
    Reopen,
    /// Another process replaces this process, which finishes its requests.
    Upgrade,
    EndBefore,
    /// The new process ends or is killed. The previous process takes the directory back.
    TakeBack {
        is_killed: bool,
    },
    /// A process is started by mistake, and finds that the directory is in use.
    SecondWriter,
    /// A crawler requests a page.
    Ask(Text),
}

/// Which state directory the next process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folder {
    Kept,
    Lost,
    /// The process is configured without a state directory.
    None,
}

impl Settings {
    pub(super) fn draw(random: &mut Random) -> Self {
        let has_state = random.once_in(STATED);
        Self {
            gate: *random.pick(&[ModelGate::Open, ModelGate::Comparing, ModelGate::Comparing]),
            has_grace: random.once_in(4),
            has_state,
            has_faults: has_state && random.once_in(2),
            has_jumps: random.once_in(2),
        }
    }
}

type Draw = fn(&mut Random) -> Step;

impl Step {
    pub(super) fn draw(settings: &Settings, random: &mut Random) -> Self {
        let Settings { has_state, has_faults, has_jumps, .. } = *settings;
        let (stated, faults) = (u64::from(has_state), u64::from(has_faults));
        let steps: [(u64, Draw); 22] = [
            (12, |random| Step::Hold(held(random))),
            (90, |_| Step::Poll),
            (6, |random| Step::Reload { is_settled: !random.once_in(4) }),
            (2, |random| Step::SetGate(gate(random))),
            (4, |_| Step::AcceptWaiting),
            (2, |random| Step::Accept(text(random))),
            (5, |_| Step::RollBack),
            (4, |random| Step::SwitchSite(enforcement(random))),
            (4, |random| Step::SwitchAll(enforcement(random))),
            (30, |random| Step::Pass(i64::try_from(far(random)).unwrap())),
            (3 * u64::from(has_jumps), |random| Step::Pass(-i64::try_from(far(random)).unwrap())),
            (90, |random| Step::Ask(text(random))),
            (1 + 2 * stated, |random| Step::Restart { is_killed: random.once_in(2), folder: folder(random) }),
            (1 + stated, |_| Step::Reopen),
            (8 * stated, |_| Step::Write),
            (stated, |_| Step::Upgrade),
            (stated, |_| Step::EndBefore),
            (2 * stated, |_| Step::PollBefore),
            (stated, |random| Step::TakeBack { is_killed: random.once_in(2) }),
            (stated, |_| Step::SecondWriter),
            (3 * faults, |random| Step::Fail((!random.once_in(3)).then(|| fault(random)))),
            (faults, |random| Step::DieAfter(i64::try_from(random.below(30)).unwrap())),
        ];
        random.weighted(&steps)(random)
    }
}

/// On average, one of `STATED` runs has a state directory. There are few such runs, because they
/// are slower.
const STATED: u64 = 10;

fn text(random: &mut Random) -> Text {
    Text::try_from(random.below(TEXTS.into())).unwrap()
}

fn held(random: &mut Random) -> Held {
    use RejectionKind::{Empty, Html, Missing, NoField, Unreadable, Unstable};
    match random.below(16) {
        0 => Held::Absent,
        1 | 2 => Held::Broken(*random.pick(&[Missing, Unreadable, Unstable, NoField, Html, Empty])),
        _ => Held::Text(text(random)),
    }
}

fn gate(random: &mut Random) -> ModelGate {
    match random.below(3) {
        0 => ModelGate::Open,
        1 => ModelGate::Comparing,
        _ => ModelGate::Accepting(text(random)),
    }
}

fn enforcement(random: &mut Random) -> Enforcement {
    *random.pick(&[Enforcement::On, Enforcement::Off])
}

/// Returns a random number of milliseconds, up to some years. All orders of magnitude are about
/// equally likely.
fn far(random: &mut Random) -> u64 {
    let bits = random.below(38);
    random.below(1 << bits)
}

fn folder(random: &mut Random) -> Folder {
    *random.weighted(&[(12, Folder::Kept), (1, Folder::Lost), (1, Folder::None)])
}

fn fault(random: &mut Random) -> Fault {
    use Files::{All, Bytes, History, Record, State, Switches};
    let files = *random.pick(&[All, All, Switches, State, Record, Bytes, History]);
    Fault { errno: *random.pick(&Fault::ERRORS), files }
}
