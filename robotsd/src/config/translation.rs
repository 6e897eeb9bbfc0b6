//! Config files with keys of before: the present key in place of each, and the file in its present form. Text that is not about such
//! a key stays as it is, comments too.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Fault, Span, syntax};

/// A file that has keys of before.
#[derive(Debug)]
pub(crate) struct Translation {
    /// The file as it is written now.
    pub(crate) text: String,
    /// A fault for each key of before.
    pub(super) faults: Vec<Fault>,
    /// The keys and values that they are about.
    pub(super) places: Vec<Range<usize>>,
}

/// Tables that there may be none of, whose mode is now `enabled`.
const SWITCHED: [&str; 3] = ["gate", "admin", "board"];

/// The keys that named the subject of an override, besides `index`, and its action.
const SCOPES: [&str; 3] = ["category", "agent", "pattern"];
const MODES: [&str; 3] = ["mode", "rate", "until"];

/// The comment above exceptions that now count after others which stood between them.
const MOVED: &str = "# The first of these stood above others, which counted before it: see whether that is meant.\n";

/// Keys of a site's tables whose names or places are others now.
struct Translator<'t> {
    text: &'t str,
    edits: Vec<(Range<usize>, String)>,
    faults: Vec<Fault>,
    places: Vec<Range<usize>>,
}

type Entry<'d> = (Range<usize>, &'d Spanned<DeValue<'d>>);

/// The translation of a file; none where it has no key of before.
pub(crate) fn translate(text: &str) -> Option<Translation> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return None;
    }
    let document = document.get_ref();
    let mut translator = Translator { text, edits: Vec::new(), faults: Vec::new(), places: Vec::new() };
    for table in SWITCHED {
        translator.switch(table, document);
    }
    let sites = document.get("site").and_then(|sites| sites.get_ref().as_array());
    let sites: Vec<_> = sites.into_iter().flatten().filter_map(|site| site.get_ref().as_table()).collect();
    translator.graces(document, &sites);
    for site in sites {
        if let Some((key, value)) = table_of(site, "robots").and_then(|robots| entry(robots, "on_missing"))
            && value.get_ref().as_str() == Some("last-good")
        {
            translator.fault(key, value, "\"last-good\" is \"503\" now", "write on_missing = \"503\"".to_owned());
            translator.edits.push((value.span(), "\"503\"".to_owned()));
        }
        translator.overrides(site);
    }
    translator.finish()
}

fn table_of<'d>(table: &'d DeTable<'d>, key: &str) -> Option<&'d DeTable<'d>> {
    table.get(key)?.get_ref().as_table()
}

fn entry<'d>(table: &'d DeTable<'d>, key: &str) -> Option<Entry<'d>> {
    table.get_key_value(key).map(|(key, value)| (key.span(), value))
}

impl Translator<'_> {
    fn fault(&mut self, key: Range<usize>, value: &Spanned<DeValue<'_>>, message: &str, help: String) {
        self.faults.push(Fault::new(key.clone(), message).help(help));
        self.places.extend([key, value.span()]);
    }

    fn written(&self, span: Range<usize>) -> &str {
        self.text.get(span).unwrap_or_default()
    }

    /// `mode = "off"` is `enabled = false`.
    fn switch(&mut self, table: &str, document: &DeTable<'_>) {
        let Some((key, value)) = table_of(document, table).and_then(|table| entry(table, "mode")) else { return };
        let enabled = match value.get_ref().as_str() {
            Some("on") => Some("true"),
            Some("off") => Some("false"),
            _ => None,
        };
        let message = format!("[{table}] has no mode any more, but is enabled or not");
        let help = format!("write enabled = {}", enabled.unwrap_or("true or enabled = false"));
        self.fault(key.clone(), value, &message, help);
        let Some(enabled) = enabled else { return };
        // Columns stay where there is room.
        let blanks = self.text[key.end..].bytes().take_while(|octet| *octet == b' ').count();
        let end = key.end + blanks.saturating_sub(1).min("enabled".len() - "mode".len());
        self.edits.push((key.start..end, "enabled".to_owned()));
        self.edits.push((value.span(), enabled.to_owned()));
    }

    /// The grace of sites is one for all: the longest of theirs.
    fn graces(&mut self, document: &DeTable<'_>, sites: &[&DeTable<'_>]) {
        let graces: Vec<_> = sites
            .iter()
            .filter_map(|site| entry(table_of(site, "enforcement")?, "grace"))
            .map(|(key, value)| {
                let time = value.get_ref().as_str().and_then(|time| Span::parse(time).ok());
                (key, value, time.map(|time| time.0).unwrap_or_default())
            })
            .collect();
        let Some((longest_key, longest, time)) = graces.iter().max_by_key(|(_, _, time)| *time) else { return };
        let is_same = graces.len() == sites.len() && graces.iter().all(|(_, _, other)| other == time);
        let (mut line, mut moved) = (format!("grace = {}", self.written(longest.span())), String::new());
        for (key, value, _) in &graces {
            let help = format!("write grace = {} at the top of the file", self.written(value.span()));
            self.fault(key.clone(), value, "there is one grace for all sites now", help);
            let (taken, comments, behind) = self.take(key, value);
            if key == longest_key {
                moved = comments;
                line += &behind;
            }
            self.edits.push((taken, String::new()));
        }
        if !is_same {
            moved += "# It was not the same at every site: this is the longest of theirs.\n";
        }
        let at = self.top(document);
        self.edits.push((at..at, format!("{moved}{line}\n")));
    }

    /// The octets of an entry with what is about it: comments on the lines above it, and the one behind it.
    fn take(&self, key: &Range<usize>, value: &Spanned<DeValue<'_>>) -> (Range<usize>, String, String) {
        let start = self.line_start(key.start);
        let end = self.line_end(value.span().end);
        let before = self.text[start..key.start].trim();
        let behind = self.text[value.span().end..end].trim_end();
        let is_alone =
            before.is_empty() || before.trim_end_matches([' ', '.']) == "enforcement" || before == "site.enforcement.";
        if !is_alone || !(behind.is_empty() || behind.trim_start().starts_with('#')) {
            // In an inline table: with the comma before it, or behind it.
            let blanks = |text: &str| text.len() - text.trim_start().len();
            let rest = &self.text[value.span().end..];
            let comma_behind = rest.trim_start().starts_with(',').then(|| {
                let after = blanks(rest) + 1;
                value.span().end + after + blanks(&rest[after..])
            });
            let comma_before = self.text[..key.start].trim_end().strip_suffix(',').map(str::len);
            let taken = match (comma_before, comma_behind) {
                (Some(from), _) => from..value.span().end,
                (None, Some(to)) => key.start..to,
                (None, None) => key.start..value.span().end,
            };
            return (taken, String::new(), String::new());
        }
        let mut from = start;
        while from > 0 {
            let above = self.line_start(from - 1);
            let comment = self.text[above..from].trim_start().strip_prefix('#');
            // One that is itself a key is about something else.
            let is_key = |comment: &str| comment.split_once('=').is_some_and(|(key, _)| syntax::is_key(key));
            if comment.is_none_or(is_key) {
                break;
            }
            from = above;
        }
        let end = self.below_comments((end + 1).min(self.text.len()));
        let behind = self.text[value.span().end..end].trim_end();
        (from..end, self.text[from..start].to_owned(), behind.to_owned())
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |end| at + end)
    }

    /// Behind the comments that begin at this line and go on that of the line above.
    fn below_comments(&self, mut at: usize) -> usize {
        while self.text[at..].starts_with([' ', '\t']) && self.written(at..self.line_end(at)).trim().starts_with('#') {
            at = (self.line_end(at) + 1).min(self.text.len());
        }
        at
    }

    /// The place for a key of the top of the file: below the mode with its comments, else above the first entry.
    fn top(&self, document: &DeTable<'_>) -> usize {
        if let Some((_, mode)) = entry(document, "mode") {
            return self.below_comments((self.line_end(mode.span().end) + 1).min(self.text.len()));
        }
        let first = document.keys().map(|key| key.span().start).min();
        let first = first.map_or(self.text.len(), |first| self.line_start(first));
        // A byte order mark stays the first character.
        if self.text.starts_with('\u{feff}') { first.max('\u{feff}'.len_utf8()) } else { first }
    }

    /// `[[site.override]]` is an entry of `[site.modes]`.
    fn overrides(&mut self, site: &DeTable<'_>) {
        let Some((key, value)) = entry(site, "override") else { return };
        let one = std::slice::from_ref(value);
        let items: Vec<_> = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => one.iter().collect(),
        };
        let mut exceptions: Vec<(String, Vec<String>, String)> = Vec::new();
        let mut blocks = Vec::new();
        for item in items {
            let Some(table) = item.get_ref().as_table() else { return };
            let known = [&SCOPES[..], &["index"], &MODES].concat();
            if let Some(unknown) = table.keys().find(|key| !known.contains(&&**key.get_ref())) {
                let message = format!("an override has no key {:?}", unknown.get_ref());
                let help = format!("its keys were {}", known.join(", "));
                self.faults.push(Fault::new(unknown.span(), message).help(help));
                self.places.extend([key.clone(), value.span()]);
                return;
            }
            let (place, help) = (item.span(), "write it in [site.modes]");
            let Some((scope, modes)) = self.exception(table) else {
                let message = "an override has exactly one of category, agent, pattern and index = true";
                self.faults.push(Fault::new(place, message));
                self.places.extend([key.clone(), value.span()]);
                return;
            };
            let help = format!("{help}: {scope} = {modes}");
            self.faults.push(Fault::new(place, "an override is an entry of [site.modes] now").help(help));
            let block = self.block(item, table);
            let comments = self.comments(block.clone(), table);
            blocks.push(block);
            // The last one that fits counts.
            let earlier = exceptions.iter().position(|(other, ..)| *other == scope);
            let is_moved = earlier.is_some_and(|at| at + 1 < exceptions.len());
            let earlier = earlier.map(|at| exceptions.remove(at));
            let (mut all, mut above) = earlier.map_or_else(Default::default, |(_, all, above)| (all, above));
            all.push(modes);
            above += &comments;
            if is_moved && !above.contains(MOVED) {
                above += MOVED;
            }
            exceptions.push((scope, all, above));
        }
        self.places.extend([key.clone(), value.span()]);
        let line = |(scope, modes, _): &(String, Vec<String>, String)| match &modes[..] {
            [one] => format!("{scope} = {one}"),
            several => format!("{scope} = [{}]", several.join(", ")),
        };
        if !self.written(blocks.first().cloned().unwrap_or_default()).starts_with("[") {
            // In one line.
            let all: Vec<_> = exceptions.iter().map(line).collect();
            self.edits.push((key, "modes".to_owned()));
            self.edits.push((value.span(), format!("{{ {} }}", all.join(", "))));
            return;
        }
        let header = if self.written(blocks[0].clone()).starts_with("[[") { "[site.modes]\n" } else { "" };
        let lines: String = exceptions.iter().map(|found| format!("{}{}\n", found.2, line(found))).collect();
        let mut text = format!("{header}{lines}");
        for block in blocks {
            self.edits.push((block, std::mem::take(&mut text)));
        }
    }

    /// The key and the value of an override as they are written now.
    fn exception(&self, table: &DeTable<'_>) -> Option<(String, String)> {
        let written = |key: &str| table.get(key).map(|value| self.written(value.span()));
        let mut scopes = SCOPES.iter().filter_map(|key| {
            let text = written(key)?;
            let (quote, rest) = text.split_at_checked(1)?;
            Some(format!("{quote}{key}:{rest}"))
        });
        let index = (written("index") == Some("true")).then(|| "\"index\"".to_owned());
        let scope = scopes.next().or(index.clone())?;
        if scopes.next().is_some() || (index.is_some() && !scope.starts_with("\"index")) {
            return None;
        }
        let more: Vec<_> = MODES.iter().filter_map(|key| Some(format!("{key} = {}", written(key)?))).collect();
        let modes = match (written("mode"), &more[..]) {
            (Some(mode), [_]) => mode.to_owned(),
            (_, []) => "{}".to_owned(),
            _ => format!("{{ {} }}", more.join(", ")),
        };
        Some((scope, modes))
    }

    /// From the header of an override to the end of its last line.
    fn block(&self, item: &Spanned<DeValue<'_>>, table: &DeTable<'_>) -> Range<usize> {
        if !self.written(item.span()).starts_with('[') {
            return item.span();
        }
        let last = table.values().map(|value| value.span().end).max().unwrap_or(0).max(item.span().end);
        item.span().start..(self.line_end(last) + 1).min(self.text.len())
    }

    /// The comments in the lines of a table, a line each.
    fn comments(&self, block: Range<usize>, table: &DeTable<'_>) -> String {
        let spans: Vec<_> = table.iter().flat_map(|(key, value)| [key.span(), value.span()]).collect();
        let mut start = block.start;
        let mut comments = String::new();
        for line in self.written(block).split_inclusive('\n') {
            let is_free = |at: usize| !spans.iter().any(|span| span.contains(&(start + at)));
            if let Some((at, _)) = line.match_indices('#').find(|(at, _)| is_free(*at)) {
                comments += &format!("{}\n", line[at..].trim_end());
            }
            start += line.len();
        }
        comments
    }

    fn finish(mut self) -> Option<Translation> {
        if self.faults.is_empty() {
            return None;
        }
        self.edits.sort_by_key(|(span, _)| (span.start, span.end));
        let (mut text, mut at) = (String::new(), 0);
        for (span, new) in &self.edits {
            text += self.text.get(at..span.start).unwrap_or_default();
            text += new;
            at = at.max(span.end);
        }
        text += &self.text[at..];
        Some(Translation { text, faults: self.faults, places: self.places })
    }
}
