import type { Duplex, Readable } from "node:stream";

export type BodyReading =
  | { kind: "read"; data: Buffer }
  | { kind: "too-large"; maxBytes: number }
  /** The program went away, or sent nothing for too long. */
  | { kind: "ended" };

/** Limit for one request: no service of AWS that needs the checksum of a body takes much more. */
const BODY_MAX_BYTES = 32 * 1024 * 1024;
/** Limit for all requests of one sandbox at once. */
const ALL_MAX_BYTES = 128 * 1024 * 1024;

/** The bodies of requests that wait to be signed, which are in memory. */
export class KeptBodies {
  #bytes = 0;

  /** Reads a body to its end. The memory is given back when the connection `to` closes. */
  async read(
    from: Readable,
    { idleTimeoutMs, to }: { idleTimeoutMs: number; to: Duplex },
  ): Promise<BodyReading> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const giveBack = () => {
      this.#bytes -= bytes;
      bytes = 0;
    };
    to.once("close", giveBack);
    const reading = await new Promise<BodyReading>((resolve) => {
      const settle = (result: BodyReading) => {
        clearTimeout(timer);
        from.off("data", take).off("end", end).off("close", lose).off("error", lose);
        to.off("close", lose);
        resolve(result);
      };
      const lose = () => settle({ kind: "ended" });
      const end = () => settle({ kind: "read", data: Buffer.concat(chunks) });
      const take = (chunk: Buffer) => {
        timer.refresh();
        bytes += chunk.length;
        this.#bytes += chunk.length;
        if (bytes > BODY_MAX_BYTES || this.#bytes > ALL_MAX_BYTES)
          return settle({ kind: "too-large", maxBytes: BODY_MAX_BYTES });
        chunks.push(chunk);
      };
      const timer = setTimeout(lose, idleTimeoutMs);
      to.once("close", lose);
      from.on("error", lose).on("close", lose).on("end", end).on("data", take);
      if (from.readableEnded) end();
      else if (from.destroyed || to.destroyed) lose();
    });
    if (reading.kind !== "read" || to.destroyed) giveBack();
    return reading;
  }
}
