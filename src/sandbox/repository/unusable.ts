import { BrigError } from "../../errors.js";

/** Why git does not work in a workspace. The sandbox starts without the repository. */
export function unusable(reason: string, hint: string, cause?: unknown): BrigError {
  return new BrigError(reason, { code: "workspace.invalid", hint, cause });
}
