//! The lines about another config, one for each setting that has another value.

use crate::config::SettingChange;
use crate::log::{Log, LogEntry, LogEvent};
use crate::sites::UnusableSource;

/// Settings that the summary of a config names; the others have a line each all the same.
const NAMED: usize = 8;

/// One line for every setting that has another value.
pub(super) fn changed(log: &Log, changes: &[SettingChange], unusable: &[UnusableSource]) {
    for change in changes {
        let is_unusable = || unusable.iter().any(|source| change.site.as_ref() == Some(&source.site));
        let applies = if change.is_for_start() {
            "next-start"
        } else if change.is_of_source() && is_unusable() {
            "when-usable"
        } else {
            "now"
        };
        log.write(&LogEntry {
            site: change.site.as_deref(),
            setting: Some(&change.setting),
            before: change.before.as_deref(),
            after: change.after.as_deref(),
            applies: Some(applies),
            message: Some(change.to_string()),
            ..LogEntry::now(LogEvent::ConfigChanged)
        });
    }
}

/// The settings for a line about all of the config. What comes and goes as a whole, and what waits for the next start, stands
/// in it in other words.
pub(super) fn summary(changes: &[SettingChange]) -> Vec<String> {
    let is_named = |change: &&SettingChange| !change.is_of_whole_table() && !change.is_for_start();
    let mut named: Vec<_> = changes.iter().filter(is_named).map(ToString::to_string).collect();
    let more = named.len().saturating_sub(NAMED);
    if more > 0 {
        named.truncate(NAMED);
        named.push(format!("and {more} settings more, each in a line `config-changed`"));
    }
    named
}
