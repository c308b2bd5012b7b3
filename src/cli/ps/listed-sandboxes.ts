import { hostname } from "node:os";
import { ownerState, readHostProcesses } from "../../lib/owner.js";
import type { Engine, SandboxAbout, SandboxRecord } from "../../sandbox/index.js";
import { inTime, recordedNow } from "../../sandbox/index.js";
import type { LastingRecord } from "../../services/index.js";
import { hasOwner, readLasting } from "../../services/index.js";

/** A sandbox of this `$BRIG_HOME`. */
export interface ListedSandbox extends SandboxAbout {
  /** Null for a sandbox without a name. */
  name: string | null;
  id: string;
  /** "stopped": its processes have ended, and its container is still there. */
  state: "running" | "stopped";
  /** Whether the engine has confirmed the state. If not, it is derived from whether the process that opened it is alive. */
  confirmed: boolean;
}

/** Connects to the engine at this address. */
type ConnectTo = (endpoint: string) => Promise<Pick<Engine, "inspectContainer">>;

/** How long to wait for the engine: the list is printed even if it does not answer. */
const ANSWER_MS = 5000;

/** The oldest sandbox comes first. */
export async function listSandboxes(brigHome: string, connectTo: ConnectTo): Promise<ListedSandbox[]> {
  const processes = await readHostProcesses(hostname());
  const engines = new Map<string, ReturnType<ConnectTo>>();
  const listed = recordedNow(brigHome).map(async (record) => {
    const { about, containerId, endpoint } = record;
    if (!about || containerId === null) return [];
    const owner = await ownerState(record.owner, processes);
    // The engine of another machine has the same address there, and cannot be asked from here.
    const engine = owner === "elsewhere" ? null : (engines.get(endpoint) ?? connectTo(endpoint));
    if (engine !== null) engines.set(endpoint, engine);
    const answer = await stateOf(containerId, engine);
    if (answer === "missing") return [];
    const state = answer ?? (owner === "gone" ? "stopped" : "running");
    return [asListed(record, { about, state, confirmed: answer !== null })];
  });
  const found = withNames((await Promise.all(listed)).flat(), readLasting(brigHome));
  return found.toSorted((one, other) => (one.createdAt < other.createdAt ? -1 : 1));
}

/** The names of sandboxes of `brig up` that ran when their owner was killed, and of which nobody has been told yet. */
export async function namesOfKilled(brigHome: string): Promise<string[]> {
  // Another one is there at once.
  if (await hasOwner(brigHome)) return [];
  const processes = await readHostProcesses(hostname());
  const running = readLasting(brigHome).filter(({ state }) => state === "running");
  const states = await Promise.all(running.map(({ owner }) => ownerState(owner, processes)));
  return running.flatMap(({ name }, at) => (states[at] === "gone" ? [name] : []));
}

/** Those of `brig up` have names, and stay in the list when they have ended. */
function withNames(found: readonly ListedSandbox[], lasting: readonly LastingRecord[]): ListedSandbox[] {
  const names = new Map(lasting.map(({ id, name }) => [id, name]));
  const ids = new Set(found.map(({ id }) => id));
  const ended = lasting.filter(({ id }) => !ids.has(id));
  return [
    ...found.map((one) => ({ ...one, name: names.get(one.id) ?? null })),
    ...ended.map(({ name, id, about }): ListedSandbox => {
      const { mode, network, image, workspace, createdAt } = about;
      return { name, id, state: "stopped", mode, network, image, workspace, createdAt, confirmed: true };
    }),
  ];
}

/** Null if the engine does not say. */
async function stateOf(
  id: string,
  engine: ReturnType<ConnectTo> | null,
): Promise<ListedSandbox["state"] | "missing" | null> {
  if (engine === null) return null;
  try {
    const found = await inTime(
      async (signal) => await (await engine).inspectContainer(id, { signal }),
      ANSWER_MS,
    );
    if (found === null) return "missing";
    return found.running ? "running" : "stopped";
  } catch {
    return null;
  }
}

function asListed(
  { sessionId: id }: SandboxRecord,
  { about, state, confirmed }: Pick<ListedSandbox, "state" | "confirmed"> & { about: SandboxAbout },
): ListedSandbox {
  const { mode, network, image, workspace, createdAt } = about;
  return { name: null, id, state, mode, network, image, workspace, createdAt, confirmed };
}
