import { join, resolve } from "node:path";
import { listNames, toBytePath } from "../git/byte-paths.js";
import type { GitSetting } from "../git/git-config.js";
import { isAtOrBelow } from "../plan/paths.js";
import { unusable } from "./unusable.js";
import { settingsIn } from "./work-tree.js";

/** `https://user:password@host`, and a name so long that it is a token. */
const URL_WITH_SECRET = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/@\s:]*:[^/@\s]+|[^/@\s:]{20,})@/i;
const SECRET_KEY = /\.(?:[^.]*(?:pass|password|passwd|token|secret|apikey)|extraheader|cookie)$/;
/** A helper that is a shell script may have the password in it, and one with a file has it in that file. */
const SECRET_HELPER = /password=|--file/;
const MAX_DIRECTORIES = 10_000;
/** Directories in a git directory that are not those of submodules. */
const OTHER_PARTS: ReadonlySet<string> = new Set(["objects", "refs", "logs", "hooks", "info", "lfs"]);

/**
 * Error: `workspace.invalid`, with the place, if the configuration in a git directory has a secret in it: whoever sees the
 * directory could read it. Reads the configuration of its submodules and work trees too.
 */
export function refuseSecrets(directory: string): void {
  const open = [directory];
  for (let count = 0, next = open.pop(); next !== undefined; count++, next = open.pop()) {
    if (count > MAX_DIRECTORIES)
      throw unusable(
        `${JSON.stringify(directory)} has too many submodules to look through`,
        "use a clone of its own",
      );
    for (const name of ["config", "config.worktree"]) refuseIn(join(next, name), directory);
    open.push(...submodulesBelow(next, directory));
  }
}

function submodulesBelow(path: string, top: string): string[] {
  const names = namesIn(path).filter((name) => !OTHER_PARTS.has(name));
  const inTop = path === top ? names.filter((name) => name === "modules" || name === "worktrees") : names;
  return inTop.map((name) => join(path, name));
}

function namesIn(path: string): string[] {
  try {
    const entries = listNames(toBytePath(path));
    return entries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => Buffer.from(name, "latin1").toString("utf8"));
  } catch {
    return [];
  }
}

function refuseIn(file: string, top: string): void {
  const open = [file];
  const known = new Set(open);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const settings = settingsIn(next);
    const secret = settings.find(isSecret);
    if (secret !== undefined)
      throw unusable(
        `commands could read the secret of ${JSON.stringify(withoutUrl(secret.name))} in ${JSON.stringify(next)}`,
        "keep it with a credential helper: git help credentials",
      );
    for (const path of includedIn(settings, join(next, ".."))) {
      if (known.has(path) || !isAtOrBelow(path, top)) continue;
      known.add(path);
      open.push(path);
    }
  }
}

function includedIn(settings: readonly GitSetting[], directory: string): string[] {
  return settings.flatMap(({ name, value }) =>
    /^include(?:if\..*)?\.path$/.test(name) && value ? [resolve(directory, value)] : [],
  );
}

function isSecret({ name, value }: GitSetting): boolean {
  if (value === null || value === "") return false;
  if ([value, name.slice(name.indexOf(".") + 1)].some((text) => URL_WITH_SECRET.test(text))) return true;
  if (/^credential\.(?:.*\.)?helper$/.test(name)) return SECRET_HELPER.test(value);
  return SECRET_KEY.test(name);
}

/** Section and key: the subsection between them may be the URL with the secret. */
function withoutUrl(name: string): string {
  return /:\/\//.test(name)
    ? `${name.slice(0, name.indexOf("."))}.….${name.slice(name.lastIndexOf(".") + 1)}`
    : name;
}
