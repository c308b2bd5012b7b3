import { stat } from "node:fs/promises";
import type { Environment } from "../config/env.js";
import { BrigError, isBrigError } from "../errors.js";
import { type Client, openClient } from "./client.js";
import { engineCommand, readSystem } from "./diagnosis/system.js";
import { type Candidate, type EngineSource, engineSources } from "./discovery.js";
import { type Endpoint, parseEndpoint } from "./endpoint.js";
import { engineOn } from "./engine.js";
import { reason } from "./engine-failure.js";
import type { Engine } from "./engine-types.js";

/** How long an engine may take to answer the first question. */
const greetingLimitMs = 10_000;

export interface ConnectOptions {
  env: Environment;
  /** An address as `DOCKER_HOST` spells it; then nothing else is tried. Default: look in the usual places. */
  endpoint?: string | undefined;
  /** Where to look. Default: DOCKER_HOST, the Docker context, then the sockets of Docker, Docker Desktop and Podman. */
  sources?: readonly EngineSource[] | undefined;
}

/**
 * Finds the container engine and connects to it. Errors: `engine.unreachable` with all that was tried, `engine.too-old`,
 * `config.invalid` for an address that is none. An engine that was named but does not answer is never replaced by another.
 */
export async function connectEngine(options: ConnectOptions): Promise<Engine> {
  const tried: Attempt[] = [];
  for await (const candidate of engineCandidates(options)) {
    const attempt = await greet(candidate);
    if (attempt.kind === "answered") return engineOn(attempt.client);
    tried.push(attempt);
    if (candidate.isChosen) break;
  }
  throw await nothingAnswered(tried);
}

/** Where an engine may listen, best first. */
export async function* engineCandidates({
  env,
  endpoint,
  sources = engineSources,
}: ConnectOptions): AsyncGenerator<Candidate> {
  if (endpoint !== undefined) {
    yield { endpoint: await parseEndpoint(endpoint), origin: "the given address", isChosen: true };
    return;
  }
  for (const source of sources) yield* await source(env);
}

type Attempt = { kind: "silent"; candidate: Candidate; why: string; cause: unknown };

async function greet(candidate: Candidate): Promise<Attempt | { kind: "answered"; client: Client }> {
  try {
    await requireSocket(candidate.endpoint);
    return { kind: "answered", client: await openClient(candidate.endpoint, { limitMs: greetingLimitMs }) };
  } catch (error) {
    if (isBrigError(error) && error.code !== "engine.unreachable") throw error;
    const cause = isBrigError(error) ? error.cause : error;
    return { kind: "silent", candidate, why: reason(cause), cause };
  }
}

/** Says at once that there is nobody to talk to. */
async function requireSocket(endpoint: Endpoint): Promise<void> {
  if (endpoint.kind === "unix") await stat(endpoint.socketPath);
}

async function nothingAnswered(tried: Attempt[]): Promise<BrigError> {
  const [chosen] = tried.filter(({ candidate }) => candidate.isChosen);
  if (chosen !== undefined) return chosenIsSilent(chosen);
  const causes = tried.map(({ cause }) => cause);
  const list = tried.map(
    ({ candidate, why }) => `${candidate.endpoint.address} (${candidate.origin}): ${why}`,
  );
  return new BrigError(["no container engine answers; tried", ...list].join("\n  "), {
    code: "engine.unreachable",
    hint: engineCommand(await readSystem(), causes),
    cause: causes[0],
  });
}

function chosenIsSilent({ candidate, why, cause }: Attempt): BrigError {
  return new BrigError(
    `the container engine at ${candidate.endpoint.address}, named by ${candidate.origin}, does not answer: ${why}`,
    { code: "engine.unreachable", hint: `start that engine, or change ${candidate.origin}`, cause },
  );
}
