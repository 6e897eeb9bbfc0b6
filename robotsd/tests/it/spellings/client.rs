//! A crawler's connection. It sends one request at a time, as bytes, and reads the whole response.

use crate::harness::*;

/// A connection to robotsd, which is opened again if robotsd has closed it.
pub(super) struct Client<'c> {
    address: SocketAddr,
    host: &'c str,
    /// The first request on a connection.
    greeting: Greeting,
    open: Option<Kept>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    None,
    /// An OPTIONS request. It makes the connection leave the fast path.
    Options,
}

/// Returns the rule that robotsd quotes; `None` if the response is not a refusal.
pub(super) fn refusal(answer: &Answer) -> Option<&str> {
    let is_of_rule = |line: &&str| line.contains("Disallow: ") && line.contains("(line ");
    answer.body.lines().find(is_of_rule).map(str::trim)
}

impl<'c> Client<'c> {
    pub(super) fn new(address: SocketAddr, host: &'c str, greeting: Greeting) -> Self {
        Self { address, host, greeting, open: None }
    }

    pub(super) fn get(&mut self, target: &[u8], agent: &str) -> Answer {
        self.ask("GET", target, agent)
    }

    pub(super) fn ask(&mut self, method: &str, target: &[u8], agent: &str) -> Answer {
        let fields = format!("User-Agent: {agent}\r\n");
        loop {
            let kept = self.open.take();
            let is_kept = kept.is_some();
            let mut open = kept.unwrap_or_else(|| self.greeted());
            if let Some(answer) = open.ask(method, target, &fields) {
                self.open = (!answer.is_last()).then_some(open);
                return answer;
            }
            // Only a connection that was used before may have been closed.
            assert!(is_kept, "{}: no answer to {method} {}", self.host, target.escape_ascii());
        }
    }

    fn greeted(&self) -> Kept {
        let mut open = Kept::open(self.address, self.host);
        if self.greeting == Greeting::Options {
            let answer = open.ask("OPTIONS", b"/nothing", "").expect("an answer");
            assert!(!answer.is_last(), "{}: closed after OPTIONS", self.host);
        }
        open
    }
}
