import { on, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { BrigClient, createPool } from "brigbox";
import { timed } from "./sampling.js";

/** The milliseconds of each start of a sandbox, and of each command. */
export interface EpisodeTimes {
  starts: number[];
  commands: number[];
}

/** Where the sandboxes of the episodes come from. */
export type EpisodeSide =
  | { kind: "service"; url: string; token: string }
  | { kind: "library"; runtime: string | undefined };

const EXECS = 3;
const POOL_SIZE = 2;
/** After so long the pool of a service is full, which does not say when it is. */
const REST_MS = 1500;

interface Opened extends AsyncDisposable {
  exec(argv: readonly string[]): Promise<unknown>;
}

interface Side extends AsyncDisposable {
  open(): Promise<Opened>;
}

const [side] = (await once(process, "message")) as [EpisodeSide];
{
  await using opened = openSide(side);
  const over = new AbortController();
  process.once("disconnect", () => over.abort());
  process.send?.("ready");
  try {
    for await (const [count] of on(process, "message", { signal: over.signal }))
      process.send?.(await runEpisodes(opened, count as number));
  } catch (error) {
    if (!over.signal.aborted) throw error;
  }
}

function openSide(of: EpisodeSide): Side {
  if (of.kind === "library") {
    const pool = createPool({ size: POOL_SIZE, runtime: of.runtime });
    return { open: () => pool.acquire(), [Symbol.asyncDispose]: () => pool.close() };
  }
  const client = new BrigClient(of);
  return { open: () => client.createSandbox(), [Symbol.asyncDispose]: async () => client.close() };
}

async function runEpisodes({ open }: Side, count: number): Promise<EpisodeTimes> {
  const times: EpisodeTimes = { starts: [], commands: [] };
  for (let episode = 0; episode < count; episode++) {
    const startedAt = performance.now();
    await using sandbox = await open();
    times.starts.push(performance.now() - startedAt);
    for (let call = 0; call < EXECS; call++) times.commands.push(await timed(() => sandbox.exec(["true"])));
  }
  await sleep(REST_MS);
  return times;
}
