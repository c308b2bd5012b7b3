import type { ContainerEvent } from "../../docker/container-event.js";
import type { ContainerState } from "../../docker/engine-types.js";
import { BrigError, type GoneReason } from "../../errors.js";
import { LEASE_OVER_STATUS } from "../channel/protocol.js";

interface EndedContainer {
  /** Null if it was removed. */
  state: Pick<ContainerState, "exitCode" | "oomKilled"> | null;
  /** Null if the engine does not say. */
  events: readonly ContainerEvent[] | null;
  /** Nobody was connected for the length of the lease. It counts only if the engine does not say more. */
  leaseIsOver: boolean;
}

const KILLED_STATUS = 137;
/** The engine tells of a kill for want of memory when it hears of it, before or after the end of the container. */
const OOM_NEAR_MS = 2000;

/** Says by the engine's records why a container has ended. What runs in it can change none of them. */
export function endedContainer(ended: EndedContainer): BrigError {
  const { reason, message } = causeOf(ended);
  const hint =
    reason === "oom"
      ? "give the sandbox more memory, or let its commands use less"
      : "create another sandbox";
  return new BrigError(message, { code: "sandbox.gone", reason, hint });
}

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

function causeOf({ state, events, leaseIsOver }: EndedContainer): Found {
  if (events === null) return withoutEvents(state, leaseIsOver);
  const sinceStart = events.slice(events.findLastIndex(({ action }) => action === "start") + 1);
  if (sinceStart.some(({ action }) => action === "kill" || action === "stop"))
    return { reason: "killed", message: "the sandbox's container was killed or removed from outside" };
  const end = sinceStart.findLast(({ action }) => action === "die");
  if (end === undefined)
    return {
      reason: "engine",
      message:
        "the sandbox's container has ended, and the engine does not know how, as after its own restart",
    };
  const exitCode = end.exitCode ?? state?.exitCode ?? null;
  if (exitCode === LEASE_OVER_STATUS) return leaseOver;
  const isNear = ({ action, atMs }: ContainerEvent) =>
    action === "oom" && Math.abs(atMs - end.atMs) <= OOM_NEAR_MS;
  if (exitCode === KILLED_STATUS && sinceStart.some(isNear)) return outOfMemory;
  return unexplained(exitCode);
}

function withoutEvents(state: EndedContainer["state"], leaseIsOver: boolean): Found {
  if (state === null)
    return leaseIsOver ? leaseOver : { reason: "killed", message: "the sandbox's container was removed" };
  if (state.exitCode === LEASE_OVER_STATUS) return leaseOver;
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
