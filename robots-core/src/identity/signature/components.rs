//! The signed components of a request, and the signature base that is built from them (RFC 9421,
//! section 2).

use std::str::FromStr;

use sfv::{Dictionary, FieldType as _, InnerList, Item, ListSerializer};

use super::message_head::{FieldValue, MessageHead};
use super::structured_field::{read, text};
use crate::agent::Refutation;
use crate::rules::ValueError;

/// Maximum number of components per signature. Real signers sign fewer components. The limit bounds
/// the cost of a check, because all fields of the request are scanned for each component.
const MAX_COMPONENTS: usize = 32;

/// Maximum number of field bytes that are processed for one signature base. The limit bounds the
/// cost of a check, because a dictionary field is parsed again for each of its covered members.
const MAX_BYTES: usize = 64 * 1024;

/// The components that a signature covers, without duplicates.
pub(super) struct Components<'l> {
    list: &'l InnerList,
    /// The value of the `Signature-Input` member, with the list and the parameters exactly as
    /// received.
    raw: &'l str,
}

impl<'l> Components<'l> {
    pub(super) fn of(list: &'l InnerList, raw: &'l str) -> Result<Self, Refutation> {
        if list.items.len() > MAX_COMPONENTS || list.items.iter().any(|item| text(&item.bare_item).is_none()) {
            return Err(Refutation::Unparsable);
        }
        let mut identifiers: Vec<String> = list.items.iter().map(Item::serialize).collect();
        identifiers.sort_unstable();
        if identifiers.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Refutation::ComponentRepeated);
        }
        Ok(Self { list, raw })
    }

    /// Reports whether the signature covers the authority, either alone or as part of the target
    /// URI. Without the authority, a signature could be used for any site.
    pub(super) fn cover_target(&self) -> bool {
        let is_target =
            |item: &Item| item.params.is_empty() && matches!(text(&item.bare_item), Some("@authority" | "@target-uri"));
        self.list.items.iter().any(is_target)
    }

    /// Returns the `key` parameter of each component that covers a dictionary field; `None` for a
    /// component that covers the whole field.
    pub(super) fn members_of(&self, field: &str) -> Vec<Option<&str>> {
        let items = self.list.items.iter().filter(|item| text(&item.bare_item) == Some(field));
        items.map(|item| item.params.get("key").and_then(text)).collect()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.items.iter().filter_map(|item| text(&item.bare_item))
    }

    pub(super) fn base(&self, message: &MessageHead<'_>) -> Result<String, Refutation> {
        let mut base = String::new();
        let mut budget = MAX_BYTES;
        for item in &self.list.items {
            let value = value(item, message, &mut budget)?;
            base.push_str(&format!("{}: {value}\n", item.serialize()));
        }
        base.push_str("\"@signature-params\": ");
        base.push_str(self.raw);
        Ok(base)
    }
}

/// A component that signatures must cover: a derived component such as `@path`, or a field name in
/// lower case.
///
/// `@target-uri` also covers `@scheme`, `@authority`, `@path` and `@query`. `@request-target` also
/// covers `@path` and `@query`.
///
/// ```
/// use robots_core::identity::RequiredComponent;
///
/// assert!("@path".parse::<RequiredComponent>().is_ok());
/// assert!("@status".parse::<RequiredComponent>().is_err(), "this component exists only in responses");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequiredComponent(Box<str>);

impl RequiredComponent {
    /// Reports whether the signature base has a line for this component, or for a component that
    /// includes it.
    pub(super) fn is_covered_by(&self, base: &str) -> bool {
        let includes = |component: &str| match (component, &*self.0) {
            ("@target-uri", "@scheme" | "@authority" | "@path" | "@query")
            | ("@request-target", "@path" | "@query") => true,
            (component, required) => component == required,
        };
        let component = |line| Some(str::split_once(str::strip_prefix(line, '"')?, "\": ")?.0);
        // `SignatureCandidate::all` rejects signatures that do not cover their member of
        // `Signature-Agent`, so every signature here covers this field.
        &*self.0 == "signature-agent" || base.lines().filter_map(component).any(includes)
    }
}

impl FromStr for RequiredComponent {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const DERIVED: [&str; 7] =
            ["@method", "@scheme", "@authority", "@target-uri", "@request-target", "@path", "@query"];
        let is_field =
            !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        // A derived component without the `@`, such as `path`, is a mistake: requests have no
        // fields with these names.
        let lacks_at = DERIVED.iter().any(|component| component[1..] == *text);
        if is_field && !lacks_at || DERIVED.contains(&text) {
            return Ok(Self(text.into()));
        }
        Err(ValueError::of_any(
            text,
            "is not a component of requests that a signature can cover: write \"@method\", \"@scheme\", \
             \"@authority\", \"@target-uri\", \"@request-target\", \"@path\", \"@query\" or the name of a field in \
             lower case",
        ))
    }
}

fn value(item: &Item, message: &MessageHead<'_>, budget: &mut usize) -> Result<String, Refutation> {
    let name = text(&item.bare_item).ok_or(Refutation::Unparsable)?;
    let value = if name.starts_with('@') {
        if !item.params.is_empty() {
            return Err(Refutation::ComponentUnsupported);
        }
        derived(name, message)?
    } else {
        field(name, item, message, budget)?
    };
    // A derived value may contain line breaks, because the caller may pass any string as the
    // request target.
    let is_line = value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    if is_line { Ok(value) } else { Err(Refutation::ComponentUnsupported) }
}

/// Returns the value of a derived component (RFC 9421, section 2.2).
fn derived(name: &str, message: &MessageHead<'_>) -> Result<String, Refutation> {
    let (path, query) = message.path_and_query();
    match name {
        "@method" => Ok(message.method.to_owned()),
        "@scheme" => Ok(message.scheme()),
        "@authority" => message.authority().ok_or(Refutation::ComponentMissing),
        "@target-uri" => message.target_uri().ok_or(Refutation::ComponentMissing),
        "@request-target" => Ok(message.target.to_owned()),
        "@path" => Ok(path.to_owned()),
        "@query" => Ok(format!("?{}", query.unwrap_or_default())),
        _ => Err(Refutation::ComponentUnsupported),
    }
}

/// Returns the value of a field or, if the component has the parameter `key`, of a member of a
/// dictionary field (RFC 9421, section 2.1).
fn field(name: &str, item: &Item, message: &MessageHead<'_>, budget: &mut usize) -> Result<String, Refutation> {
    let is_name_byte = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
    if name.is_empty() || !name.bytes().all(is_name_byte) || !item.params.keys().all(|key| key.as_str() == "key") {
        return Err(Refutation::ComponentUnsupported);
    }
    let value = match message.field(name) {
        None => return Err(Refutation::ComponentMissing),
        Some(FieldValue::OtherBytes) => return Err(Refutation::ComponentUnsupported),
        Some(FieldValue::Text(value)) => value,
    };
    *budget = budget.checked_sub(value.len()).ok_or(Refutation::ComponentUnsupported)?;
    let Some(key) = item.params.get("key") else { return Ok(value) };
    let key = text(key).ok_or(Refutation::ComponentUnsupported)?;
    let dictionary: Dictionary = read(&value).ok_or(Refutation::Unparsable)?;
    let mut member = ListSerializer::new();
    member.members([dictionary.get(key).ok_or(Refutation::ComponentMissing)?]);
    Ok(member.finish().unwrap_or_default())
}

/// The fields that contain signatures. [`CoveredValues`] does not contain these fields, because the
/// cache of signature checks compares the lines of these fields itself.
pub(super) const SIGNATURE_FIELDS: [&str; 3] = ["signature-input", "signature", "signature-agent"];

/// The values that a signature covers in a request, as received. Requests with equal values have
/// the same signature base.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CoveredValues(Box<[CoveredValue]>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CoveredValue {
    Method(Box<str>),
    Scheme(Box<str>),
    Authority(Option<Box<str>>),
    Target(Box<str>),
    Path(Box<str>),
    Query(Option<Box<str>>),
    Field { name: Box<str>, value: Box<str> },
}

impl CoveredValues {
    /// Returns the values of the components in a request. `None` if a value cannot be compared with
    /// the values of another request.
    pub(super) fn of<'a>(components: impl Iterator<Item = &'a str>, message: &MessageHead<'_>) -> Option<Self> {
        let method = || CoveredValue::Method(message.method.into());
        let scheme = || CoveredValue::Scheme(message.scheme.into());
        let authority = || CoveredValue::Authority(message.authority.map(Into::into));
        let path = || CoveredValue::Path(message.path_and_query().0.into());
        let query = || CoveredValue::Query(message.path_and_query().1.map(Into::into));
        let mut values = Vec::new();
        for name in components {
            match name {
                "@method" => values.push(method()),
                "@scheme" => values.push(scheme()),
                // The scheme is also compared, because the default port of the authority depends on
                // the scheme.
                "@authority" => values.extend([authority(), scheme()]),
                "@target-uri" => values.extend([authority(), scheme(), path(), query()]),
                "@request-target" => values.push(CoveredValue::Target(message.target.into())),
                "@path" => values.push(path()),
                "@query" => values.push(query()),
                name if SIGNATURE_FIELDS.contains(&name) => {}
                name => values.push(CoveredValue::Field { name: name.into(), value: message.text(name)?.into() }),
            }
        }
        Some(Self(values.into()))
    }

    pub(super) fn match_request(&self, message: &MessageHead<'_>) -> bool {
        self.0.iter().all(|value| match value {
            CoveredValue::Method(method) => **method == *message.method,
            CoveredValue::Scheme(scheme) => **scheme == *message.scheme,
            CoveredValue::Authority(authority) => authority.as_deref() == message.authority,
            CoveredValue::Target(target) => **target == *message.target,
            CoveredValue::Path(path) => **path == *message.path_and_query().0,
            CoveredValue::Query(query) => query.as_deref() == message.path_and_query().1,
            CoveredValue::Field { name, value } => message.has_text(name, value),
        })
    }
}
