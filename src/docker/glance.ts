import { type IncomingMessage, request as openHttp } from "node:http";
import { z } from "zod";
import type { Environment } from "../config/env.js";
import { parseJson } from "../lib/parse-json.js";
import { checkImageName } from "./calls/image-name.js";
import { engineCandidates } from "./connect.js";
import type { Endpoint } from "./endpoint.js";

const MAX_BYTES = 4 * 1024 * 1024;

export interface GlanceOptions {
  env: Environment;
  image: string;
  /** Whether the runtimes are asked for, which takes the engine ten times as long as the image. */
  needsRuntimes: boolean;
  /** How long it may take at most. */
  withinMs: number;
}

/** What the engine says at a glance. */
export type Glance =
  /** `runtimes` is empty where they were not asked for. */
  | { kind: "answered"; hasImage: boolean; runtimes: string[] }
  /** Nobody listens where an engine should. */
  | { kind: "silent" }
  /** It could not be told: over TLS, in the time, or from such an answer. */
  | { kind: "unclear" };

/**
 * Asks the engine for what would make a start fail, without loading what else talks to it: a few milliseconds, where connecting takes
 * ten times as long. Whatever is not certain is left to the start itself.
 */
export async function glanceAtEngine(options: GlanceOptions): Promise<Glance> {
  checkImageName(options.image);
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), options.withinMs);
  try {
    for await (const { endpoint, isChosen } of engineCandidates(options)) {
      const glance = await glanceAt(endpoint, options, limit.signal);
      if (glance.kind !== "silent" || isChosen) return glance;
    }
    return { kind: "silent" };
  } finally {
    clearTimeout(timer);
  }
}

async function glanceAt(
  endpoint: Endpoint,
  { image, needsRuntimes }: GlanceOptions,
  signal: AbortSignal,
): Promise<Glance> {
  if (endpoint.kind === "tcp" && endpoint.tls !== null) return { kind: "unclear" };
  try {
    const [{ status }, info] = await Promise.all([
      ask(endpoint, `/images/${image}/json`, signal),
      needsRuntimes ? ask(endpoint, "/info", signal) : null,
    ]);
    if (status !== 200 && status !== 404) return { kind: "unclear" };
    const known = infoReply.safeParse(parseJson(info?.body ?? ""));
    const runtimes = Object.keys(known.data?.Runtimes ?? {});
    return { kind: "answered", hasImage: status === 200, runtimes };
  } catch {
    return { kind: signal.aborted ? "unclear" : "silent" };
  }
}

const infoReply = z.object({ Runtimes: z.record(z.string(), z.unknown()).nullish() });

function ask(
  endpoint: Endpoint,
  path: string,
  signal: AbortSignal,
): Promise<{ status: number; body: string }> {
  const place =
    endpoint.kind === "unix"
      ? { socketPath: endpoint.socketPath }
      : { host: endpoint.host, port: endpoint.port };
  return new Promise((resolve, reject) => {
    const request = openHttp({ ...place, path, agent: false, signal });
    request.on("response", (answer) => {
      bodyOf(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject);
    });
    request.on("error", reject);
    request.end();
  });
}

/** Empty for one that is too long. */
async function bodyOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) return "";
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
