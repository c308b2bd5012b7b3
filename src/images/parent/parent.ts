import { createReadStream } from "node:fs";
import type { Engine } from "../../docker/engine-types.js";
import { AnySignal } from "../../lib/time/any-signal.js";
import { inTemporaryDirectory } from "../temporary-directory.js";
import { type BootstrapOptions, bootstrapDebian } from "./bootstrap.js";

/** What every image of brig is built on, and the name of our own making of it where no registry has one for us. */
const debian = "debian:bookworm-slim";
const ownDebian = "brig/debian:bookworm-slim";

/** A registry that has not begun to answer by then is taken for absent; one that stalls later too. */
const firstAnswerMs = 6_000;
const stallMs = 60_000;

/** The name of a Debian image that the engine has. Pulls it, or makes and imports one, when it has none. */
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
  const patience = new AbortController();
  using ends = new AnySignal([signal, patience.signal]);
  let timer = setTimeout(() => patience.abort(), firstAnswerMs);
  try {
    await engine.pullImage(debian, {
      signal: ends.signal,
      onProgress: (line) => {
        clearTimeout(timer);
        timer = setTimeout(() => patience.abort(), stallMs);
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
  options.onProgress?.("no registry answers; making Debian's base system from its package archive");
  await inTemporaryDirectory(async (directory) => {
    const tar = await bootstrapDebian(directory, options);
    await engine.importImage(createReadStream(tar), ownDebian);
  });
}
