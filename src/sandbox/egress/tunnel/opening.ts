import type { Duplex } from "node:stream";
import type { Denial } from "../rules/denial.js";
import { type JudgedBy, judgeFirstBytes } from "./first-bytes.js";

export type Opening =
  | { kind: "pass"; isTls: boolean }
  | { kind: "http" }
  | { kind: "denied"; denial: Denial }
  /** Nothing that can be judged came: the program closed its end, broke it, or took too long. */
  | { kind: "ended"; errno: string };

interface OpeningOptions extends JudgedBy {
  timeoutMs: number;
}

/**
 * Waits for what a program sends first, and judges it. The bytes are put back. Where any protocol is allowed, the
 * server may speak first, as those of SSH and MySQL do.
 */
export async function judgeOpening(
  inside: Duplex,
  outside: Duplex,
  { target, anyProtocol, endsTls, timeoutMs }: OpeningOptions,
): Promise<Opening> {
  const chunks: Buffer[] = [];
  const judge = (): Opening | null => {
    for (let chunk = inside.read(); chunk !== null; chunk = inside.read()) chunks.push(chunk);
    const data = Buffer.concat(chunks);
    const verdict = judgeFirstBytes(data, { target, anyProtocol, endsTls });
    if (verdict.kind !== "incomplete") return verdict;
    if (anyProtocol && (outside.readableLength > 0 || inside.readableEnded))
      return { kind: "pass", isTls: false };
    if (inside.readableEnded || inside.destroyed || outside.destroyed)
      return { kind: "ended", errno: "ECONNRESET" };
    return null;
  };
  const opening = await new Promise<Opening>((resolve) => {
    const sides = anyProtocol ? [inside, outside] : [inside];
    const look = () => {
      const result = judge();
      if (result !== null) settle(result);
    };
    const settle = (result: Opening) => {
      clearTimeout(timer);
      for (const side of sides) side.off("readable", look).off("end", look);
      for (const side of [inside, outside]) side.off("close", look);
      resolve(result);
    };
    // A server that waits for a program that waits for the server: any protocol may begin like that.
    const timer = setTimeout(
      () => settle(anyProtocol ? { kind: "pass", isTls: false } : { kind: "ended", errno: "ETIMEDOUT" }),
      timeoutMs,
    );
    for (const side of sides) side.on("readable", look).on("end", look);
    for (const side of [inside, outside]) side.on("close", look);
    look();
  });
  if (chunks.length > 0 && !inside.destroyed) inside.unshift(Buffer.concat(chunks));
  return opening;
}
