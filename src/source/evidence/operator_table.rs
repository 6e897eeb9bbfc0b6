//! The names of each operator's addresses, and the address that shows whether a resolver answers for them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::lookups::OperatorNames;
use crate::identity::{NamePattern, PublicAddress};

/// Proofs that are read of a file: more than there are operators.
const MOST_PROOFS: usize = 1_024;

/// The names of operators, each once.
#[derive(Debug, Default)]
pub(super) struct OperatorTable(Mutex<Operators>);

#[derive(Debug, Default)]
struct Operators {
    /// All that there have been: their numbers are part of what is known.
    names: Vec<Arc<OperatorNames>>,
    /// Of an earlier process.
    proofs: Vec<ResolverProof>,
}

/// An address that verified by its name. It is looked up again, before a resolver that says "no" is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolverProof {
    /// The operator's patterns.
    patterns: String,
    address: PublicAddress,
}

impl OperatorTable {
    /// With the proofs of an earlier process.
    pub(super) fn new(mut proofs: Vec<ResolverProof>) -> Self {
        proofs.truncate(MOST_PROOFS);
        Self(Mutex::new(Operators { names: Vec::new(), proofs }))
    }

    /// The names of these patterns.
    pub(super) fn names_of(&self, patterns: Vec<NamePattern>) -> Arc<OperatorNames> {
        let mut operators = self.operators();
        if let Some(names) = operators.names.iter().find(|names| **names.patterns() == patterns[..]) {
            return names.clone();
        }
        let number = u32::try_from(operators.names.len()).unwrap_or(u32::MAX);
        let text = written(&patterns);
        let proof = operators.proofs.iter().find(|proof| proof.patterns == text).map(|proof| proof.address);
        let names = Arc::new(OperatorNames::new(number, patterns.into(), proof));
        operators.names.push(names.clone());
        names
    }

    /// The proofs of all resolvers' answers.
    pub(super) fn proofs(&self) -> Vec<ResolverProof> {
        let proof = |names: &Arc<OperatorNames>| {
            Some(ResolverProof { patterns: written(names.patterns()), address: names.proof()? })
        };
        self.operators().names.iter().filter_map(proof).collect()
    }

    fn operators(&self) -> MutexGuard<'_, Operators> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolverProof {
    pub(super) fn of_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let address = PublicAddress::of(text("address")?.parse().ok(), |_| false).ok()?;
        Some(Self { patterns: text("patterns")?.to_owned(), address })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"patterns": self.patterns, "address": self.address.get().to_string()})
    }
}

fn written(patterns: &[NamePattern]) -> String {
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    patterns.join(" ")
}
