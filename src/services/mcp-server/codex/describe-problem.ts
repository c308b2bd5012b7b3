import type { BrigError } from "../../../errors.js";

/** What is wrong, and what to do about it. */
export function describeProblem({ message, hint }: BrigError): string {
  return hint === undefined ? message : `${message}\n${hint}`;
}
