"""Uses `robotsd lsp` with the capabilities of real editors. pytest-lsp parses every answer strictly, and warns if the server sends
something that the editor does not support. robotsd/tests/it/lsp.rs runs this with pytest; ROBOTSD is the program."""

import os

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

URI = "file:///nonexistent/robots.txt"
TEXT = "User-agent: GPTBot\nDissallow: /😀/x\nDisallow: b\n"
EDITORS = ["visual-studio-code", "neovim@v0.7.0", "neovim", "emacs"]
DOCUMENT = types.TextDocumentIdentifier(uri=URI)


@pytest_lsp.fixture(config=ClientServerConfig(server_command=[os.environ["ROBOTSD"], "lsp"]), params=EDITORS)
async def editor(request, lsp_client: LanguageClient):
    params = types.InitializeParams(capabilities=client_capabilities(request.param))
    await lsp_client.initialize_session(params)
    item = types.TextDocumentItem(uri=URI, language_id="robots", version=1, text=TEXT)
    lsp_client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
    yield
    await lsp_client.shutdown_session()


@pytest.mark.asyncio
@pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning")
async def test_every_answer_is_as_specified(editor: LanguageClient):
    if URI not in editor.diagnostics:
        await editor.wait_for_notification("textDocument/publishDiagnostics")
    found = editor.diagnostics[URI]
    assert [one.code for one in found] == ["misspelled-directive", "unescaped-non-ascii", "path-without-slash"]

    def at(line, character):
        return {"text_document": DOCUMENT, "position": types.Position(line=line, character=character)}

    hover = await editor.text_document_hover_async(types.HoverParams(**at(0, 14)))
    assert "GPTBot" in hover.contents.value
    places = await editor.text_document_definition_async(types.DefinitionParams(**at(0, 14)))
    assert [place.range.start.line for place in places] == [0]
    items = await editor.text_document_completion_async(types.CompletionParams(**at(0, 12)))
    assert "ClaudeBot" in [item.label for item in items]
    symbols = await editor.text_document_document_symbol_async(types.DocumentSymbolParams(text_document=DOCUMENT))
    assert symbols[0].name == "User-agent: GPTBot"
    folding = await editor.text_document_folding_range_async(types.FoldingRangeParams(text_document=DOCUMENT))
    assert (folding[0].start_line, folding[0].end_line) == (0, 2)
    context = types.CodeActionContext(diagnostics=list(found))
    actions = await editor.text_document_code_action_async(
        types.CodeActionParams(text_document=DOCUMENT, range=found[0].range, context=context)
    )
    assert [action.kind for action in actions] == ["quickfix", "source.fixAll"]
    options = types.FormattingOptions(tab_size=4, insert_spaces=True)
    edits = await editor.text_document_formatting_async(
        types.DocumentFormattingParams(text_document=DOCUMENT, options=options)
    )
    assert edits[0].new_text.startswith("Disallow: /")
