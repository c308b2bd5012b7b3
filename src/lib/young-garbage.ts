import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const COLLECT_EVERY_BYTES = 4 * 1024 * 1024;

/**
 * Keeps a process small while gigabytes pass through it. V8 collects dead young objects only after 16 MiB of
 * its own heap or 32 MiB of buffers. Earlier collections take less than a millisecond, and reusing the same
 * few megabytes saves as much.
 */
export class YoungGarbage {
  #bytes = 0;
  #collect: (() => void) | undefined;

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < COLLECT_EVERY_BYTES) return;
    this.#bytes = 0;
    this.#collect ??= youngCollector();
    this.#collect();
  }
}

function youngCollector(): () => void {
  const collect = globalThis.gc ?? hiddenCollector();
  return () => collect({ type: "minor" });
}

/** The flag makes V8's `gc` visible in new contexts. It is set only while one is created. */
function hiddenCollector(): NodeJS.GCFunction {
  setFlagsFromString("--expose-gc");
  const collect: NodeJS.GCFunction = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  return collect;
}
