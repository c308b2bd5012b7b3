import { createReadStream } from "node:fs";
import type { Engine } from "../../docker/engine-types.js";
import { AnySignal } from "../../lib/time/any-signal.js";
import { inTemporaryDirectory } from "../temporary-directory.js";
import { type BootstrapOptions, bootstrapDebian } from "./bootstrap.js";

/** The parent of all images of brig. `ownDebian` is built on this machine if no registry answers. */
const debian = "debian:bookworm-slim";
const ownDebian = "brig/debian:bookworm-slim";

/** How long the registry may take to begin its answer, and how long it may stall later. */
const firstAnswerMs = 6_000;
const stallMs = 60_000;

/** Returns the name of a Debian image. If the engine has none, it is pulled, or built and imported. */
export async function provideParent(engine: Engine, options: BootstrapOptions): Promise<string> {
  for (const ref of [debian, ownDebian]) {
    if ((await engine.inspectImage(ref))?.arch === options.arch) return ref;
  }
  if (await pullDebian(engine, options)) return debian;
  options.signal?.throwIfAborted();
  await importDebian(engine, options);
  return ownDebian;
}

async function pullDebian(engine: Engine, { onProgress, signal }: BootstrapOptions): Promise<boolean> {
  onProgress?.(`looking for ${debian} in the registry`);
  const stalled = new AbortController();
  using ends = new AnySignal([signal, stalled.signal]);
  let timer = setTimeout(() => stalled.abort(), firstAnswerMs);
  try {
    await engine.pullImage(debian, {
      signal: ends.signal,
      onProgress: (line) => {
        clearTimeout(timer);
        timer = setTimeout(() => stalled.abort(), stallMs);
        onProgress?.(line);
      },
    });
    return true;
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}

async function importDebian(engine: Engine, options: BootstrapOptions): Promise<void> {
  options.onProgress?.("no registry answers; building Debian's base system from its package archive");
  await inTemporaryDirectory(async (directory) => {
    const tar = await bootstrapDebian(directory, options);
    await engine.importImage(createReadStream(tar), ownDebian);
  });
}
