//! The entries of a document: finding the one that an error is about, and taking it out.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// An entry of a document, with the keys that lead to it; the items of a list have the keys of their list.
#[derive(Clone, Debug)]
pub(super) struct DocumentEntry<'d> {
    pub(super) keys: Vec<String>,
    pub(super) value: &'d DeValue<'d>,
    pub(super) value_span: Range<usize>,
    pub(super) key_span: Range<usize>,
    /// Keys, and numbers in lists.
    pub(super) steps: Vec<Step>,
    /// Of the table that it is in.
    pub(super) table: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Item(usize),
}

/// Every entry, each before those in it.
pub(super) fn entries<'d>(document: &'d Spanned<DeTable<'_>>) -> Vec<DocumentEntry<'d>> {
    let mut found = Vec::new();
    walk_table(document.get_ref(), &document.span(), &[], &[], &mut found);
    found
}

fn walk_table<'d>(
    table: &'d DeTable<'_>,
    span: &Range<usize>,
    keys: &[String],
    steps: &[Step],
    found: &mut Vec<DocumentEntry<'d>>,
) {
    for (key, value) in table {
        let name = key.get_ref().to_string();
        let keys: Vec<_> = keys.iter().cloned().chain([name.clone()]).collect();
        let steps: Vec<_> = steps.iter().cloned().chain([Step::Key(name)]).collect();
        walk_value(value, &key.span(), span, &keys, &steps, found);
    }
}

fn walk_value<'d>(
    value: &'d Spanned<DeValue<'_>>,
    key_span: &Range<usize>,
    table: &Range<usize>,
    keys: &[String],
    steps: &[Step],
    found: &mut Vec<DocumentEntry<'d>>,
) {
    let (value_span, inner) = (value.span(), value.get_ref());
    found.push(DocumentEntry {
        keys: keys.to_vec(),
        value: inner,
        value_span: value_span.clone(),
        key_span: key_span.clone(),
        steps: steps.to_vec(),
        table: table.clone(),
    });
    match inner {
        DeValue::Table(inside) => walk_table(inside, &value_span, keys, steps, found),
        DeValue::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let steps: Vec<_> = steps.iter().cloned().chain([Step::Item(number)]).collect();
                // An item has no key of its own: the span of its list's key would find the list.
                walk_value(item, &item.span(), &value_span, keys, &steps, found);
            }
        }
        _ => {}
    }
}

/// The entry that an error is about: whose key it is, else whose value, else the smallest around it.
pub(super) fn entry_at<'e, 'd>(entries: &'e [DocumentEntry<'d>], span: &Range<usize>) -> Option<&'e DocumentEntry<'d>> {
    let by_key = entries.iter().find(|entry| entry.key_span == *span);
    let by_value = || entries.iter().rev().find(|entry| entry.value_span == *span);
    let around = || {
        let holds = |entry: &&DocumentEntry<'_>| entry.value_span.contains(&span.start);
        entries.iter().filter(holds).min_by_key(|entry| entry.value_span.len())
    };
    by_key.or_else(by_value).or_else(around)
}

/// Takes out the entry at these octets.
pub(super) fn remove_at(document: &mut Spanned<DeTable<'_>>, span: &Range<usize>) {
    let steps = entry_at(&entries(document), span).map(|entry| entry.steps.clone());
    if let Some(steps) = steps {
        remove(document, &steps);
    }
}

/// Takes an entry out; false where there is none.
pub(super) fn remove(document: &mut Spanned<DeTable<'_>>, steps: &[Step]) -> bool {
    remove_from(document.get_mut(), steps)
}

fn remove_from(table: &mut DeTable<'_>, steps: &[Step]) -> bool {
    match steps {
        [Step::Key(key)] => table.remove(key.as_str()).is_some(),
        [Step::Key(key), rest @ ..] => {
            table.get_mut(key.as_str()).is_some_and(|value| remove_in(value.get_mut(), rest))
        }
        _ => false,
    }
}

fn remove_in(value: &mut DeValue<'_>, steps: &[Step]) -> bool {
    match (value, steps) {
        (DeValue::Table(table), steps) => remove_from(table, steps),
        (DeValue::Array(items), [Step::Item(number)]) => {
            let mut kept = DeArray::new();
            let others = items.iter().enumerate().filter(|(at, _)| at != number);
            others.for_each(|(_, item)| kept.push(item.clone()));
            let is_fewer = kept.len() < items.len();
            *items = kept;
            is_fewer
        }
        (DeValue::Array(items), [Step::Item(number), rest @ ..]) => {
            items.get_mut(*number).is_some_and(|value| remove_in(value.get_mut(), rest))
        }
        _ => false,
    }
}
