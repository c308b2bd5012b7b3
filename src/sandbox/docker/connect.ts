import { statSync } from "node:fs";
import { BrigError, isBrigError } from "../../errors.js";
import type { Environment } from "../../lib/env.js";
import { type Client, openClient } from "./client.js";
import { engineCommand, readSystem } from "./diagnosis/system.js";
import { type Candidate, type EngineSource, engineSources } from "./discovery.js";
import { type DockerClient, modemOf } from "./dockerode.js";
import { type Endpoint, parseEndpoint } from "./endpoint.js";
import { openEngine } from "./engine.js";
import { hintOnConnection, reason } from "./engine-failure.js";
import type { Engine } from "./engine-types.js";
import { openModem } from "./modem.js";

/** To say which version they are, Docker and Podman run the programs they need, which takes Podman more than 10 s on a busy machine. */
const connectLimitMs = 30_000;

export interface ConnectOptions {
  env: Environment;
  /** An address in the format of `DOCKER_HOST`; nothing else is tried. Default: the usual places. */
  endpoint?: string | undefined;
  /** Default: DOCKER_HOST, the Docker context, then the sockets of Docker, Docker Desktop and Podman. */
  sources?: readonly EngineSource[] | undefined;
  /** Requests what the engine's `info` returns while connecting. For a program that certainly needs it. */
  asksEarly?: boolean | undefined;
}

/**
 * Finds the container engine and connects to it. Errors: `engine.unreachable` with everything that was tried,
 * `engine.too-old`, `config.invalid` for an invalid address. If an engine that the user named does not
 * answer, no other one is used.
 */
export async function connectEngine(options: ConnectOptions): Promise<Engine> {
  const tried: Attempt[] = [];
  for await (const candidate of engineCandidates(options)) {
    const attempt = await tryToConnect(candidate, options);
    if (attempt.kind === "answered") return await openEngine(attempt.client);
    tried.push(attempt);
    if (candidate.isChosen) break;
  }
  throw await noEngineAnswers(tried);
}

/** Connects through a program's own client of dockerode. Errors: as `connectEngine`, and `usage.invalid`. */
export async function connectThrough(docker: DockerClient): Promise<Engine> {
  return await openEngine(await openClient(await modemOf(docker), { limitMs: connectLimitMs }));
}

/** The addresses where an engine may listen, best first. */
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

async function tryToConnect(
  candidate: Candidate,
  { asksEarly }: ConnectOptions,
): Promise<Attempt | { kind: "answered"; client: Client }> {
  try {
    requireSocket(candidate.endpoint);
    const client = await openClient(await openModem(candidate.endpoint), {
      limitMs: connectLimitMs,
      asksEarly,
    });
    return { kind: "answered", client };
  } catch (error) {
    if (isBrigError(error) && error.code !== "engine.unreachable") throw error;
    const cause = isBrigError(error) ? error.cause : error;
    return { kind: "silent", candidate, why: reason(cause), cause };
  }
}

/** Fails at once if there is no socket. */
function requireSocket(endpoint: Endpoint): void {
  if (endpoint.kind === "unix") statSync(endpoint.socketPath);
}

async function noEngineAnswers(tried: Attempt[]): Promise<BrigError> {
  const [chosen] = tried.filter(({ candidate }) => candidate.isChosen);
  if (chosen !== undefined) return chosenEngineSilent(chosen);
  const causes = tried.map(({ cause }) => cause);
  const list = tried.map(
    ({ candidate, why }) => `${candidate.endpoint.address} (${candidate.origin}): ${why}`,
  );
  return new BrigError(["no container engine answers; tried", ...list].join("\n  "), {
    code: "engine.unreachable",
    hint: hintOnConnection(causes) ?? engineCommand(await readSystem(), causes),
    cause: causes[0],
  });
}

function chosenEngineSilent({ candidate, why, cause }: Attempt): BrigError {
  return new BrigError(
    `the container engine at ${candidate.endpoint.address}, named by ${candidate.origin}, does not answer: ${why}`,
    {
      code: "engine.unreachable",
      hint: hintOnConnection([cause]) ?? `start that engine, or change ${candidate.origin}`,
      cause,
    },
  );
}
