//! A deadline for standing still.
//!
//! Costs nothing until something has to be waited for: most small bodies are complete at the first look, so the timer
//! is only made at the first wait and kept for the next one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Expires when nothing moved for a given time.
#[derive(Debug)]
pub(crate) struct IdleTimeout {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl IdleTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, timer: None, waiting: false }
    }

    /// Something moved: the next wait starts anew.
    pub(crate) fn moved(&mut self) {
        self.waiting = false;
    }

    /// Whether something was waited for since it last moved.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting
    }

    /// Ready once the current wait has lasted too long.
    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        if !self.waiting {
            self.waiting = true;
            timer.as_mut().reset(Instant::now() + self.limit);
        }
        timer.as_mut().poll(cx)
    }
}
