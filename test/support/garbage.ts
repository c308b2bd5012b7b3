import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Collects everything that nobody holds, again and again, until the wait is over. */
export async function whileCollecting<T>(wait: () => Promise<T>): Promise<T> {
  setFlagsFromString("--expose-gc");
  const collect: NodeJS.GCFunction = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  const timer = setInterval(() => collect(), 20);
  try {
    return await wait();
  } finally {
    clearInterval(timer);
  }
}
