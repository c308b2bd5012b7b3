import type { RemoteSandbox } from "../../src/services/serve/client/client-types.js";

/** Shows each request, streams at /stream, takes anything at /count, and echoes what comes over a WebSocket. */
const SHOWING = `
import { createServer } from "node:http";
import { createHash } from "node:crypto";
const server = createServer((request, response) => {
  if (request.url === "/stream") {
    response.write("first\\n");
    request.once("data", (data) => response.end("then " + data));
    return;
  }
  let count = 0;
  const pieces = [];
  request.on("data", (data) => {
    count += data.length;
    if (request.url !== "/count") pieces.push(data);
  });
  request.on("end", () => {
    const { method, url, rawHeaders } = request;
    const body = Buffer.concat(pieces).toString();
    response.setHeader("Set-Cookie", ["a=1", "b=2"]);
    response.setHeader("Connection", "X-Dropped");
    response.setHeader("X-Dropped", "1");
    response.setHeader("Clear-Site-Data", "*");
    response.end(JSON.stringify({ method, url, rawHeaders, body, count }));
  });
});
server.on("upgrade", (request, socket) => {
  if (request.url === "/no") return socket.end("HTTP/1.1 418 No\\r\\nContent-Length: 6\\r\\nConnection: close\\r\\n\\r\\nrefuse");
  const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Yes\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
  // One unmasked text frame with what the server has seen, then the frames of the client as they are.
  const text = Buffer.from(JSON.stringify({ url: request.url, authorization: request.headers.authorization ?? null }));
  socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
  socket.on("data", (data) => {
    // The opcode of a close: answered in kind.
    if ((data[0] & 0x0f) === 8) return socket.end(Buffer.from([0x88, 2, 0x03, 0xe8]));
    const length = data[1] & 0x7f;
    const mask = data.subarray(2, 6);
    const echo = Buffer.from(data.subarray(6, 6 + length).map((byte, at) => byte ^ mask[at % 4]));
    socket.write(Buffer.concat([Buffer.from([0x82, length]), echo]));
  });
  socket.on("error", () => undefined);
});
server.listen(Number(process.argv[2]), process.argv[3], () => console.log("listening"));
`;

/** Answers each connection with the same bytes, the text of a file, and then does what the last argument says. */
const LYING = `
import { createServer } from "node:net";
import { readFileSync } from "node:fs";
const [port, file, last] = process.argv.slice(2);
createServer((socket) => {
  socket.on("error", () => undefined);
  socket.once("data", () => {
    socket.write(readFileSync(file));
    if (last === "end") socket.end();
    if (last === "repeat") {
      const line = readFileSync(file + ".again");
      const more = () => { while (socket.writable && socket.write(line)); };
      socket.on("drain", more);
      more();
    }
  });
}).listen(Number(port), "127.0.0.1", () => console.log("listening"));
`;

async function listening(sandbox: RemoteSandbox, argv: string[]): Promise<void> {
  const server = await sandbox.spawn(argv, { mergeOutput: true });
  await new Promise<void>((resolve, reject) => {
    let text = "";
    server.stdout.on("data", (data) => {
      text += data;
      if (text.includes("listening")) resolve();
    });
    server.stdout.once("close", () => reject(new Error(`the server has ended: ${text}`)));
  });
}

/** Starts it in a sandbox, and resolves once it listens. */
export async function startShowing(
  sandbox: RemoteSandbox,
  port: number,
  address = "127.0.0.1",
): Promise<void> {
  await sandbox.files.write(`/tmp/showing-${port}.mjs`, SHOWING);
  await listening(sandbox, ["node", `/tmp/showing-${port}.mjs`, `${port}`, address]);
}

/** The same for one that answers with these bytes whatever it is asked. */
export async function startLying(
  sandbox: RemoteSandbox,
  port: number,
  { answer, last = "stay", again = "" }: { answer: string; last?: "stay" | "end" | "repeat"; again?: string },
): Promise<void> {
  await sandbox.files.write("/tmp/lying.mjs", LYING);
  await sandbox.files.write(`/tmp/answer-${port}`, answer);
  await sandbox.files.write(`/tmp/answer-${port}.again`, again);
  await listening(sandbox, ["node", "/tmp/lying.mjs", `${port}`, `/tmp/answer-${port}`, last]);
}
