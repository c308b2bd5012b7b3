import { readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BrigError } from "../../errors.js";
import { isBelow } from "./paths.js";

/** More links than any kernel follows. */
const MAX_LINKS = 40;

/**
 * Where brig's and Codex's own directories, and the `config.toml` each may hold, lie below a writable directory. The next start obeys
 * them: a command that could write there would choose who is sent the API key. What a command could make lead elsewhere is
 * `workspace.invalid`. Whether a place exists is not looked at.
 */
export async function findOwnPlaces(
  directories: readonly string[],
  writable: readonly string[],
): Promise<string[]> {
  const places: string[] = [];
  for (const directory of directories)
    for (const path of [directory, join(directory, "config.toml")]) {
      const steps = await stepsTo(path);
      const place = steps.at(-1)?.path ?? "/";
      const link = steps.find((step) => step.isLink && liesBelow(step.path, writable));
      if (link !== undefined) throw replaceable(link.path, { path, place });
      if (writable.includes(place)) throw itself(place);
      if (liesBelow(place, writable)) places.push(place);
    }
  return [...new Set(places)];
}

/** A place that is not there cannot be mounted, so a command could make one. */
export function absentPlace(path: string): BrigError {
  return new BrigError(
    `the configuration is looked for in ${JSON.stringify(path)}, which does not exist and which a command could create`,
    {
      code: "workspace.invalid",
      hint: "create it, set BRIG_HOME or CODEX_HOME to a directory outside the workspace, or use --sandbox read-only",
    },
  );
}

interface Step {
  /** Without a link on the way to it. */
  path: string;
  isLink: boolean;
}

/** Every name that is looked up on the way to a path, links followed. The last one is where it leads, there or not. */
async function stepsTo(path: string): Promise<Step[]> {
  const steps: Step[] = [];
  let at = "/";
  let links = 0;
  for (let names = namesOf(path); names.length > 0; ) {
    const [name = "", ...rest] = names;
    const next = name === ".." ? dirname(at) : join(at, name);
    const target = links < MAX_LINKS ? await readlink(next).catch(() => null) : null;
    steps.push({ path: next, isLink: target !== null });
    if (target === null) at = next;
    else if (target.startsWith("/")) at = "/";
    if (target !== null) links += 1;
    names = target === null ? rest : [...namesOf(target), ...rest];
  }
  return steps;
}

function namesOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

function liesBelow(path: string, directories: readonly string[]): boolean {
  return directories.some((directory) => isBelow(path, directory));
}

function replaceable(link: string, { path, place }: { path: string; place: string }): BrigError {
  return new BrigError(
    `${JSON.stringify(link)}, on the way to ${JSON.stringify(path)}, is a symbolic link that a command could replace`,
    {
      code: "workspace.invalid",
      hint: `it leads to ${JSON.stringify(place)}: set BRIG_HOME or CODEX_HOME so that no link is in the workspace, or use --sandbox read-only`,
    },
  );
}

function itself(directory: string): BrigError {
  return new BrigError(
    `${JSON.stringify(directory)} may not be written to by commands: the next start obeys its config.toml`,
    {
      code: "workspace.invalid",
      hint: "work in a directory of its own, set BRIG_HOME or CODEX_HOME to another one, or use --sandbox read-only",
    },
  );
}
