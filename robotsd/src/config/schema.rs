//! Generates JSON schemas that editors use for `robotsd.toml` and for the other files whose tables
//! are declared with the macro `tables`.

use serde_json::{Value, json};

use super::{Document, Key, Kind, RawConfig};

pub(crate) fn schema() -> String {
    schema_of::<RawConfig>("robotsd.toml")
}

/// Returns the schema for the files that `D` declares, in a version of JSON Schema that TOML
/// editors support. `title` is the usual file name.
pub(crate) fn schema_of<D: Document>(title: &str) -> String {
    let mut schema = of_table(D::KEYS);
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = title.into();
    format!("{schema:#}\n")
}

fn of_table(keys: &[Key]) -> Value {
    let property = |key: &Key| {
        let mut property = of_kind(&(key.kind)());
        if !key.about.is_empty() {
            property["description"] = key.about.trim().into();
        }
        (key.name.to_owned(), property)
    };
    let required: Vec<_> = keys.iter().filter(|key| (key.is_required)()).map(|key| key.name).collect();
    let properties: serde_json::Map<_, _> = keys.iter().map(property).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn of_kind(kind: &Kind) -> Value {
    match kind {
        // Editors treat TOML dates as strings.
        Kind::Text | Kind::Date => json!({ "type": "string" }),
        Kind::Time => json!({ "type": "string", "examples": ["10s", "1h 30m"] }),
        Kind::Size => json!({ "type": ["integer", "string"], "minimum": 0, "examples": [65536, "64KiB"] }),
        Kind::Number(least) => json!({ "type": "integer", "minimum": least }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Words(words) => json!({ "enum": words }),
        Kind::List(item) => json!({ "type": "array", "items": of_kind(item) }),
        Kind::Table(keys) => of_table(keys),
        Kind::Named(value) => json!({ "type": "object", "additionalProperties": of_kind(value) }),
        Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(of_kind).collect::<Vec<_>>() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports whether a value matches a schema. Supports only the JSON Schema keywords that the
    /// schemas of this module use.
    fn fits(schema: &Value, value: &toml::Value) -> bool {
        let is_type = |name: &Value| match value {
            toml::Value::String(_) | toml::Value::Datetime(_) => name == "string",
            toml::Value::Integer(_) => name == "integer",
            toml::Value::Boolean(_) => name == "boolean",
            toml::Value::Array(_) => name == "array",
            toml::Value::Table(_) => name == "object",
            toml::Value::Float(_) => false,
        };
        let has_type = match &schema["type"] {
            Value::Null => true,
            Value::Array(types) => types.iter().any(is_type),
            name => is_type(name),
        };
        let is_listed =
            schema["enum"].as_array().is_none_or(|words| words.iter().any(|word| word.as_str() == value.as_str()));
        let is_one = schema["anyOf"].as_array().is_none_or(|kinds| kinds.iter().any(|kind| fits(kind, value)));
        let items = value.as_array().into_iter().flatten();
        let are_items = schema.get("items").is_none_or(|item| items.clone().all(|value| fits(item, value)));
        let is_least = schema["minimum"].as_i64().zip(value.as_integer()).is_none_or(|(least, number)| number >= least);
        let are_keys = value.as_table().is_none_or(|table| {
            let required = schema["required"].as_array().into_iter().flatten();
            let has_all = required.filter_map(Value::as_str).all(|key| table.contains_key(key));
            has_all
                && table.iter().all(|(key, value)| {
                    match (&schema["properties"][key], &schema["additionalProperties"]) {
                        (Value::Null, Value::Bool(is_allowed)) => *is_allowed,
                        (Value::Null, others) => fits(others, value),
                        (property, _) => fits(property, value),
                    }
                })
        });
        has_type && is_listed && is_one && are_items && is_least && are_keys
    }

    #[test]
    fn every_config_of_the_repository_fits_the_schema() {
        let schema: Value = serde_json::from_str(&schema()).expect("it is JSON");
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
        let mut texts: Vec<_> = ["robotsd.toml", "production.toml", "demo.toml", "beside/robotsd.toml"]
            .map(|file| read(&format!("../config/{file}")))
            .into();
        for file in ["kubernetes.yaml", "beside/kubernetes.yaml"] {
            let text = read(&format!("../config/{file}"));
            let (_, config) = text.split_once("  robotsd.toml: |\n").expect("a config");
            texts.push(config.split("\n  robots.txt: |").next().expect("its end").to_owned());
        }
        for text in texts {
            assert!(fits(&schema, &toml::Value::Table(text.parse().expect("TOML"))), "{text}");
        }
    }

    #[test]
    fn invalid_configs_do_not_fit_the_schema() {
        let schema: Value = serde_json::from_str(&schema()).expect("it is JSON");
        for text in [
            "modus = \"tag\"",
            "mode = \"strict\"",
            "mode = 1",
            "workers = 0",
            "workers = \"4\"",
            "[[listener]]\nkind = \"proxy\"",
            "[[site]]\nname = \"a\"\nhosts = \"a.test\"",
            "[[site]]\nname = \"a\"\nmodes = { index = \"block\" }",
            "[[site]]\nname = \"a\"\nmodes = { index = { untill = 2027-03-31 } }",
            "[gate]\nenabled = \"on\"",
            "[limits]\nhead_size = -1",
        ] {
            assert!(!fits(&schema, &toml::Value::Table(text.parse().expect("TOML"))), "{text}");
        }
        assert!(schema.to_string().contains("Last day of the exception (UTC), or an exact time."));
    }
}
