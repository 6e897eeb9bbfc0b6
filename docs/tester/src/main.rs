//! The program in the tester's page. It reads requests from standard input, and writes one line of
//! JSON for each to standard output.
//!
//! It is a program for WASI and exports no functions, so it needs neither `unsafe` code nor a tool
//! that generates bindings. `tester.js` implements the few system calls.

mod answer;
mod effect;
mod request;

use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let mut output = io::stdout().lock();
    output.write_all(answer::answer_all(&input).as_bytes())?;
    output.flush()
}
