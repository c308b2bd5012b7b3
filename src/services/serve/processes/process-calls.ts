import { beforeAbort } from "../../../lib/time/before-abort.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { MemoryShare } from "../http/memory-budget.js";
import type { Answer, Call, Calls } from "../http/response.js";
import type { ServedSandbox } from "../sandboxes/served-sandbox.js";
import { MAX_OUTPUT_BYTES } from "../wire/process-schemas.js";
import type { RouteName } from "../wire/routes.js";
import { attachProcess } from "./attach-process.js";
import type { OutputPart } from "./output-log.js";
import type { ServedProcess } from "./served-process.js";

type ProcessCalls = Pick<
  Calls,
  | "startProcess"
  | "listProcesses"
  | "getProcess"
  | "endProcess"
  | "readOutput"
  | "writeInput"
  | "closeInput"
  | "resizeProcess"
  | "signalProcess"
  | "attachProcess"
>;

const nothing: Answer = { kind: "nothing" };
const json = (value: unknown): Answer => ({ kind: "json", value });

/** How requests about processes are answered. `find` gives a client's sandbox. Errors of all: `serve.unknown`. */
export function processCalls(find: (client: string, id: string) => ServedSandbox): ProcessCalls {
  const use = async <T>(call: Call<RouteName>, run: (process: ServedProcess) => Promise<T>) => {
    const sandbox = find(call.client, call.id);
    using _call = sandbox.hold();
    return await run(sandbox.processes.get(call.process));
  };
  const done = async (call: Call<RouteName>, run: (process: ServedProcess) => Promise<void>) => {
    await use(call, run);
    return nothing;
  };
  return {
    async startProcess({ client, id, body, signal }) {
      const process = await find(client, id).processes.start(body, { signal });
      // Nobody knows of it.
      if (signal.aborted) await process.end();
      signal.throwIfAborted();
      return json(process.record);
    },
    listProcesses: async ({ client, id }) =>
      json({
        processes: find(client, id)
          .processes.list()
          .map(({ record }) => record),
      }),
    getProcess: async (call) =>
      await use(call, async (process) => {
        await waitForEnd(process, call.query.waitMs ?? 0, call.signal);
        return json(process.record);
      }),
    endProcess: async (call) => await done(call, async (process) => await process.end()),
    readOutput: async (call) =>
      await use(call, async ({ output }) => {
        const { after, waitMs, maxBytes = MAX_OUTPUT_BYTES } = call.query;
        return json(
          sentOutput(await output.read({ after, waitMs, maxBytes, signal: call.signal }), call.memory),
        );
      }),
    writeInput: async (call) =>
      await done(call, async (process) => await process.write(call.body, { signal: call.signal })),
    closeInput: async (call) => await done(call, async (process) => await process.closeInput(call)),
    resizeProcess: async (call) => await done(call, async (process) => process.resize(call.body)),
    signalProcess: async (call) =>
      await done(call, async (process) => await process.signal(call.body.signal)),
    attachProcess: async (call) =>
      await use(call, async (process) => ({
        kind: "socket",
        serve: async (socket) => await attachProcess(process, socket, call.query.after ?? 0),
      })),
  };
}

/** Error: the signal's reason. */
async function waitForEnd(process: ServedProcess, waitMs: number, signal: AbortSignal): Promise<void> {
  if (waitMs === 0 || !process.isRunning) return;
  using limit = new TimeLimit(waitMs, signal);
  try {
    await beforeAbort(
      process.ended.catch(() => undefined),
      limit.signal,
    );
  } catch (error) {
    if (!limit.isOver) throw error;
  }
}

/** The bytes as base64, as a JSON text, and that again as bytes. */
const COPIES = 4;
/** What a chunk of the answer takes besides. */
const CHUNK_BYTES = 256;

/** Error: a refusal with 429 if there is no memory for the answer. */
function sentOutput({ chunks, ...rest }: OutputPart, memory: MemoryShare): object {
  memory.take(chunks.reduce((sum, { data }) => sum + COPIES * data.length + CHUNK_BYTES, 0));
  return {
    chunks: chunks.map(({ stream, data }) => ({ stream, data: data.toString("base64") })),
    ...rest,
  };
}
