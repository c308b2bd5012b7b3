import { z } from "zod";
import { BrigError, isBrigError } from "../../../errors.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { type ClientSocket, CloseCode } from "../http/client-socket.js";
import { resizeSchema } from "../wire/process-schemas.js";
import type { ServedProcess } from "./served-process.js";

const resizeFrame = z.strictObject({ type: z.literal("resize"), ...resizeSchema.shape });

/** Passes the output of a process on to a client, and the client's frames on to the process, until the process ends or the client goes. */
export async function attachProcess(
  process: ServedProcess,
  socket: ClientSocket,
  after: number,
): Promise<void> {
  const { signal } = socket;
  socket.onFrame(async (data, isBinary) => {
    try {
      if (isBinary) await process.write(data, { signal });
      else resize(process, data);
    } catch (error) {
      // What comes just as the process ends, or the client goes, is no fault of either.
      if (!process.isRunning || signal.aborted) return;
      if (!isBrigError(error)) throw error;
      if (isBinary && !process.hasClosedInput) return;
      socket.close(CloseCode.notUnderstood, error.message.slice(0, MAX_REASON_LENGTH));
    }
  });
  try {
    for await (const { data, lost } of process.output.follow(after, signal)) {
      if (lost > 0) await socket.send(JSON.stringify({ type: "lost", bytes: lost }));
      await socket.send(data);
    }
    const { exitCode, signal: endedBy } = process.record;
    await socket.send(JSON.stringify({ type: "exit", exitCode, signal: endedBy }));
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** A reason may have 123 bytes, and a character of these messages up to 3. */
const MAX_REASON_LENGTH = 41;

/** Error: `exec.invalid` for any other frame, and without a terminal. */
function resize(process: ServedProcess, data: Buffer): void {
  const parsed = resizeFrame.safeParse(parseJson(data.toString()));
  if (!parsed.success) throw new BrigError("the text frame is not understood", { code: "exec.invalid" });
  const { rows, cols } = parsed.data;
  process.resize({ rows, cols });
}
