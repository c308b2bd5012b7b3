import type { CliContext } from "../../command/index.js";
import { say } from "../../command/index.js";
import { pause } from "../../lib/time/pause.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import type { LastingRecord, StartingOwner } from "../../services/index.js";
import { hasOwner, OwnerClient, readLasting, startOwner, unreachable } from "../../services/index.js";
import { readVersion } from "../../version.js";
import { environmentOf, type HostProcess } from "../host.js";

/** How long a new owner may take until it answers. */
const START_MS = 60_000;
const LOOK_MS = 20;
/** How long the owner may take that the watcher starts. */
const WATCHED_MS = 5_000;

/**
 * The process that keeps the lasting sandboxes of this `$BRIG_HOME`, which is started if there is none. One of another version is replaced if it has no
 * sandbox. Errors: `config.invalid` for a place in which somebody else could answer; `store.failed`; `serve.unreachable`.
 */
export async function reachOwner(
  context: Pick<CliContext, "environment" | "signal" | "stderr">,
): Promise<OwnerClient> {
  const { signal, environment } = context;
  using limit = new TimeLimit(START_MS, signal);
  let starting: StartingOwner | null = null;
  let wasAway = false;
  const running = readLasting(environment.brigHome).filter(({ state }) => state === "running");
  try {
    for (;;) {
      const owner = new OwnerClient(environment.brigHome);
      const state = await owner.state(limit.signal);
      if (state !== null && !state.isEnding) {
        if (state.version === readVersion() || state.held > 0) {
          if (wasAway) await tellOfKilled(running, context);
          return owner;
        }
        await owner.end(limit.signal);
      } else if (state === null) {
        wasAway = true;
        // Another process may have begun to keep the sandboxes, and not answer yet, or have just ended.
        const isOpen = starting === null || (await starting.outcome(LOOK_MS)) === "other";
        if (isOpen && !(await hasOwner(environment.brigHome))) starting = startOwner(environment);
      }
      await pause(LOOK_MS, limit.signal);
    }
  } catch (error) {
    throw limit.isOver ? unreachable() : error;
  }
}

/**
 * Waits for the owner that follows one which was killed. The watcher has started it at once; if that was killed too, it is started here. Errors: those
 * of `reachOwner`.
 */
export async function nextOwner(
  context: Pick<CliContext, "environment" | "signal" | "stderr">,
): Promise<void> {
  const { environment, signal } = context;
  const owner = new OwnerClient(environment.brigHome);
  using limit = new TimeLimit(WATCHED_MS, signal);
  try {
    while ((await owner.state(limit.signal)) === null) await pause(LOOK_MS, limit.signal);
  } catch (error) {
    if (!limit.isOver) throw error;
    await reachOwner(context);
  }
}

/** The same for a program that has loaded nothing of brig's. */
export async function nextOwnerOf(host: HostProcess): Promise<void> {
  const { signal } = new AbortController();
  await nextOwner({ environment: environmentOf(host), signal, stderr: host.stderr });
}

/** Says which of the sandboxes that ran have ended because their owner was killed. */
async function tellOfKilled(
  running: readonly LastingRecord[],
  { environment, stderr }: Pick<CliContext, "environment" | "stderr">,
): Promise<void> {
  const ids = new Set(running.map(({ id }) => id));
  const killed = readLasting(environment.brigHome).filter(
    ({ id, reason }) => reason === "owner-killed" && ids.has(id),
  );
  await say(stderr, killedText(killed.map(({ name }) => name)));
}

/** Empty if there is none. */
export function killedText(names: readonly string[]): string {
  if (names.length === 0) return "";
  const [what, end] = names.length === 1 ? ["sandbox", "ends"] : ["sandboxes", "end"];
  return `brig: the process that kept the ${what} ${names.join(", ")} was killed or has crashed, so the ${what} ${end} within a minute\n`;
}
