import type { IncomingMessage, ServerResponse } from "node:http";
import { BrigError } from "../../../errors.js";
import type { DirectoryEntry, SandboxFiles } from "../../../sandbox/index.js";
import { FILE_TYPES } from "../../../sandbox/index.js";
import { encodeFrame, FRAME } from "../wire/frames.js";
import { HOLE_HEADER, LISTING_TYPE, MAX_FILE_BYTES } from "../wire/messages.js";
import { notUnderstood } from "../wire/sent-error.js";
import { readBody, sendJson } from "./local-answers.js";

/** A call about the files of a sandbox, as a model's tools make it in the client. */
export interface FileCall {
  /** Method and verb. */
  call: string;
  given: URLSearchParams;
  request: IncomingMessage;
  response: ServerResponse;
  signal: AbortSignal;
}

/** The calls that `answerFileCall` knows. */
export const FILE_CALLS: ReadonlySet<string> = new Set([
  "GET stat",
  "GET file",
  "PUT file",
  "DELETE file",
  "POST directory",
  "GET list",
]);

/** Errors: those of the file operation. */
export async function answerFileCall(
  files: SandboxFiles,
  { call, given, request, response, signal }: FileCall,
): Promise<void> {
  const path = given.get("path") ?? "";
  const options = { refuseSymlinks: given.has("nolinks"), signal };
  switch (call) {
    case "GET stat": {
      const { dev, ino, ...stat } = await files.stat(path, {
        ...options,
        followSymlinks: given.has("follow"),
      });
      return sendJson(response, 200, { ...stat, dev: `${dev}`, ino: `${ino}` });
    }
    case "GET file":
      return await sendFile(files, { path, options, given, response });
    case "PUT file": {
      const data = await readBody(request, MAX_FILE_BYTES);
      const mode = wholeNumber(given.get("mode")) ?? 0o644;
      const { failure } = await files.writeEach([{ path, data, mode }], options);
      if (failure !== null) throw failure;
      return sendJson(response, 200, {});
    }
    case "DELETE file":
      await files.remove(path, options);
      return sendJson(response, 200, {});
    case "POST directory":
      await files.mkdir(path, { ...options, recursive: true });
      return sendJson(response, 200, {});
    case "GET list":
      return await sendListing(files, { path: Buffer.from(path, "base64url"), response, signal });
    default:
      throw notUnderstood();
  }
}

interface SentFile {
  path: string;
  options: { refuseSymlinks: boolean; signal: AbortSignal };
  given: URLSearchParams;
  response: ServerResponse;
}

async function sendFile(files: SandboxFiles, { path, options, given, response }: SentFile): Promise<void> {
  const lengthBytes = wholeNumber(given.get("length"));
  if (lengthBytes !== null && lengthBytes > MAX_FILE_BYTES) throw tooLong();
  let holeBytes = 0;
  let data: Buffer;
  if (lengthBytes === null)
    data = await files.read(path, {
      ...options,
      maxBytes: Math.min(wholeNumber(given.get("max")) ?? MAX_FILE_BYTES, MAX_FILE_BYTES),
    });
  else {
    const part = { offsetBytes: wholeNumber(given.get("offset")) ?? 0, lengthBytes };
    if (given.has("pasthole"))
      ({ holeBytes, data } = await files.readPastHole(path, { ...part, signal: options.signal }));
    else data = await files.read(path, { ...options, ...part });
  }
  response.writeHead(200, {
    "content-type": "application/octet-stream",
    "content-length": data.length,
    [HOLE_HEADER]: holeBytes,
  });
  response.end(data);
}

/** Sends a frame for each entry, whose type is that of the entry, and a last one. The sandbox waits while the client does not read. */
async function sendListing(
  files: SandboxFiles,
  { path, response, signal }: { path: Buffer; response: ServerResponse; signal: AbortSignal },
): Promise<void> {
  const begin = () => {
    if (!response.headersSent) response.writeHead(200, { "content-type": LISTING_TYPE });
  };
  const onEntries = (entries: DirectoryEntry[]) => {
    begin();
    const frames = entries.map(({ type, nameBytes }) => encodeFrame(FILE_TYPES.indexOf(type), nameBytes));
    if (response.write(Buffer.concat(frames))) return undefined;
    return new Promise<void>((resolve) => {
      const go = () => {
        response.off("drain", go).off("close", go);
        resolve();
      };
      response.on("drain", go).on("close", go);
    });
  };
  await files.list(path, { onEntries, signal });
  begin();
  response.end(encodeFrame(FRAME.ended));
}

/** Null if it is missing. */
function wholeNumber(text: string | null): number | null {
  if (text === null) return null;
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0) throw notUnderstood();
  return number;
}

function tooLong(): BrigError {
  return new BrigError(`more than ${MAX_FILE_BYTES} bytes of a file cannot be read at once`, {
    code: "file.too-large",
    hint: "read it in parts",
  });
}
