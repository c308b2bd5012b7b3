import { BrigError } from "../../errors.js";

/** The error for calls after `close`, and for calls that it ends. */
export function closedByCaller(): BrigError {
  return new BrigError("the sandbox was closed", {
    code: "sandbox.gone",
    reason: "closed",
    hint: "create another one",
  });
}

export function stuckTree(): BrigError {
  return new BrigError("a process tree did not end on SIGKILL, so the container was killed", {
    code: "sandbox.gone",
    reason: "killed",
    hint: "create another sandbox; `brig doctor` may say what is wrong with the engine",
  });
}
