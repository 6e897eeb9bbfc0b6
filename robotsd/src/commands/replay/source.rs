//! Opens logs as streams of bytes, and shows a progress bar. A log is standard input or a file,
//! which may be compressed.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::exit::complain;
use crate::input;
use crate::render::printable;

const GZIP: &[u8] = &[0x1F, 0x8B];
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];

/// Size of the buffer for the content of a log before decompression, in bytes.
const READ_BUFFER_BYTES: usize = 256 << 10;

/// Size of the buffer for the first bytes of a log, in bytes. These bytes show whether the log is
/// compressed.
const DETECTION_BYTES: usize = 4 << 10;

/// Opens a log; `-` is standard input. Compression is detected from the first bytes, not from the
/// name. All errors, including those of later reads, contain the name of the log. The progress bar
/// counts the bytes before decompression.
pub(super) fn open(path: &Path, progress: &ProgressBar) -> io::Result<Box<dyn Read + Send>> {
    let mut log = open_named(path, progress)?;
    if log.fill_buf()?.is_empty() {
        complain(&format_args!("{}: the log is empty", log.get_ref().name));
    }
    Ok(Box::new(log))
}

/// Like [`open`], but prints no notice about an empty log. This function is for logs that are
/// opened again later with `open`.
pub(super) fn open_unchecked(path: &Path, progress: &ProgressBar) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(open_named(path, progress)?))
}

fn open_named(path: &Path, progress: &ProgressBar) -> io::Result<BufReader<NamedLog>> {
    let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.to_string_lossy().into_owned() };
    let mut log = NamedLog { name: printable(&name), log: Box::new(io::empty()), is_compressed: false };
    (log.log, log.is_compressed) = open_decompressed(path, progress).map_err(|error| log.named(&error))?;
    let mut beginning = BufReader::with_capacity(DETECTION_BYTES, log);
    let name = beginning.get_ref().name.clone();
    match beginning.fill_buf()? {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => {
            return Err(io::Error::other(format!("{name}: the log is UTF-16: save it as UTF-8")));
        }
        [0xEF, 0xBB, 0xBF, ..] => beginning.consume(3),
        _ => {}
    }
    Ok(beginning)
}

/// Returns a reader of a log's decompressed bytes, and whether the log is compressed.
fn open_decompressed(path: &Path, progress: &ProgressBar) -> io::Result<(Box<dyn Read + Send>, bool)> {
    let raw: Box<dyn Read + Send> = match path == Path::new("-") {
        true => Box::new(io::stdin()),
        // Devices other than `/dev/null` are refused, because reading them would never end.
        false if is_device(path)? => {
            let fault = "this is a device, not a log: specify a file, a pipe, or - for standard input";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
        }
        false => Box::new(input::open(path)?),
    };
    let mut input = BufReader::with_capacity(READ_BUFFER_BYTES, progress.wrap_read(raw));
    let start = input.fill_buf()?;
    if let Some((packer, command)) = unsupported_compression(start) {
        return Err(io::Error::other(format!(
            "the log is compressed with {packer}, which is not supported: decompress it with {command}, and specify - \
             for standard input instead"
        )));
    }
    Ok(if start.starts_with(GZIP) {
        (Box::new(MultiGzDecoder::new(input)), true)
    } else if start.starts_with(ZSTD) {
        (Box::new(Zstd::new(input)?), true)
    } else {
        (Box::new(input), false)
    })
}

/// Returns the name of an unsupported compression format, and the command that decompresses a file
/// to standard output.
fn unsupported_compression(start: &[u8]) -> Option<(&'static str, &'static str)> {
    Some(match start {
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => ("xz", "xz -dc"),
        // The digit in a bzip2 header is the block size. The bytes after the digit are the start of
        // the first block or, in an empty file, of the end mark.
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, 0x41 | 0x72, ..] => ("bzip2", "bzip2 -dc"),
        [0x04, 0x22, 0x4D, 0x18, ..] => ("lz4", "lz4 -dc"),
        [b'L', b'Z', b'I', b'P', 0 | 1, ..] => ("lzip", "lzip -dc"),
        [b'P', b'K', 3, 4, ..] => ("zip", "unzip -p"),
        [b'7', b'z', 0xBC, 0xAF, 0x27, 0x1C, ..] => ("7-Zip", "7z x -so"),
        [0x1F, 0x9D, ..] => ("compress", "uncompress -c"),
        [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => ("zstd and begins with a skippable frame", "zstd -dc"),
        _ => return None,
    })
}

fn is_device(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = std::fs::metadata(path)?.file_type();
    Ok((kind.is_char_device() || kind.is_block_device()) && path != Path::new("/dev/null"))
}

/// A log whose read errors contain the name of the log.
struct NamedLog {
    name: String,
    log: Box<dyn Read + Send>,
    is_compressed: bool,
}

impl NamedLog {
    fn named(&self, error: &io::Error) -> io::Error {
        let advice = match error.kind() {
            io::ErrorKind::IsADirectory => ": this is a folder: specify the logs in it",
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => "",
            _ if self.is_compressed => {
                ": the file is damaged or incomplete; only the part that could be decompressed is counted"
            }
            _ => "",
        };
        io::Error::new(error.kind(), format!("{}: {error}{advice}", self.name))
    }
}

impl Read for NamedLog {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.log.read(buffer).map_err(|error| self.named(&error))
    }
}

/// Decoder for a sequence of zstd frames; logs that were concatenated have several frames.
struct Zstd<R: BufRead> {
    decoder: Option<StreamingDecoder<R, FrameDecoder>>,
}

impl<R: BufRead> Zstd<R> {
    fn new(input: R) -> io::Result<Self> {
        Ok(Self { decoder: Some(StreamingDecoder::new(input).map_err(io::Error::other)?) })
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let read = decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(mut input) = self.decoder.take().map(StreamingDecoder::into_inner) else { break };
            if !input.fill_buf()?.is_empty() {
                *self = Self::new(input)?;
            }
        }
        Ok(0)
    }
}

pub(super) fn reading_bar(paths: &[PathBuf]) -> ProgressBar {
    // The total size is `None` if any path is not a regular file.
    let size = |path: &PathBuf| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len());
    let total: Option<u64> = paths.iter().map(size).sum();
    let template = match total {
        Some(_) => "{bar:40} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left",
        None => "{spinner} {bytes}, {binary_bytes_per_sec}",
    };
    bar(total, template)
}

/// Returns a progress bar on standard error. The bar is hidden if standard error is not a terminal,
/// and erased when it is dropped.
pub(super) fn bar(total: Option<u64>, template: &str) -> ProgressBar {
    // All templates are valid. For an invalid template, the default style would be used.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr()).with_style(style);
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(100));
    }
    bar
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(packed: &[u8]) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, packed).expect("a file");
        let progress = ProgressBar::hidden();
        let mut text = Vec::new();
        open(&path, &progress).expect("a log").read_to_end(&mut text).expect("text");
        assert_eq!(progress.position(), packed.len() as u64);
        text
    }

    #[test]
    fn compressed_logs_are_recognised_by_their_first_bytes() {
        let text = b"one line\nand another\n".repeat(1000);
        assert_eq!(read(&text), text);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).expect("a vector takes all");
        let gzip = gzip.finish().expect("a vector takes all");
        assert_eq!(read(&[gzip.clone(), gzip].concat()), text.repeat(2));
        let zstd = ruzstd::encoding::compress_to_vec(text.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(read(&[zstd.clone(), zstd].concat()), text.repeat(2));
        assert_eq!(read(b""), b"");
    }

    #[test]
    fn the_error_for_an_unsupported_compression_names_its_format() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        for (start, packer) in [
            (&b"\xFD7zXZ\0\0\x04"[..], "xz"),
            (b"BZh91AY&SY", "bzip2"),
            (b"BZh9\x17\x72\x45\x38\x50\x90", "bzip2"),
            (b"\x04\x22\x4D\x18\x64", "lz4"),
            (b"LZIP\x01\x0C", "lzip"),
            (b"PK\x03\x04\x14", "zip"),
            (b"7z\xBC\xAF\x27\x1C\0", "7-Zip"),
            (b"\x1F\x9D\x90", "compress"),
            (b"\x50\x2A\x4D\x18\x04\0\0\0", "zstd and begins"),
        ] {
            std::fs::write(&path, start).expect("a file");
            let fault = open(&path, &ProgressBar::hidden()).err().expect(packer).to_string();
            assert!(fault.contains(&format!("log: the log is compressed with {packer}")), "{fault}");
        }
        for text in [&b"BZh9.example.com - - ["[..], b"PK1.example", b"7z.example", b"LZIP1 - -", b"\xFD7z"] {
            assert_eq!(read(text), text);
        }
    }
}
