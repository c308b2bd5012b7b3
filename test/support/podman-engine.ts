import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { readEnvironment } from "../../src/config/env.js";
import { connectEngine } from "../../src/docker/connect.js";
import type { Engine } from "../../src/docker/engine-types.js";
import type { ImageName } from "../../src/images/definition.js";
import { ensureImages } from "../../src/images/ensure.js";
import { copyImage, socketOf, testEngine } from "./engine.js";

const run = promisify(execFile);

/** Podman of another version than the installed one: a program that starts it where its own files and libraries are. */
const program = process.env.BRIG_TEST_PODMAN || "/usr/bin/podman";

/** Whether this machine has Podman. Only root can start it as these tests do. */
export const hasPodman = process.getuid?.() === 0 && existsSync(program) && existsSync("/usr/sbin/runc");

export interface PodmanEngine extends AsyncDisposable {
  readonly engine: Engine;
  /** Runs the program on the engine's own storage, and returns what it prints. */
  podman(...args: readonly string[]): Promise<string>;
}

/**
 * Podman asks for as many open files and processes as Linux ever allows. A virtual machine may allow less, and root may lack the
 * right to raise that; then no container starts. So this asks for no more than the limits of this process.
 */
const runtimeScript = `#!${process.execPath}
const { readFileSync, writeFileSync } = require("node:fs");
const { spawnSync } = require("node:child_process");
const args = process.argv.slice(2);
const after = (name) => args[args.indexOf(name) + 1];
const limits = new Map(
  readFileSync("/proc/self/limits", "utf8").split("\\n").map((line) => [line.slice(0, 26).trim(), Number(line.slice(47, 68).trim())]),
);
const names = { RLIMIT_NOFILE: "Max open files", RLIMIT_NPROC: "Max processes" };
function lower(path, find) {
  const config = JSON.parse(readFileSync(path, "utf8"));
  for (const limit of find(config).rlimits ?? []) {
    const most = limits.get(names[limit.type]);
    if (!(most >= 0)) continue;
    limit.hard = Math.min(limit.hard, most);
    limit.soft = Math.min(limit.soft, most);
  }
  writeFileSync(path, JSON.stringify(config));
}
if (args.includes("create")) lower(after("--bundle") + "/config.json", (config) => config.process);
if (args.includes("exec") && args.includes("--process")) lower(after("--process"), (config) => config);
const { status } = spawnSync("/usr/sbin/runc", args, { stdio: [0, 1, 2, 3, 4, 5] });
process.exitCode = status ?? 1;
`;

/** Starts Podman's service with a storage of its own, and copies these images of brig into it. */
export async function podmanEngine(images: readonly ImageName[]): Promise<PodmanEngine> {
  const outer = await testEngine();
  const tags = await ensureImages(outer, { names: [...images], mayInstall: true });
  const directory = await mkdtemp(join(tmpdir(), "brig-podman-"));
  const runtime = join(directory, "runc-within-limits");
  await writeFile(runtime, runtimeScript, { mode: 0o755 });
  for (const name of ["root", "run"]) await mkdir(join(directory, name));
  const socket = join(directory, "podman.sock");
  const flags = [
    ...["--root", join(directory, "root"), "--runroot", join(directory, "run")],
    ...["--cgroup-manager=cgroupfs", `--runtime=${runtime}`],
  ];
  const podman = async (...args: readonly string[]) => (await run(program, [...flags, ...args])).stdout;
  const service = spawn(program, [...flags, "system", "service", "--time=0", `unix://${socket}`], {
    stdio: "ignore",
  });
  const ended = once(service, "exit");
  const stop = async () => {
    await podman("rm", "--all", "--force", "--time=0").catch(() => undefined);
    service.kill();
    await ended;
    // Podman mounts its storage on itself.
    await run("umount", [join(directory, "root", "overlay")]).catch(() => undefined);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    while (!existsSync(socket)) {
      if (service.exitCode !== null) throw new Error(`podman's service ended with ${service.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    for (const name of images) await copyImage(tags[name], { from: socketOf(outer), to: socket });
    const engine = await connectEngine({ env: readEnvironment(), endpoint: `unix://${socket}` });
    if (tags.base !== undefined) await engine.tagImage(tags.base, "brig/base:latest");
    return { engine, podman, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
