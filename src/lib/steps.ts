import { channel } from "node:diagnostics_channel";

export interface Step {
  name: string;
  atMs: number;
}

const steps = channel("brigbox:step");

/** Marks a step from the command line to its result as done. Costs nothing without a listener. */
export function step(name: string): void {
  if (steps.hasSubscribers) steps.publish({ name, atMs: performance.now() } satisfies Step);
}

export function onStep(listener: (step: Step) => void): void {
  steps.subscribe((message) => listener(message as Step));
}
