//! Simulations from a seed. A world takes the steps of a randomly drawn schedule, one after the
//! other, and reports violations. The same seed draws the same schedule, so failures are
//! reproducible. Only the few steps that are needed for a failure are printed.
//!
//! This module is independent of the world. A step is a value with everything it needs, so it can
//! also be taken in a schedule from which other steps were removed.

use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Environment variable: the only seed to try.
const SEED: &str = "SIMULATION_SEED";

/// Environment variable: the number of steps to take.
const STEPS: &str = "SIMULATION_STEPS";

/// Maximum number of runs for shrinking a failing schedule.
const SHRINKING: usize = 4_000;

/// A simulated system.
pub(crate) trait World: Sized {
    /// The initial settings of a world, drawn once per schedule.
    type Settings: Clone + Debug + Send;
    type Step: Clone + Debug + Send;

    fn settings(random: &mut Random) -> Self::Settings;

    fn step(settings: &Self::Settings, random: &mut Random) -> Self::Step;

    fn begin(settings: &Self::Settings) -> Self;

    /// Takes a step. A step that does not apply changes nothing.
    ///
    /// # Errors
    ///
    /// Describes the violation.
    fn take(&mut self, step: &Self::Step) -> Result<(), String>;
}

/// Random numbers from a seed (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns true once in `times` calls on average.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[usize::try_from(self.below(items.len() as u64)).unwrap()]
    }

    /// Returns one of the items, with a probability according to its weight.
    pub(crate) fn weighted<'i, T>(&mut self, items: &'i [(u64, T)]) -> &'i T {
        let mut at = self.below(items.iter().map(|(weight, _)| weight).sum());
        let is_it = |(weight, _): &&(u64, T)| {
            let is_it = at < *weight;
            at = at.saturating_sub(*weight);
            is_it
        };
        &items.iter().find(is_it).unwrap().1
    }
}

/// A shrunk schedule that ends with a violation.
pub(crate) struct Failure<W: World> {
    pub(crate) seed: u64,
    pub(crate) settings: W::Settings,
    pub(crate) steps: Vec<W::Step>,
    /// Number of steps before shrinking.
    pub(crate) drawn: usize,
    pub(crate) why: String,
}

/// The outcome of many seeds.
pub(crate) struct Outcome<W: World> {
    pub(crate) steps: u64,
    pub(crate) seeds: u64,
    pub(crate) took: Duration,
    /// The failure of the lowest seed that was tried.
    pub(crate) failure: Option<Failure<W>>,
}

impl<W: World> Outcome<W> {
    /// Prints how many steps were taken, and fails if there was a violation.
    #[track_caller]
    pub(crate) fn expect_none(self, what: &str) {
        println!("{what}: {} steps of {} seeds in {:.1?}", self.steps, self.seeds, self.took);
        if let Some(failure) = self.failure {
            panic!("{what}: {failure}");
        }
    }
}

impl<W: World> fmt::Display for Failure<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{SEED}={} with {:?}", self.why, self.seed, self.settings)?;
        writeln!(f, "{} of {} steps:", self.steps.len(), self.drawn)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "    {step:?},"))
    }
}

/// Returns the number of steps to take: `usual`, or the number in the environment variable.
pub(crate) fn steps(usual: u64) -> u64 {
    std::env::var(STEPS).map_or(usual, |steps| steps.parse().unwrap())
}

/// Takes at least this many steps, `length` per seed, on all processors, until there is a failure.
pub(crate) fn simulate<W: World>(steps: u64, length: usize) -> Outcome<W> {
    let began = Instant::now();
    if let Ok(seed) = std::env::var(SEED) {
        let seed = seed.parse().unwrap();
        return Outcome { steps: length as u64, seeds: 1, took: began.elapsed(), failure: failure::<W>(seed, length) };
    }
    let seeds = steps.div_ceil(length as u64);
    let (next, tried) = (AtomicU64::new(0), AtomicU64::new(0));
    let failed: Mutex<Option<Failure<W>>> = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds || failed.lock().unwrap().is_some() {
                        break;
                    }
                    let found = failure::<W>(seed, length);
                    tried.fetch_add(1, Ordering::Relaxed);
                    if let Some(found) = found {
                        let mut failed = failed.lock().unwrap();
                        if failed.as_ref().is_none_or(|failed| failed.seed > found.seed) {
                            *failed = Some(found);
                        }
                    }
                }
            });
        }
    });
    let seeds = tried.into_inner();
    Outcome { steps: seeds * length as u64, seeds, took: began.elapsed(), failure: failed.into_inner().unwrap() }
}

/// Draws the schedule of a seed and takes it.
fn failure<W: World>(seed: u64, length: usize) -> Option<Failure<W>> {
    let mut random = Random::new(seed);
    let settings = W::settings(&mut random);
    let drawn: Vec<W::Step> = (0..length).map(|_| W::step(&settings, &mut random)).collect();
    let (at, why) = first_failure::<W>(&settings, &drawn)?;
    let mut steps = drawn[..=at].to_vec();
    shrink::<W>(&settings, &mut steps);
    let why = first_failure::<W>(&settings, &steps)
        .map_or_else(|| format!("{why}; it does not happen again"), |(_, why)| why);
    Some(Failure { seed, settings, steps, drawn: at + 1, why })
}

/// Takes the steps in a new world. Returns the first step that causes a violation.
pub(crate) fn first_failure<W: World>(settings: &W::Settings, steps: &[W::Step]) -> Option<(usize, String)> {
    let mut world = W::begin(settings);
    steps.iter().enumerate().find_map(|(at, step)| {
        let taken = catch_unwind(AssertUnwindSafe(|| world.take(step)));
        let taken = taken.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            Err(format!("a panic: {}", text.unwrap_or_else(|| format!("{:?}", panic.downcast_ref::<&str>()))))
        });
        taken.err().map(|why| (at, why))
    })
}

/// Removes all steps that the failure does not need: first halves, finally single steps.
fn shrink<W: World>(settings: &W::Settings, steps: &mut Vec<W::Step>) {
    let (mut runs, mut size) = (0, steps.len().div_ceil(2));
    while size > 0 && runs < SHRINKING {
        let (mut at, mut is_shorter) = (0, false);
        while at < steps.len() && runs < SHRINKING {
            let mut fewer = steps.clone();
            fewer.drain(at..steps.len().min(at + size));
            runs += 1;
            match first_failure::<W>(settings, &fewer) {
                Some((last, _)) => {
                    fewer.truncate(last + 1);
                    (*steps, is_shorter) = (fewer, true);
                }
                None => at += size,
            }
        }
        // Repeat with the same size, because a step that was needed before may no longer be needed.
        if !is_shorter {
            size /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter that must not be doubled twice and then emptied.
    struct Counter(u64);

    impl World for Counter {
        type Settings = ();
        type Step = u64;

        fn settings(_: &mut Random) {}

        fn step((): &(), random: &mut Random) -> u64 {
            random.below(50)
        }

        fn begin((): &()) -> Self {
            Self(0)
        }

        fn take(&mut self, step: &u64) -> Result<(), String> {
            match step {
                7 => self.0 += 1,
                8 if self.0 > 1 => return Err("emptied".to_owned()),
                9 => panic!("a panic is a failure"),
                _ => {}
            }
            Ok(())
        }
    }

    #[test]
    fn a_failing_schedule_is_reproduced_and_shrunk_to_the_needed_steps() {
        let shrunk = |steps: &[u64]| {
            let mut steps = steps.to_vec();
            shrink::<Counter>(&(), &mut steps);
            steps
        };
        assert_eq!(shrunk(&[1, 7, 2, 2, 7, 7, 3, 8]), [7, 7, 8]);
        assert_eq!(shrunk(&[1, 7, 9]), [9]);
        let found = simulate::<Counter>(10_000, 100).failure.expect("one of them fails");
        let again = failure::<Counter>(found.seed, 100).expect("it fails again");
        assert_eq!((again.steps, again.why), (found.steps, found.why));
    }
}
