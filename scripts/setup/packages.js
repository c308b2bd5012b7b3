import { createHash } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root, run } from "./run.js";

const lockFile = join(root, "package-lock.json");
/** This file has the hash of the lock file that node_modules was installed from. */
const stampFile = join(root, "node_modules", ".brig-lock");

const quietly = ["--ignore-scripts", "--no-audit", "--no-fund"];

/** Installs the locked packages without running their install scripts, unless they are installed already. */
export async function installPackages({ progress, signal }) {
  const lock = createHash("sha256")
    .update(await readFile(lockFile))
    .digest("hex");
  if ((await readFile(stampFile, "utf8").catch(() => "")) === lock) return;
  if (!(await wasInstalledSince())) {
    // `npm ci`, because `npm install` may install other versions than the locked ones.
    await progress.step("installing the locked packages", (onLine) =>
      run(["npm", "ci", ...quietly], { onLine, signal }),
    );
  }
  await writeFile(stampFile, lock);
}

/** Whether npm was run after the last change of the lock file. */
async function wasInstalledSince() {
  const [lock, installed] = await Promise.all(
    [lockFile, join(root, "node_modules", ".package-lock.json")].map((path) => stat(path).catch(() => null)),
  );
  return installed !== null && installed.mtimeMs >= lock.mtimeMs;
}
