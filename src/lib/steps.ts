import { channel } from "node:diagnostics_channel";

/** The name of the diagnostics channel that every step is published on. */
const STEPS = "brigbox:step";

export interface Step {
  /** What has just been done. */
  name: string;
  /** Since the process began. */
  atMs: number;
}

const steps = channel(STEPS);

/** Notes that a step of the way from a command line to its result is done. Costs nothing while nobody listens. */
export function step(name: string): void {
  if (steps.hasSubscribers) steps.publish({ name, atMs: performance.now() } satisfies Step);
}

/** Has every step told from now on. */
export function onStep(listener: (step: Step) => void): void {
  steps.subscribe((message) => listener(message as Step));
}
