//! Fuzzing entry point for Envoy's decision requests.

use bytes::Bytes;
use prost::Message;

use super::messages::{CheckQuestion, CheckRequest};
use super::{MessageReader, framed};

/// Checks the body of a call. The result must not depend on how the body is split. A decision
/// request that is encoded and parsed again must be unchanged.
pub fn check_request(bytes: &[u8]) {
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut reader = MessageReader::default();
        for piece in pieces {
            reader.push(piece)?;
        }
        reader.finish()
    };
    let whole = read(&mut std::iter::once(bytes));
    assert_eq!(read(&mut bytes.chunks(3)).is_ok(), whole.is_ok(), "the pieces say something else");
    let Ok(message) = whole else { return };
    let Ok(question) = CheckQuestion::read(message.clone()) else { return };
    if let Ok(original) = question.original() {
        assert!(!original.target.is_empty(), "no target");
        assert!(original.host.is_none_or(|host| !host.is_empty()), "a host of no bytes");
    }
    if let Some(fields) = question.fields() {
        assert!(fields.len() <= message.len(), "fields from nowhere");
    }
    let request: CheckRequest = Message::decode(message).unwrap_or_default();
    let again: Bytes = framed(&request).slice(5..);
    let again = CheckQuestion::read(again);
    let is_same = again.is_ok_and(|again| {
        again.address == question.address
            && again.fields() == question.fields()
            && again.original().ok().map(|it| (it.method.clone(), it.target.to_vec()))
                == question.original().ok().map(|it| (it.method.clone(), it.target.to_vec()))
    });
    assert!(is_same, "a question that is read in two ways");
}
