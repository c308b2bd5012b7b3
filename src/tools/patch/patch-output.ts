import type { PatchChange } from "./apply-edits.js";
import type { PatchOutcome } from "./patcher.js";

/** The words of the output: sections of text, or the JSON that the function form of the tool has always had. */
export type PatchOutputForm = "freeform" | "function";

/** What the model reads. */
export function patchOutput(outcome: PatchOutcome, form: PatchOutputForm): string {
  switch (outcome.kind) {
    case "empty":
      return "patch rejected: empty patch";
    case "refused":
      return `apply_patch verification failed: ${outcome.reason}`;
    case "failed":
      return wrap({ exitCode: 1, text: `${outcome.reason}\n`, durationMs: outcome.durationMs }, form);
    case "applied":
      return wrap({ exitCode: 0, text: summary(outcome.changes), durationMs: outcome.durationMs }, form);
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

function wrap(
  { exitCode, text, durationMs }: { exitCode: number; text: string; durationMs: number },
  form: PatchOutputForm,
): string {
  const seconds = Math.round(durationMs / 100) / 10;
  return form === "freeform"
    ? `Exit code: ${exitCode}\nWall time: ${seconds} seconds\nOutput:\n${text}`
    : `{"output":${JSON.stringify(text)},"metadata":{"exit_code":${exitCode},"duration_seconds":${seconds.toFixed(1)}}}`;
}
