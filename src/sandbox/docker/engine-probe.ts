import type { Environment } from "../../lib/env.js";
import { anything, nullish, object, readOrNull, record } from "../../lib/json/json-shape.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { checkImageName } from "./calls/image-name.js";
import { nullIfMissing } from "./client.js";
import { engineCandidates } from "./connect.js";
import type { Endpoint } from "./endpoint.js";
import { asRefusal } from "./engine-failure.js";
import { openModem } from "./modem.js";
import { openTransport } from "./transport.js";

export interface ProbeOptions {
  env: Environment;
  image: string;
  /** Whether to ask for the runtimes, which takes ten times as long as asking for the image. */
  needsRuntimes: boolean;
  withinMs: number;
}

export type EngineProbe =
  /** `runtimes` is empty unless they were asked for. */
  | { kind: "answered"; hasImage: boolean; runtimes: string[] }
  /** No engine answers at any address. */
  | { kind: "silent" }
  /** Not known: the engine is reached by TLS or ssh, took too long or sent an unusable answer. */
  | { kind: "unclear" };

/**
 * Checks the usual reasons why a start would fail. Takes a few milliseconds, a tenth of the time to connect.
 * The start itself decides everything that is uncertain.
 */
export async function probeEngine(options: ProbeOptions): Promise<EngineProbe> {
  checkImageName(options.image);
  using limit = new TimeLimit(options.withinMs);
  for await (const { endpoint, isChosen } of engineCandidates(options)) {
    const probe = await probeAt(endpoint, options, limit.signal);
    if (probe.kind !== "silent" || isChosen) return probe;
  }
  return { kind: "silent" };
}

async function probeAt(
  endpoint: Endpoint,
  { image, needsRuntimes }: ProbeOptions,
  signal: AbortSignal,
): Promise<EngineProbe> {
  if (endpoint.kind === "ssh" || (endpoint.kind === "tcp" && endpoint.tls !== null))
    return { kind: "unclear" };
  try {
    const engine = openTransport(await openModem(endpoint));
    const [found, info] = await Promise.all([
      nullIfMissing(engine.json({ method: "GET", path: `/images/${image}/json` }, signal)),
      needsRuntimes ? engine.json({ method: "GET", path: "/info" }, signal).catch(nullIfAnswered) : null,
    ]);
    const runtimes = Object.keys(readOrNull(infoReply, info)?.Runtimes ?? {});
    return { kind: "answered", hasImage: found !== null, runtimes };
  } catch (error) {
    return { kind: isAnswer(error) || signal.aborted ? "unclear" : "silent" };
  }
}

/** Whether there is an engine that answers, although not as it should. */
function isAnswer(error: unknown): boolean {
  return asRefusal(error) !== null || error instanceof SyntaxError;
}

function nullIfAnswered(error: unknown): null {
  if (isAnswer(error)) return null;
  throw error;
}

const infoReply = object({ Runtimes: nullish(record(anything)) });
