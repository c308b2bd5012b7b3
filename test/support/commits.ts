import { createHash, createHmac } from "node:crypto";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { sandboxFiles } from "../../src/sandbox/files/files.js";
import type { CommandContext } from "../../src/sandbox/process/command.js";
import {
  type CommitStage,
  makeStage,
  newStage,
  stagedPath,
  type TreeRecord,
} from "../../src/sandbox/tree/tree-commit.js";

/** A new stage in the target with these contents, numbered from 0. */
export async function stageWith(
  context: CommandContext,
  { target, contents }: { target: string; contents: readonly (string | Uint8Array)[] },
): Promise<CommitStage> {
  const stage = newStage();
  await makeStage(context, { target, stage });
  await sandboxFiles(context).writeEach(
    contents.map((data, index) => ({ path: stagedPath({ target, stage }, index), data })),
  );
  return stage;
}

/** The state of a host's path, as a record expects it. */
export async function asItIs(directory: string, path: string): Promise<TreeRecord["expects"]> {
  const st = await lstat(join(directory, path), { bigint: true });
  const type = st.isDirectory() ? "directory" : st.isSymbolicLink() ? "symlink" : "file";
  return { type, ino: st.ino, sizeBytes: Number(st.size), modifiedNs: st.mtimeNs, changedNs: st.ctimeNs };
}

/** A line for each path below a directory: its type, mode and content. */
export async function describeTree(directory: string): Promise<string[]> {
  const lines: string[] = [];
  for (const path of (await readdir(directory, { recursive: true })).sort()) {
    const full = join(directory, path);
    const st = await lstat(full);
    const mode = (st.mode & 0o7777).toString(8);
    if (st.isSymbolicLink()) lines.push(`${path} -> ${await readlink(full)}`);
    else if (st.isDirectory()) lines.push(`${path}/ ${mode}`);
    else
      lines.push(
        `${path} ${mode} ${createHash("sha256")
          .update(await readFile(full))
          .digest("hex")
          .slice(0, 12)}`,
      );
  }
  return lines;
}

/** A journal with one step: an exchange that took two renames, after which the new file is at the path. */
export function forgeJournal({ path, newIno, key }: { path: string; newIno: bigint; key: Buffer }): Buffer {
  const step = Buffer.alloc(48);
  step.writeUInt8(2, 0);
  step.writeUInt32LE(0xffff_ffff, 8);
  step.writeUInt32LE(Buffer.byteLength(path), 12);
  step.writeBigUInt64LE(newIno, 16);
  step.write("0", 32);
  const steps = Buffer.concat([step, Buffer.from(`${path}\0`)]);
  return Buffer.concat([createHmac("sha256", key).update(steps).digest(), steps]);
}
