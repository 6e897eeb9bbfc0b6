//! The queue of messages from the editor. During a check, the server looks at the waiting messages,
//! and stops the check if a message makes the result useless.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use lsp_server::{Connection, Message, RequestId};
use serde_json::json;

/// Maximum time that a message waits while the server does work that could be done later.
const MAX_WAIT: Duration = Duration::from_millis(30);

pub(super) struct Inbox<'c> {
    connection: &'c Connection,
    waiting: RefCell<VecDeque<Message>>,
}

impl<'c> Inbox<'c> {
    pub(super) const fn new(connection: &'c Connection) -> Self {
        Self { connection, waiting: RefCell::new(VecDeque::new()) }
    }

    pub(super) fn take(&self) -> Option<Message> {
        self.receive_waiting();
        self.waiting.borrow_mut().pop_front()
    }

    /// Waits for the next message. `None` if the editor has closed the connection.
    pub(super) fn wait(&self) -> Option<Message> {
        self.take().or_else(|| self.connection.receiver.recv().ok())
    }

    fn receive_waiting(&self) {
        self.waiting.borrow_mut().extend(self.connection.receiver.try_iter());
    }

    pub(super) fn is_cancelled(&self, id: &RequestId) -> bool {
        self.receive_waiting();
        let id = json!(id);
        self.waiting.borrow().iter().any(|message| match message {
            Message::Notification(cancel) => cancel.method == "$/cancelRequest" && cancel.params["id"] == id,
            _ => false,
        })
    }

    /// Reports whether a waiting message changes or closes a document. If so, results about the
    /// current text of the document are outdated.
    pub(super) fn has_change_of(&self, uri: &str) -> bool {
        self.receive_waiting();
        self.waiting.borrow().iter().any(|message| match message {
            Message::Notification(change) => {
                let is_change = matches!(&*change.method, "textDocument/didChange" | "textDocument/didClose");
                is_change && change.params["textDocument"]["uri"] == uri
            }
            _ => false,
        })
    }

    /// Reports whether work on a document should continue. `began` is the time when the work began.
    pub(super) fn permits_work(&self, uri: &str, began: Instant) -> bool {
        !self.has_change_of(uri) && (self.waiting.borrow().is_empty() || began.elapsed() < MAX_WAIT)
    }
}
