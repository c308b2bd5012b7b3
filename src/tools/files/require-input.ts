import { BrigError } from "../../errors.js";

/** Throws `tool.invalid-input` with the text the model is told, unless the condition is met. */
export function requireInput(isMet: boolean, text: string): void {
  if (!isMet) throw new BrigError(text, { code: "tool.invalid-input" });
}
