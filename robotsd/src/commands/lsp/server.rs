//! The server: handles all messages on one thread, in the order of their arrival.
//!
//! **Diagnostics are computed when no message is waiting.** A burst of changes therefore leads to
//! only one check. A check ends early if the document changes during the check, so no outdated
//! diagnostics are published. If a request needs the result of a check that ended early, the server
//! responds with an error that makes the editor send the request again.

use std::collections::BTreeMap;
use std::time::Instant;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response, ResponseError};
use rustix::process::Pid;
use serde_json::{Value, json};

use super::document::{Document, Interrupted};
use super::hover::UrlList;
use super::inbox::Inbox;
use super::protocol::{self, Client, DidChange, DidOpen, DocumentParams, error};
use super::{completion, diagnostics, fixes, hover, outline};

pub(super) struct Server<'c> {
    connection: &'c Connection,
    inbox: Inbox<'c>,
    stage: Stage,
    client: Client,
    /// The open robots.txt files, by URI. Other documents are not stored.
    documents: BTreeMap<String, Document>,
    urls: Option<UrlList>,
    /// Function that is called with the process ID of the editor.
    watch: &'c dyn Fn(Pid),
    /// Number of requests that were sent to the editor.
    sent_requests: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begun,
    Initialized,
    ShutDown,
}

impl<'c> Server<'c> {
    pub(super) fn new(connection: &'c Connection, watch: &'c dyn Fn(Pid)) -> Self {
        Self {
            connection,
            inbox: Inbox::new(connection),
            stage: Stage::Begun,
            client: Client::default(),
            documents: BTreeMap::new(),
            urls: None,
            watch,
            sent_requests: 0,
        }
    }

    /// Serves until the editor sends `exit` or closes the connection. Returns whether the editor
    /// requested a shutdown before that.
    pub(super) fn run(&mut self) -> bool {
        loop {
            let message = match self.inbox.take() {
                Some(message) => Some(message),
                None if self.publish_one() => continue,
                None => self.inbox.wait(),
            };
            match message {
                None => break,
                Some(Message::Notification(notification)) if notification.method == "exit" => break,
                Some(Message::Notification(notification)) => self.handle_notification(notification),
                Some(Message::Request(request)) => self.handle_request(request),
                Some(Message::Response(_)) => {}
            }
        }
        self.stage == Stage::ShutDown
    }

    fn send(&self, message: impl Into<Message>) {
        // Errors of `send` can be ignored: if the editor has closed the connection, `run` returns
        // when it waits for the next message.
        let _ = self.connection.sender.send(message.into());
    }

    fn notify(&self, method: &str, params: Value) {
        self.send(Notification::new(method.to_owned(), params));
    }

    /// Publishes the diagnostics of one document, unless a message arrives that must be handled
    /// first. Returns `false` if there is nothing to publish.
    fn publish_one(&mut self) -> bool {
        let Some(document) = self.documents.values_mut().find(|document| document.needs_publishing) else {
            return false;
        };
        let began = Instant::now();
        let goes_on = || self.inbox.permits_work(&document.uri, began);
        let Ok(report) = document.report(&goes_on) else { return true };
        let items = diagnostics::diagnostics(document, report);
        if self.inbox.has_change_of(&document.uri) {
            return true;
        }
        document.needs_publishing = false;
        let (uri, version) = (document.uri.clone(), document.version);
        self.publish(&uri, Some(version), items);
        true
    }

    fn publish(&self, uri: &str, version: Option<i32>, items: Vec<Value>) {
        let mut params = json!({ "uri": uri, "diagnostics": items });
        if let Some(version) = version {
            params["version"] = json!(version);
        }
        self.notify("textDocument/publishDiagnostics", params);
    }

    fn handle_notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        if self.stage != Stage::Initialized {
            return;
        }
        let result = match &*method {
            "textDocument/didOpen" => protocol::params(&method, params).map(|params| self.open(params)),
            "textDocument/didChange" => protocol::params(&method, params).map(|params| self.change(params)),
            "textDocument/didSave" => protocol::params(&method, params).map(|params| self.save(&params)),
            "textDocument/didClose" => protocol::params(&method, params).map(|params| self.close(&params)),
            // `$/cancelRequest` needs no action here, because `interruption` searches the inbox for
            // this message. Unknown notifications are ignored, as the protocol requires.
            _ => Ok(()),
        };
        if let Err(error) = result {
            self.warn(&error.message);
        }
    }

    fn warn(&self, message: &str) {
        const WARNING: u8 = 2;
        self.notify("window/logMessage", json!({ "type": WARNING, "message": message }));
    }

    fn open(&mut self, DidOpen { text_document }: DidOpen) {
        if protocol::is_robots_txt(&text_document.uri) {
            let document = Document::open(text_document, self.client.encoding);
            let uri = document.uri.clone();
            self.documents.insert(uri.clone(), document);
            self.read_disk(&uri);
        }
    }

    fn change(&mut self, DidChange { text_document, content_changes }: DidChange) {
        if let Some(document) = self.documents.get_mut(&text_document.uri) {
            document.change(text_document.version, content_changes);
            document.needs_publishing &= !document.is_pulled;
        }
    }

    fn save(&mut self, params: &DocumentParams) {
        let uri = &params.text_document.uri;
        self.read_disk(uri);
        if self.client.refreshes_diagnostics && self.documents.get(uri).is_some_and(|document| document.is_pulled) {
            self.sent_requests += 1;
            self.send(Request::new(self.sent_requests.into(), "workspace/diagnostic/refresh".to_owned(), Value::Null));
        }
    }

    fn read_disk(&mut self, uri: &str) {
        let Some(document) = self.documents.get_mut(uri) else { return };
        let problem = document.read_disk();
        document.needs_publishing &= !document.is_pulled;
        if let Some(problem) = problem {
            self.warn(&problem);
        }
    }

    fn close(&mut self, params: &DocumentParams) {
        if self.documents.remove(&params.text_document.uri).is_some() {
            self.publish(&params.text_document.uri, None, Vec::new());
        }
    }

    fn handle_request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let result = match (self.stage, &*method) {
            _ if self.inbox.is_cancelled(&id) => Err(cancelled_error()),
            (Stage::Begun, "initialize") => Ok(self.initialize(&params)),
            (Stage::Begun, _) => Err(error(ErrorCode::ServerNotInitialized, "send \"initialize\" first")),
            (Stage::ShutDown, _) => Err(error(ErrorCode::InvalidRequest, "the server is shut down: send \"exit\"")),
            (Stage::Initialized, "shutdown") => {
                self.stage = Stage::ShutDown;
                Ok(Value::Null)
            }
            (Stage::Initialized, _) => self.answer(&id, &method, params),
        };
        self.send(Response { id, response_result: result });
    }

    fn initialize(&mut self, params: &Value) -> Value {
        const INCREMENTAL: u8 = 2;
        self.client = Client::of(params);
        self.urls = self.client.urls.clone().map(UrlList::new);
        self.stage = Stage::Initialized;
        self.client.process.into_iter().for_each(self.watch);
        let mut capabilities = json!({
            "positionEncoding": self.client.encoding.name(),
            "textDocumentSync": { "openClose": true, "change": INCREMENTAL, "save": true },
            "hoverProvider": true,
            "definitionProvider": true,
            "completionProvider": { "triggerCharacters": [":", " "] },
            "documentSymbolProvider": true,
            "foldingRangeProvider": true,
            "documentFormattingProvider": true,
            "codeActionProvider": { "codeActionKinds": fixes::KINDS },
        });
        if self.client.pulls_diagnostics {
            let options =
                json!({ "identifier": "robotsd", "interFileDependencies": false, "workspaceDiagnostics": false });
            capabilities["diagnosticProvider"] = options;
        }
        json!({
            "capabilities": capabilities,
            "serverInfo": { "name": "robotsd", "version": env!("CARGO_PKG_VERSION") },
        })
    }

    /// Answers a request about a document. The result is empty if the document is not a robots.txt.
    fn answer(&mut self, id: &RequestId, method: &str, params: Value) -> Result<Value, ResponseError> {
        let needs_document = [
            "textDocument/diagnostic",
            "textDocument/codeAction",
            "textDocument/formatting",
            "textDocument/hover",
            "textDocument/definition",
            "textDocument/completion",
            "textDocument/documentSymbol",
            "textDocument/foldingRange",
        ];
        if !needs_document.contains(&method) {
            return Err(error(ErrorCode::MethodNotFound, format!("the server has no method {method:?}")));
        }
        let DocumentParams { text_document, position, range, context } = protocol::params(method, params)?;
        let uri = text_document.uri;
        let Some(document) = self.documents.get(&uri) else {
            let is_pull = method == "textDocument/diagnostic";
            return Ok(if is_pull { json!({ "kind": "full", "items": [] }) } else { Value::Null });
        };
        let began = Instant::now();
        let goes_on = || !self.inbox.is_cancelled(id) && self.inbox.permits_work(&uri, began);
        let interrupted = |Interrupted| interruption(&self.inbox, id, method);
        Ok(match method {
            "textDocument/diagnostic" => {
                let items = diagnostics::diagnostics(document, document.report(&goes_on).map_err(interrupted)?);
                self.stop_publishing(&uri);
                json!({ "kind": "full", "items": items })
            }
            "textDocument/codeAction" if document.is_long() => json!([]),
            "textDocument/codeAction" => {
                let report = document.report(&goes_on).map_err(interrupted)?;
                let actions = fixes::actions(&self.client, document, report, range, &context, &goes_on);
                json!(actions.map_err(interrupted)?)
            }
            "textDocument/formatting" => fixes::formatting(document)?,
            "textDocument/hover" => {
                json!(hover::hover(document, position, self.client.hover_kind, self.urls.as_mut()))
            }
            "textDocument/definition" => Value::from(hover::definition(document, position)),
            "textDocument/completion" => Value::from(completion::completions(document, position)),
            "textDocument/documentSymbol" => Value::from(outline::symbols(&self.client, document)),
            _ => Value::from(outline::folding(document)),
        })
    }

    /// Stops publishing the diagnostics of a document, because the editor requests them itself. If
    /// they were also published, the editor would show them twice.
    fn stop_publishing(&mut self, uri: &str) {
        let Some(document) = self.documents.get_mut(uri).filter(|document| !document.is_pulled) else { return };
        let was_published = !document.needs_publishing;
        document.is_pulled = true;
        document.needs_publishing = false;
        if was_published {
            let version = document.version;
            self.publish(uri, Some(version), Vec::new());
        }
    }
}

fn cancelled_error() -> ResponseError {
    error(ErrorCode::RequestCanceled, "the editor cancelled the request")
}

fn interruption(inbox: &Inbox<'_>, id: &RequestId, method: &str) -> ResponseError {
    if inbox.is_cancelled(id) {
        return cancelled_error();
    }
    let message = "newer messages arrived before the answer was ready: send the request again";
    if method == "textDocument/diagnostic" {
        let data = Some(json!({ "retriggerRequest": true }));
        return ResponseError { data, ..error(ErrorCode::ServerCancelled, message) };
    }
    error(ErrorCode::ContentModified, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const URI: &str = "file:///nonexistent/robots.txt";

    fn request(id: i32, method: &str, params: Value) -> Message {
        Request::new(id.into(), method.to_owned(), params).into()
    }

    fn notification(method: &str, params: Value) -> Message {
        Notification::new(method.to_owned(), params).into()
    }

    fn initialize() -> Message {
        let capabilities = json!({ "textDocument": { "diagnostic": {} } });
        request(0, "initialize", json!({ "processId": null, "capabilities": capabilities }))
    }

    fn open(text: &str) -> Message {
        let document = json!({ "uri": URI, "languageId": "robots", "version": 0, "text": text });
        notification("textDocument/didOpen", json!({ "textDocument": document }))
    }

    fn insert(version: i32, text: &str) -> Message {
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
        let document = json!({ "uri": URI, "version": version });
        let changes = json!([{ "range": range, "text": text }]);
        notification("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }))
    }

    fn about_document(id: i32, method: &str) -> Message {
        request(id, method, json!({ "textDocument": { "uri": URI } }))
    }

    /// Sends all messages before the server runs. Returns the messages of the server up to the
    /// publication of the version `last`, or all messages if `last` is `None`.
    fn answers(messages: Vec<Message>, last: Option<i32>) -> Vec<Value> {
        let (server, editor) = Connection::memory();
        messages.into_iter().for_each(|message| editor.sender.send(message).expect("a server"));
        let mut found = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(move || Server::new(&server, &|_| ()).run());
            if last.is_none() {
                editor.sender.send(notification("exit", Value::Null)).expect("a server");
            }
            for message in &editor.receiver {
                let message = json!(message);
                let is_last = message["params"]["version"].as_i64() == last.map(i64::from) && last.is_some();
                found.push(message);
                if is_last {
                    break;
                }
            }
            let _ = editor.sender.send(notification("exit", Value::Null));
        });
        found
    }

    fn error_of(answers: &[Value], id: i32) -> &Value {
        let answer = answers.iter().find(|answer| answer["id"] == id).expect("an answer");
        &answer["error"]["code"]
    }

    #[test]
    fn a_burst_of_changes_to_a_large_document_is_checked_once() {
        let line = format!("# {}\n", "x".repeat(1_000));
        let mut messages = vec![initialize(), open(&line.repeat(5_000))];
        messages.extend((1..=200).map(|version| insert(version, "Disallow: b\n")));
        let answers = answers(messages, Some(200));
        let published: Vec<_> =
            answers.iter().filter(|message| message["method"] == "textDocument/publishDiagnostics").collect();
        assert_eq!(published.len(), 1);
        assert_eq!(published[0]["params"]["version"], 200);
        assert!(published[0]["params"]["diagnostics"].as_array().is_some_and(|items| items.len() >= 100));
    }

    #[test]
    fn a_cancelled_request_gets_the_error_for_cancelled_requests() {
        let cancel = notification("$/cancelRequest", json!({ "id": 7 }));
        let messages = vec![initialize(), open("Disallow: /\n"), about_document(7, "textDocument/hover"), cancel];
        assert_eq!(*error_of(&answers(messages, None), 7), ErrorCode::RequestCanceled as i32);
    }

    #[test]
    fn work_on_an_outdated_document_is_cancelled() {
        let ask = |method| vec![initialize(), open("Disallow: /\n"), about_document(7, method), insert(1, "\n")];
        let pulled = answers(ask("textDocument/diagnostic"), None);
        assert_eq!(*error_of(&pulled, 7), ErrorCode::ServerCancelled as i32);
        let answer = pulled.iter().find(|answer| answer["id"] == 7).expect("an answer");
        assert_eq!(answer["error"]["data"]["retriggerRequest"], true);
        let actions = answers(ask("textDocument/codeAction"), None);
        assert_eq!(*error_of(&actions, 7), ErrorCode::ContentModified as i32);
    }

    #[test]
    fn unknown_invalid_and_untimely_requests_get_the_matching_error_code() {
        let shutdown = || request(2, "shutdown", Value::Null);
        for (messages, want) in [
            (vec![about_document(7, "textDocument/hover")], ErrorCode::ServerNotInitialized),
            (vec![initialize(), shutdown(), about_document(7, "textDocument/hover")], ErrorCode::InvalidRequest),
            (vec![initialize(), about_document(7, "textDocument/rename")], ErrorCode::MethodNotFound),
            (vec![initialize(), request(7, "textDocument/hover", json!([]))], ErrorCode::InvalidParams),
        ] {
            assert_eq!(*error_of(&answers(messages, None), 7), want as i32);
        }
    }
}
