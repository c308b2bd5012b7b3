import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { object, readOrNull, type Shaped, string } from "../../lib/json/json-shape.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { callsDirectory } from "./written-setup.js";

const callShape = object({ sandbox: string, cwd: string, command: string });

/** A command that the hook has let through, to be run by the program that its id is given to. */
export type WaitingCall = Shaped<typeof callShape>;

/** Of calls that were never made, because a person refused them, so many are kept. */
const MAX_WAITING = 64;
const ID = /^[0-9a-f]{32}$/;

/** Returns the id of the call, which nobody can guess. */
export function keepCall(directory: string, call: WaitingCall): string {
  forgetOldest(directory);
  const id = randomBytes(16).toString("hex");
  writeFileSync(callFile(directory, id), JSON.stringify(call), { mode: 0o600, flag: "wx" });
  return id;
}

/** The call, which then waits no more; null for an id that stands for none. */
export function takeCall(directory: string, id: string): WaitingCall | null {
  if (!ID.test(id)) return null;
  const file = callFile(directory, id);
  try {
    const call = readOrNull(callShape, parseJson(readFileSync(file, "utf8")));
    rmSync(file);
    return call;
  } catch {
    return null;
  }
}

function callFile(directory: string, id: string): string {
  return join(callsDirectory(directory), `${id}.json`);
}

function forgetOldest(directory: string): void {
  const calls = callsDirectory(directory);
  const files = readdirSync(calls).map((name) => join(calls, name));
  if (files.length < MAX_WAITING) return;
  const age = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const oldest = files.toSorted((one, other) => age(one) - age(other)).slice(0, MAX_WAITING / 2);
  for (const file of oldest) rmSync(file, { force: true });
}
