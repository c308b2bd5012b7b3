import { BrigError, isBrigError } from "../errors.js";
import type { ToolOutput } from "./tool.js";

export function failure(content: string): ToolOutput {
  return { content, success: false };
}

/** An error that the model can react to becomes an output; any other, e.g. `sandbox.gone`, is thrown. */
export function failureOutput(error: unknown): ToolOutput {
  if (isBrigError(error) && /^(?:tool|file|exec)\./.test(error.code)) return failure(error.message);
  throw error;
}

/** Throws `tool.invalid-input` with a message for the model unless the condition is met. */
export function requireInput(isMet: boolean, message: string): void {
  if (!isMet) throw new BrigError(message, { code: "tool.invalid-input" });
}
