//! What is tried again, and when.

use std::time::Duration;

use http::StatusCode;

/// How often a request is tried, and the pauses between.
#[derive(Clone, Debug)]
pub(crate) struct RetryPlan {
    /// One fewer than attempts.
    pub(super) pauses: Vec<Duration>,
}

/// What came of an attempt.
#[derive(Debug)]
pub(super) enum Attempt {
    Delivered(StatusCode),
    /// It may be answered later.
    Failed(String),
    /// It will be answered so again.
    Refused(String),
}

impl Default for RetryPlan {
    /// Five attempts within ten minutes, time-outs included.
    fn default() -> Self {
        Self { pauses: [2, 15, 60, 180].map(Duration::from_secs).to_vec() }
    }
}

impl RetryPlan {
    /// The pause behind the so-many-th attempt, from 1, less up to half of it at random; `None` where it was the last.
    pub(super) fn pause(&self, attempt: usize, roll: u32) -> Option<Duration> {
        let whole = *self.pauses.get(attempt.checked_sub(1)?)?;
        Some(whole.mul_f64(1.0 - f64::from(roll) / f64::from(u32::MAX) / 2.0))
    }
}

impl Attempt {
    pub(super) fn of(status: StatusCode) -> Self {
        let text = match status.canonical_reason() {
            Some(reason) => format!("the answer is {} {reason}", status.as_u16()),
            None => format!("the answer is {}", status.as_u16()),
        };
        match status {
            status if status.is_success() => Self::Delivered(status),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Self::Failed(text),
            status if status.is_server_error() => Self::Failed(text),
            status if status.is_redirection() => Self::Refused(format!("{text}, and redirects are not followed")),
            _ => Self::Refused(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_pauses_are_bounded() {
        let plan = RetryPlan::default();
        let longest: Duration = (1..).map_while(|attempt| plan.pause(attempt, 0)).sum();
        assert_eq!((1..).map_while(|attempt| plan.pause(attempt, 7)).count(), 4);
        assert!(longest + 5 * Duration::from_secs(60) < Duration::from_secs(600), "{longest:?}");
        assert_eq!(plan.pause(1, u32::MAX), Some(Duration::from_secs(1)));
    }

    #[test]
    fn what_will_not_change_is_not_tried_again() {
        let kind = |status: u16| match Attempt::of(StatusCode::from_u16(status).expect("a status")) {
            Attempt::Delivered(_) => 'd',
            Attempt::Failed(_) => 'f',
            Attempt::Refused(_) => 'r',
        };
        let kinds: String = [200, 204, 301, 400, 401, 404, 408, 429, 500, 503, 599].map(kind).into_iter().collect();
        assert_eq!(kinds, "ddrrrrfffff");
    }
}
