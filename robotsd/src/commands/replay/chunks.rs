//! Cuts a log into chunks of whole lines, which are processed on every core.
//!
//! The counts of the chunks are joined in the order of the log, so the result does not depend on
//! the number of workers. Reading stays at most a fixed number of chunks ahead of the workers, so
//! memory use does not depend on the length of the log.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use parking_lot::Mutex;

use super::format::FIELDS;

/// Size of a chunk, in bytes.
const CHUNK: usize = 1 << 20;

/// Maximum length of a line, in bytes. A longer line is cut into pieces, which count as unreadable
/// lines.
const MAX_LINE_LENGTH: usize = CHUNK / 2;

/// Maximum length of a line of column names (`#Fields:`), in bytes. A longer line is not copied to
/// the next chunk.
const MAX_COLUMN_BYTES: usize = 16 << 10;

/// Runs `work` over the chunks of all inputs on `workers` threads, each with its own state, and
/// joins the results in the order of the chunks. If an input cannot be read completely, the other
/// inputs are still read. Returns the read errors.
pub(super) fn for_each<S, C: Send>(
    inputs: impl IntoIterator<Item = io::Result<Box<dyn Read + Send>>>,
    workers: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &[u8]) -> C + Sync,
    join: impl FnMut(C),
) -> Vec<io::Error> {
    // The channel is unbounded, so sending never blocks. `max_in_progress` limits the number of
    // chunks in progress.
    let (send, chunks) = channel::<Chunk<C>>();
    let chunks = Mutex::new(chunks);
    thread::scope(|scope| {
        let worker = || {
            let mut state = state();
            while let Some(Chunk { bytes, counted }) = next(&chunks) {
                let counts = work(&mut state, &bytes);
                // Sending fails only if another worker has panicked.
                let _ = counted.send((counts, bytes));
            }
        };
        // If a worker panics, the scope of the threads panics, too, because without the worker's
        // counts the result would be wrong.
        for _ in 0..workers {
            scope.spawn(worker);
        }
        let mut pipeline = Pipeline { send: Some(send), max_in_progress: 3 * workers, waiting: VecDeque::new(), join };
        let mut buffers = Vec::new();
        let mut read = |input: io::Result<Box<dyn Read + Send>>| {
            split_into_chunks(&mut input?, &mut buffers, |chunk, buffers| pipeline.send(chunk, buffers))
        };
        let errors = inputs.into_iter().filter_map(|input| read(input).err()).collect();
        pipeline.finish();
        errors
    })
}

type CountedChunk<C> = (C, Vec<u8>);

/// Bytes of a chunk, and the channel that returns its counts. If a worker panics, `counted` is
/// dropped, which wakes the thread that waits for the counts.
struct Chunk<C> {
    bytes: Vec<u8>,
    counted: Sender<CountedChunk<C>>,
}

/// Chunks that were sent to the workers and whose counts are not joined yet. The counts are joined
/// in the order of the chunks, even if a later chunk is finished first.
struct Pipeline<C, J> {
    /// Channel to the workers; `None` after a worker panicked.
    send: Option<Sender<Chunk<C>>>,
    /// Maximum number of chunks in progress.
    max_in_progress: usize,
    waiting: VecDeque<Receiver<CountedChunk<C>>>,
    join: J,
}

impl<C, J: FnMut(C)> Pipeline<C, J> {
    /// Sends a chunk. Blocks while too many chunks are in progress. Returns `false` if a worker has
    /// panicked.
    fn send(&mut self, bytes: Vec<u8>, buffers: &mut Vec<Vec<u8>>) -> bool {
        while self.waiting.len() >= self.max_in_progress {
            self.take(buffers);
        }
        let Some(send) = &self.send else { return false };
        let (counted, counts) = channel();
        self.waiting.push_back(counts);
        send.send(Chunk { bytes, counted }).is_ok()
    }

    fn take(&mut self, buffers: &mut Vec<Vec<u8>>) {
        let Some(counts) = self.waiting.pop_front() else { return };
        match counts.recv() {
            Ok((counts, bytes)) => {
                buffers.push(bytes);
                (self.join)(counts);
            }
            Err(_) => {
                self.send = None;
                self.waiting.clear();
            }
        }
    }

    fn finish(mut self) {
        while !self.waiting.is_empty() {
            self.take(&mut Vec::new());
        }
    }
}

fn next<C>(chunks: &Mutex<Receiver<Chunk<C>>>) -> Option<Chunk<C>> {
    chunks.lock().recv().ok()
}

/// Cuts one input into chunks that end at line ends; the last chunk may end without a line end.
fn split_into_chunks(
    input: &mut dyn Read,
    buffers: &mut Vec<Vec<u8>>,
    mut send: impl FnMut(Vec<u8>, &mut Vec<Vec<u8>>) -> bool,
) -> io::Result<()> {
    let mut rest: Vec<u8> = Vec::new();
    let mut columns: Vec<u8> = Vec::new();
    loop {
        let mut chunk = buffers.pop().unwrap_or_default();
        chunk.clear();
        chunk.extend_from_slice(&columns);
        chunk.append(&mut rest);
        let missing = CHUNK.saturating_sub(chunk.len());
        chunk.reserve_exact(missing);
        // If reading fails, the lines before the error are still counted.
        let read = Read::take(&mut *input, missing as u64).read_to_end(&mut chunk);
        if chunk.len() == columns.len() {
            return read.map(drop);
        }
        let ended = chunk.len() < CHUNK;
        if !ended {
            let at = memchr::memrchr(b'\n', &chunk).map_or(chunk.len(), |at| at + 1);
            if chunk.len() - at <= MAX_LINE_LENGTH {
                rest = chunk.split_off(at);
            }
        }
        if let Some(line) = last_columns(&chunk) {
            columns.clear();
            columns.extend_from_slice(line);
        }
        if !send(chunk, buffers) || ended {
            return read.map(drop);
        }
    }
}

/// Returns the last line of column names in a chunk. Each chunk is counted separately, so the next
/// chunk must begin with a copy of this line.
fn last_columns(chunk: &[u8]) -> Option<&[u8]> {
    let is_start = |at: usize| at == 0 || chunk[at - 1] == b'\n';
    let start = memchr::memmem::rfind_iter(chunk, FIELDS).find(|at| is_start(*at))?;
    let end = memchr::memchr(b'\n', &chunk[start..]).map(|end| start + end + 1)?;
    (end - start <= MAX_COLUMN_BYTES).then(|| &chunk[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    type Input = io::Result<Box<dyn Read + Send>>;

    fn input(bytes: impl Into<Vec<u8>>) -> Input {
        Ok(Box::new(io::Cursor::new(bytes.into())))
    }

    fn lines(inputs: Vec<Vec<u8>>) -> (usize, usize) {
        let inputs = inputs.into_iter().map(input);
        let count = |chunk: &[u8]| {
            let lines = chunk.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.fold((0, 0), |(count, bytes), line| (count + 1, bytes + line.len()))
        };
        let mut all = (0, 0);
        let join = |one: (usize, usize)| all = (all.0 + one.0, all.1 + one.1);
        let errors = for_each(inputs, 2, || (), |(), chunk| count(chunk), join);
        assert!(errors.is_empty(), "{errors:?}");
        all
    }

    #[test]
    fn complete_lines_are_neither_cut_nor_lost() {
        let log: Vec<u8> = (0..200_000).flat_map(|at: usize| [vec![b'x'; at % 40 + 1], vec![b'\n']].concat()).collect();
        let bytes = log.len() - 200_000;
        assert_eq!(lines(vec![log.clone(), log[..log.len() - 1].to_vec(), Vec::new()]), (400_000, 2 * bytes));
    }

    #[test]
    fn a_line_longer_than_a_chunk_is_cut_without_losing_bytes() {
        let (count, bytes) = lines(vec![vec![b'x'; 5 * CHUNK]]);
        assert_eq!(bytes, 5 * CHUNK);
        assert!(count >= 5, "{count}");
    }

    #[test]
    fn every_chunk_begins_with_the_fields_directive_that_applies_to_it() {
        let line = b"GET /0123456789\n".repeat(CHUNK / 16 + 10);
        let log = [b"#Fields: one\n", line.as_slice(), b"#Fields: two\n", line.as_slice(), line.as_slice()].concat();
        let inputs = [input(log), input("GET /\n"), input("#Fields: three\n")];
        let work = |(): &mut (), chunk: &[u8]| {
            let lines = || chunk.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let start = lines().next().unwrap_or_default().to_vec();
            (start, lines().filter(|line| line.starts_with(b"GET")).count())
        };
        let (mut starts, mut requests) = (Vec::new(), 0);
        let join = |(start, count)| {
            starts.push(start);
            requests += count;
        };
        let errors = for_each(inputs, 3, || (), work, join);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(requests, 3 * (CHUNK / 16 + 10) + 1, "none twice");
        let starts: Vec<_> = starts.iter().map(|start| String::from_utf8_lossy(start)).collect();
        assert_eq!(starts, ["#Fields: one", "#Fields: one", "#Fields: two", "#Fields: two", "GET /", "#Fields: three"]);
    }

    struct Cut(bool);

    impl Read for Cut {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("cut"));
            }
            buffer[..4].copy_from_slice(b"a\nb\n");
            Ok(4)
        }
    }

    #[test]
    fn an_input_error_is_reported_and_everything_readable_is_still_read() {
        for inputs in [vec![input("a\n"), Err(io::Error::other("gone")), input("a\n")], vec![Ok(Box::new(Cut(false)))]]
        {
            let mut bytes = 0;
            let errors = for_each(inputs, 1, || (), |(), chunk| chunk.len(), |count| bytes += count);
            assert_eq!((bytes, errors.len()), (4, 1));
        }
    }

    #[test]
    fn counts_are_joined_in_the_order_of_the_log() {
        let log: Vec<u8> = (0..9_u8).flat_map(|at| [vec![b'a' + at; CHUNK - 1], vec![b'\n']].concat()).collect();
        for workers in [1, 2, 7] {
            let mut order = Vec::new();
            for_each([input(log.as_slice())], workers, || (), |(), chunk| chunk[0], |first| order.push(first));
            assert_eq!(order, b"abcdefghi", "{workers} workers");
        }
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_worker_that_panics_does_not_leave_the_reader_waiting() {
        let _ = for_each([input(b"line\n".repeat(CHUNK * 4))], 2, || (), |(), _| panic!("a defect"), |(): ()| {});
    }
}
