import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { CliContext } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import type { SecretMask } from "../../sandbox/index.js";
import type { LastingRecord, LastingWorkspace } from "../../services/index.js";
import { type ChangesFlags, openKept } from "./kept-changes.js";

/** The changes of a copy-on-write workspace: those that a session has left, or those of a sandbox that runs. */
export interface ChosenChanges extends Pick<LastingWorkspace, "diff" | "apply">, AsyncDisposable {
  about: { id: string; workspace: string; sandbox?: string };
  /** Undefined means all. */
  paths: string[] | undefined;
}

/**
 * Opens the changes that the arguments name: the first may be the name of a sandbox of `brig up`. Errors: `usage.invalid` where it could also be
 * meant as a path; `sandbox.unknown`; `sandbox.gone` for a sandbox that has left no changes; those of `openKept`.
 */
export async function openChanges(
  given: readonly string[],
  flags: ChangesFlags,
  { context, mask }: { context: CliContext; mask: () => Promise<SecretMask | undefined> },
): Promise<ChosenChanges> {
  const { lasting, paths } = await chosen(given, flags, context);
  const some = { paths: paths.length === 0 ? undefined : paths };
  if (lasting !== null && lasting.state === "running") {
    const { name, id, about } = lasting;
    const [{ lastingWorkspace }, { ownerNow }] = await Promise.all([
      import("../../services/index.js"),
      import("../lasting/exec-in.js"),
    ]);
    return {
      ...{ ...some, about: { id, workspace: about.workspace ?? "", sandbox: name } },
      ...lastingWorkspace(await ownerNow(context), name),
      [Symbol.asyncDispose]: async () => undefined,
    };
  }
  const left = lasting === null ? flags : { id: await leftBy(lasting) };
  const { sandbox, kept, apply } = await openKept(left, context, { mask: await mask() });
  return {
    ...{ ...some, about: { id: kept.id, workspace: kept.workspace }, apply },
    diff: (options) => sandbox.diff(options),
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  };
}

async function leftBy({ changes, ...record }: LastingRecord): Promise<string> {
  if (typeof changes === "string") return changes;
  const { endedError } = await import("../../services/index.js");
  throw endedError(record);
}

async function chosen(
  given: readonly string[],
  { in: wanted, id, last }: ChangesFlags,
  { cwd, environment }: CliContext,
): Promise<{ lasting: LastingRecord | null; paths: string[] }> {
  const paths = [...given];
  if (wanted !== undefined && (id !== undefined || last === true))
    throw invalidUsage(
      `--in cannot be combined with ${id === undefined ? "--last" : "--id"}`,
      "leave out one of them",
    );
  const [first, ...rest] = paths;
  const mayBeName = first !== undefined && id === undefined && last !== true;
  if (wanted === undefined && !mayBeName) return { lasting: null, paths };
  const { findLasting, readLasting } = await import("../../services/index.js");
  const known = readLasting(environment.brigHome);
  if (wanted !== undefined) return { lasting: findLasting(known, wanted), paths };
  const named = known.find((one) => one.name === first || one.id === first);
  if (first === undefined || named === undefined) return { lasting: null, paths };
  if (existsSync(resolve(cwd, first)))
    throw invalidUsage(
      `${JSON.stringify(first)} is the name of a sandbox, and of a file here`,
      `--in ${first} means the sandbox, and ./${first} the file`,
    );
  return { lasting: named, paths: rest };
}
