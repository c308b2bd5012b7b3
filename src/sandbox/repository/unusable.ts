import { BrigError } from "../../errors.js";

/** An error that says why git will not work in the sandbox. It becomes a warning: the sandbox starts without the repository. */
export function unusable(reason: string, hint: string, cause?: unknown): BrigError {
  return new BrigError(reason, { code: "workspace.invalid", hint, cause });
}
