import { request as openHttp } from "node:http";
import type { Environment } from "../../lib/env.js";
import { anything, nullish, object, readOrNull, record } from "../../lib/json/json-shape.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { checkImageName } from "./calls/image-name.js";
import { engineCandidates } from "./connect.js";
import type { Endpoint } from "./endpoint.js";
import { readAtMost } from "./transport.js";

const MAX_BYTES = 4 * 1024 * 1024;

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
  /** Not known: the engine uses TLS, took too long or sent an unusable answer. */
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
  if (endpoint.kind === "tcp" && endpoint.tls !== null) return { kind: "unclear" };
  try {
    const [{ status }, info] = await Promise.all([
      ask(endpoint, `/images/${image}/json`, signal),
      needsRuntimes ? ask(endpoint, "/info", signal) : null,
    ]);
    if (status !== 200 && status !== 404) return { kind: "unclear" };
    const known = readOrNull(infoReply, parseJson(info?.body ?? ""));
    const runtimes = Object.keys(known?.Runtimes ?? {});
    return { kind: "answered", hasImage: status === 200, runtimes };
  } catch {
    return { kind: signal.aborted ? "unclear" : "silent" };
  }
}

const infoReply = object({ Runtimes: nullish(record(anything)) });

function ask(
  endpoint: Endpoint,
  path: string,
  signal: AbortSignal,
): Promise<{ status: number; body: string }> {
  const address =
    endpoint.kind === "unix"
      ? { socketPath: endpoint.socketPath }
      : { host: endpoint.host, port: endpoint.port };
  return new Promise((resolve, reject) => {
    const request = openHttp({ ...address, path, agent: false, signal });
    request.on("response", (answer) => {
      const settle = (body: Buffer | null) =>
        resolve({ status: answer.statusCode ?? 0, body: body?.toString("utf8") ?? "" });
      readAtMost(answer, MAX_BYTES).then(settle, reject);
    });
    request.on("error", reject);
    request.end();
  });
}
