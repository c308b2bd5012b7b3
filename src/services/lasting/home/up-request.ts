import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDirectorySync } from "../../../lib/files/make-directory.js";
import { readOrNull } from "../../../lib/json/json-shape.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { type UpRequest, upRequestShape } from "../wire/messages.js";
import { lastingDirectory } from "./lasting-records.js";

const FILE = "request.json";

/** The variables of a client that say how a sandbox is opened. Others, such as keys, are never written to a disk. */
const KEPT_VARIABLES =
  /^(?:HOME|PATH|USER|LANG|TZ|TMPDIR|SSH_AUTH_SOCK|CODEX_HOME|GIT_CONFIG_GLOBAL|(?:BRIG|DOCKER|XDG|LC)_[A-Z0-9_]*)$/;

/** What another owner needs to go on with the sandbox of this name, until it has ended. */
export function keptDirectory(brigHome: string, name: string): string {
  return join(lastingDirectory(brigHome), `${name}${KEPT}`);
}

const KEPT = ".kept";

/** The names of all sandboxes that have such a directory. */
export function keptNames(brigHome: string): string[] {
  const names = readdirSync(lastingDirectory(brigHome));
  return names.flatMap((name) => (name.endsWith(KEPT) ? [name.slice(0, -KEPT.length)] : []));
}

/** Readable only for this user. Errors: those of the file system. */
export function writeRequest(directory: string, request: UpRequest): void {
  const kept = Object.entries(request.variables).filter(([variable]) => KEPT_VARIABLES.test(variable));
  const text = JSON.stringify({ ...request, variables: Object.fromEntries(kept) });
  makeDirectorySync(directory, { mode: 0o700 });
  writeFileSync(join(directory, FILE), `${text}\n`, { mode: 0o600, flag: "wx" });
}

/** Null for what is no request, or not there. */
export function readRequest(directory: string): UpRequest | null {
  try {
    return readOrNull(upRequestShape, parseJson(readFileSync(join(directory, FILE), "utf8")));
  } catch {
    return null;
  }
}

export function removeKept(brigHome: string, name: string): void {
  rmSync(keptDirectory(brigHome, name), { recursive: true, force: true });
}
