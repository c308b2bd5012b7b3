import { spawn } from "node:child_process";
import { link, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mustNotInstall } from "../setup/apt.js";
import { findProgram, folderOf, place, programs } from "./programs.js";

/** No installation takes that long, so whoever holds a lock for longer is another process that has got its number. */
const oldestLockMs = 20 * 60_000;

/**
 * Installs the program unless it is there, and returns its path; null if it cannot or must not be installed. Processes that ask for the same
 * program at once wait for the one that installs it.
 */
export async function installProgram(name) {
  const found = findProgram(name);
  if (found !== null || mustNotInstall()) return found;
  const { debian } = programs[name];
  if (debian && process.getuid?.() !== 0) return null;
  await mkdir(place, { recursive: true });
  // apt-get cannot run twice at once, whatever it installs.
  return await underLock(join(place, `.installing-${debian ? "debian" : name}`), async () => {
    if (findProgram(name) !== null) return findProgram(name);
    process.stderr.write(`installing ${name} for the tests\n`);
    const isDone = await (debian ? installDebian(debian) : installPackages(programs[name]));
    if (!isDone) process.stderr.write(`${name} cannot be installed: the tests that need it are skipped\n`);
    return findProgram(name);
  }).catch((error) => {
    process.stderr.write(`${name} cannot be installed: ${error.message}\n`);
    return null;
  });
}

/** Into a folder that gets its name when everything is in it, so that an interrupted installation is not taken for a finished one. */
async function installPackages({ packages, needsScripts = false, ...program }) {
  const folder = folderOf({ packages, ...program });
  const unfinished = await mkdtemp(join(place, ".unfinished-"));
  const quietly = [
    "--no-audit",
    "--no-fund",
    "--fetch-retries=0",
    ...(needsScripts ? [] : ["--ignore-scripts"]),
  ];
  try {
    if (!(await succeeds("npm", ["install", "--prefix", unfinished, ...quietly, ...packages]))) return false;
    await rm(folder, { recursive: true, force: true });
    await rename(unfinished, folder);
    return true;
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

async function installDebian(debian) {
  const patiently = ["-qq", "-o", "DPkg::Lock::Timeout=300"];
  const install = ["install", "-y", "--no-install-recommends", ...patiently, debian];
  // A fresh machine has no lists of packages, and old lists name packages that are gone.
  return (
    (await succeeds("apt-get", install)) ||
    ((await succeeds("apt-get", ["update", ...patiently])) && (await succeeds("apt-get", install)))
  );
}

async function succeeds(program, argv) {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const child = spawn(program, argv, { stdio: ["ignore", "ignore", "inherit"], env });
  return await new Promise((resolve) => {
    child.once("error", () => resolve(false));
    child.once("close", (status) => resolve(status === 0));
  });
}

/** The lock is a file with the number of the process that holds it. */
async function underLock(path, run) {
  const own = `${path}-${process.pid}-${Math.random()}`;
  await writeFile(own, String(process.pid));
  try {
    while (!(await tryToLink(own, path))) {
      if (await isForgotten(path)) await rm(path, { force: true });
      else await sleep(200);
    }
    try {
      return await run();
    } finally {
      await rm(path, { force: true });
    }
  } finally {
    await rm(own, { force: true });
  }
}

async function tryToLink(own, path) {
  try {
    await link(own, path);
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    return false;
  }
}

/** Whether the process that made the lock has ended without removing it. */
async function isForgotten(path) {
  try {
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > oldestLockMs) return true;
    process.kill(Number(await readFile(path, "utf8")), 0);
    return false;
  } catch (error) {
    // EPERM is a process of somebody else, and ENOENT a lock that is gone by now.
    return error.code === "ESRCH";
  }
}
