//! Entries for fuzzing: a question of a proxy, with the properties that hold for any octets.

use bytes::Bytes;

use super::call::{MessageReader, framed};
use super::messages::CheckRequest;
use super::question::CheckQuestion;

/// The content of a call. It is read alike however it is cut, and what it asks is the same once it is written again.
pub fn check_request(octets: &[u8]) {
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut reader = MessageReader::default();
        for piece in pieces {
            reader.push(piece)?;
        }
        reader.finish()
    };
    let whole = read(&mut std::iter::once(octets));
    assert_eq!(read(&mut octets.chunks(3)).is_ok(), whole.is_ok(), "the pieces say something else");
    let Ok(message) = whole else { return };
    let Ok(question) = CheckQuestion::read(message.clone()) else { return };
    if let Ok(original) = question.original() {
        assert!(!original.target.is_empty() && !original.target.iter().any(u8::is_ascii_control), "no target");
        assert!(original.host.is_none_or(|host| !host.is_empty()), "a host of no octets");
    }
    if let Ok(fields) = question.fields() {
        assert!(fields.len() <= message.len(), "fields from nowhere");
    }
    let request: CheckRequest = prost::Message::decode(message).unwrap_or_default();
    let again: Bytes = framed(&request).slice(5..);
    let again = CheckQuestion::read(again);
    let is_same = again.is_ok_and(|again| {
        again.address() == question.address()
            && again.fields().ok() == question.fields().ok()
            && again.original().ok().map(|it| (it.method.clone(), it.target.to_vec()))
                == question.original().ok().map(|it| (it.method.clone(), it.target.to_vec()))
    });
    assert!(is_same, "a question that is read in two ways");
}
