import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { readEnvironment } from "../../src/lib/env.js";
import { connectEngine } from "../../src/sandbox/docker/connect.js";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import type { ImageName } from "../../src/sandbox/images/definition.js";
import { ensureImages } from "../../src/sandbox/images/ensure.js";
import { copyImage, socketOf, testEngine } from "./engine.js";
import { testProgram } from "./test-program.js";

const run = promisify(execFile);

const isRoot = process.getuid?.() === 0;

/** Podman of another version than the installed one: a program that starts it where its own files and libraries are. */
const other = process.env.BRIG_TEST_PODMAN || null;
const installed =
  other === null && isRoot ? await testProgram("podman") : { path: other ?? "", missing: null };
const program = installed.path;

/** Null where the tests of Podman can run. Only root can start it as they do. */
export const whyNoPodman = !isRoot
  ? "needs root"
  : (installed.missing ??
    (existsSync("/usr/sbin/runc") ? null : "runc is not installed; apt-get install runc"));

export const hasPodman = whyNoPodman === null;

export interface PodmanEngine extends AsyncDisposable {
  readonly engine: Engine;
  /** Runs the program on the engine's own storage, and returns what it prints. */
  podman(...args: readonly string[]): Promise<string>;
  /** Kills the service. Its containers go on. */
  killService(): Promise<void>;
}

const runtime = fileURLToPath(new URL("../fixtures/runc-within-limits.cjs", import.meta.url));

/** Starts Podman's service with a storage of its own, and copies these images of brig into it. */
export async function podmanEngine(images: readonly ImageName[]): Promise<PodmanEngine> {
  const outer = await testEngine();
  const tags = await ensureImages(outer, { names: [...images] });
  const directory = await mkdtemp(join(tmpdir(), "brig-podman-"));
  for (const name of ["root", "run"]) await mkdir(join(directory, name));
  const socket = join(directory, "podman.sock");
  const flags = [
    ...["--root", join(directory, "root"), "--runroot", join(directory, "run")],
    ...["--cgroup-manager=cgroupfs", `--runtime=${runtime}`],
  ];
  const podman = async (...args: readonly string[]) => (await run(program, [...flags, ...args])).stdout;
  // For each container that runs out of memory, Podman writes a file named oom where the service was started.
  const service = spawn(program, [...flags, "system", "service", "--time=0", `unix://${socket}`], {
    cwd: directory,
    stdio: "ignore",
  });
  const ended = once(service, "exit");
  const killService = async () => {
    service.kill("SIGKILL");
    await ended;
  };
  const stop = async () => {
    await podman("rm", "--all", "--force", "--time=0").catch(() => undefined);
    service.kill();
    await ended;
    // For each command Podman has a process (conmon) that cleans up five minutes after the command has ended. That would make this directory anew.
    await run("pkill", ["-KILL", "-f", `${directory}/`]).catch(() => undefined);
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
    return { engine, podman, killService, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
