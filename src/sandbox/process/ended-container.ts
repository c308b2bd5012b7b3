import { BrigError, type GoneReason } from "../../errors.js";
import { formatBytes } from "../../lib/bytes.js";
import { pause } from "../../lib/time/pause.js";
import {
  ExcessStatus,
  LEASE_OVER_STATUS,
  MOST_LOCKS,
  MOST_ORPHANS,
  MOST_SOCKET_BYTES,
  MOST_UNREAD_BYTES,
} from "../channel/protocol.js";
import type { ContainerEvent, ContainerState, Engine } from "../docker/engine-types.js";

interface EndedContainer {
  /** Null if it was removed. */
  state: Pick<ContainerState, "exitCode" | "oomKilled"> | null;
  /** Null if the engine does not say. */
  events: readonly ContainerEvent[] | null;
  /** The number of times that brig itself has started it. Undefined for any number. */
  starts?: number | undefined;
  /** Nobody was connected for the length of the lease. It counts only if the engine does not say more. */
  leaseIsOver: boolean;
}

const KILLED_STATUS = 137;
/** The engine tells of a kill for want of memory when it hears of it, before or after the end of the container. */
const OOM_NEAR_MS = 2000;

/** Says by the engine's records why a container has ended. The programs in it can change none of them. */
export function endedContainer(ended: EndedContainer): BrigError {
  return goneError(causeOf(ended));
}

/** Whether somebody else has started the container once more. An engine that was started anew has forgotten what came before. */
function wasRestarted(events: EndedContainer["events"], starts: number): boolean {
  return (events ?? []).filter(({ action }) => action === "start").length > starts;
}

/** Whether the engine was asked to end the container since it was started last. */
function wasStopped(events: EndedContainer["events"]): boolean {
  return sinceStart(events ?? []).some(({ action }) => action === "kill" || action === "stop");
}

function sinceStart(events: readonly ContainerEvent[]): ContainerEvent[] {
  return events.slice(events.findLastIndex(({ action }) => action === "start") + 1);
}

function goneError({ reason, message }: Found): BrigError {
  return new BrigError(message, { code: "sandbox.gone", reason, hint: hints[reason] ?? CREATE_ANOTHER });
}

const CREATE_ANOTHER = "create another sandbox";
const hints: Partial<Record<GoneReason, string>> = {
  oom: "give the sandbox more memory, or let its commands use less",
  "machine-share": "create another sandbox, in which no command takes so much",
};

interface Found {
  reason: GoneReason;
  message: string;
}

const leaseOver: Found = {
  reason: "lease",
  message: "the sandbox ended because nobody was connected for the length of its lease",
};
const outOfMemory: Found = {
  reason: "oom",
  message: "the sandbox ran out of memory and its container was killed",
};

const restarted: Found = {
  reason: "restarted",
  message: "somebody has restarted the sandbox's container, and all that ran in it has ended",
};

const tookTooMuch = (what: string): Found => ({
  reason: "machine-share",
  message: `the sandbox was ended because its commands ${what}`,
});

/** The excesses that the runner has found, by its exit status. */
const excesses: Readonly<Record<number, Found>> = {
  [ExcessStatus.locks]: tookTooMuch(
    `held more than ${MOST_LOCKS} locks of files, for which the kernel takes memory of the machine that counts for no sandbox`,
  ),
  [ExcessStatus.unread]: tookTooMuch(
    `left more than ${formatBytes(MOST_UNREAD_BYTES)} unread in sockets (netlink, ICMP or raw), which is memory of the machine that counts for no sandbox`,
  ),
  [ExcessStatus.sockets]: tookTooMuch(
    `held more than ${formatBytes(MOST_SOCKET_BYTES)} in sockets of TCP and UDP, which is memory of the machine that counts for no sandbox under control groups of version 1`,
  ),
  [ExcessStatus.orphans]: tookTooMuch(
    `left more than ${MOST_ORPHANS} TCP connections that no program has any more, of which there can be only so many on the machine`,
  ),
};

/** The reason that the runner gives by its exit status. */
function saidByRunner(exitCode: number | null): Found | undefined {
  return exitCode === LEASE_OVER_STATUS ? leaseOver : excesses[exitCode ?? 0];
}

/** Why a runner that is not its container's first process has ended. Null if its exit status does not say. */
export function endedRunner(exitCode: number | null): BrigError | null {
  const found = excesses[exitCode ?? 0];
  return found === undefined ? null : goneError(found);
}

function causeOf({ state, events, starts, leaseIsOver }: EndedContainer): Found {
  if (events === null) return withoutEvents(state, leaseIsOver);
  if (starts !== undefined && wasRestarted(events, starts)) return restarted;
  const last = sinceStart(events);
  if (last.some(({ action }) => action === "stop"))
    return { reason: "killed", message: "the sandbox's container was stopped from outside" };
  if (wasStopped(events))
    return { reason: "killed", message: "the sandbox's container was killed or removed from outside" };
  const end = last.findLast(({ action }) => action === "die");
  if (end === undefined)
    return {
      reason: "engine",
      message:
        "the sandbox's container has ended, and the engine does not know how, as after its own restart",
    };
  const exitCode = end.exitCode ?? state?.exitCode ?? null;
  const said = saidByRunner(exitCode);
  if (said !== undefined) return said;
  const isNear = ({ action, atMs }: ContainerEvent) =>
    action === "oom" && Math.abs(atMs - end.atMs) <= OOM_NEAR_MS;
  if (exitCode === KILLED_STATUS && last.some(isNear)) return outOfMemory;
  return unexplained(exitCode);
}

function withoutEvents(state: EndedContainer["state"], leaseIsOver: boolean): Found {
  if (state === null)
    return leaseIsOver ? leaseOver : { reason: "killed", message: "the sandbox's container was removed" };
  const said = saidByRunner(state.exitCode);
  if (said !== undefined) return said;
  return state.exitCode === KILLED_STATUS && state.oomKilled ? outOfMemory : unexplained(state.exitCode);
}

function unexplained(exitCode: number | null): Found {
  const how =
    exitCode === KILLED_STATUS
      ? "was killed by SIGKILL"
      : exitCode === null
        ? "ended"
        : `ended with exit code ${exitCode}`;
  return {
    reason: "killed",
    message: `the sandbox's container ${how}, for which nobody has asked the engine`,
  };
}

/** Signs that were noticed of a container before the engine is asked about it. */
export interface Symptoms {
  /** Nobody was connected for the length of the lease. */
  leaseIsOver: boolean;
  /** The program that answered in it last did not go on with the stream. */
  wasRefused: boolean;
}

/** The number of further looks at a container that was stopped, and the pause before each: perhaps it is being restarted. */
const RESTART_TRIES = 4;
const RESTART_WAIT_MS = 200;

/** Whether a container runs as it was started, so many times, from here. Resolves to the reason if it does not. */
export async function diagnoseContainer(
  engine: Pick<Engine, "inspectContainer" | "containerEvents">,
  { id, starts }: { id: string; starts: number },
  { leaseIsOver, wasRefused }: Symptoms,
): Promise<"runs" | "paused" | BrigError> {
  for (let asked = 1; ; asked++) {
    const state = await engine.inspectContainer(id);
    if (state?.paused) return "paused";
    if (state?.running && !wasRefused) return "runs";
    const events = await engine.containerEvents(id).catch(() => null);
    if (state?.running && !wasRestarted(events, starts)) return "runs";
    // A restart stops the container first.
    const mayStartAgain = state !== null && !state.running && wasStopped(events);
    if (!mayStartAgain || asked === RESTART_TRIES)
      return endedContainer({ state, events, starts, leaseIsOver });
    await pause(RESTART_WAIT_MS);
  }
}

export function stuckTree(): BrigError {
  return new BrigError("a process tree did not end on SIGKILL, so the container was killed", {
    code: "sandbox.gone",
    reason: "killed",
    hint: "create another sandbox; `brig doctor` may say what is wrong with the engine",
  });
}
