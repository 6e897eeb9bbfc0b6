//! Numbers, shares and moments, as people read them.

use crate::date;

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 line`, `2 lines`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A share in percent, with one digit after the point below 10 %.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0 %".to_owned();
    }
    let share = 100.0 * part as f64 / whole as f64;
    if share < 0.1 {
        "< 0.1 %".to_owned()
    } else if share < 9.95 {
        format!("{share:.1} %")
    } else if share >= 99.5 && part < whole {
        "> 99 %".to_owned()
    } else {
        format!("{share:.0} %")
    }
}

/// A moment as `2024-02-29 22:59` in UTC.
pub(crate) fn moment(seconds: i64) -> String {
    let Ok(seconds) = u64::try_from(seconds) else { return "before 1970".to_owned() };
    let time = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(seconds));
    let Some(time) = time else { return "after 9999".to_owned() };
    let text = date::rfc3339(time);
    text.get(..16).map_or_else(String::new, |text| text.replace('T', " "))
}

/// From one moment to another, or the one minute that both are in.
pub(crate) fn period(first: i64, last: i64) -> String {
    let (from, to) = (moment(first), moment(last));
    if from == to { format!("{from} UTC") } else { format!("{from} to {to} UTC") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_for_people() {
        for (number, want) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), want);
        }
        for (part, whole, want) in [
            (0, 0, "0 %"),
            (1, 10_000, "< 0.1 %"),
            (1, 100, "1.0 %"),
            (996, 10_000, "10 %"),
            (1, 3, "33 %"),
            (999, 1000, "> 99 %"),
            (5, 5, "100 %"),
        ] {
            assert_eq!(percent(part, whole), want);
        }
        assert_eq!(moment(1_709_247_599), "2024-02-29 22:59");
        assert_eq!(period(1_709_247_599, 1_709_247_600), "2024-02-29 22:59 to 2024-02-29 23:00 UTC");
        assert_eq!(period(1_709_247_598, 1_709_247_599), "2024-02-29 22:59 UTC");
    }
}
