//! A simulation of publishing. Its steps are drawn at random: the source changes, an operator
//! decides, the disk fails, the clock changes, or a process ends, is replaced or is restarted.
//! After each step, the site must match the model.
//!
//! With `ROBOTSD_LONG=1`, the simulation runs a million steps; `SIMULATION_STEPS` sets another
//! number. With `SIMULATION_SEED=7`, it runs only the steps of this seed, and prints the shortest
//! sequence of steps that fails.

mod model;
mod process;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use self::model::{FoundAt, GRACE, Held, Model, ModelDisk, ModelGate, ModelOutcome, Now, SHUT, Saved, Text};
use self::process::{Fault, Faults, Machine, Process, SharedSource, is_read, real_gate, version, when_loaded};
use self::steps::{Folder, Settings, Step};
use super::simulation::{Random, World};
use crate::live::{Enforcement, Mutex, RejectionKind, ReloadOutcomeKind, StateDir, TestClock, VersionHashPrefix};

/// The position of a kill switch, and the possible contents of its file.
#[derive(Clone, Debug)]
struct ModelSwitch {
    now: Enforcement,
    file: Vec<Enforcement>,
    /// Whether the file could not be read, so that the switch counts as off.
    is_unread: bool,
}

/// Bugs that tests introduce, to check that the simulation finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    None,
    RollBackHoldsNothing,
    /// Every switch is on after a restart.
    SwitchForgets,
    AcceptTakesAny,
    HalfFileIsTaken,
}

struct Publishing<const PLANTED: usize> {
    settings: Settings,
    machine: Machine,
    gate: ModelGate,
    main: Option<Process>,
    /// The process that was replaced by `main`, if it is still running.
    before: Option<Before>,
    disk: ModelDisk,
    /// The switch of all sites, and the site's own switch.
    switches: [ModelSwitch; 2],
    /// The state that this process wrote before it handed the directory over. `Some` if the process
    /// has taken the directory back. Until the state changes, the disk may contain the state of the
    /// other process.
    handed_over: Option<Vec<Saved>>,
}

/// A process that was replaced, and its state at that time.
struct Before {
    process: Process,
    gate: ModelGate,
    handed_over: Vec<Saved>,
}

const PLANTED: [Planted; 5] = [
    Planted::None,
    Planted::RollBackHoldsNothing,
    Planted::SwitchForgets,
    Planted::AcceptTakesAny,
    Planted::HalfFileIsTaken,
];

impl<const PLANTED: usize> World for Publishing<PLANTED> {
    type Settings = Settings;
    type Step = Step;

    fn settings(random: &mut Random) -> Settings {
        Settings::draw(random)
    }

    fn step(settings: &Settings, random: &mut Random) -> Step {
        Step::draw(settings, random)
    }

    fn begin(settings: &Settings) -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let machine = Machine {
            folder: folder.expect("a folder"),
            clock: TestClock::new(),
            source: SharedSource(Arc::new(Mutex::new(Held::Broken(RejectionKind::Missing)))),
            faults: Arc::new(Faults::default()),
        };
        let on = ModelSwitch { now: Enforcement::On, file: vec![Enforcement::On], is_unread: false };
        Self {
            settings: *settings,
            machine,
            gate: settings.gate,
            main: None,
            before: None,
            disk: ModelDisk::new(),
            switches: [on.clone(), on],
            handed_over: None,
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        if self.main.is_none() {
            self.start(Folder::Kept)?;
        }
        self.act(*step)?;
        let main = self.main.as_ref().ok_or("no process runs")?;
        if main.life.is_over() {
            return self.restart(true, Folder::Kept);
        }
        let switches = [self.switches[0].now, self.switches[1].now];
        if main.switches() != switches {
            return Err(format!("the switches are {:?} and not {switches:?}", main.switches()));
        }
        Ok(())
    }
}

impl<const PLANTED: usize> Publishing<PLANTED> {
    fn is_planted(&self, fault: Planted) -> bool {
        self::PLANTED[PLANTED] == fault
    }

    fn now(&self) -> Now {
        Now { clock: self.machine.clock.now(), steady: self.machine.clock.elapsed() }
    }

    fn main(&self) -> &Process {
        self.main.as_ref().expect("it is started")
    }

    fn fault(&self) -> Option<Fault> {
        *self.machine.faults.fault.lock()
    }

    fn act(&mut self, step: Step) -> Result<(), String> {
        let (held, now) = (*self.machine.source.0.lock(), self.now());
        match step {
            Step::Hold(held) => *self.machine.source.0.lock() = held,
            Step::Poll => {
                let outcome = self.main().offer(held);
                self.expect(outcome, |model| model.consider(held, false, now))?;
            }
            Step::PollBefore => {
                let Some(mut before) = self.before.take() else { return Ok(()) };
                let outcome = before.process.offer(held);
                let expected = expect(&mut before.process, outcome, now, |model| model.consider(held, false, now));
                self.before = Some(before);
                expected?;
            }
            Step::Reload { is_settled } => {
                let is_taken = is_settled || self.is_planted(Planted::HalfFileIsTaken);
                let outcome = self.main().reload(is_taken);
                let (held, is_read) = (when_loaded(held), is_read(held));
                self.expect(outcome, |model| {
                    let is_live = Held::Text(model.live().unwrap_or(Text::MAX)) == held;
                    let is_taken = is_settled || !is_read || is_live;
                    let held = if is_taken { held } else { Held::Broken(RejectionKind::Unstable) };
                    model.consider(held, true, now)
                })?;
            }
            Step::SetGate(gate) => {
                self.gate = gate;
                self.main().handle().set_gate(real_gate(gate));
                self.main.iter_mut().flat_map(|main| &mut main.models).for_each(|model| model.set_gate(gate));
            }
            Step::AcceptWaiting | Step::Accept(_) => {
                self.end_before();
                let text = match step {
                    Step::Accept(text) => text,
                    _ => self.main().models[0].waiting().map_or(0, |waiting| waiting.text),
                };
                let named = if self.is_planted(Planted::AcceptTakesAny) { self.main().waiting() } else { None };
                let named: VersionHashPrefix = named.unwrap_or_else(|| version(text).hash()).into();
                let accepted = self.main().handle().accept(&named);
                let outcome = accepted.map_or(ModelOutcome::NoSuchVersion, |reload| process::outcome(&reload));
                self.expect(outcome, |model| model.accept(text, now))?;
                self.decided(outcome);
            }
            Step::RollBack => {
                self.end_before();
                let rolled_back = self.main().handle().rollback();
                let outcome = rolled_back.map_or(ModelOutcome::NoSuchVersion, |reload| process::outcome(&reload));
                if self.is_planted(Planted::RollBackHoldsNothing) {
                    self.main().forget_rolled_back();
                }
                self.expect(outcome, |model| model.roll_back(now))?;
                self.decided(outcome);
            }
            Step::SwitchSite(to) => {
                self.end_before();
                let is_written = self.main().handle().set_enforcement(to).is_ok();
                self.switched(1, to, is_written)?;
            }
            Step::SwitchAll(to) => {
                self.end_before();
                let is_written = self.main().set_all(to);
                self.switched(0, to, is_written)?;
            }
            Step::Write => self.write()?,
            Step::Pass(millis) => {
                let time = Duration::from_millis(millis.unsigned_abs());
                if millis < 0 { self.machine.clock.go_back(time) } else { self.machine.clock.pass(time) }
            }
            Step::Fail(fault) => *self.machine.faults.fault.lock() = fault,
            Step::DieAfter(operations) if self.main().state.is_some() => self.main().life.end_after(operations),
            Step::DieAfter(_) => {}
            Step::Restart { is_killed, folder } => self.restart(is_killed, folder)?,
            Step::Reopen => self.reopen()?,
            Step::Upgrade => self.upgrade()?,
            Step::EndBefore => self.end_before(),
            Step::TakeBack { is_killed } => self.take_back(is_killed)?,
            Step::SecondWriter => {
                let main = self.main();
                let is_held = main.state.is_some() && main.is_locked && !main.life.is_over();
                if is_held && self.fault().is_none() && self.machine.open_state(&Arc::default()).is_some() {
                    return Err("two processes have the directory open".to_owned());
                }
            }
            Step::Ask(page) => self.ask(page)?,
        }
        Ok(())
    }

    /// Applies a step to the models, and checks that the site matches at least one of them.
    fn expect(
        &mut self,
        outcome: ModelOutcome,
        step: impl Fn(&mut Model) -> (ModelOutcome, bool),
    ) -> Result<(), String> {
        let now = self.now();
        let main = self.main.as_mut().ok_or("no process runs")?;
        expect(main, outcome, now, step)?;
        self.may_be_written();
        Ok(())
    }

    fn may_be_written(&mut self) {
        if let Some(main) = self.main.as_ref().filter(|main| main.state.is_some()) {
            self.disk.may_have(&main.models);
        }
    }

    /// Records that an operator's decision is on disk, because the call has returned.
    fn decided(&mut self, outcome: ModelOutcome) {
        if outcome != ModelOutcome::NoSuchVersion && self.fault().is_none() {
            self.is_written();
        }
    }

    fn is_written(&mut self) {
        let is_writing = |main: &&Process| main.state.is_some() && !main.life.is_over();
        if let Some(models) = self.main.as_ref().filter(is_writing).map(|main| main.models.clone()) {
            self.disk_has(&models);
        }
    }

    fn disk_has(&mut self, models: &[Model]) {
        // Until this process has a new state to write, the disk has the state of the other process.
        self.handed_over.take_if(|handed_over| *handed_over != saved(models));
        if self.handed_over.is_none() {
            self.disk.has(models);
        }
    }

    fn switched(&mut self, at: usize, to: Enforcement, is_written: bool) -> Result<(), String> {
        let main = self.main.as_ref().ok_or("no process runs")?;
        let switch = &mut self.switches[at];
        let outcome = match to {
            Enforcement::On => ReloadOutcomeKind::SwitchedOn,
            Enforcement::Off => ReloadOutcomeKind::SwitchedOff,
        };
        let newest = main.newest();
        if switch.now != to && newest != Some((outcome, self.machine.clock.now())) {
            return Err(format!("the newest entry of the history is {newest:?}"));
        }
        switch.now = to;
        if main.state.is_some() {
            let is_over = main.life.is_over();
            match is_written {
                true => (switch.file, switch.is_unread) = (vec![to], false),
                false => switch.file.push(to),
            }
            if !is_written && !is_over && (self.fault().is_none() || self.main().problems().is_empty()) {
                return Err("a switch that is not written is not reported".to_owned());
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), String> {
        let Some(state) = self.main().state.clone() else { return Ok(()) };
        let is_written = state.flush();
        let main = self.main();
        let problems = main.problems();
        if main.life.is_over() {
            return Ok(());
        }
        match (is_written, self.fault()) {
            (false, None) => return Err(format!("nothing fails, and something is not written: {problems:?}")),
            (false, Some(_)) if problems.is_empty() => return Err("something waits, and no problem says so".to_owned()),
            (true, None) if !problems.is_empty() => return Err(format!("everything is written, but: {problems:?}")),
            _ => {}
        }
        if is_written {
            self.is_written();
            let files = self.switches.iter_mut().filter(|switch| !switch.is_unread);
            files.for_each(|switch| switch.file = vec![switch.now]);
        }
        Ok(())
    }

    fn end_before(&mut self) {
        self.before = None;
    }

    fn restart(&mut self, is_killed: bool, folder: Folder) -> Result<(), String> {
        self.end_before();
        if let Some(main) = self.main.take() {
            if is_killed {
                main.life.end_after(0);
            }
            let (has_state, life, models) = (main.state.is_some(), main.life.clone(), main.models.clone());
            drop(main);
            if has_state && !life.is_over() && self.fault().is_none() {
                self.disk_has(&models);
                let files = self.switches.iter_mut().filter(|switch| !switch.is_unread);
                files.for_each(|switch| switch.file = vec![switch.now]);
            }
        }
        self.handed_over = None;
        if folder == Folder::Lost {
            let _ = std::fs::remove_dir_all(self.machine.state_folder());
            self.disk = ModelDisk::new();
            self.switches.iter_mut().for_each(|switch| switch.file = vec![Enforcement::On]);
        }
        self.start(folder)
    }

    fn start(&mut self, folder: Folder) -> Result<(), String> {
        if self.is_planted(Planted::SwitchForgets) {
            let _ = std::fs::write(self.machine.state_folder().join("sites/shop/enforcement"), "on\n");
        }
        let has_state = self.settings.has_state && folder != Folder::None;
        // If another test is starting a program, the child process inherits the locks and holds
        // them until `exec`.
        let attempts = std::iter::repeat_n(Duration::from_millis(5), 100);
        let main = attempts.into_iter().find_map(|pause| {
            let main = self.machine.start(has_state, self.gate, self.settings.has_grace);
            main.or_else(|| {
                std::thread::sleep(pause);
                None
            })
        });
        let main = main.ok_or("the directory of a process that ended is in use")?;
        let found = main.switches();
        let is_readable = self.fault().is_none_or(|fault| fault.is_readable());
        if let Some(damaged) = main.damaged().filter(|_| is_readable) {
            return Err(format!("what was written is damaged: {damaged}"));
        }
        for (switch, found) in self.switches.iter_mut().zip(found) {
            if has_state {
                let is_allowed = switch.file.contains(&found) || found == Enforcement::Off && !is_readable;
                if !is_allowed {
                    return Err(format!("a switch is {found:?}, and was {:?}", switch.file));
                }
                switch.is_unread = !is_readable;
                if is_readable {
                    switch.file = vec![found];
                }
            }
            switch.now = found;
        }
        let site = Model::new(self.gate, self.settings.has_grace);
        let now = self.now();
        let candidates = match has_state {
            true => self.disk.found(is_readable, &site, now),
            false => vec![([0, 0], site)],
        };
        let at = self.found(main, candidates)?;
        if has_state && is_readable {
            self.disk.was_found(&at);
        }
        self.may_be_written();
        Ok(())
    }

    /// Keeps the models that match the newly opened site. Returns the numbers of the states and
    /// records on disk that these models were created from.
    fn found(&mut self, mut main: Process, candidates: Vec<(FoundAt, Model)>) -> Result<Vec<FoundAt>, String> {
        let (held, now) = (when_loaded(*self.machine.source.0.lock()), self.now());
        let seen = main.seen(main.opened())?;
        let mut at = Vec::new();
        let mut wanted = Vec::new();
        for (found_at, mut model) in candidates {
            let outcome = model.start(held, now);
            let want = model.seen(outcome, now);
            if want != seen {
                wanted.push(want);
                continue;
            }
            at.push(found_at);
            if !main.models.contains(&model) {
                main.models.push(model);
            }
        }
        self.main = Some(main);
        if at.is_empty() {
            wanted.dedup();
            return Err(format!("at the start it is\n{seen:?}\nand not one of {wanted:?}"));
        }
        Ok(at)
    }

    fn reopen(&mut self) -> Result<(), String> {
        self.end_before();
        let is_readable = self.fault().is_none_or(|fault| fault.is_readable());
        let (is_sure, now) = (self.disk.is_sure(), self.now());
        let mut main = self.main.take().ok_or("no process runs")?;
        if main.life.is_over() || !is_readable || main.life.ends_soon() {
            // The process may have read the disk only in part, so its state is uncertain.
            self.main = Some(main);
            return Ok(());
        }
        let models = std::mem::take(&mut main.models);
        self.machine.reopen(&mut main, self.gate, self.settings.has_grace);
        let new = Model::new(self.gate, self.settings.has_grace);
        let mut candidates: Vec<_> = match main.state.is_some() {
            true => models.iter().flat_map(|model| model.replaced(is_sure, now)).map(|model| ([0, 0], model)).collect(),
            false => vec![([0, 0], new.clone())],
        };
        if main.state.is_some() && !is_sure {
            // The disk may also contain states that the process could not read when it started.
            let on_disk = self.disk.found(true, &new, now).into_iter();
            candidates.extend(on_disk.map(|(at, model)| (at, model.with_problems_of(&models[0]))));
        }
        let switch = &mut self.switches[1];
        let found = main.switches()[1];
        if main.state.is_none() {
            switch.now = Enforcement::On;
        } else if switch.is_unread && switch.file.contains(&found) {
            // The process has read the file now.
            (switch.now, switch.file, switch.is_unread) = (found, vec![found], false);
        }
        self.found(main, candidates)?;
        self.may_be_written();
        Ok(())
    }

    fn upgrade(&mut self) -> Result<(), String> {
        let main = self.main();
        let Some(state) = main.state.clone() else { return Ok(()) };
        if self.before.is_some() || main.life.ends_soon() || self.fault().is_some() {
            return Ok(());
        }
        if !state.hand_over(Duration::from_secs(60)) {
            return Err(format!("nothing fails, and the directory is not handed over: {:?}", main.problems()));
        }
        self.is_written();
        self.handed_over = None;
        let files = self.switches.iter_mut().filter(|switch| !switch.is_unread);
        files.for_each(|switch| switch.file = vec![switch.now]);
        let (gate, main) = (self.gate, self.main.take());
        self.before = main.map(|process| Before { gate, handed_over: saved(&process.models), process });
        self.start(Folder::Kept)
    }

    fn take_back(&mut self, is_killed: bool) -> Result<(), String> {
        let Some(before) = self.before.take() else { return Ok(()) };
        let main = self.main.take().ok_or("no process runs")?;
        if is_killed {
            main.life.end_after(0);
        }
        let (life, models) = (main.life.clone(), main.models.clone());
        drop(main);
        if !life.is_over() && self.fault().is_none() {
            self.disk.has(&models);
        }
        let Before { process, gate, handed_over } = before;
        let taken = process.state.as_ref().map_or(Ok(()), StateDir::take_back);
        taken.map_err(|error| format!("the directory is not taken back: {error}"))?;
        self.disk.may_have(&process.models);
        let now = process.switches();
        self.switches.iter_mut().zip(now).for_each(|(switch, now)| switch.now = now);
        (self.gate, self.handed_over, self.main) = (gate, Some(handed_over), Some(process));
        Ok(())
    }

    fn ask(&self, page: Text) -> Result<(), String> {
        let main = self.main();
        let is_off = self.switches.iter().any(|switch| switch.now == Enforcement::Off);
        let [model] = &main.models[..] else { return Ok(()) };
        let is_disallowed = model.live().is_some_and(|live| live >= SHUT || live == page);
        let is_refused = main.refuses(page);
        let may_be_in_grace = main.handle().status().grace_end.is_some();
        if let Some(end) = main.handle().status().grace_end
            && end > self.now().clock + GRACE
        {
            return Err(format!("the grace of {GRACE:?} ends at {end:?}, and it is {:?}", self.now()));
        }
        let is_right = match is_refused {
            true => is_disallowed && !is_off,
            false => !is_disallowed || is_off || may_be_in_grace,
        };
        if is_right { Ok(()) } else { Err(format!("page {page} is refused: {is_refused}, off: {is_off}, {model:?}")) }
    }
}

fn saved(models: &[Model]) -> Vec<Saved> {
    models.iter().map(Model::saved).collect()
}

fn expect(
    process: &mut Process,
    outcome: ModelOutcome,
    now: Now,
    step: impl Fn(&mut Model) -> (ModelOutcome, bool),
) -> Result<(), String> {
    let seen = process.seen(outcome)?;
    let mut wanted = Vec::new();
    process.models.retain_mut(|model| {
        let outcome = step(model);
        let want = model.seen(outcome, now);
        let is_like = want == seen;
        wanted.push(want);
        is_like
    });
    if !process.models.is_empty() {
        return Ok(());
    }
    Err(format!("it is\n{seen:?}\nand not one of {wanted:?}"))
}

#[cfg(test)]
mod tests;
