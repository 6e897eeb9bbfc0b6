//! `robotsd explain --batch`: JSON questions in, JSON answers out, a line each, in order.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_robots::rules::{Access, PathForm, Reading, Rule};

use super::book::{Answer, Book, Recognised, Who};
use crate::commands::agents::SaidAgent;
use crate::input::Source;

/// Octets of robots.txt files that are kept compiled; beyond it all are let go and read again when asked for.
const KEPT: usize = 64 << 20;

/// What a small file costs besides its octets, compiled.
const OVERHEAD: usize = 16 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    #[serde(default)]
    id: Value,
    robots: Option<String>,
    robots_base64: Option<String>,
    token: Option<String>,
    user_agent: Option<String>,
    url: Option<String>,
    url_base64: Option<String>,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    reading: Reading,
}

fn get() -> String {
    "GET".to_owned()
}

#[derive(Serialize)]
struct Said<'a> {
    id: &'a Value,
    access: Access,
    line: Option<usize>,
    pattern: Option<String>,
    group: Option<Vec<String>>,
    form: PathForm,
    agent: Option<SaidAgent<'a>>,
}

#[derive(Serialize)]
struct Failed<'a> {
    id: &'a Value,
    error: String,
}

pub(super) fn run(questions: impl Read, mut answers: impl Write) -> io::Result<()> {
    let mut questions = BufReader::new(questions);
    let mut shelf = Shelf::default();
    let mut line = Vec::new();
    loop {
        // Whoever waits for an answer before the next question must get it.
        if questions.buffer().is_empty() {
            answers.flush()?;
        }
        line.clear();
        if questions.read_until(b'\n', &mut line)? == 0 {
            return answers.flush();
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        answer(&mut shelf, &line, &mut answers)?;
        answers.write_all(b"\n")?;
    }
}

fn answer(shelf: &mut Shelf, line: &[u8], answers: &mut impl Write) -> io::Result<()> {
    let failed =
        |answers: &mut _, id: &Value, error: String| Ok(serde_json::to_writer(answers, &Failed { id, error })?);
    let question: Question = match serde_json::from_slice(line) {
        Ok(question) => question,
        Err(error) => {
            // What is no question may still be JSON with an id.
            let id = serde_json::from_slice::<Value>(line).ok().and_then(|value| value.get("id").cloned());
            return failed(answers, &id.unwrap_or_default(), error.to_string());
        }
    };
    let said = shelf.book(&question).and_then(|book| Ok((book, question.who()?, question.url()?)));
    match said {
        Ok((book, who, url)) => {
            let path = book.path(&url);
            let answer = book.ask(&who, &question.method, &path);
            Ok(serde_json::to_writer(answers, &Said::new(&question.id, &answer))?)
        }
        Err(error) => failed(answers, &question.id, error),
    }
}

impl Question {
    fn who(&self) -> Result<Who<'_>, String> {
        match (&self.token, &self.user_agent) {
            (Some(token), None) => Ok(Who::Token(token)),
            (None, Some(field)) => Ok(Who::UserAgent(field.as_bytes())),
            _ => Err("a question has a \"token\" or a \"user_agent\"".to_owned()),
        }
    }

    fn url(&self) -> Result<Vec<u8>, String> {
        match (&self.url, &self.url_base64) {
            (Some(url), None) => Ok(url.clone().into_bytes()),
            (None, Some(url)) => BASE64.decode(url).map_err(|error| format!("\"url_base64\" is not base64: {error}")),
            _ => Err("a question has a \"url\" or a \"url_base64\"".to_owned()),
        }
    }
}

impl<'a> Said<'a> {
    fn new(id: &'a Value, answer: &'a Answer<'_>) -> Self {
        let rule = answer.verdict.and_then(|verdict| verdict.rule());
        let group = answer.verdict.and_then(|verdict| verdict.group());
        Self {
            id,
            access: answer.access,
            line: rule.map(Rule::line),
            pattern: rule.map(|rule| text(rule.pattern())),
            group: group.map(|group| group.names().map(|name| text(name.value())).collect()),
            form: answer.form,
            agent: answer.agent.as_ref().map(Recognised::said),
        }
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// Files that were asked about, by where they came from and how they are read.
#[derive(Default)]
struct Shelf {
    books: HashMap<(Origin, Reading), Book>,
    octets: usize,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Origin {
    Path(String),
    Base64(String),
}

impl Shelf {
    fn book(&mut self, question: &Question) -> Result<&Book, String> {
        let origin = match (&question.robots, &question.robots_base64) {
            (Some(path), None) => Origin::Path(path.clone()),
            (None, Some(text)) => Origin::Base64(text.clone()),
            _ => return Err("a question has a \"robots\" or a \"robots_base64\"".to_owned()),
        };
        let key = (origin, question.reading);
        if !self.books.contains_key(&key) {
            let bytes = key.0.bytes()?;
            let cost = bytes.len() + OVERHEAD;
            self.octets += cost;
            if self.octets > KEPT {
                self.books.clear();
                self.octets = cost;
            }
            let book = Book::new(bytes, question.reading);
            self.books.insert(key.clone(), book);
        }
        self.books.get(&key).ok_or_else(|| "the robots.txt was let go".to_owned())
    }
}

impl Origin {
    fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            // Not `-`: standard input holds the questions.
            Self::Path(path) => Source::File(path.into()).read().map_err(|error| format!("{path}: {error}")),
            Self::Base64(text) => {
                BASE64.decode(text).map_err(|error| format!("\"robots_base64\" is not base64: {error}"))
            }
        }
    }
}
