import { join } from "node:path";
import { listNames, readSmallFile, toBytePath } from "../git/byte-paths.js";
import type { SandboxPlan } from "../plan/plan.js";
import type { Finding } from "./receipt.js";

const HOOK_MAX_BYTES = 64 * 1024;

/** Marks of the hooks that these programs install, by the name that the list of obeyed names has for them. */
const MARKS: Readonly<Record<string, RegExp>> = {
  lefthook: /lefthook/i,
  "pre-commit": /pre-commit\.com|pre_commit|hook-impl/,
  prek: /\bprek\b/,
  Overcommit: /overcommit/i,
  "simple-git-hooks": /simple.git.hooks/i,
  CaptainHook: /captainhook/i,
  GrumPHP: /grumphp/i,
  "rusty-hook": /rusty-hook/,
  hk: /\bhk run\b/,
};

/**
 * Says of files by which hooks are configured that git runs them from now on, where such hooks are installed. The hooks
 * themselves are protected; what they run is a file like any other.
 */
export function markInstalled(
  findings: readonly Finding[],
  { mounts }: Pick<SandboxPlan, "mounts">,
): Finding[] {
  if (!findings.some(({ obeyedBy }) => managerIn(obeyedBy) !== null)) return [...findings];
  const installed = new Set(
    mounts
      .filter(({ kind, source }) => (kind === "protected" || kind === "repository") && source === undefined)
      .flatMap(({ path }) => managersIn(join(path, "hooks"))),
  );
  return findings.map((finding) => {
    const manager = managerIn(finding.obeyedBy);
    if (manager === null || !installed.has(manager)) return finding;
    return {
      ...finding,
      obeyedBy: `${manager}, whose hooks are installed: your next git commit or push runs it`,
    };
  });
}

function managerIn(obeyedBy: string | undefined): string | null {
  const name = /^(.+), as hooks of git$/.exec(obeyedBy ?? "")?.[1];
  return name !== undefined && Object.hasOwn(MARKS, name) ? name : null;
}

function managersIn(directory: string): string[] {
  const texts = hookNames(directory).map((name) => textOf(`${toBytePath(directory)}/${name}`));
  return Object.keys(MARKS).filter((manager) => texts.some((text) => MARKS[manager]?.test(text)));
}

function hookNames(directory: string): string[] {
  try {
    return listNames(toBytePath(directory))
      .map(({ name }) => name)
      .filter((name) => !name.endsWith(".sample"));
  } catch {
    return [];
  }
}

/** Empty for what is no small regular file. */
function textOf(path: string): string {
  try {
    const bytes = readSmallFile(path, HOOK_MAX_BYTES);
    return bytes === null || typeof bytes === "string" ? "" : bytes.toString("latin1");
  } catch {
    return "";
  }
}
