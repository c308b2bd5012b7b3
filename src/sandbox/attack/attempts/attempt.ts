import type { PermissionName } from "./permissions.js";

/** One attempt of the toolbox's program `attempts`, and what a sandbox has to answer. */
export interface Attempt {
  /** The id in the catalogue of assertions, test/isolation/catalogue. */
  id: string;
  /** The name of the attempt in the program. */
  attempt: string;
  /** The statement that holds if it is refused. */
  title: string;
  /** The harm that a command can do if it is not refused. */
  meaning: string;
  /** Every answer that is a refusal; a kernel may give several of them for several paths. */
  refusals: readonly string[];
  /** The user who attempts it in the weak twin, where it has to succeed, or why nobody does. Default: "root". */
  control?: "root" | "user" | { none: string };
  /** The twin's answer in place of success, if success would do harm. */
  controlAnswer?: string;
  /** Settings of a policy, each of which allows it. Default: none does. */
  permittedBy?: readonly PermissionName[];
  /** It concerns the kernel alone. gVisor gives each sandbox one of its own, so it reaches nothing of the host there. */
  concernsKernel?: true;
}

export const nothing: readonly string[] = ["nothing"];

/** Whether an outcome is made of nothing but refusals. */
export function isRefused({ refusals }: Pick<Attempt, "refusals">, outcome: string | undefined): boolean {
  return outcome?.split(" ").every((word) => refusals.includes(word)) === true;
}

/** Whether the control of an attempt succeeded, so that a refusal elsewhere proves something. */
export function controlSucceeded({ controlAnswer }: Attempt, outcome: string | undefined): boolean {
  if (controlAnswer !== undefined) return outcome === controlAnswer;
  return outcome !== undefined && /^(?:done$|found )/.test(outcome);
}
