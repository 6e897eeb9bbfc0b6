//! The names of configuration values: each type parses what it writes, as serde does.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use tower_robots::agent::{Category, Class, IdentityMethod, Obeys, Refutation, UndecidedReason};
use tower_robots::check::Severity;
use tower_robots::live::{Enforcement, WhenMissing};
use tower_robots::policy::{EmptyAgent, Mode, SuspectHuman, WildcardExceptions, WildcardScope};
use tower_robots::rules::{Access, PathForm, Reading, ValueError};

#[track_caller]
fn read_back<T: Copy + Debug + Display + FromStr<Err = ValueError> + PartialEq>(values: &[T]) {
    for value in values {
        let text = value.to_string();
        assert_eq!(text.parse(), Ok(*value));
        assert!(text.to_uppercase().parse::<T>().is_err(), "{text}: written in lower case");
    }
    // The message lists exactly the valid values.
    let error = "refuze".parse::<T>().expect_err("no value");
    let written: Vec<_> = values.iter().map(ToString::to_string).collect();
    assert_eq!((error.text(), error.known()), ("refuze", &*written.iter().map(|word| &**word).collect::<Vec<_>>()));
}

#[cfg(feature = "serde")]
#[track_caller]
fn as_serde<T>(values: &[T])
where
    T: Copy + Debug + Display + PartialEq + serde::Serialize + serde::de::DeserializeOwned,
{
    for value in values {
        assert_eq!(serde_json::to_value(value).unwrap(), value.to_string());
        assert_eq!(serde_json::from_value::<T>(value.to_string().into()).unwrap(), *value);
    }
}

macro_rules! each {
    ($check:ident) => {
        $check(&[Mode::Off, Mode::Observe, Mode::Tag, Mode::Refuse]);
        $check(&[
            WildcardScope::Nobody,
            WildcardScope::Registered,
            WildcardScope::Declared,
            WildcardScope::Automation,
            WildcardScope::NonBrowser,
            WildcardScope::Everyone,
        ]);
        $check(&[WildcardExceptions::Honour, WildcardExceptions::Ignore]);
        $check(&[EmptyAgent::ByScope, EmptyAgent::Hold, EmptyAgent::Exempt]);
        $check(&[SuspectHuman::Record, SuspectHuman::Exempt]);
        $check(&[Reading::Standard, Reading::Reference, Reading::Legacy]);
        $check(&[Access::Allow, Access::Disallow]);
        $check(&[Severity::Note, Severity::Warning, Severity::Error]);
        $check(Category::ALL);
        $check(Class::ALL);
        $check(Obeys::ALL);
        $check(IdentityMethod::ALL);
        $check(Refutation::ALL);
        $check(UndecidedReason::ALL);
        let forms = [[PathForm::Verbatim, PathForm::Standard].as_slice(), &PathForm::OPTIONAL].concat();
        $check(&forms);
    };
}

#[test]
fn each_value_can_be_parsed_from_its_name_and_the_error_lists_all_names() {
    each!(read_back);
    read_back(&[Enforcement::On, Enforcement::Off]);
    read_back(&[WhenMissing::Fail, WhenMissing::Unavailable, WhenMissing::Relay]);
}

#[cfg(feature = "serde")]
#[test]
fn serde_uses_the_same_names_as_display() {
    each!(as_serde);
}

#[test]
fn the_error_for_an_invalid_value_quotes_it_and_lists_the_valid_values() {
    let error = "refuze".parse::<Mode>().expect_err("no mode").to_string();
    assert_eq!(error, "\"refuze\" is not a mode: write \"off\", \"observe\", \"tag\" or \"refuse\"");
    let error = "Enabled\n".parse::<SuspectHuman>().expect_err("no value").to_string();
    let want =
        "\"Enabled\\n\" is not a way to treat requests that seem to come from a person: write \"record\" or \"exempt\"";
    assert_eq!(error, want);
}
