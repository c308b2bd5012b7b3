import { BrigError, type ErrorCode } from "../../../errors.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { type ExecLine, execLineSchema, type RemoteExit } from "../wire/schemas.js";
import type { RemoteStreamOptions } from "./client-types.js";
import { type ClientRequest, type HttpCalls, notUnderstood } from "./http-calls.js";

const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** Errors: those of the command's call; `serve.unreachable` if the answer ends too early. */
export async function streamCommand(
  calls: HttpCalls,
  request: ClientRequest,
  { onStdout, onStderr }: RemoteStreamOptions,
): Promise<RemoteExit> {
  let exit: RemoteExit | undefined;
  let rest: Buffer[] = [];
  let restBytes = 0;
  const takeLine = async (text: string) => {
    const line = parsedLine(text);
    if (line.type === "exit") {
      const { type: _type, ...how } = line;
      exit = how;
    } else if (line.type === "error") {
      const { code, message, hint, errno, reason, disk } = line;
      throw new BrigError(message, { code: code as ErrorCode, hint, errno, reason, disk });
    } else await (line.type === "stdout" ? onStdout : onStderr)?.(Buffer.from(line.data, "base64"));
  };
  await calls.pieces("execStream", request, async (piece) => {
    let from = 0;
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10, from)) {
      await takeLine(Buffer.concat([...rest, piece.subarray(from, end)]).toString());
      [rest, restBytes, from] = [[], 0, end + 1];
    }
    restBytes += piece.length - from;
    if (restBytes > MAX_LINE_BYTES) throw notUnderstood("a line of it has no end");
    if (from < piece.length) rest.push(piece.subarray(from));
  });
  if (exit !== undefined) return exit;
  throw new BrigError("the answer ended before the command did", {
    code: "serve.unreachable",
    hint: "the service was ended, or a proxy has cut the connection",
  });
}

function parsedLine(text: string): ExecLine {
  const parsed = execLineSchema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw notUnderstood("a line of it is no part of a command's output");
}
