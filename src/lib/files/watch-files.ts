import { stat } from "node:fs/promises";

const LOOK_EVERY_MS = 1000;

/**
 * Calls `onChange` when one of the files is another one than before and all have stayed as they are from one look to the next: what is written
 * in several steps is whole by then. It is looked at their paths, so that a link may change that leads to them.
 */
export function watchFiles(
  paths: readonly string[],
  onChange: () => Promise<void>,
  everyMs = LOOK_EVERY_MS,
): Disposable {
  let known: string | null = null;
  let seen = "";
  let isLooking = false;
  const look = async () => {
    if (isLooking) return;
    isLooking = true;
    try {
      const now = (await Promise.all(paths.map(stateOf))).join("\n");
      known ??= now;
      if (now !== known && now === seen) {
        known = now;
        await onChange();
      }
      seen = now;
    } finally {
      isLooking = false;
    }
  };
  void look();
  const timer = setInterval(() => void look(), everyMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function stateOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(" ");
  } catch {
    return "missing";
  }
}
