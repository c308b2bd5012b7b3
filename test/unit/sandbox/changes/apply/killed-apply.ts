import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { ownerOf, readHostProcesses } from "../../../../../src/lib/owner.js";

/** Writes the record of an apply whose process was killed, and returns the name of its file. */
export async function recordOfKilled(
  brigHome: string,
  {
    workspace = "/repo",
    stage = ".brig-stage-0f",
    key = "00".repeat(32),
    ...others
  }: Record<string, unknown> = {},
): Promise<string> {
  const child = spawn("sleep", ["60"]);
  const owner = await ownerOf(child.pid ?? 0, await readHostProcesses(hostname()));
  child.kill("SIGKILL");
  await once(child, "exit");
  const name = `${randomUUID()}.json`;
  await mkdir(join(brigHome, "applies"), { recursive: true });
  const record = { workspace, stage, key, owner, ...others };
  await writeFile(join(brigHome, "applies", name), JSON.stringify(record));
  return name;
}
