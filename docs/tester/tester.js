"use strict";
// The first part runs the program of this page, without a document: the tests run it in Node, too.
// The second part is the page. All text from files, links and the program is inserted as text,
// never as markup.

const PROGRAM = { base64: "{{program}}", size: Number("{{size}}") }; // WebAssembly, packed with LZMA
const encode = (text) => new TextEncoder().encode(text);
// A byte order mark is part of the file, so it is kept.
const decode = (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

// Splits a file into lines with their line ends. The last line has none.
function linesOf(bytes) {
  const lines = [];
  let start = 0;
  bytes.forEach((byte, place) => {
    if (byte === 10 || (byte === 13 && bytes[place + 1] !== 10)) {
      lines.push(bytes.subarray(start, place + 1));
      start = place + 1;
    }
  });
  return [...lines, bytes.subarray(start)];
}

const LINE_END = /(\r\n|\r|\n)$/;

// Returns the file with the text that replaces it. Lines at both ends of the file that did not
// change keep their bytes. Other lines get the line end of the first line.
function retyped(file, text) {
  const [before, after] = [linesOf(file), text.split("\n")];
  const isSame = (line, typed) => decode(line).replace(LINE_END, "") === typed;
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most - 1 && isSame(before[head], after[head])) head++;
  let tail = 0;
  while (tail < most - head && isSame(before[before.length - 1 - tail], after[after.length - 1 - tail])) tail++;
  const end = LINE_END.exec(decode(before[0]))?.[0] ?? "\n";
  const changed = after.slice(head, after.length - tail).map((line) => line + end).join("");
  const middle = encode(tail > 0 ? changed : changed.slice(0, changed.length - end.length));
  const whole = joined([...before.slice(0, head), middle, ...before.slice(before.length - tail)]);
  // A kept "\r" and a new "\n" could become one line end.
  const isWhole = linesOf(whole).length === after.length;
  return isWhole ? whole : encode(text.replaceAll("\n", end));
}

function joined(parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
}

class TooLarge extends Error {}

// Sends bytes through a stream that packs or unpacks them. Throws an error once the result exceeds
// the limit. The slices are small, so that one slice cannot become much larger than the limit.
async function piped(bytes, through, limit = Infinity) {
  let at = 0;
  const source = new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, (at += 1024)));
    },
  });
  const reader = source.pipeThrough(through).getReader();
  const parts = [];
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return joined(parts);
    size += value.length;
    if (size > limit) {
      reader.cancel().catch(() => {});
      throw new TooLarge();
    }
    parts.push(value);
  }
}

// Unpacks LZMA data without a header, with lc = 3, lp = 0 and pb = 0: it is a quarter smaller than
// what browsers can unpack themselves. The names are those of the LZMA specification.
function unpacked(input, size) {
  const output = new Uint8Array(size);
  const probs = new Uint16Array(0x300 * 8 + 2048).fill(1024);
  let next = 0x300 * 8;
  const table = (length) => (next += length) - length;
  const [isMatch, isRep, isRepG0, isRepG1, isRepG2, isRep0Long] = Array.from({ length: 6 }, () => table(12));
  const [posSlot, posDecoders, align] = [table(4 * 64), table(128), table(16)];
  const lengths = () => ({ choice: table(2), low: table(8), mid: table(8), high: table(256) });
  const [matchLength, repLength] = [lengths(), lengths()];
  // Range and code are in an array, because large numbers in variables would be allocated.
  const coder = new Uint32Array([0xffffffff, new DataView(input.buffer).getUint32(1)]);
  let at = 5;

  function decoded(bound) {
    const isSet = coder[1] >= bound;
    if (isSet) {
      coder[0] -= bound;
      coder[1] -= bound;
    } else {
      coder[0] = bound;
    }
    if (coder[0] < 0x1000000) {
      coder[0] <<= 8;
      coder[1] = (coder[1] << 8) | input[at++];
    }
    return isSet ? 1 : 0;
  }
  function bit(place) {
    const prob = probs[place];
    const one = decoded((coder[0] >>> 11) * prob);
    probs[place] += one === 1 ? -(prob >> 5) : (2048 - prob) >> 5;
    return one;
  }
  function directBits(count) {
    let value = 0;
    for (let n = 0; n < count; n += 1) {
      coder[0] &= ~1;
      value = 2 * value + decoded(coder[0] / 2);
    }
    return value;
  }
  function tree(place, bits) {
    let symbol = 1;
    for (let n = 0; n < bits; n += 1) symbol = 2 * symbol + bit(place + symbol);
    return symbol - (1 << bits);
  }
  function reverseTree(place, bits) {
    let symbol = 1, value = 0;
    for (let n = 0; n < bits; n += 1) {
      const one = bit(place + symbol);
      symbol = 2 * symbol + one;
      value |= one << n;
    }
    return value;
  }
  function lengthOf({ choice, low, mid, high }) {
    if (bit(choice) === 0) return tree(low, 3);
    return bit(choice + 1) === 0 ? 8 + tree(mid, 3) : 16 + tree(high, 8);
  }
  function literal(before, matched) {
    const place = 0x300 * (before >> 5);
    let symbol = 1;
    for (let rest = matched; rest !== null && symbol < 0x100; ) {
      const wanted = (rest >> 7) & 1;
      rest <<= 1;
      const one = bit(place + ((1 + wanted) << 8) + symbol);
      symbol = 2 * symbol + one;
      if (one !== wanted) break;
    }
    while (symbol < 0x100) symbol = 2 * symbol + bit(place + symbol);
    return symbol & 0xff;
  }
  function distance(length) {
    const slot = tree(posSlot + 64 * Math.min(length, 3), 6);
    if (slot < 4) return slot;
    const bits = (slot >> 1) - 1, start = (2 | (slot & 1)) << bits;
    if (slot < 14) return start + reverseTree(posDecoders + start - slot, bits);
    return start + 16 * directBits(bits - 4) + reverseTree(align, 4);
  }

  let state = 0, reps = [0, 0, 0, 0];
  for (let place = 0; place < size; ) {
    if (bit(isMatch + state) === 0) {
      output[place] = literal(place > 0 ? output[place - 1] : 0, state < 7 ? null : output[place - reps[0] - 1]);
      place += 1;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let end = place + 1;
    if (bit(isRep + state) === 0) {
      const length = lengthOf(matchLength);
      reps = [distance(length), reps[0], reps[1], reps[2]];
      end = place + length + 2;
      state = state < 7 ? 7 : 10;
    } else {
      const which = bit(isRepG0 + state) === 0 ? 0 : bit(isRepG1 + state) === 0 ? 1 : bit(isRepG2 + state) === 0 ? 2 : 3;
      reps.unshift(...reps.splice(which, 1));
      if (which === 0 && bit(isRep0Long + state) === 0) {
        state = state < 7 ? 9 : 11;
      } else {
        end = place + lengthOf(repLength) + 2;
        state = state < 7 ? 8 : 11;
      }
    }
    // Source and destination may overlap.
    for (; place < end; place += 1) output[place] = output[place - reps[0] - 1];
  }
  return output;
}

const compiled = async () => WebAssembly.compile(unpacked(bytesOf(PROGRAM.base64), PROGRAM.size));

class Exit extends Error {
  constructor(code) {
    super(`exit status ${code}`);
    this.code = code;
  }
}

// Runs the program with this standard input, and returns its standard output. These are the calls
// of WASI that the program needs; all others return "not supported".
async function run(module, input) {
  let at = 0, memory;
  const written = { 1: [], 2: [] };
  const view = () => new DataView(memory.buffer);
  const buffers = (list, count) => {
    const word = (number) => view().getUint32(list + 4 * number, true);
    return Array.from({ length: count }, (_, n) => new Uint8Array(memory.buffer, word(2 * n), word(2 * n + 1)));
  };
  const calls = {
    fd_read(_, list, count, result) {
      let size = 0;
      for (const buffer of buffers(list, count)) {
        const part = input.subarray(at, at + buffer.length);
        buffer.set(part);
        at += part.length;
        size += part.length;
      }
      view().setUint32(result, size, true);
      return 0;
    },
    fd_write(file, list, count, result) {
      const parts = buffers(list, count).map((buffer) => buffer.slice());
      written[file].push(...parts);
      view().setUint32(result, parts.reduce((size, part) => size + part.length, 0), true);
      return 0;
    },
    random_get(start, length) {
      crypto.getRandomValues(new Uint8Array(memory.buffer, start, length));
      return 0;
    },
    clock_time_get(_, precision, result) {
      view().setBigUint64(result, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    environ_sizes_get(count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    proc_exit(code) {
      throw new Exit(code);
    },
  };
  const needed = WebAssembly.Module.imports(module).map(({ name }) => [name, calls[name] ?? (() => 52)]);
  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: Object.fromEntries(needed) });
  memory = instance.exports.memory;
  try {
    instance.exports._start();
  } catch (error) {
    if (error.code !== 0) throw new Error(decode(joined(written[2])) || String(error));
  }
  return joined(written[1]);
}

// Returns a request, as docs/tester/src/request.rs describes it.
function request(operation, reading, [file, old, urls, crawlers]) {
  const parts = [file, old, urls, crawlers];
  const lengths = parts.map((part) => (part === null ? "-" : part.length));
  return joined([encode(`${[operation, reading, ...lengths].join(" ")}\n`), ...parts.filter((part) => part !== null)]);
}

// Returns the reading and the parts of a request, or null if it is not valid.
function parsedRequest(bytes) {
  const end = bytes.indexOf(10);
  const words = /^verdicts (standard|reference) (\d+) (\d+|-) (\d+) (\d+)$/.exec(decode(bytes.subarray(0, Math.max(end, 0))));
  if (words === null) return null;
  let at = end + 1;
  const parts = words.slice(2).map((length) => (length === "-" ? null : bytes.subarray(at, (at += Number(length)))));
  return at === bytes.length ? { reading: words[1], parts } : null;
}

const MAX_INFLATED = 512_000;
const LONG_LINK = 8_000;
const MAX_FILE = 2_000_000;

async function fragmentOf(bytes) {
  const packed = await piped(bytes, new CompressionStream("deflate-raw"));
  const base64 = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  return `#v1=${base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

// Returns the request in a fragment. Throws an error with a message for people.
async function fromFragment(fragment) {
  const [, version, text] = /^#v([^=]*)=?(.*)$/s.exec(fragment) ?? [];
  if (version !== "1") throw new Error(`The link is of version ${version}, which this page does not know: open it with a newer page.`);
  let bytes;
  try {
    if (!/^[\w-]+$/.test(text)) throw new Error("not base64url");
    bytes = await piped(bytesOf(text.replaceAll("-", "+").replaceAll("_", "/")), new DecompressionStream("deflate-raw"), MAX_INFLATED);
  } catch (error) {
    if (error instanceof TooLarge) throw new Error("The link is refused: its content is larger than 512 kB.");
    throw new Error("The link is damaged, perhaps because a program cut it: ask for the file itself.");
  }
  const found = parsedRequest(bytes);
  if (found === null) throw new Error("The link is damaged: its content is not from this page.");
  return found;
}

// Returns a file with edits, which are in the order of the file.
function edited(file, edits) {
  let at = 0;
  const parts = [];
  for (const [start, end, replacement] of edits) {
    parts.push(file.subarray(at, start), Uint8Array.from(replacement));
    at = end;
  }
  return joined([...parts, file.subarray(at)]);
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// Returns a line of CSV (RFC 4180). A spreadsheet must not read a value as a formula.
function csvLine(values) {
  const quoted = values.map((value) => {
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /["',;\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${quoted.join(",")}\r\n`;
}

const EXAMPLE = {
  file: `# An example: the robots.txt of a shop
User-agent: *
Disallow: /cart/
Disallow: /search
Allow: /search/help

User-agent: GPTBot
User-agent: ClaudeBot
User-agent: Google-Extended
User-agent: CCBot
Dissallow: /

User-agent: Googlebot
Disallow: /drafts/
Disallow: private/

Sitemap: https://shop.example/sitemap.xml
`,
  urls: "/\n/search?q=shoes\n/search/help\n/drafts/spring.html\nhttps://shop.example/private/list\n",
  crawlers: "Googlebot\nbingbot\nGPTBot\nOAI-SearchBot\nBytespider\n",
};

function startPage() {
  const at = (id) => document.getElementById(id);
  const state = { file: new Uint8Array(), isTyped: false, old: null, verdicts: null };
  const undo = [];
  let module, timer, asked = 0;

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(name, value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  const CHANGED = "The file has changed meanwhile: try again.";
  const say = (text) => (at("shown").textContent = text);

  // Keeps the file for “Undo”.
  function remember() {
    undo.push(state.file);
    if (undo.length > 20) undo.shift();
  }

  // Replaces the file. The text area shows it, with line feeds as line ends.
  function setFile(file, words, keep = true) {
    if (keep) remember();
    at("undo").disabled = undo.length === 0;
    state.isTyped = false;
    state.file = file;
    at("file").value = decode(file);
    say(words);
    return update();
  }

  // Takes over what a person typed. Lines that did not change keep their bytes, which need not be
  // UTF-8, and their line ends. “Undo” takes back all that was typed since the last change of
  // another kind.
  function typed() {
    if (!state.isTyped) remember();
    state.isTyped = true;
    at("undo").disabled = false;
    state.file = retyped(state.file, at("file").value);
    soon(`This is your file: ${counted(at("file").value.split("\n").length, "line")}, ${counted(state.file.length, "byte")}.`);
  }

  // Updates the page after a short pause, so that it does not announce every key.
  function soon(words) {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (words !== undefined) say(words);
      update();
    }, 150);
  }

  const parts = () => [state.file, state.old, encode(at("urls").value), encode(at("crawlers").value)];

  async function ask(operation) {
    const answer = JSON.parse(decode(await run(module, request(operation, at("reading").value, parts()))));
    if (answer.error) throw new Error(answer.error);
    return answer;
  }

  async function update() {
    clearTimeout(timer);
    const mine = ++asked;
    const file = state.file;
    try {
      state.verdicts = await ask("verdicts");
      if (mine !== asked) return;
      showFront(state.verdicts);
      showTable(state.verdicts);
      const found = await ask("findings");
      if (mine !== asked) return;
      showNumbers(found.findings);
      showFindings(found, file);
      showDiff(found.diff);
    } catch (error) {
      if (mine === asked) say(`The tester failed: ${error.message}`);
    }
    document.documentElement.dataset.answers = mine;
  }

  // Shows the numbers of the lines, with a mark at those that have a finding.
  function showNumbers(findings) {
    const lines = at("file").value.split("\n").length;
    const found = new Set(findings.filter((one) => one.severity !== "note").map((one) => one.line));
    const numbers = document.createDocumentFragment();
    let plain = "";
    for (let line = 1; line <= lines; line += 1) {
      if (found.has(line)) {
        numbers.append(plain, make("span", {}, String(line)));
        plain = "\n";
      } else plain += `${line}\n`;
    }
    numbers.append(plain, "\n\n");
    at("numbers").replaceChildren(numbers);
    at("numbers").scrollTop = at("file").scrollTop;
  }

  function showFront({ front_page: kinds }) {
    const cards = kinds.map(({ kind, may, may_not: mayNot }) => {
      const all = may.length + mayNot.length;
      const verdict = mayNot.length === 0 ? "may" : may.length === 0 ? "may not" : `${may.length} of ${all} may`;
      const about = may.length === 0 || mayNot.length === 0 ? `all ${all} known crawlers` : `${mayNot.length} may not`;
      const looks = mayNot.length === 0 ? "card" : kind === "search engines" ? "card lost" : "card no";
      return make("div", { class: looks }, make("span", {}, kind), make("b", {}, verdict), make("small", {}, about));
    });
    at("front").replaceChildren(...(cards.length ? cards : ["This is not a robots.txt: crawlers find no rules in it."]));
    const names = kinds.flatMap(({ kind, may, may_not: mayNot }) => [
      make("dt", {}, kind),
      make("dd", {}, `may: ${may.join(", ") || "none"}`),
      make("dd", {}, `may not: ${mayNot.join(", ") || "none"}`),
    ]);
    at("front-names").replaceChildren(...names);
    at("front-more").hidden = names.length === 0;
  }

  // A button that selects a line of the file.
  function lineButton(line, text) {
    const select = () => {
      const lines = at("file").value.split("\n");
      const start = lines.slice(0, line - 1).reduce((length, one) => length + one.length + 1, 0);
      at("file").focus();
      at("file").setSelectionRange(start, start + (lines[line - 1] ?? "").length);
      at("file").scrollTop = (at("file").scrollHeight / lines.length) * (line - 4);
    };
    return make("button", { type: "button", class: "line", click: select }, text);
  }

  function showTable({ crawlers, rows, left_out: [urls, names] }) {
    const cell = (one, { name }) => {
      const rule = one.line === null ? make("small", {}, one.rule) : lineButton(one.line, `line ${one.line}: ${one.rule}`);
      const verdict = make("span", { class: one.access === "allow" ? "yes" : "no-way" }, one.access === "allow" ? "may" : "may not");
      return make("td", { "data-label": name }, make("div", {}, verdict, rule));
    };
    const row = ({ url, error, cells }) => {
      const wrong = error === null ? [] : [make("td", { colspan: Math.max(crawlers.length, 1), class: "wrong" }, error)];
      return make("tr", {}, make("th", { scope: "row" }, url), ...wrong, ...cells.map((one, place) => cell(one, crawlers[place])));
    };
    const heads = crawlers.map(({ name, about }) => make("th", { scope: "col" }, name, make("small", {}, about)));
    const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "URL"), ...heads));
    const table = make("table", { class: "stacked" }, head, make("tbody", {}, ...rows.map(row)));
    const isEmpty = rows.length === 0 || crawlers.length === 0;
    at("table").replaceChildren(isEmpty ? "Write at least one URL and one crawler above." : table);
    at("csv").disabled = isEmpty;
    const more = urls + names > 0 ? `Not shown: ${counted(urls, "further URL")} and ${counted(names, "further crawler")}.` : "";
    at("table-note").textContent = more;
  }

  // Shows the findings of a file. Their fixes apply only while the text area still has this file.
  function showFindings({ findings, counts: [errors, warnings, notes], fixable, unread }, file) {
    const part = unread > 0 ? ` Crawlers do not read the last ${counted(unread, "byte")}, so these are not checked, and the page fixes nothing.` : "";
    at("findings-note").textContent = `${counted(errors, "error")}, ${counted(warnings, "warning")} and ${counted(notes, "note")}.${part}`;
    at("fix-all").parentElement.hidden = fixable === 0;
    at("fix-all").textContent = `Apply all safe fixes (${fixable})`;
    const fixed = (finding) => async () => {
      if (state.file !== file) return say(CHANGED);
      await setFile(edited(state.file, finding.fix.edits), `Line ${finding.line} is fixed. “Undo” takes it back.`);
      at("findings-title").focus();
    };
    const item = (finding) => {
      const { severity, line, message, help, why, fix, code } = finding;
      const badge = make("em", { class: `badge ${severity === "error" ? "bad" : severity}` }, severity);
      const about = make("div", {}, make("p", {}, badge, " ", lineButton(line, `line ${line}`), ` ${message}`));
      if (help !== null) about.append(make("p", { class: "sub" }, help));
      const parts = [about];
      if (fix !== null) {
        const isSafe = fix.safety === "safe";
        const effect = isSafe ? "It changes no verdict for crawlers that understand the line." : fix.effect === null ? "It may change verdicts." : `Effect: ${fix.effect}.`;
        about.append(make("p", { class: "sub" }, make("b", {}, isSafe ? "Safe fix. " : "Fix with effect. "), effect));
        parts.push(make("button", { type: "button", click: fixed(finding), "aria-label": `Fix line ${line}: ${message}` }, "Fix"));
      }
      return make("li", {}, ...parts, make("details", {}, make("summary", {}, `Why: ${code}`), make("p", {}, why)));
    };
    at("findings").replaceChildren(...findings.map(item));
  }

  function showDiff(diff) {
    at("keep").hidden = diff !== null;
    at("stop").hidden = diff === null;
    if (diff === null) {
      at("diff-note").textContent = "Compare, then edit the file above: the effect on every known crawler appears here.";
      return at("diff").replaceChildren();
    }
    at("diff-note").textContent = "The effect of the file above, compared with the earlier version:";
    const change = ({ access, what, before, after }) => {
      const verdict = make("span", { class: access === "allow" ? "yes" : "no-way" }, access === "allow" ? "may now" : "may not any more");
      return make("li", {}, verdict, ": ", make("b", {}, what), make("small", {}, ` by ${after}; before, by ${before}`));
    };
    const blocks = diff.effects.flatMap(({ crawlers, changes, omitted }) => {
      const more = omitted > 0 ? [make("li", {}, `and ${counted(omitted, "further change")}`)] : [];
      return [make("h3", {}, crawlers), make("ul", {}, ...changes.map(change), ...more)];
    });
    const lines = diff.delays.map(({ crawlers, effect }) => `Crawl delay for ${crawlers}: ${effect}`);
    for (const [words, list] of [["Sitemaps named now", diff.sitemaps_added], ["Sitemaps no longer named", diff.sitemaps_removed]]) {
      if (list.length > 0) lines.push(`${words}: ${list.join(", ")}`);
    }
    if (diff.effects.length + diff.delays.length === 0) lines.unshift("Nothing changes for any crawler.");
    if (diff.is_cut) lines.push("The comparison took too long, so more may change than is shown.");
    at("diff").replaceChildren(...blocks, ...lines.map((line) => make("p", {}, line)));
  }

  async function upload(file, take) {
    if (file === undefined) return;
    if (file.size > MAX_FILE) return say(`${file.name} is larger than 2 MB, so it was not opened: crawlers read at most 500 KiB.`);
    await take(new Uint8Array(await file.arrayBuffer()), file.name);
  }

  const openFile = (bytes, name) => setFile(bytes, `This is ${name}: ${counted(bytes.length, "byte")}.`);

  function keepOld(bytes) {
    state.old = bytes;
    return update();
  }

  function showExample() {
    at("urls").value = EXAMPLE.urls;
    at("crawlers").value = EXAMPLE.crawlers;
    return setFile(encode(EXAMPLE.file), "This is an example: the robots.txt of a shop, five URLs and five crawlers. Paste your own file over it.", state.file.length > 0);
  }

  async function download() {
    const lines = [csvLine(["url", "crawler", "access", "line", "rule", "group"])];
    for (const { url, error, cells } of state.verdicts.rows) {
      if (error !== null) lines.push(csvLine([url, "", error, "", "", ""]));
      cells.forEach((one, place) => {
        lines.push(csvLine([url, state.verdicts.crawlers[place].name, one.access, one.line ?? "", one.rule, one.group]));
      });
    }
    const address = URL.createObjectURL(new Blob(lines, { type: "text/csv" }));
    make("a", { href: address, download: "robots.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  async function share() {
    const bytes = request("verdicts", at("reading").value, parts());
    at("link-box").hidden = false;
    if (bytes.length > MAX_INFLATED) {
      at("link").value = "";
      return (at("link-note").textContent = "There is no link: the content is larger than 512 kB. Send the file itself.");
    }
    const link = location.href.split("#")[0] + (await fragmentOf(bytes));
    at("link").value = link;
    at("link").select();
    const isLong = link.length > LONG_LINK;
    const size = `It has ${(link.length / 1000).toFixed(1)} kB${isLong ? ": some programs cut links that are longer than 8 kB." : "."}`;
    at("link-note").textContent = `Copy the link. ${size}`;
    // Without permission, a person copies the selected link.
    const copied = () => (at("link-note").textContent = `The link is in the clipboard. ${size}`);
    navigator.clipboard?.writeText(link).then(copied, () => {});
  }

  async function openLink() {
    if (!location.hash.startsWith("#v")) return showExample();
    try {
      const { reading, parts: [file, old, urls, crawlers] } = await fromFragment(location.hash);
      at("reading").value = reading;
      at("urls").value = decode(urls);
      at("crawlers").value = decode(crawlers);
      state.old = old;
      await setFile(file, "This is the file in the link that you opened.", state.file.length > 0);
    } catch (error) {
      if (state.file.length === 0) await showExample();
      say(error.message);
    }
  }

  function listen() {
    at("file").addEventListener("input", typed);
    at("file").addEventListener("scroll", () => (at("numbers").scrollTop = at("file").scrollTop));
    for (const id of ["urls", "crawlers", "reading"]) at(id).addEventListener("input", () => soon());
    for (const [id, take] of [["upload", openFile], ["upload-old", keepOld]]) {
      at(id).addEventListener("change", async () => {
        await upload(at(id).files[0], take);
        at(id).value = ""; // so that the same file can be opened again
      });
    }
    at("undo").addEventListener("click", () => setFile(undo.pop(), "The last change is undone.", false));
    at("example").addEventListener("click", showExample);
    at("keep").addEventListener("click", () => keepOld(state.file));
    at("stop").addEventListener("click", () => keepOld(null));
    at("csv").addEventListener("click", download);
    at("share").addEventListener("click", share);
    at("fix-all").addEventListener("click", async () => {
      const before = state.file;
      const { file, corrected } = await ask("fix");
      if (state.file !== before) return say(CHANGED);
      await setFile(Uint8Array.from(file), `${counted(corrected, "finding")} fixed. “Undo” takes it back.`);
      at("findings-title").focus();
    });
    for (const name of ["dragover", "dragleave", "drop"]) {
      document.addEventListener(name, (event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        document.body.classList.toggle("over", name === "dragover");
        if (name === "drop") upload(event.dataTransfer.files[0], openFile);
      });
    }
    addEventListener("hashchange", openLink);
  }

  async function start() {
    try {
      module = await compiled();
      listen();
      await openLink();
      performance.mark("answered");
    } catch (error) {
      say(`The tester does not run in this browser: ${error.message}. It needs WebAssembly and DecompressionStream.`);
    }
  }
  start();
}

if (globalThis.document) startPage();
