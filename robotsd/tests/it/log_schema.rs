//! The documented schema of the log, and a check of lines against it.

use std::sync::LazyLock;

use serde_json::Value;

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../src/docs/log.schema.json")).unwrap());

pub(super) fn events() -> impl Iterator<Item = &'static str> {
    SCHEMA["oneOf"].as_array().unwrap().iter().map(|event| event["title"].as_str().unwrap())
}

/// Describes what the schema does not allow in a line: an unknown event or field, a missing field,
/// or a value of another type. Returns `None` if the line is valid.
pub(super) fn disagreement(line: &Value) -> Option<String> {
    let fields = line.as_object()?;
    let Some(event) = SCHEMA["oneOf"].as_array().unwrap().iter().find(|event| event["title"] == line["event"]) else {
        return Some(format!("the event is not in the schema: {line}"));
    };
    let required = |list: &'static Value| list.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    if let Some(missing) =
        required(&SCHEMA["required"]).chain(required(&event["required"])).find(|name| !fields.contains_key(*name))
    {
        return Some(format!("{missing} is missing: {line}"));
    }
    fields.iter().find_map(|(name, value)| {
        let (of_event, of_all) = (&event["properties"][name], &SCHEMA["properties"][name]);
        let is_one_of = |list: &Value| list["enum"].as_array().is_none_or(|values| values.contains(value));
        let is_typed = match of_all["type"].as_str() {
            Some("string") => value.is_string(),
            Some("integer") => value.is_u64(),
            Some("number") => value.is_number(),
            Some("boolean") => value.is_boolean(),
            _ => false,
        };
        let agrees = !of_event.is_null() && is_typed && is_one_of(of_event) && is_one_of(of_all);
        (!agrees).then(|| format!("{name} is not as the schema has it: {line}"))
    })
}

#[test]
fn a_log_line_that_does_not_match_the_schema_is_detected() {
    let good = serde_json::json!({"ts": "…", "level": "info", "event": "stopped", "message": "the end"});
    assert_eq!(disagreement(&good), None);
    for (field, value) in [
        ("event", "no-such-event".into()),
        ("level", "error".into()),
        ("message", Value::from(1)),
        ("site", "a field of other events".into()),
        ("no_such_field", "x".into()),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(disagreement(&bad).is_some(), "{bad}");
    }
    for field in ["ts", "level", "message"] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(field);
        assert!(disagreement(&bad).is_some(), "{bad}");
    }
}
