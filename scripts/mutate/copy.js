import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../setup/run.js";

/** A copy of the project as it is now, in which files can be changed without anybody noticing. */
export async function copyProject() {
  const path = await mkdtemp(join(tmpdir(), "brig-mutate-"));
  const listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { stdout } = await promisify(execFile)("git", listed, { cwd: root, maxBuffer: 1 << 26 });
  for (const name of stdout.split("\0").filter((one) => one !== ""))
    await cp(join(root, name), join(path, name), { recursive: true }).catch(ignoreMissing);
  await cp(join(root, "dist"), join(path, "dist"), { recursive: true }).catch(ignoreMissing);
  await symlink(join(root, "node_modules"), join(path, "node_modules"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Git lists what was removed and not committed yet. */
function ignoreMissing(error) {
  if (error.code !== "ENOENT") throw error;
}
