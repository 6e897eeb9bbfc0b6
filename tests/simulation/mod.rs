//! Simulations from a seed: a world takes the steps of a schedule that was drawn by chance, one after the other, and says when
//! something is not as it must be. The same seed draws the same schedule, so a failure happens again; what is printed of it
//! are the few steps that are needed for it.
//!
//! Nothing here knows the world. A step is a value that carries all it needs, so that it can be taken in a schedule from which
//! others were left out.

use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Set to a seed that is tried alone.
const SEED: &str = "SIMULATION_SEED";

/// Set to how many steps are taken.
const STEPS: &str = "SIMULATION_STEPS";

/// Runs that a failing schedule is shrunk by, at most.
const SHRINKING: usize = 4_000;

/// What is simulated.
pub(crate) trait World: Sized {
    /// How a world begins; drawn once for a schedule.
    type Settings: Clone + Debug + Send;
    type Step: Clone + Debug + Send;

    fn settings(random: &mut Random) -> Self::Settings;

    fn step(settings: &Self::Settings, random: &mut Random) -> Self::Step;

    fn begin(settings: &Self::Settings) -> Self;

    /// Takes a step. A step that does not apply changes nothing.
    ///
    /// # Errors
    ///
    /// What is not as it must be.
    fn take(&mut self, step: &Self::Step) -> Result<(), String>;
}

/// Chance, from a seed (splitmix64).
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

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[usize::try_from(self.below(items.len() as u64)).unwrap()]
    }

    /// One of the items, each as often as its weight says.
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

/// A schedule after which something is not as it must be, shrunk.
pub(crate) struct Failure<W: World> {
    pub(crate) seed: u64,
    pub(crate) settings: W::Settings,
    pub(crate) steps: Vec<W::Step>,
    /// How many steps it had before it was shrunk.
    pub(crate) drawn: usize,
    pub(crate) why: String,
}

/// What came of many seeds.
pub(crate) struct Outcome<W: World> {
    pub(crate) steps: u64,
    pub(crate) seeds: u64,
    pub(crate) took: Duration,
    /// The failure of the lowest seed that was tried.
    pub(crate) failure: Option<Failure<W>>,
}

impl<W: World> Outcome<W> {
    /// Prints how many were tried, and fails where something was not as it must be.
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

/// The steps that are taken: as many as the environment says, or as are usual.
pub(crate) fn steps(usual: u64) -> u64 {
    std::env::var(STEPS).map_or(usual, |steps| steps.parse().unwrap())
}

/// Takes so many steps or a few more, `length` of each seed, on all processors, until there is a failure.
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

/// Takes the steps in a new world. Returns the first after which something is wrong.
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

/// Leaves out all that the failure does not need: halves at first, single steps at last.
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
        // Once more with the same size: what was needed before may not be any more.
        if !is_shorter {
            size /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter that must not have been doubled twice and then emptied.
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
    fn a_failing_schedule_is_found_again_and_shrunk_to_what_it_needs() {
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
