import { on, once } from "node:events";
import { BrigClient, Sandbox } from "brigbox";

/** On which side the commands run. */
export type LoadSide =
  | { kind: "service"; url: string; token: string }
  | { kind: "library"; runtime: string | undefined };

export interface LoadOrder {
  /** Callers at the same time. */
  callers: number;
  /** Commands of all of them together. */
  calls: number;
}

const SANDBOXES = 4;

/** Runs a command for one caller. Fails unless it succeeded. */
type Caller = () => Promise<void>;

interface Place {
  exec(argv: string[], options: { maxOutputBytes: number }): Promise<{ exitCode: number }>;
}

interface Side extends AsyncDisposable {
  caller(at: number): Caller;
}

const [side] = (await once(process, "message")) as [LoadSide];
{
  await using opened = await openSide(side);
  const over = new AbortController();
  process.once("disconnect", () => over.abort());
  process.send?.("ready");
  const callers: Caller[] = [];
  try {
    for await (const [order] of on(process, "message", { signal: over.signal }))
      process.send?.(await runLoad(opened, callers, order as LoadOrder));
  } catch (error) {
    if (!over.signal.aborted) throw error;
  }
}

/** The milliseconds that all of it took. */
async function runLoad(from: Side, callers: Caller[], { callers: count, calls }: LoadOrder): Promise<number> {
  while (callers.length < count) callers.push(from.caller(callers.length));
  let left = calls;
  const startedAt = performance.now();
  await Promise.all(
    callers.slice(0, count).map(async (call) => {
      while (left-- > 0) await call();
    }),
  );
  return performance.now() - startedAt;
}

async function openSide(of: LoadSide): Promise<Side> {
  if (of.kind === "library") {
    const sandboxes = await opened(() => Sandbox.create({ runtime: of.runtime }));
    return {
      caller: (at) => commandIn(sandboxes[at % SANDBOXES]),
      [Symbol.asyncDispose]: async () => void (await Promise.all(sandboxes.map((one) => one.close()))),
    };
  }
  // Each of the callers is a client with connections of its own.
  const client = new BrigClient(of);
  const clients = [client];
  const sandboxes = await opened(() => client.createSandbox());
  return {
    caller(at) {
      const own = new BrigClient(of);
      clients.push(own);
      const { id } = sandboxes[at % SANDBOXES] ?? { id: "" };
      const sandbox = own.getSandbox(id);
      return async () => await commandIn(await sandbox)();
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(sandboxes.map((one) => one.close()));
      for (const one of clients) one.close();
    },
  };
}

async function opened<One>(open: () => Promise<One>): Promise<One[]> {
  return await Promise.all(Array.from({ length: SANDBOXES }, open));
}

function commandIn(sandbox: Place | undefined): Caller {
  return async () => {
    const ended = await sandbox?.exec(["true"], { maxOutputBytes: 1024 });
    if (ended?.exitCode !== 0) throw new Error(`true ended with ${ended?.exitCode}`);
  };
}
