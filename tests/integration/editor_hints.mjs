// Asks taplo's language server, which editors load as the package @taplo/lsp, about one TOML file:
//
//   NODE_PATH=…/node_modules node editor_hints.mjs FILE '{"hover": [[5, 2]], "completion": [[12, 0]]}'
//
// Places are line and column from 0. Prints as JSON what is marked as wrong, and an answer for each.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const { TaploLsp } = createRequire(import.meta.url)("@taplo/lsp");
const [file, questions] = [process.argv[2], JSON.parse(process.argv[3])];
const folder = path.dirname(file);
const environment = {
  now: () => new Date(),
  envVar: () => undefined,
  envVars: () => [],
  stdErrAtty: () => false,
  stdin: null,
  stdout: null,
  stderr: async (bytes) => bytes.length,
  glob: () => [],
  readFile: async (name) => new Uint8Array(fs.readFileSync(name)),
  writeFile: async () => {},
  urlToFilePath: (address) => fileURLToPath(address),
  isAbsolute: (name) => path.isAbsolute(name),
  cwd: () => folder,
  findConfigFile: () => undefined,
};
const waiting = new Map();
let judged;
const diagnostics = new Promise((resolve) => (judged = resolve));

function receive(message) {
  if (message.method === "textDocument/publishDiagnostics" && message.params.diagnostics.length)
    judged(message.params.diagnostics);
  if (message.method && message.id !== undefined)
    server.send({ jsonrpc: "2.0", id: message.id, result: [null] });
  else if (waiting.has(message.id)) waiting.get(message.id)(message.result);
}

const server = await TaploLsp.initialize(environment, { onMessage: receive });
const tell = (method, params) => server.send({ jsonrpc: "2.0", method, params });
const ask = (method, params) =>
  new Promise((resolve) => {
    const id = waiting.size + 1;
    waiting.set(id, resolve);
    server.send({ jsonrpc: "2.0", id, method, params });
  });

const [uri, rootUri] = [pathToFileURL(file).href, pathToFileURL(folder).href];
const workspaceFolders = [{ uri: rootUri, name: "specs" }];
await ask("initialize", { processId: null, rootUri, capabilities: {}, workspaceFolders });
tell("initialized", {});
const text = fs.readFileSync(file, "utf-8");
tell("textDocument/didOpen", { textDocument: { uri, languageId: "toml", version: 1, text } });
const answers = { diagnostics: await diagnostics };
for (const [kind, places] of Object.entries(questions)) {
  answers[kind] = [];
  for (const [line, character] of places) {
    const place = { textDocument: { uri }, position: { line, character } };
    answers[kind].push(await ask(`textDocument/${kind}`, place));
  }
}
process.stdout.write(JSON.stringify(answers), () => process.exit(0));
