import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

function garbageCollector(): NodeJS.GCFunction {
  setFlagsFromString("--expose-gc");
  const collect: NodeJS.GCFunction = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  return collect;
}

/** Collects everything that nobody holds, again and again, until the wait is over. */
export async function whileCollecting<T>(wait: () => Promise<T>): Promise<T> {
  const collect = garbageCollector();
  const timer = setInterval(() => collect(), 20);
  try {
    return await wait();
  } finally {
    clearInterval(timer);
  }
}

/**
 * The bytes of objects and buffers that this process holds. How much memory the system says it has
 * is no measure of that: how much garbage is in it depends on how busy the machine was.
 */
export function heldBytes(): number {
  const collect = garbageCollector();
  collect();
  // The bytes of a buffer are counted as free only after the collection that found it.
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** How far the bytes that this process holds rise during the work. The looks at them take at most a tenth of the time. */
export async function heldDuring(work: () => Promise<unknown>): Promise<number> {
  const before = heldBytes();
  let most = before;
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    const started = performance.now();
    most = Math.max(most, heldBytes());
    timer = setTimeout(look, 100 + 10 * (performance.now() - started));
  };
  timer = setTimeout(look, 100);
  try {
    await work();
    return Math.max(most, heldBytes()) - before;
  } finally {
    clearTimeout(timer);
  }
}
