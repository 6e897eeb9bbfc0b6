//! A deadline for standing still.
//!
//! Costs nothing until something has to wait: most small bodies are complete at the first poll, so the timer is only made
//! at the first wait and kept for the next one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Expires after a wait of a given time without a [`reset`](Self::reset).
#[derive(Debug)]
pub(crate) struct IdleTimeout {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl IdleTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, timer: None, is_waiting: false }
    }

    /// Something moved: the next wait starts anew.
    pub(crate) fn reset(&mut self) {
        self.is_waiting = false;
    }

    /// Whether there has been a wait since the last reset.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Ready once the current wait has lasted too long.
    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        if !self.is_waiting {
            self.is_waiting = true;
            timer.as_mut().reset(Instant::now() + self.limit);
        }
        timer.as_mut().poll(cx)
    }
}
