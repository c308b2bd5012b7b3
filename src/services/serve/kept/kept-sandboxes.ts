import { parseJson } from "../../../lib/json/parse-json.js";
import { unseal } from "../../../lib/seal.js";
import { endLasting } from "../../../sandbox/index.js";
import type { Capacity } from "../sandboxes/capacity.js";
import type { IdempotentCreates } from "../sandboxes/idempotent-creates.js";
import type { Need } from "../sandboxes/machine-room.js";
import { type FreePlaces, resumeFree, type SandboxRequest } from "../sandboxes/open-free.js";
import type { SandboxSet } from "../sandboxes/sandbox-set.js";
import { forgetKept, type KeptRecord, readKept, removeKept } from "./kept-records.js";
import { takeOver } from "./take-over.js";

interface KeptSandboxes {
  places: FreePlaces;
  capacity: Capacity;
  sandboxes: SandboxSet;
  keyed: IdempotentCreates;
  /** What a sandbox takes of the machine. */
  needOf: (request: SandboxRequest) => Promise<Need>;
  signal: AbortSignal;
  onWarning: (error: unknown) => void;
}

/**
 * Goes on with all sandboxes that an earlier service has left, each in a place of its client's. Those that have expired are ended, as are those that
 * nobody has: they were kept started, or are being removed. If the engine fails, it is asked again later. Resolves to how many there are.
 */
export async function takeOverKept(kept: KeptSandboxes): Promise<number> {
  const left = (kept.places.kept?.earlier ?? []).map(async (directory) => {
    const record = readKept(directory);
    const protocolState = record === null ? null : protocolStateOf(record, kept.places);
    // One that is to be paused then has to be there first.
    const isOver =
      record === null || (!record.pausesAtExpiry && Date.parse(record.sandbox.expiresAt) <= Date.now());
    if (isOver || protocolState === undefined) await endKept(directory, kept);
    else await goOnWith(directory, { record, protocolState }, kept);
    return !isOver;
  });
  return (await Promise.all(left)).filter((goesOn) => goesOn).length;
}

/** Null if no other protocol knows it, undefined if what one knew is lost with the key. */
function protocolStateOf({ protocol }: KeptRecord, { kept }: FreePlaces): unknown {
  if (protocol === undefined || protocol === null) return null;
  const text = kept?.sealKey === undefined ? null : unseal(protocol, kept.sealKey);
  return text === null ? undefined : parseJson(text);
}

interface Left {
  record: KeptRecord;
  protocolState: unknown;
}

async function goOnWith(
  directory: string,
  { record, protocolState }: Left,
  kept: KeptSandboxes,
): Promise<void> {
  const { places, capacity, sandboxes, keyed, needOf, signal, onWarning } = kept;
  const { client, key, env, sandbox, maxLifeMs, pausesAtExpiry } = record;
  const { mode, limits } = record.opening;
  const need = await needOf({ mode, limits });
  const { id, labels, idleMs } = sandbox;
  const since = { createdAt: new Date(sandbox.createdAt), expiresAt: new Date(sandbox.expiresAt) };
  const seat = capacity.hold(client, need);
  const expected = sandboxes.expect(client, id);
  if (key !== null) keyed.restore(client, key, sandbox);
  await takeOver({
    take: async () => {
      const { opened, commands } = await resumeFree(directory, record, { places, signal });
      const served = sandboxes.add({
        ...{ id, client, opened, env, labels, idleMs, maxLifeMs, since, seat, need, key: key ?? undefined },
        ...{ protocolState, pausesAtExpiry },
      });
      served.processes.resume(commands);
      // To go on with it, it had to run for a moment.
      if (record.isPaused) await served.pause().catch(onWarning);
      expected[Symbol.dispose]();
    },
    giveUp: async () => {
      expected[Symbol.dispose]();
      seat[Symbol.dispose]();
      await endKept(directory, kept);
    },
    signal,
    onWarning,
  });
}

/** Its directory says until then that there may be something left. */
async function endKept(directory: string, { places, signal, onWarning }: KeptSandboxes): Promise<void> {
  const { engine, environment } = places;
  forgetKept(directory);
  await takeOver({
    take: async () => {
      await endLasting(directory, { engine, brigHome: environment.brigHome, warn: onWarning });
      removeKept(directory);
    },
    giveUp: () => undefined,
    signal,
    onWarning,
  });
}
