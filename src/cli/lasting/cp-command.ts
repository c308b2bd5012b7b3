import { lstat, stat } from "node:fs/promises";
import { basename, join, posix, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";
import { errnoOf } from "../../lib/errno.js";
import type { LastingRecord, OwnerClient } from "../../services/index.js";
import { hostTreeBytes, readHostTree, TOP, writeHostTree } from "../../services/index.js";
import { CopyProgress } from "./copy-progress.js";
import { ownerNow, runningRecord } from "./exec-in.js";

export function defineCp(command: Command, context: CliContext): void {
  command
    .usage("[options] NAME:PATH DESTINATION|-\n       brig cp [options] SOURCE|- NAME:PATH")
    .argument(
      "<source>",
      "a file or directory here, NAME:PATH for one in a sandbox, or - for an archive on standard input",
    )
    .argument("<destination>", "the same, or - for an archive on standard output")
    .addHelpText("after", HELP)
    .action(async (source: string, destination: string) => await copy(source, destination, context));
}

const HELP = `
It works as docker cp does: a directory is copied into a directory that exists, or becomes the one that does not; DIR/. stands for what
is in DIR. Links are copied as links, and nothing is written through one. FIFOs, sockets and devices stay behind.`;

/** A path in a sandbox, a path here, or the standard stream. */
type End =
  | { kind: "sandbox"; record: LastingRecord; path: string; written: string }
  | { kind: "here"; path: string; written: string }
  | { kind: "stream" };

async function copy(source: string, destination: string, context: CliContext): Promise<void> {
  const [from, to] = [endOf(source, context), endOf(destination, context)];
  if (from.kind !== "sandbox" && to.kind !== "sandbox") throw noSandbox();
  const owner = await ownerNow(context);
  if (from.kind === "sandbox" && to.kind === "here") return await copyOut({ from, to, owner }, context);
  if (from.kind === "here" && to.kind === "sandbox") return await copyIn({ from, to, owner }, context);
  const { signal, stdin, stdout } = context;
  if (from.kind === "sandbox" && to.kind === "stream") {
    using progress = new CopyProgress(context, (over) => owner.archiveBytes(placeOf(from), over));
    return await owner.readArchive(placeOf(from), {
      ...{ top: posix.basename(from.path) || ".", signal },
      take: async (archive) => await pipeline(progress.counted(archive), stdout, { end: false }),
    });
  }
  if (from.kind === "stream" && to.kind === "sandbox") {
    await requireDirectory(to, { owner, signal });
    using progress = new CopyProgress(context, null);
    const archive = progress.counted(stdin);
    return await owner.writeArchive(placeOf(to), { archive, hasTop: false, signal });
  }
  throw noSandbox();
}

function noSandbox(): BrigError {
  return invalidUsage(
    "one of the two must be in a sandbox, and the other one here",
    "for example: brig cp NAME:/path/in/the/sandbox path/here",
  );
}

/** As with Docker, what has a colon before any slash is in a sandbox. Errors: `sandbox.unknown`; `sandbox.gone`. */
function endOf(written: string, context: CliContext): End {
  if (written === "-") return { kind: "stream" };
  const [, wanted, path] = /^([^/.:][^/:]*):(.*)$/s.exec(written) ?? [];
  if (wanted === undefined || path === undefined)
    return { kind: "here", path: resolve(context.cwd, written), written };
  const record = runningRecord(wanted, context);
  return { kind: "sandbox", record, path: posix.resolve("/", path), written: path };
}

type SandboxEnd = Extract<End, { kind: "sandbox" }>;
type HereEnd = Extract<End, { kind: "here" }>;

function placeOf({ record, path }: SandboxEnd): { sandbox: string; path: string } {
  return { sandbox: record.name, path };
}

async function copyOut(
  { from, to, owner }: { from: SandboxEnd; to: HereEnd; owner: OwnerClient },
  context: CliContext,
): Promise<void> {
  const { signal } = context;
  // What is in a directory is asked for by that directory, also if the path is that of a link to it.
  const isDirectory = from.written.endsWith("/") || namesContents(from.written);
  const place = isDirectory ? { ...placeOf(from), path: `${from.path}/.` } : placeOf(from);
  const type = await owner.typeAt(place, { follows: false, signal });
  if (type === null) throw missing(`${from.record.name}:${from.path}`);
  const facts = await stat(to.path).catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  });
  const isIntoDirectory = facts?.isDirectory() === true && !namesContents(from.written);
  if (type === "directory" && facts !== null && !facts.isDirectory()) throw notDirectory(to.written);
  if (type !== "directory" && facts === null && to.written.endsWith("/")) throw missing(to.written);
  const path = isIntoDirectory ? join(to.path, posix.basename(from.path)) : to.path;
  const { workspace } = from.record.about;
  using progress = new CopyProgress(context, (over) => owner.archiveBytes(place, over));
  await owner.readArchive(place, {
    ...{ top: TOP, signal },
    take: async (archive) => await writeHostTree(progress.counted(archive), { path, workspace }),
  });
}

async function copyIn(
  { from, to, owner }: { from: HereEnd; to: SandboxEnd; owner: OwnerClient },
  context: CliContext,
): Promise<void> {
  const { signal } = context;
  const facts = await lstat(from.path).catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") throw missing(from.written);
    throw error;
  });
  const type = await owner.typeAt(placeOf(to), { follows: true, signal });
  if (facts.isDirectory() && type !== null && type !== "directory") throw notDirectory(to.path);
  if (!facts.isDirectory() && type === null && to.written.endsWith("/")) throw missing(to.path);
  const isIntoDirectory = type === "directory" && !(facts.isDirectory() && namesContents(from.written));
  const path = isIntoDirectory ? posix.join(to.path, basename(from.path)) : to.path;
  using progress = new CopyProgress(context, () => hostTreeBytes(from.path));
  const archive = progress.counted(readHostTree(from.path));
  await owner.writeArchive({ sandbox: to.record.name, path }, { archive, hasTop: true, signal });
}

async function requireDirectory(
  to: SandboxEnd,
  { owner, signal }: { owner: OwnerClient; signal: AbortSignal },
): Promise<void> {
  const type = await owner.typeAt(placeOf(to), { follows: true, signal });
  if (type === null) throw missing(to.path);
  if (type !== "directory") throw notDirectory(to.path);
}

/** Whether a directory is meant without itself: `DIR/.`, and `.`. */
function namesContents(written: string): boolean {
  return written === "." || written.endsWith("/.");
}

function missing(path: string): BrigError {
  return new BrigError(`there is nothing at ${path}`, { code: "file.not-found" });
}

function notDirectory(path: string): BrigError {
  return new BrigError(`${path} is not a directory`, { code: "file.not-directory" });
}
