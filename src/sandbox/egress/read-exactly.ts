import type { Duplex } from "node:stream";

/**
 * The next bytes of a paused stream; null if it ends before it has so many, or takes too long. Nothing beyond
 * them is read.
 */
export function readExactly(stream: Duplex, bytes: number, timeoutMs: number): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const look = () => {
      const data = bytes === 0 ? Buffer.alloc(0) : (stream.read(bytes) as Buffer | null);
      if (data !== null) settle(data.length === bytes ? data : null);
      else if (stream.readableEnded || stream.destroyed) settle(null);
    };
    const settle = (data: Buffer | null) => {
      clearTimeout(timer);
      stream.off("readable", look).off("end", look).off("close", look);
      resolve(data);
    };
    const timer = setTimeout(() => settle(null), timeoutMs);
    stream.on("readable", look).on("end", look).on("close", look);
    look();
  });
}
