//! The document at the end of a retrieval, or why there is none.

use std::fmt;

use super::answer_kind::AnswerKind;
use super::coding::{CodingError, DecodedBody, codings, decode};
use super::retrieval_chain::RetrievalChain;

/// Why a retrieval brought no document.
#[derive(Debug)]
pub(crate) enum DocumentError {
    /// The answer is another one, or there is none; with what is known beyond that.
    Answer(AnswerKind, Option<String>),
    Coding(CodingError),
}

impl RetrievalChain {
    /// The body of a success without its codings, up to a number of octets.
    ///
    /// # Errors
    ///
    /// If the last answer is no success, or cannot be decoded.
    pub(crate) fn document(&self, most: usize) -> Result<DecodedBody, DocumentError> {
        let kind = AnswerKind::of(self);
        match (kind, self.answer()) {
            (AnswerKind::Success(_), Some(answer)) => {
                let decoded = decode(&codings(answer.headers()), answer.body(), answer.is_cut(), most);
                decoded.map_err(DocumentError::Coding)
            }
            _ => Err(DocumentError::Answer(kind, self.detail())),
        }
    }
}

/// As it follows the URL and a colon.
impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Its text says what is broken, and more.
            Self::Answer(AnswerKind::Failed(_) | AnswerKind::Unreachable(_), Some(detail)) => f.write_str(detail),
            Self::Answer(kind, Some(detail)) => write!(f, "{kind}: {detail}"),
            Self::Answer(kind, None) => write!(f, "{kind}"),
            Self::Coding(error) => write!(f, "the answer cannot be read: {error}"),
        }
    }
}
