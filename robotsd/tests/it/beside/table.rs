//! The table of the chapter, which is what the servers do.

use std::fmt::Write;
use std::path::PathBuf;

use super::Column;
use super::scene::SCENES;
use crate::harness::*;

const HEAD: &str = "| scene |";

/// The table as it stands in the chapter.
pub(super) struct Table {
    path: PathBuf,
    chapter: String,
    start: usize,
    end: usize,
}

impl Table {
    pub(super) fn of_the_chapter() -> Self {
        let path = project("robotsd/src/docs/beside.md");
        let chapter = std::fs::read_to_string(&path).expect("the chapter is there");
        let start = chapter.find(HEAD).expect("the chapter holds the table");
        let end = start + chapter[start..].find("\n\n").expect("something follows") + 1;
        Self { path, chapter, start, end }
    }

    /// The expected outcome for a server in each scene; empty if that is what is asked.
    pub(super) fn column(&self, server: &str) -> Vec<String> {
        if is_written() {
            return Vec::new();
        }
        let rows = self.rows();
        let at = rows[0].iter().position(|name| *name == server).expect("a column of the table");
        rows.iter().skip(2).map(|row| row[at].to_owned()).collect()
    }

    /// Compares what servers did with the table; `UPDATE_DOCS=1` writes it instead, with all servers there.
    pub(super) fn check(&self, columns: &[Column]) {
        let Self { path, chapter, start, end } = self;
        if is_written() {
            assert_eq!(columns.len(), super::server::SERVERS.len(), "all servers are needed to write the table");
            std::fs::write(path, format!("{}{}{}", &chapter[..*start], written(columns), &chapter[*end..])).unwrap();
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
    }

    fn rows(&self) -> Vec<Vec<&str>> {
        let rows = self.chapter[self.start..self.end].lines();
        rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
    }
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
