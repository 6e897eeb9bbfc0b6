//! Assertions about parts of texts and reports, which print the whole if they fail.

use serde_json::Value;

/// Each of the parts is in the text.
#[track_caller]
pub(crate) fn assert_has(text: impl AsRef<str>, parts: &[&str]) {
    let text = text.as_ref();
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in\n{text}"));
}

/// None of the parts is in the text.
#[track_caller]
pub(crate) fn assert_lacks(text: impl AsRef<str>, parts: &[&str]) {
    let text = text.as_ref();
    parts.iter().for_each(|part| assert!(!text.contains(part), "{part:?} is in\n{text}"));
}

/// A report has these fields with these values, among others: of objects in it, too.
#[track_caller]
pub(crate) fn assert_part(report: &Value, part: &Value) {
    let found = common(report, part);
    assert!(found == *part, "{found} in place of {part}, in {report}");
}

/// The fields of a report that a part has.
fn common(report: &Value, part: &Value) -> Value {
    match part {
        Value::Object(fields) if report.is_object() => {
            fields.iter().map(|(name, value)| (name.clone(), common(&report[name], value))).collect()
        }
        _ => report.clone(),
    }
}

/// The row of a list whose field has this value; null where there is none.
pub(crate) fn row<'a>(rows: &'a Value, field: &str, value: &str) -> &'a Value {
    rows.as_array().expect("a list").iter().find(|row| row[field] == value).unwrap_or(&Value::Null)
}

/// Text that is folded to lines, as one line again.
pub(crate) fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
