/**
 * The program inside the sandbox. `bootSource` is small enough for a command-line argument. It reads one
 * line, which has the source of the kernel and its settings, and runs that. Node's own REPL evaluates the
 * cells, so that top-level await, dynamic import and declarations work as they do there.
 *
 * A message to the host is a record separator, the session's nonce, JSON and a line feed. It can be anywhere
 * in the output; everything else is output. A program in the sandbox can forge a message, but only of its own
 * session.
 */
export const bootSource = `
let text = "";
const take = (chunk) => {
  text += chunk;
  const end = text.indexOf("\\n");
  if (end < 0) return;
  process.stdin.off("data", take);
  const { source, nonce } = JSON.parse(text.slice(0, end));
  (0, eval)(source)(require, nonce, text.slice(end + 1));
};
process.stdin.setEncoding("utf8").on("data", take);
`;

export const kernelSource = `(require, nonce, rest) => {
  const repl = require("node:repl");
  const os = require("node:os");
  const { PassThrough } = require("node:stream");
  const { inspect } = require("node:util");

  const write = process.stdout.write.bind(process.stdout);
  const send = (message) => write("\\u001e" + nonce + JSON.stringify(message) + "\\n");
  const server = repl.start({
    input: new PassThrough(),
    output: process.stdout,
    prompt: "",
    terminal: false,
    useGlobal: true,
  });

  const waiting = new Map();
  let calls = 0;
  const dataUrl = (image) => {
    if (typeof image === "string") return image;
    const part = image?.parts?.find(({ type }) => type === "input_image");
    if (part) return part.image_url;
    if (image?.bytes && typeof image.mimeType === "string")
      return "data:" + image.mimeType + ";base64," + Buffer.from(image.bytes).toString("base64");
    throw new TypeError("emitImage takes a data URL, { bytes, mimeType } or what a tool answered with an image");
  };
  const codex = Object.freeze({
    cwd: process.cwd(),
    homeDir: os.homedir(),
    tmpDir: os.tmpdir(),
    tool: (name, args = {}) =>
      new Promise((resolve) => {
        const id = ++calls;
        waiting.set(id, resolve);
        send({ type: "tool", id, name: String(name), args: typeof args === "string" ? { input: args } : args });
      }),
    emitImage: async (image) => {
      send({ type: "image", url: dataUrl(await image) });
    },
  });
  Object.defineProperty(globalThis, "codex", { value: codex, enumerable: false });

  // Stack frames below those of the cell belong to the REPL.
  const replFrame = /^\\s+at .*(?:node:vm|node:internal\\/vm|node:repl|makeContextifyScript)/;
  const describe = (error) => {
    if (!(error instanceof Error)) return "Uncaught " + inspect(error);
    const lines = String(error.stack ?? error).split("\\n");
    const end = lines.findIndex((line) => replFrame.test(line));
    return (end < 0 ? lines : lines.slice(0, end)).join("\\n");
  };

  let running = null;
  const finish = (id, success, text) => {
    if (running !== id) return;
    running = null;
    send({ type: "done", id, success, text });
  };
  // The REPL reports errors that a cell throws to its domain, not to the callback of eval.
  const fail = (error) => {
    if (running === null) write("Uncaught " + describe(error) + "\\n");
    else finish(running, false, describe(error));
  };
  server._domain?.removeAllListeners("error");
  server._domain?.on("error", fail);
  process.on("uncaughtException", fail);

  const run = ({ id, source }) => {
    running = id;
    server.eval(source + "\\n", server.context, "js_repl", (failure, value) => {
      if (failure) finish(id, false, describe(failure instanceof repl.Recoverable ? failure.err : failure));
      else finish(id, true, value === undefined ? null : inspect(value));
    });
  };

  let text = "";
  const take = (chunk) => {
    text += chunk;
    for (let end = text.indexOf("\\n"); end >= 0; end = text.indexOf("\\n")) {
      const message = JSON.parse(text.slice(0, end));
      text = text.slice(end + 1);
      if (message.type === "run") run(message);
      else {
        waiting.get(message.id)?.(message.result);
        waiting.delete(message.id);
      }
    }
  };
  process.stdin.on("data", take);
  take(rest);
}`;
