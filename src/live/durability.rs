//! How long what a site writes to the state directory has to last.

/// What a write must outlive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Durability {
    /// The process: what a source holds can be read again, and ten thousand files that change at once must not wait for
    /// the disk.
    Process,
    /// The machine: what an operator decided, and what waits for a decision.
    Machine,
}
