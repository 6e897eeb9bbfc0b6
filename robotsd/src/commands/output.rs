//! Formats output for a terminal. Labels are on the left, and text is wrapped at 80 columns. A
//! shell command that the user can copy stays on one line. Control characters are escaped.

use std::io::{self, Write};
use std::process::ExitCode;

use askama::Template;

use crate::render::{printable, shell_line, stdout, write_pretty_json};

/// Width of the output, in columns.
const WIDTH: usize = 80;

/// Width of labels, in columns.
const LABEL_WIDTH: usize = 14;

#[derive(Debug, Default)]
pub(in crate::commands) struct Page(String);

impl Page {
    /// Appends a line without wrapping it.
    pub(in crate::commands) fn title(&mut self, text: &str) {
        self.0.push_str(&printable(text));
        self.0.push('\n');
    }

    pub(in crate::commands) fn blank(&mut self) {
        self.0.push('\n');
    }

    /// Appends text after a label. If `label` is empty, the text still begins in the column after
    /// the labels.
    pub(in crate::commands) fn line(&mut self, label: &str, text: &str) {
        let label = if label.is_empty() { String::new() } else { format!("{label}:") };
        self.append_wrapped(&format!("  {label:<width$}", width = LABEL_WIDTH - 2), LABEL_WIDTH, text);
    }

    /// Appends wrapped text, with all lines except the first indented.
    pub(in crate::commands) fn text(&mut self, text: &str) {
        self.append_wrapped("", 2, text);
    }

    pub(in crate::commands) fn paragraph(&mut self, text: &str) {
        self.append_wrapped("", 0, text);
    }

    /// Appends a command on one line and quoted for a shell, so that the user can copy it.
    pub(in crate::commands) fn command(&mut self, command: &[String]) {
        self.0.push_str(&format!("{:LABEL_WIDTH$}{}\n", "", shell_line(command)));
    }

    /// Appends the lines of a template. The text after a label (or after spaces of the same width)
    /// is wrapped. A line that begins with a tab contains a command that [`shell_line`] has already
    /// quoted. Any other line is appended as it is.
    pub(in crate::commands) fn append_template(&mut self, template: &impl Template) {
        for line in template.to_string().lines() {
            match (line.strip_prefix('\t'), line.split_at_checked(LABEL_WIDTH)) {
                (Some(command), _) => self.0.push_str(&format!("{:LABEL_WIDTH$}{command}\n", "")),
                (None, Some((label, text))) if label.starts_with("  ") => self.append_wrapped(label, LABEL_WIDTH, text),
                _ => self.title(line),
            }
        }
    }

    pub(in crate::commands) fn into_string(self) -> String {
        self.0
    }

    fn append_wrapped(&mut self, first: &str, indent: usize, text: &str) {
        let text = printable(text);
        let mut line = first.to_owned();
        let mut column = first.chars().count();
        let mut is_empty = true;
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            let length = word.chars().count();
            if !is_empty && column + 1 + length > WIDTH {
                self.0.push_str(line.trim_end());
                self.0.push('\n');
                line = " ".repeat(indent);
                column = indent;
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
                column += 1;
            }
            line.push_str(word);
            column += length;
            is_empty = false;
        }
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }
}

/// Writes text to standard output. Ignores a closed pipe.
pub(in crate::commands) fn print_text(text: &str) {
    let mut out = stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes a report as JSON if `json` is set, otherwise as text. Returns `code`, or an error if the
/// report cannot be serialized.
pub(in crate::commands) fn print_report(
    report: &impl serde::Serialize,
    json: bool,
    text: impl FnOnce(&mut Page),
    code: ExitCode,
) -> io::Result<ExitCode> {
    if json {
        print_json(report)?;
    } else {
        let mut page = Page::default();
        text(&mut page);
        print_text(&page.into_string());
    }
    Ok(code)
}

pub(in crate::commands) fn print_json(value: &impl serde::Serialize) -> io::Result<()> {
    let mut text = Vec::new();
    write_pretty_json(&mut text, value)?;
    print_text(&String::from_utf8_lossy(&text));
    Ok(())
}

/// Filters of text templates, such as `{{ requests|grouped|right(10) }}`.
#[expect(unreachable_pub, reason = "the macro `filter_fn` generates public methods of private types")]
pub(in crate::commands) mod filters {
    use std::fmt::Display;

    use askama::{Values, filter_fn};

    pub(in crate::commands) use crate::html::filters::{counted, grouped};
    use crate::render::printable;

    #[filter_fn]
    pub(in crate::commands) fn left(text: impl Display, _: &dyn Values, width: usize) -> askama::Result<String> {
        Ok(format!("{:width$}", printable(text.to_string())))
    }

    #[filter_fn]
    pub(in crate::commands) fn right(text: impl Display, _: &dyn Values, width: usize) -> askama::Result<String> {
        Ok(format!("{:>width$}", printable(text.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_but_commands_are_not() {
        let mut page = Page::default();
        page.line("waiting", &"word ".repeat(30));
        page.line("", "more\u{1b}[2J");
        page.command(&["robotsd".into(), "accept".into(), "a site".into(), "x".repeat(90)]);
        let text = page.into_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("  waiting:    word word"), "{text}");
        assert!(lines[1].starts_with("              word"), "{text}");
        assert!(lines[..3].iter().all(|line| line.chars().count() <= WIDTH && !line.ends_with(' ')), "{text}");
        assert!(text.contains("\n              more\\u{1b}[2J\n"), "{text}");
        assert_eq!(lines.last().unwrap().trim(), format!("robotsd accept 'a site' {}", "x".repeat(90)));
    }

    #[derive(Template)]
    #[template(
        source = "as it is: {{ text }}\n  label:      {{ text }}\n\t{{ text }}",
        ext = "txt",
        whitespace = "preserve"
    )]
    struct ThreeLines<'a> {
        text: &'a str,
    }

    #[test]
    fn a_template_line_is_laid_out_by_its_start_and_values_cannot_add_lines() {
        let mut page = Page::default();
        page.append_template(&ThreeLines { text: &"\n\tword".repeat(20) });
        let text = page.into_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("as it is: {}", "\\n    word".repeat(20)));
        assert!(lines[1].starts_with("  label:      \\n word\\n word"), "{text}");
        let (command, folded) = lines[2..].split_last().unwrap();
        assert!(
            folded.iter().all(|line| line.starts_with("              ") && line.chars().count() <= WIDTH),
            "{text}"
        );
        assert_eq!(command.trim_start().matches("word").count(), 20, "{text}");
    }
}
