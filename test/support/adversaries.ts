import { program } from "./sandbox.js";

/** What the functions of test/fixtures/adversary.py are called. */
export const ADVERSARIES = [
  "setsid",
  "daemon",
  "fork_bomb",
  "respawning",
  "stopped",
  "traced",
  "holds_pipes",
  "in_vfork",
  "opens_fifo",
  "allocates",
  "without_leader",
  "subreaper",
  "executes",
  "ends_keeper",
  "answers_signal",
  "masks",
  "dies",
] as const;

export type Adversary = (typeof ADVERSARIES)[number];

/** The command of one. Only `dies` ends by itself, after so many milliseconds. */
export function adversary(name: Adversary, diesAfterMs: number): string[] {
  return program("adversary.py", name, String(diesAfterMs));
}
