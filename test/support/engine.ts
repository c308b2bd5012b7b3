import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { StartedTestContainer } from "testcontainers";
// @ts-expect-error -- a plain script without types
import { provideDebian } from "../../scripts/setup/debian-image.js";
import { readEnvironment } from "../../src/lib/env.js";
import { connectEngine } from "../../src/sandbox/docker/connect.js";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import type { ImageName } from "../../src/sandbox/images/definition.js";
import { ensureImages } from "../../src/sandbox/images/ensure.js";
import { testLabels } from "./test-run.js";

/** Where the second engine has its directory of this machine. */
const OUTSIDE = "/run/outside";

/** The engine of this machine. Tests share it and must not stop it. */
export async function testEngine(): Promise<Engine> {
  return await connectEngine({ env: readEnvironment() });
}

/** An engine that a test may stop and break: dockerd in a container, with an image store of its own. */
export interface HarmedEngine extends AsyncDisposable {
  readonly engine: Engine;
  /** As `DOCKER_HOST` spells it. */
  readonly endpoint: string;
  /** The tags of the images it was given. */
  readonly images: Record<string, string>;
  /** Kills the engine and everything it runs, at once, as a power cut would. */
  stop(): Promise<void>;
}

/**
 * Starts a second engine and copies these images of brig into it. Its containers have no network but loopback. Takes
 * two to ten seconds, and longer the first time, when its image is built.
 */
export async function harmedEngine({
  images = ["toolbox"],
  runtimes = {},
  disk,
}: {
  images?: ImageName[];
  /** Further runtimes by name, each a shell script; null is one whose program does not exist. */
  runtimes?: Readonly<Record<string, string | null>>;
  /** A directory of this machine that it sees as well, and in which it has its own files, in `engine`. Default: they are in a volume. */
  disk?: string;
} = {}): Promise<HarmedEngine> {
  const outer = await testEngine();
  const built = await ensureImages(outer, { names: ["engine", ...images], provideParent: provideDebian });
  const directory = await mkdtemp(join(tmpdir(), "brig-engine-"));
  const runtimeFlags = await writeRuntimes(directory, runtimes);
  const container = await startContainer(built.engine, {
    directory,
    disk,
    flags: [...runtimeFlags, ...(disk === undefined ? [] : [`--data-root=${disk}/engine`])],
  });
  const socket = join(directory, "docker.sock");
  const tags = Object.fromEntries(images.map((name) => [name, built[name]]));
  for (const tag of Object.values(tags)) {
    await copyImage(tag, { from: socketOf(outer), to: socket });
    const [repo, version] = tag.split(":");
    const path = `/images/localhost/${tag}/tag?repo=${repo}&tag=${version}`;
    if ((await outer.info()).product === "podman") await call(socket, { method: "POST", path });
  }

  let isStopped = false;
  const stop = async () => {
    if (!isStopped) await container.stop({ timeout: 0, remove: true, removeVolumes: true });
    isStopped = true;
  };
  return {
    engine: await connectEngine({ env: readEnvironment(), endpoint: `unix://${socket}` }),
    endpoint: `unix://${socket}`,
    images: tags,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function writeRuntimes(
  directory: string,
  runtimes: Readonly<Record<string, string | null>>,
): Promise<string[]> {
  for (const [name, script] of Object.entries(runtimes))
    if (script !== null) await writeFile(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return Object.keys(runtimes).map((name) => `--add-runtime=${name}=${OUTSIDE}/${name}`);
}

/**
 * As much privilege as dockerd needs, by name: a fully privileged container asks for every capability there is, and an
 * engine that lacks one of them itself, as in some virtual machines, cannot start it.
 */
async function startContainer(
  image: string,
  { directory, disk, flags }: { directory: string; disk: string | undefined; flags: readonly string[] },
): Promise<StartedTestContainer> {
  // The sweeper of this suite does what Ryuk does, and needs no image from a registry.
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= "true";
  // It takes half a second to load, and most files that use the engine need it not.
  const { GenericContainer, Wait } = await import("testcontainers");
  return await new GenericContainer(image)
    .withAddedCapabilities("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH")
    .withSecurityOpt("seccomp=unconfined", "apparmor=unconfined")
    .withLabels(testLabels())
    .withBindMounts([
      { source: directory, target: OUTSIDE, mode: "rw" },
      ...(disk === undefined ? [] : [{ source: disk, target: disk, mode: "rw" as const }]),
    ])
    .withCommand([`--host=unix://${OUTSIDE}/docker.sock`, "--bridge=none", "--iptables=false", ...flags])
    .withWaitStrategy(Wait.forLogMessage(/API listen on/))
    .withStartupTimeout(60_000)
    .start();
}

export function socketOf(engine: Engine): string {
  return new URL(engine.endpoint).pathname;
}

export async function copyImage(tag: string, { from, to }: { from: string; to: string }): Promise<void> {
  const archive = await call(from, { method: "GET", path: `/images/${tag}/get` });
  await text(await call(to, { method: "POST", path: "/images/load?quiet=1", body: archive }));
}

/** One request to an engine, for what brig itself never asks. Throws unless the answer is a success. */
export async function call(
  socketPath: string,
  { method, path, body, type }: { method: string; path: string; body?: Readable; type?: string },
): Promise<Readable> {
  const headers = type === undefined ? {} : { "content-type": type };
  return await new Promise((resolve, reject) => {
    const sent = request({ socketPath, method, path, headers }, async (response) => {
      if ((response.statusCode ?? 500) < 300) return resolve(response);
      reject(new Error(`${method} ${path}: ${response.statusCode} ${await text(response)}`));
    });
    sent.on("error", reject);
    if (body === undefined) sent.end();
    else body.pipe(sent);
  });
}
