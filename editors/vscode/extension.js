// Starts `robotsd lsp` for robots.txt files. Everything that the extension shows comes from the language server.

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async () => {
  const settings = vscode.workspace.getConfiguration("robotsd");
  const program = { command: settings.get("path"), args: ["lsp"] };
  client = new LanguageClient("robotsd", "robotsd", program, {
    // By name, because other extensions give the file another language.
    documentSelector: [{ pattern: "**/robots.txt" }, { pattern: "**/*.robots.txt" }],
    initializationOptions: { urls: settings.get("urls") || undefined },
  });
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(`robotsd cannot be started: install it, or set "robotsd.path" (${error.message})`);
  }
};

exports.deactivate = () => client?.stop();
