import { BrigError } from "../../errors.js";
import { AnySignal } from "../../lib/time/any-signal.js";
import type { Engine } from "../docker/engine-types.js";

/** The parent of all images of brig. `ownDebian` is what the set-up of a checkout builds where no registry answers. */
const debian = "debian:bookworm-slim";
export const ownDebian = "brig/debian:bookworm-slim";

/** How long the registry may take to begin its answer, and how long it may stall later. */
const firstAnswerMs = 6_000;
const stallMs = 60_000;

export interface ParentOptions {
  /** The engine's: "amd64" or "arm64". */
  arch: string;
  onProgress?: ((line: string) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Returns the name of a Debian image. If the engine has none, it is pulled. Error: `image.build-failed` if that is not
 * possible.
 */
export async function provideParent(engine: Engine, options: ParentOptions): Promise<string> {
  for (const ref of [debian, ownDebian]) {
    if ((await engine.inspectImage(ref))?.arch === options.arch) return ref;
  }
  try {
    await pullDebian(engine, options);
    return debian;
  } catch (cause) {
    options.signal?.throwIfAborted();
    throw new BrigError(`the engine does not have ${debian}, and no registry gives it`, {
      code: "image.build-failed",
      hint: `docker pull ${debian}, or without a registry: mmdebstrap --variant=minbase bookworm - | docker import - ${debian}`,
      cause,
    });
  }
}

async function pullDebian(engine: Engine, { onProgress, signal }: ParentOptions): Promise<void> {
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
  } finally {
    clearTimeout(timer);
  }
}
