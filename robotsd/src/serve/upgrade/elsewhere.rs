//! Where there is no upgrade in place, there are no such processes.

use super::{SocketPlace, SuccessorEvent};

/// A process that is to take the place of this one.
#[derive(Debug)]
pub(in crate::serve) enum NoSuccessor {}

impl NoSuccessor {
    pub(in crate::serve) fn id(&self) -> u32 {
        match *self {}
    }

    pub(in crate::serve) fn take(&mut self) {
        match *self {}
    }

    pub(in crate::serve) fn reload(&self) {
        match *self {}
    }

    pub(in crate::serve) fn stop(&mut self) {
        match *self {}
    }

    pub(in crate::serve) async fn next(&mut self) -> SuccessorEvent {
        match *self {}
    }
}

/// The process whose place this one takes.
#[derive(Debug)]
pub(in crate::serve) enum NoPredecessor {}

impl NoPredecessor {
    pub(in crate::serve) fn id(&self) -> u32 {
        match *self {}
    }

    pub(in crate::serve) fn take(&self) -> bool {
        match *self {}
    }

    pub(in crate::serve) fn serves(&self, _: &str, _: Vec<SocketPlace>) {
        match *self {}
    }

    pub(in crate::serve) fn leaves(&self) {
        match *self {}
    }

    pub(in crate::serve) fn failed(&self, _: &str) {
        match *self {}
    }
}
