//! The progress of a replay, on terminals only.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::source::Meter;

/// A bar on standard error; erased on drop.
#[derive(Debug)]
pub(super) struct ProgressDrawer {
    over: Arc<AtomicBool>,
    drawer: Option<JoinHandle<()>>,
}

impl ProgressDrawer {
    /// Draws nothing where standard error is no terminal.
    pub(super) fn start(meter: &Meter, total: Option<u64>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let drawer = std::io::stderr().is_terminal().then(|| {
            let (over, meter) = (over.clone(), meter.clone());
            thread::spawn(move || {
                let bar = bar(total);
                while !over.load(Ordering::Relaxed) {
                    bar.set_position(meter.read());
                    thread::park_timeout(Duration::from_millis(100));
                }
                bar.finish_and_clear();
            })
        });
        Self { over, drawer }
    }
}

impl Drop for ProgressDrawer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(drawer) = self.drawer.take() {
            drawer.thread().unpark();
            // A bar that could not be drawn is no reason to lose the counts.
            let _ = drawer.join();
        }
    }
}

fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, style) = match total {
        Some(total) => {
            let style = "{bar:40} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left";
            (ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr()), style)
        }
        None => {
            let style = "{spinner} {bytes}, {binary_bytes_per_sec}";
            (ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()), style)
        }
    };
    // The templates above are right; should they not be, the default one will do.
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
