//! The subset of the Language Server Protocol that the server reads. Results are written as JSON
//! values.

use std::path::{Path, PathBuf};

use lsp_server::{ErrorCode, ResponseError};
use percent_encoding::percent_decode_str;
use rustix::process::Pid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::render::code_span;

/// A position in a document. Lines are counted from 0, and characters in units of the
/// [`PositionEncoding`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) character: u32,
}

/// A range of positions in a document; `end` is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Range {
    pub(super) start: Position,
    pub(super) end: Position,
}

impl Range {
    /// Reports whether the ranges overlap or touch. Ranges that touch count, because a cursor is an
    /// empty range.
    pub(super) fn touches(&self, other: &Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PositionEncoding {
    Utf8,
    /// UTF-16 code units, which every editor supports. Most editors support no other unit.
    #[default]
    Utf16,
}

impl PositionEncoding {
    pub(super) const fn length(self, char: char) -> usize {
        match self {
            Self::Utf8 => char.len_utf8(),
            Self::Utf16 => char.len_utf16(),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MarkupKind {
    #[default]
    PlainText,
    Markdown,
}

impl MarkupKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PlainText => "plaintext",
            Self::Markdown => "markdown",
        }
    }

    pub(super) fn code(self, text: &str) -> String {
        match self {
            Self::PlainText => text.to_owned(),
            Self::Markdown => code_span(text),
        }
    }

    pub(super) fn strong(self, text: &str) -> String {
        match self {
            Self::PlainText => text.to_owned(),
            Self::Markdown => format!("**{text}**"),
        }
    }

    pub(super) fn link(self, text: &str, address: &str) -> String {
        match self {
            Self::PlainText => format!("{text}: {address}"),
            Self::Markdown => format!("[{text}]({address})"),
        }
    }
}

/// Capabilities of the editor, and its settings for this server.
#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    pub(super) encoding: PositionEncoding,
    pub(super) pulls_diagnostics: bool,
    pub(super) refreshes_diagnostics: bool,
    pub(super) nests_symbols: bool,
    pub(super) versions_edits: bool,
    /// If `false`, the editor supports only commands as code actions.
    pub(super) has_code_actions: bool,
    pub(super) hover_kind: MarkupKind,
    /// Process of the editor. The server ends when this process ends.
    pub(super) process: Option<Pid>,
    pub(super) urls: Option<PathBuf>,
}

impl Client {
    /// Reads the parameters of `initialize`. Ignores unexpected values of parameters that are not
    /// needed.
    pub(super) fn of(params: &Value) -> Self {
        let capabilities = &params["capabilities"];
        let document = &capabilities["textDocument"];
        let lists = |list: &Value, word: &str| list.as_array().is_some_and(|list| list.iter().any(|item| item == word));
        let is_utf8 = lists(&capabilities["general"]["positionEncodings"], "utf-8");
        // The editor lists its preferred format of hovers first.
        let prefers_markdown = document["hover"]["contentFormat"][0] == MarkupKind::Markdown.name();
        Self {
            encoding: if is_utf8 { PositionEncoding::Utf8 } else { PositionEncoding::Utf16 },
            pulls_diagnostics: document["diagnostic"].is_object(),
            refreshes_diagnostics: capabilities["workspace"]["diagnostics"]["refreshSupport"] == true,
            nests_symbols: document["documentSymbol"]["hierarchicalDocumentSymbolSupport"] == true,
            versions_edits: capabilities["workspace"]["workspaceEdit"]["documentChanges"] == true,
            has_code_actions: document["codeAction"]["codeActionLiteralSupport"].is_object(),
            hover_kind: if prefers_markdown { MarkupKind::Markdown } else { MarkupKind::PlainText },
            process: params["processId"].as_i64().and_then(|id| Pid::from_raw(id.try_into().ok()?)),
            urls: params["initializationOptions"]["urls"].as_str().map(PathBuf::from),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct DocumentItem {
    pub(super) uri: String,
    #[serde(default)]
    pub(super) version: i32,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DidOpen {
    pub(super) text_document: DocumentItem,
}

#[derive(Debug, Deserialize)]
pub(super) struct DocumentId {
    pub(super) uri: String,
    pub(super) version: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DidChange {
    pub(super) text_document: DocumentId,
    pub(super) content_changes: Vec<ContentChange>,
}

/// A change of a document. `range` is `None` if `text` replaces the whole document.
#[derive(Debug, Deserialize)]
pub(super) struct ContentChange {
    pub(super) range: Option<Range>,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DocumentParams {
    pub(super) text_document: DocumentId,
    #[serde(default)]
    pub(super) position: Position,
    #[serde(default)]
    pub(super) range: Range,
    #[serde(default)]
    pub(super) context: ActionContext,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ActionContext {
    /// Kinds of code actions that the editor wants; `None` for all kinds.
    #[serde(default)]
    only: Option<Vec<String>>,
}

impl ActionContext {
    /// Reports whether the editor wants code actions of this kind. A wanted kind includes its
    /// sub-kinds. For example, `source` includes `source.fixAll`.
    pub(super) fn wants(&self, kind: &str) -> bool {
        let is_of = |wanted: &String| {
            let rest = kind.strip_prefix(wanted.as_str());
            rest.is_some_and(|rest| wanted.is_empty() || rest.is_empty() || rest.starts_with('.'))
        };
        self.only.as_ref().is_none_or(|only| only.is_empty() || only.iter().any(is_of))
    }
}

pub(super) fn params<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, ResponseError> {
    serde_json::from_value(params)
        .map_err(|fault| error(ErrorCode::InvalidParams, format!("{method}: unusable parameters: {fault}")))
}

pub(super) fn error(code: ErrorCode, message: impl Into<String>) -> ResponseError {
    ResponseError { code: code as i32, message: message.into(), data: None }
}

pub(super) fn path_of(uri: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let rest = uri.strip_prefix("file://")?;
    // The host of the URI is ignored, because it can only be the local machine.
    let path = &rest[rest.find('/')?..];
    let bytes: Vec<u8> = percent_decode_str(path).collect();
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

/// Reports whether the file name is `robots.txt` or ends with `.robots.txt`. The language ID that
/// the editor sends is ignored, because editors use different IDs.
pub(super) fn is_robots_txt(uri: &str) -> bool {
    let path = percent_decode_str(uri).decode_utf8_lossy().into_owned();
    // An unsaved document has a URI such as `untitled:robots.txt`.
    let name = path.rsplit(['/', ':']).next().unwrap_or_default().to_ascii_lowercase();
    Path::new(&name).file_name().is_some_and(|name| name == "robots.txt") || name.ends_with(".robots.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_decides_whether_a_document_is_robots_txt() {
        for (uri, want) in [
            ("file:///srv/www/robots.txt", true),
            ("file:///srv/a%20b/shop.robots.txt", true),
            ("file:///srv/ROBOTS.TXT", true),
            ("untitled:robots.txt", true),
            ("file:///srv/robots.txt.orig", false),
            ("file:///srv/myrobots.txt", false),
            ("untitled:Untitled-1", false),
        ] {
            assert_eq!(is_robots_txt(uri), want, "{uri}");
        }
    }

    #[test]
    fn a_requested_action_kind_includes_its_sub_kinds() {
        let context = |only: &[&str]| ActionContext { only: Some(only.iter().map(|&kind| kind.to_owned()).collect()) };
        assert!(ActionContext::default().wants("quickfix") && context(&[]).wants("quickfix"));
        assert!(context(&["source"]).wants("source.fixAll") && context(&[""]).wants("quickfix"));
        assert!(!context(&["source.fix"]).wants("source.fixAll") && !context(&["quickfix"]).wants("source.fixAll"));
    }

    #[test]
    fn only_a_file_uri_has_a_path() {
        assert_eq!(path_of("file:///a%20b/%C3%A9"), Some(PathBuf::from("/a b/é")));
        assert_eq!(path_of("file://localhost/a"), Some(PathBuf::from("/a")));
        assert_eq!(path_of("untitled:robots.txt"), None);
    }
}
