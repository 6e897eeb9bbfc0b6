//! If there is no upgrade in place, there are no such processes.

use std::convert::Infallible;
use std::time::Duration;

use super::{HandedSockets, SocketPlace, SuccessorEvent};

/// A process that is to take the place of this one.
#[derive(Debug)]
pub(in crate::serve) struct Successor(Infallible);

/// The process whose place this one takes.
#[derive(Debug)]
pub(in crate::serve) struct Predecessor {
    pub(in crate::serve) process: Infallible,
}

impl Successor {
    pub(in crate::serve) fn start(_: HandedSockets, _: Duration) -> Result<Self, String> {
        Err("an upgrade in place needs Linux: restart instead".to_owned())
    }
}

impl Predecessor {
    pub(in crate::serve) fn find() -> Result<Option<(Self, HandedSockets)>, String> {
        Ok(None)
    }
}

/// Questions that are never asked here.
macro_rules! never_asked {
    ($process:ident . $field:tt: $([$($by:tt)+] $ask:ident($($with:ty),*) -> $answer:ty;)+) => {
        impl $process {
            $(pub(in crate::serve) fn $ask($($by)+ self, $(_: $with),*) -> $answer {
                match self.$field {}
            })+
        }
    };
}

never_asked! {
    Successor.0:
    [&] id() -> u32;
    [&mut] take() -> ();
    [&] reload() -> ();
    [&mut] stop() -> ();
    [&mut] next() -> std::future::Ready<SuccessorEvent>;
}

never_asked! {
    Predecessor.process:
    [&] take() -> bool;
    [&] serves(&str, Vec<SocketPlace>) -> ();
    [&] leaves() -> ();
    [&] failed(&str) -> ();
}
