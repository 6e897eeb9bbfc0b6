//! Compares the outcome of each scene, for each server, with the recorded outcome. All outcomes are
//! in `outcomes.md`; the handbook contains those that differ between servers.

use std::fmt::Write;

use super::Column;
use super::scene::SCENES;
use crate::harness::*;

const OUTCOMES: &str = "robotsd/tests/it/beside/outcomes.md";
const PAGE: &str = "docs/src/reference/decision-protocol.md";
const HEAD: &str = "| scene |";
/// A server that replaces refusals with its own pages. It is not in the table of the handbook.
const APART: &str = "ingress-nginx";

/// The recorded outcomes.
pub(super) struct Table {
    text: String,
}

impl Table {
    pub(super) fn read() -> Self {
        Self { text: fs::read_to_string(project(OUTCOMES)).expect("the outcomes are there") }
    }

    /// Returns the recorded outcomes for a server, one per scene. Returns no outcomes while they
    /// are written.
    pub(super) fn column(&self, server: &str) -> Vec<String> {
        if is_written() {
            return Vec::new();
        }
        let rows = self.rows();
        let at = rows[0].iter().position(|name| *name == server).expect("a column of the table");
        rows.iter().skip(2).map(|row| row[at].to_owned()).collect()
    }

    /// Compares the recorded outcomes with these outcomes and with the handbook. With
    /// `UPDATE_DOCS=1`, writes the records and the handbook's table instead; this requires all
    /// servers.
    pub(super) fn check(&self, columns: &[Column]) {
        if is_written() {
            assert_eq!(columns.len(), super::server::SERVERS.len(), "all servers are needed to write the table");
            let outcomes = written(columns);
            let (page, start, end) = page();
            let table = Self { text: outcomes.clone() }.of_the_page();
            fs::write(project(OUTCOMES), outcomes).unwrap();
            fs::write(project(PAGE), format!("{}{table}{}", &page[..start], &page[end..])).unwrap();
            return;
        }
        let rows = self.rows();
        let names: Vec<_> = rows.iter().skip(2).map(|row| row[0]).collect();
        let scenes: Vec<_> = SCENES.iter().map(|scene| scene.name).collect();
        assert_eq!(names, scenes, "run this test with UPDATE_DOCS=1");
        for column in columns {
            for ((scene, expected), outcome) in scenes.iter().zip(self.column(column.server)).zip(&column.outcomes) {
                assert_eq!(*outcome, expected, "{}: {scene}", column.server);
            }
        }
        let (page, start, end) = page();
        assert_eq!(page[start..end], self.of_the_page(), "run this test with UPDATE_DOCS=1");
        let differ = self.of_the_page().lines().count() - 2;
        let same = SCENES.len() - differ;
        let said = format!(
            "With {same} requests, all nine servers have the same outcome. The table shows the other {differ} requests."
        );
        assert!(page.contains(&said), "the page does not say: {said}");
    }

    /// Returns the table for the handbook: scenes whose outcomes differ, except [`APART`].
    fn of_the_page(&self) -> String {
        let mut table = String::new();
        for (number, mut row) in self.rows().into_iter().enumerate() {
            assert!(number > 0 || row.last() == Some(&APART), "the last column is that of {APART}");
            row.pop();
            match number {
                1 => table.push_str(&format!("|{}\n", "---|".repeat(row.len()))),
                _ if number == 0 || row[1..].iter().any(|outcome| *outcome != row[1]) => {
                    table.push_str(&format!("| {} |\n", row.join(" | ")));
                }
                _ => {}
            }
        }
        table
    }

    fn rows(&self) -> Vec<Vec<&str>> {
        self.text.lines().map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
    }
}

/// Returns the page of the handbook, and where its table begins and ends.
fn page() -> (String, usize, usize) {
    let page = fs::read_to_string(project(PAGE)).expect("the page exists");
    let start = page.find(HEAD).expect("the page contains the table");
    let end = start + page[start..].find("\n\n").expect("text after the table") + 1;
    (page, start, end)
}

fn is_written() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some()
}

fn written(columns: &[Column]) -> String {
    let mut table = HEAD.to_owned();
    columns.iter().for_each(|column| write!(table, " {} |", column.server).unwrap());
    table.push_str("\n|---|");
    columns.iter().for_each(|_| table.push_str("---|"));
    table.push('\n');
    for (number, scene) in SCENES.iter().enumerate() {
        write!(table, "| {} |", scene.name).unwrap();
        columns.iter().for_each(|column| write!(table, " {} |", column.outcomes[number]).unwrap());
        table.push('\n');
    }
    table
}
