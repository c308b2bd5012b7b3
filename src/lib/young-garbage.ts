import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const COLLECT_EVERY_BYTES = 4 * 1024 * 1024;

/**
 * Keeps a process small while gigabytes pass through it. V8 collects dead young objects once 16 MiB of its own heap or
 * 32 MiB of buffers have piled up, and that memory stays with the process. Asked earlier it takes less than a
 * millisecond, and writing to the same few megabytes again saves as much.
 */
export class YoungGarbage {
  #bytes = 0;
  #collect: (() => void) | undefined;

  /** To be told of every piece that has passed. */
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

/** The flag shows V8's own `gc` to new contexts; it is set for as long as one is made. */
function hiddenCollector(): NodeJS.GCFunction {
  setFlagsFromString("--expose-gc");
  const collect: NodeJS.GCFunction = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  return collect;
}
