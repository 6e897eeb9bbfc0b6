//! The values that a signature covers, beside those of the signature's own fields.

use super::message_head::MessageHead;

/// The fields of a signature. Results are kept by all of them, so they are not compared again.
pub(super) const SIGNATURE_FIELDS: [&str; 3] = ["signature-input", "signature", "signature-agent"];

/// What a signature covers of one request, as received: a request with the same values has the same signature base.
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
    /// The values of these components; `None` where one of them cannot be compared.
    pub(super) fn of<'a>(components: impl Iterator<Item = &'a str>, message: &MessageHead<'_>) -> Option<Self> {
        let method = || CoveredValue::Method(message.method().into());
        let scheme = || CoveredValue::Scheme(message.raw_scheme().into());
        let authority = || CoveredValue::Authority(message.raw_authority().map(Into::into));
        let path = || CoveredValue::Path(message.path_and_query().0.into());
        let query = || CoveredValue::Query(message.path_and_query().1.map(Into::into));
        let mut values = Vec::new();
        for name in components {
            match name {
                "@method" => values.push(method()),
                "@scheme" => values.push(scheme()),
                // Its port depends on the scheme.
                "@authority" => values.extend([authority(), scheme()]),
                "@target-uri" => values.extend([authority(), scheme(), path(), query()]),
                "@request-target" => values.push(CoveredValue::Target(message.target().into())),
                "@path" => values.push(path()),
                "@query" => values.push(query()),
                name if SIGNATURE_FIELDS.contains(&name) => {}
                name => values.push(CoveredValue::Field { name: name.into(), value: message.text(name)?.into() }),
            }
        }
        Some(Self(values.into()))
    }

    /// Whether another request has the same values.
    pub(super) fn are_those_of(&self, message: &MessageHead<'_>) -> bool {
        self.0.iter().all(|value| match value {
            CoveredValue::Method(method) => **method == *message.method(),
            CoveredValue::Scheme(scheme) => **scheme == *message.raw_scheme(),
            CoveredValue::Authority(authority) => authority.as_deref() == message.raw_authority(),
            CoveredValue::Target(target) => **target == *message.target(),
            CoveredValue::Path(path) => **path == *message.path_and_query().0,
            CoveredValue::Query(query) => query.as_deref() == message.path_and_query().1,
            CoveredValue::Field { name, value } => message.has_text(name, value),
        })
    }
}
