import type { BrigError } from "../../errors.js";
import { pause } from "../../lib/time/pause.js";
import type { Engine } from "../docker/engine-types.js";
import { endedContainer, wasRestarted, wasStopped } from "./ended-container.js";

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
