//! A stream cut into chunks of whole lines, worked on by every core.
//!
//! Chunks are handed out through a short queue and come back to be filled again, so memory stays the same however long
//! the log is. Each worker keeps its own result; they are joined at the end.

use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use super::format::FIELDS;

/// Octets of a chunk.
const CHUNK: usize = 1 << 20;

/// A line longer than this is cut into lines that make no sense, and counted as such.
const LONGEST_LINE: usize = CHUNK / 2;

/// A line of names of columns longer than this is not one.
const LONGEST_COLUMNS: usize = 16 << 10;

/// Runs `work` over the chunks of all inputs on this many threads, each with a state of its own. An input that cannot be read,
/// or not to its end, does not keep the others from being read; the errors are returned.
pub(super) fn for_each<S: Send>(
    inputs: impl IntoIterator<Item = io::Result<Box<dyn Read + Send>>>,
    workers: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &[u8]) + Sync,
) -> (Vec<S>, Vec<io::Error>) {
    let (full, chunks) = sync_channel::<Vec<u8>>(workers);
    let (back, empty) = sync_channel::<Vec<u8>>(2 * workers + 1);
    let chunks = Mutex::new(chunks);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|_| {
                let (back, chunks, state, work) = (back.clone(), &chunks, &state, &work);
                scope.spawn(move || {
                    let mut state = state();
                    while let Some(chunk) = next(chunks) {
                        work(&mut state, &chunk);
                        // Dropped where the reader has enough buffers.
                        let _ = back.try_send(chunk);
                    }
                    state
                })
            })
            .collect();
        let read = |input: io::Result<Box<dyn Read + Send>>| cut(&mut input?, &empty, |chunk| full.send(chunk).is_ok());
        let errors = inputs.into_iter().filter_map(|input| read(input).err()).collect();
        drop(full);
        #[expect(clippy::expect_used, reason = "a worker that panicked has lost counts; going on would hide that")]
        let states = handles.into_iter().map(|handle| handle.join().expect("a worker panicked")).collect();
        (states, errors)
    })
}

/// The next chunk, or `None` once the reader is done.
fn next(chunks: &Mutex<Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    chunks.lock().ok()?.recv().ok()
}

/// Cuts one input into chunks that end where lines end; the last one may lack its line end.
fn cut(input: &mut dyn Read, empty: &Receiver<Vec<u8>>, mut send: impl FnMut(Vec<u8>) -> bool) -> io::Result<()> {
    let mut rest: Vec<u8> = Vec::new();
    let mut columns: Vec<u8> = Vec::new();
    loop {
        let mut chunk = empty.try_recv().unwrap_or_default();
        chunk.clear();
        chunk.extend_from_slice(&columns);
        chunk.append(&mut rest);
        let have = chunk.len();
        chunk.resize(CHUNK, 0);
        let (read, error) = fill(input, &mut chunk[have..]);
        chunk.truncate(have + read);
        if chunk.len() == columns.len() {
            return error.map_or(Ok(()), Err);
        }
        let ended = chunk.len() < CHUNK;
        if !ended {
            let at = memchr::memrchr(b'\n', &chunk).map_or(chunk.len(), |at| at + 1);
            if chunk.len() - at <= LONGEST_LINE {
                rest = chunk.split_off(at);
            }
        }
        if let Some(line) = last_columns(&chunk) {
            columns.clear();
            columns.extend_from_slice(line);
        }
        if !send(chunk) || ended {
            return error.map_or(Ok(()), Err);
        }
    }
}

/// The last line that names the columns of the lines after it. Chunks are counted apart, so each begins with the line that
/// holds for it.
fn last_columns(chunk: &[u8]) -> Option<&[u8]> {
    let is_start = |at: usize| at == 0 || chunk[at - 1] == b'\n';
    let start = memchr::memmem::rfind_iter(chunk, FIELDS).find(|at| is_start(*at))?;
    let end = memchr::memchr(b'\n', &chunk[start..]).map(|end| start + end + 1)?;
    (end - start <= LONGEST_COLUMNS).then(|| &chunk[start..end])
}

/// Fills the buffer as far as the input goes; with the error that ended it.
fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> (usize, Option<io::Error>) {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(error)),
        }
    }
    (filled, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(inputs: Vec<Vec<u8>>) -> (usize, usize) {
        let inputs = inputs.into_iter().map(|input| Ok(Box::new(io::Cursor::new(input)) as Box<dyn Read + Send>));
        let count = |state: &mut (usize, usize), chunk: &[u8]| {
            for line in chunk.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()) {
                state.0 += 1;
                state.1 += line.len();
            }
        };
        let (states, errors) = for_each(inputs, 2, || (0, 0), count);
        assert!(errors.is_empty(), "{errors:?}");
        states.into_iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    #[test]
    fn no_line_is_cut_or_lost() {
        let log: Vec<u8> = (0..200_000).flat_map(|at: usize| [vec![b'x'; at % 40 + 1], vec![b'\n']].concat()).collect();
        let octets = log.len() - 200_000;
        assert_eq!(lines(vec![log.clone(), log[..log.len() - 1].to_vec(), Vec::new()]), (400_000, 2 * octets));
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let (count, octets) = lines(vec![vec![b'x'; 5 * CHUNK]]);
        assert_eq!(octets, 5 * CHUNK);
        assert!(count >= 5, "{count}");
    }

    #[test]
    fn every_chunk_begins_with_the_columns_that_hold_for_it() {
        let line = b"GET /0123456789\n".repeat(CHUNK / 16 + 10);
        let log = [b"#Fields: one\n", line.as_slice(), b"#Fields: two\n", line.as_slice(), line.as_slice()].concat();
        let inputs = [log, b"GET /\n".to_vec(), b"#Fields: three\n".to_vec()];
        let inputs = inputs.map(|input| Ok(Box::new(io::Cursor::new(input)) as Box<dyn Read + Send>));
        let work = |(starts, requests): &mut (Vec<Vec<u8>>, usize), chunk: &[u8]| {
            let lines = || chunk.split(|octet| *octet == b'\n').filter(|line| !line.is_empty());
            starts.push(lines().next().unwrap_or_default().to_vec());
            *requests += lines().filter(|line| line.starts_with(b"GET")).count();
        };
        let (states, errors) = for_each(inputs, 1, || (Vec::new(), 0), work);
        assert!(errors.is_empty(), "{errors:?}");
        let (starts, requests) = &states[0];
        assert_eq!(*requests, 3 * (CHUNK / 16 + 10) + 1, "none twice");
        let starts: Vec<_> = starts.iter().map(|start| String::from_utf8_lossy(start)).collect();
        assert_eq!(starts, ["#Fields: one", "#Fields: one", "#Fields: two", "#Fields: two", "GET /", "#Fields: three"]);
    }

    #[test]
    fn an_input_with_an_error_does_not_keep_the_others_from_being_read() {
        let good = || Ok(Box::new(&b"a\n"[..]) as Box<dyn Read + Send>);
        let inputs = vec![good(), Err(io::Error::other("gone")), good()];
        let (states, errors) = for_each(inputs, 1, || 0, |count, chunk| *count += chunk.len());
        assert_eq!((states, errors.len()), (vec![4], 1));
    }

    /// What was read before the octets went bad counts.
    #[test]
    fn an_input_that_ends_in_an_error_is_read_up_to_it() {
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
        let inputs = vec![Ok(Box::new(Cut(false)) as Box<dyn Read + Send>)];
        let (states, errors) = for_each(inputs, 1, || 0, |count, chunk| *count += chunk.len());
        assert_eq!((states, errors.len()), (vec![4], 1));
    }
}
