import type { z } from "zod";
import { DEFAULT_MODE, isSandboxMode, SANDBOX_MODES, type SandboxMode } from "../modes.js";
import type { policySchema } from "../policy.js";
import type { PolicyProblem } from "./policy-problems.js";

/** A policy as its file has it. */
export type PolicyDocument = z.input<typeof policySchema>;

type Table = Readonly<Record<string, unknown>>;

/** `base` is null for a document that extends nothing. */
type Extended =
  | { kind: "whole"; document: unknown; base: SandboxMode | null }
  | { kind: "refused"; problem: PolicyProblem };

/**
 * A policy's document with all that it takes over from the mode of its `extends`. Only modes can be extended, so that what a policy
 * allows never depends on another file. Nothing gets looser by being taken over: protected names are only added to, and directories in
 * memory shrink with a smaller memory limit. Values of a wrong type stay, for the schema to refuse.
 */
export function extendedDocument(
  document: unknown,
  readMode: (mode: SandboxMode) => PolicyDocument,
): Extended {
  if (!isTable(document) || document.extends === undefined) return { kind: "whole", document, base: null };
  const { extends: name, ...own } = document;
  if (typeof name !== "string" || !isSandboxMode(name)) return { kind: "refused", problem: unknownMode };
  const base = readMode(name);
  const scale = memoryScale(own.limits, base.limits);
  return {
    kind: "whole",
    base: name,
    document: {
      ...base,
      ...own,
      workspace: mergedWorkspace(own.workspace, { base, readMode }),
      tmpfs: mergedTmpfs(
        own.tmpfs,
        base.tmpfs.map((entry) => ({ ...entry, sizeMb: scaled(entry.sizeMb, scale) })),
      ),
      limits: over(own.limits, { ...base.limits, shmMb: scaled(base.limits.shmMb, scale) }),
      overrides: over(own.overrides, base.overrides),
    },
  };
}

const unknownMode: PolicyProblem = {
  field: "extends",
  message: `extends must be one of ${SANDBOX_MODES.map((mode) => JSON.stringify(mode)).join(", ")}: a file cannot be extended`,
};

/** The table of the mode, with each key that is written replaced. */
function over(own: unknown, base: object): unknown {
  if (own === undefined) return base;
  return isTable(own) ? { ...base, ...own } : own;
}

/**
 * Has the protected names of both. A mode with a read-only workspace names none, so where the workspace becomes writable, those of
 * workspace-write are protected.
 */
function mergedWorkspace(
  own: unknown,
  { base, readMode }: { base: PolicyDocument; readMode: (mode: SandboxMode) => PolicyDocument },
): unknown {
  const workspace = over(own, base.workspace);
  if (!isTable(workspace) || !Array.isArray(workspace.protected)) return workspace;
  const becomesWritable = base.workspace.access === "ro" && workspace.access !== "ro";
  const names = becomesWritable ? readMode(DEFAULT_MODE).workspace.protected : base.workspace.protected;
  return { ...workspace, protected: [...new Set([...names, ...workspace.protected])] };
}

/**
 * An entry with the path of one of the mode's has what it does not say itself from that. The file's own entries come first, so that
 * messages number them as the file does.
 */
function mergedTmpfs(own: unknown, base: PolicyDocument["tmpfs"]): unknown {
  if (own === undefined) return base;
  if (!Array.isArray(own)) return own;
  const written = own.map((entry: unknown) => {
    const same = base.find(({ path }) => isTable(entry) && entry.path === path);
    return same === undefined ? entry : over(entry, same);
  });
  const paths = new Set(own.map((entry: unknown) => (isTable(entry) ? entry.path : undefined)));
  return [...written, ...base.filter(({ path }) => !paths.has(path))];
}

function memoryScale(own: unknown, base: PolicyDocument["limits"]): number {
  const memoryMb = isTable(own) ? own.memoryMb : undefined;
  const isSmaller = typeof memoryMb === "number" && memoryMb > 0 && memoryMb < base.memoryMb;
  return isSmaller ? memoryMb / base.memoryMb : 1;
}

function scaled(sizeMb: number, scale: number): number {
  return Math.max(1, Math.floor(sizeMb * scale));
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
