//! Assertions about parts of a string or report. A failed assertion prints the whole string or
//! report.

use serde_json::Value;

#[track_caller]
pub(crate) fn assert_has(text: impl AsRef<str>, parts: &[&str]) {
    let text = text.as_ref();
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in\n{text}"));
}

#[track_caller]
pub(crate) fn assert_lacks(text: impl AsRef<str>, parts: &[&str]) {
    let text = text.as_ref();
    parts.iter().for_each(|part| assert!(!text.contains(part), "{part:?} is in\n{text}"));
}

/// Checks that a report contains these fields with these values, at any depth. It may contain more.
#[track_caller]
pub(crate) fn assert_part(report: &Value, part: &Value) {
    let found = common(report, part);
    assert!(found == *part, "{found} in place of {part}, in {report}");
}

/// Returns the fields of a report that also occur in `part`.
fn common(report: &Value, part: &Value) -> Value {
    match part {
        Value::Object(fields) if report.is_object() => {
            fields.iter().map(|(name, value)| (name.clone(), common(&report[name], value))).collect()
        }
        _ => report.clone(),
    }
}

/// Returns the row of a list with this value in the field; null if there is none.
pub(crate) fn row<'a>(rows: &'a Value, field: &str, value: &str) -> &'a Value {
    rows.as_array().expect("a list").iter().find(|row| row[field] == value).unwrap_or(&Value::Null)
}

pub(crate) fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
