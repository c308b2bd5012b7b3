import { BrigError } from "../../errors.js";
import { protocolError } from "../channel/frames.js";
import type { FileWatch, WatchedChange } from "../portable-sandbox.js";
import type { CommandContext } from "../process/command.js";
import { RunningProcess } from "../process/process.js";
import { checkedPath, errnoError } from "./file-request.js";
import { openWatch } from "./file-watch.js";

/** In the toolbox, which every sandbox has. Its records are described in its source. */
const PROGRAM = "/.brig/watch";
const HEAD_BYTES = 4;
const BEGUN = 0;
const LOST = 6;
const FAILED = 7;
const typeOf: ReadonlyMap<number, WatchedChange["type"]> = new Map([
  [1, "create"],
  [2, "write"],
  [3, "remove"],
  [4, "rename"],
  [5, "chmod"],
]);

/** Watches a directory by a program in the sandbox, which has the rights of its user and no others. */
export async function watchFiles(
  context: CommandContext,
  path: string,
  { recursive = false, signal }: { recursive?: boolean | undefined; signal?: AbortSignal | undefined },
): Promise<FileWatch> {
  signal?.throwIfAborted();
  const argv = [PROGRAM, checkedPath(path), ...(recursive ? ["tree"] : [])];
  const process = new RunningProcess(context, argv, { cwd: "/", signal });
  process.stdin?.on("error", () => undefined);
  // Whoever reads the changes is told.
  process.exit.catch(() => undefined);
  const records = readRecords(process, path);
  return await openWatch(records, {
    async end() {
      await process.kill().catch(() => undefined);
      await process.exit.catch(() => undefined);
    },
    notBegun: () => protocolError("a watch that did not begin"),
  });
}

/** Null says that the watch has begun. It ends with the directory. Errors: `file.*`; `sandbox.gone`; the signal's reason. */
async function* readRecords(
  process: RunningProcess,
  path: string,
): AsyncGenerator<WatchedChange | null, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of process.stdout as AsyncIterable<Buffer>) {
    const bytes = Buffer.concat([rest, piece]);
    let at = 0;
    while (at + HEAD_BYTES <= bytes.length) {
      const end = at + HEAD_BYTES + bytes.readUInt16LE(at + 2);
      if (end > bytes.length) break;
      const pathBytes = bytes.subarray(at + HEAD_BYTES, end);
      yield changeOf(bytes.readUInt8(at), { pathBytes, path });
      at = end;
    }
    rest = bytes.subarray(at);
  }
  const { exitCode } = await process.exit;
  if (exitCode === 0) return;
  throw new BrigError(`the watch of ${path} was ended by something in the sandbox (status ${exitCode})`, {
    code: "file.failed",
    hint: "watch it again",
  });
}

function changeOf(
  kind: number,
  { pathBytes, path }: { pathBytes: Buffer; path: string },
): WatchedChange | null {
  const type = typeOf.get(kind);
  if (type !== undefined) return { type, pathBytes, path: pathBytes.toString("utf8") };
  if (kind === BEGUN) return null;
  if (kind === LOST)
    throw new BrigError(`changes in ${path} came faster than they were read, so that some are missing`, {
      code: "file.failed",
      hint: "read the directory, and watch it again",
    });
  if (kind === FAILED) throw cannotWatch(path, Number(pathBytes.toString()));
  throw protocolError(`a change of the unknown kind ${kind}`);
}

const [EMFILE, ENOSPC] = [24, 28];

function cannotWatch(path: string, number: number): BrigError {
  if (number !== EMFILE && number !== ENOSPC) return errnoError("watch", path, { number });
  const limit = number === EMFILE ? "fs.inotify.max_user_instances" : "fs.inotify.max_user_watches";
  return new BrigError(`cannot watch ${path}: the kernel allows no more watches`, {
    code: "file.failed",
    hint: `end other watches, watch a smaller tree, or raise ${limit} on the machine of the engine`,
  });
}
