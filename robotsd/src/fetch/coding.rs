//! Decodes the content codings of a body, and limits the size of the decoded data.

use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use crate::input::{AtMost, DecoderReader, TooManyBytes};

/// The value of `Accept-Encoding`: the content codings that the crawlers of search engines accept.
pub(crate) const ACCEPTED_CODINGS: &str = "gzip, deflate, br";

/// Maximum number of content codings of one body. Servers do not use more than three codings.
const MAX_CODINGS: usize = 3;

/// Size of brotli's read buffer, in bytes.
const BUFFER: usize = 8 << 10;

#[derive(Debug)]
pub(crate) struct DecodedBody {
    pub(crate) bytes: Vec<u8>,
    /// Whether the body is larger than the limit and was truncated.
    pub(crate) is_cut: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CodingError {
    #[error("the body is encoded as {0:?}, which the request does not accept")]
    Unknown(String),
    #[error("the body is declared as {0}, but cannot be decoded: {1}")]
    Damaged(String, io::Error),
    #[error("the body is encoded {0} times")]
    TooMany(usize),
}

/// Returns the codings of a body in lower case, without `identity`. The first coding is the one
/// that the server applied first.
pub(crate) fn codings(headers: &HeaderMap) -> Vec<String> {
    let fields = headers.get_all(CONTENT_ENCODING).into_iter();
    let words = fields.flat_map(|field| field.as_bytes().split(|byte| *byte == b','));
    let words = words.map(|word| String::from_utf8_lossy(word.trim_ascii()).to_ascii_lowercase());
    words.filter(|word| !word.is_empty() && word != "identity").collect()
}

/// Decodes a body, up to `most` bytes. If the body is incomplete, decodes as much of it as
/// possible.
pub(crate) fn decode(
    codings: &[String],
    body: &[u8],
    is_body_cut: bool,
    most: usize,
) -> Result<DecodedBody, CodingError> {
    let mut bytes = Vec::new();
    match AtMost::new(decoder(codings, body, most)?, most).read_to_end(&mut bytes) {
        Ok(_) => Ok(DecodedBody { bytes, is_cut: is_body_cut }),
        Err(error) if is_body_cut || TooManyBytes::is_cause_of(&error) => Ok(DecodedBody { bytes, is_cut: true }),
        Err(error) => Err(match error.downcast::<CodingError>() {
            Ok(error) => error,
            Err(error) => CodingError::Damaged(codings.join(", "), error),
        }),
    }
}

/// Decodes a body while it is read. A decoder needs 32 KiB of memory for gzip and deflate, and up
/// to 16 MiB for brotli. If there are several codings, the intermediate data is limited to `most`
/// bytes. The caller must limit the output.
pub(crate) fn decoder<'a>(
    codings: &[String],
    body: impl Read + 'a,
    most: usize,
) -> Result<Box<dyn Read + 'a>, CodingError> {
    if codings.len() > MAX_CODINGS {
        return Err(CodingError::TooMany(codings.len()));
    }
    let mut bytes: Box<dyn Read + 'a> = Box::new(body);
    for (at, coding) in codings.iter().rev().enumerate() {
        if at > 0 {
            bytes = Box::new(AtMost::new(bytes, most));
        }
        let decoder: Box<dyn Read + 'a> = match &**coding {
            // This decoder returns an error if a gzip member is followed by anything other than
            // another gzip member.
            "gzip" | "x-gzip" => Box::new(MultiGzDecoder::new(bytes)),
            "deflate" => Box::new(Deflate::Unread(bytes)),
            "br" => Box::new(Decompressor::new(bytes, BUFFER)),
            _ => return Err(CodingError::Unknown(coding.chars().take(64).collect())),
        };
        let coding = coding.clone();
        bytes =
            Box::new(DecoderReader { bytes: decoder, named: move |error| CodingError::Damaged(coding.clone(), error) });
    }
    Ok(bytes)
}

/// A decoder for the zlib format (RFC 9110, section 8.4.1.2), and for raw deflate data without the
/// zlib header, which some servers send.
enum Deflate<'a> {
    Unread(Box<dyn Read + 'a>),
    Begun(Box<dyn Read + 'a>),
}

impl Read for Deflate<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Self::Unread(bytes) = self {
            let mut bytes = std::mem::replace(bytes, Box::new(io::empty()));
            let mut head = Vec::new();
            bytes.by_ref().take(2).read_to_end(&mut head)?;
            // In a zlib header, the method is 8, and both bytes, read as one number, are a multiple
            // of 31 (RFC 1950, section 2.2). No encoder begins raw deflate data with these bytes.
            let has_frame = matches!(head[..], [first, second]
                if first & 0x0F == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31));
            let bytes = io::Cursor::new(head).chain(bytes);
            *self = Self::Begun(match has_frame {
                true => Box::new(ZlibDecoder::new(bytes)),
                false => Box::new(DeflateDecoder::new(bytes)),
            });
        }
        match self {
            Self::Unread(_) => Ok(0),
            Self::Begun(decoder) => decoder.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("a vector takes all");
        encoder.finish().expect("a vector takes all")
    }

    fn decoded(codings: &[&str], body: &[u8], most: usize) -> Result<(Vec<u8>, bool), String> {
        let codings: Vec<_> = codings.iter().map(ToString::to_string).collect();
        let decoded = decode(&codings, body, false, most).map_err(|error| error.to_string())?;
        Ok((decoded.bytes, decoded.is_cut))
    }

    #[test]
    fn every_accepted_content_coding_is_decoded() {
        let text = b"User-agent: *\nDisallow: /x\n";
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::best());
        raw.write_all(text).expect("a vector takes all");
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(text).expect("a vector takes all");
        // The brotli data consists of one stored meta-block for a window of 16 bits, and the empty
        // last meta-block (RFC 7932, sections 9.1 and 9.2).
        let head = ((text.len() as u32 - 1) << 4 | 1 << 20).to_le_bytes();
        let brotli = [&head[..3], text, &[0x03]].concat();
        let whole = Ok((text.to_vec(), false));
        assert_eq!(decoded(&[], text, 100), whole);
        assert_eq!(decoded(&["gzip"], &gzip(text), 100), whole);
        assert_eq!(decoded(&["deflate"], &zlib.finish().expect("a vector"), 100), whole);
        assert_eq!(decoded(&["deflate"], &raw.finish().expect("a vector"), 100), whole);
        assert_eq!(decoded(&["br"], &brotli, 100), whole);
        assert_eq!(decoded(&["gzip", "x-gzip"], &gzip(&gzip(text)), 1000), whole);
    }

    #[test]
    fn the_size_of_a_decoded_body_and_the_number_of_codings_are_limited() {
        let bomb = gzip(&gzip(&vec![0; 8 << 20]));
        let (bytes, is_cut) = decoded(&["gzip", "gzip"], &bomb, 1 << 20).expect("decoded as far as is wanted");
        assert_eq!((bytes.len(), is_cut), (1 << 20, true));
        assert_eq!(decoded(&["gzip"; 4], &bomb, 100), Err("the body is encoded 4 times".to_owned()));
    }

    #[test]
    fn damaged_bodies_and_unsupported_codings_are_errors() {
        let error = decoded(&["gzip"], b"User-agent: *\n", 100).expect_err("no gzip");
        assert!(error.starts_with("the body is declared as gzip, but cannot be decoded: "), "{error}");
        let error = decoded(&["gzip"], &gzip(b"User-agent: *\n")[..20], 100).expect_err("half of it");
        assert!(error.starts_with("the body is declared as gzip"), "{error}");
        let error = decoded(&["zstd"], b"x", 100).expect_err("not accepted");
        assert_eq!(error, "the body is encoded as \"zstd\", which the request does not accept");
        for coding in ["gzip", "br"] {
            assert!(decoded(&[coding], b"", 100).is_err(), "{coding}");
        }
    }

    #[test]
    fn content_encoding_fields_are_lists_and_identity_is_ignored() {
        let mut headers = HeaderMap::new();
        for value in ["Identity", "GZIP , br", ""] {
            headers.append(CONTENT_ENCODING, value.parse().expect("a value"));
        }
        assert_eq!(codings(&headers), ["gzip", "br"]);
    }
}
