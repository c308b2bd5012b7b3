import { jsonOutput, sectionedOutput } from "../command/command-output.js";
import type { PatchChange } from "./apply-edits.js";
import type { PatchOutcome } from "./patcher.js";

/** The form of the tool. Its output is sections of text if it is freeform, and JSON if it is a function. */
export type PatchOutputForm = "freeform" | "function";

export function patchOutput(outcome: PatchOutcome, form: PatchOutputForm): string {
  const format = form === "freeform" ? sectionedOutput : jsonOutput;
  switch (outcome.kind) {
    case "empty":
      return "patch rejected: empty patch";
    case "refused":
      return `apply_patch verification failed: ${outcome.reason}`;
    case "failed":
      return format({ exitCode: 1, durationMs: outcome.durationMs }, `${outcome.reason}\n`);
    case "applied":
      return format({ exitCode: 0, durationMs: outcome.durationMs }, summary(outcome.changes));
  }
}

/** Additions first, then updates, then deletions, each in the order of the patch. */
export function summary(changes: readonly PatchChange[]): string {
  const lines = letters.flatMap(([kind, letter]) =>
    changes.filter((change) => change.kind === kind).map(({ name }) => `${letter} ${name}\n`),
  );
  return ["Success. Updated the following files:\n", ...lines].join("");
}

const letters: readonly (readonly [PatchChange["kind"], string])[] = [
  ["add", "A"],
  ["update", "M"],
  ["delete", "D"],
];
