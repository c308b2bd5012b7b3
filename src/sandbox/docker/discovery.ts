import { existsSync } from "node:fs";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import type { Environment } from "../../lib/env.js";
import { readTextNow } from "../../lib/files/read-text-now.js";
import { nullish, object, readOrNull, string } from "../../lib/json/json-shape.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { type Endpoint, parseEndpoint, unixEndpoint } from "./endpoint.js";

/** An address where an engine may listen. */
export interface Candidate {
  endpoint: Endpoint;
  /** The source of the address, for messages, e.g. `DOCKER_HOST`. */
  origin: string;
  /** The user chose this engine: if it does not answer, no other one is tried. */
  isChosen: boolean;
}

/** One way to find engines; it returns the best candidates first. */
export type EngineSource = (env: Environment) => Promise<Candidate[]>;

/** The sources in the order in which they are tried. */
export const engineSources: readonly EngineSource[] = [
  dockerHost,
  dockerContext,
  systemSocket,
  rootlessDocker,
  dockerDesktop,
  podman,
];

/** `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH` count as in the Docker client. */
async function dockerHost(env: Environment): Promise<Candidate[]> {
  if (env.dockerHost === undefined) return [];
  const tlsDir = env.verifiesDockerTls ? (env.dockerCertPath ?? join(env.home, ".docker")) : undefined;
  const endpoint = await parseEndpoint(env.dockerHost, { tlsDir });
  return [{ endpoint, origin: "DOCKER_HOST", isChosen: true }];
}

const clientConfig = object({ currentContext: nullish(string) });
const contextMeta = object({ Endpoints: object({ docker: object({ Host: string }) }) });

/** The Docker client's current context (`docker context use`), unless it is the default one. */
export async function dockerContext(env: Environment): Promise<Candidate[]> {
  const configDir = env.variables.DOCKER_CONFIG ?? join(env.home, ".docker");
  const name = env.variables.DOCKER_CONTEXT ?? currentContext(configDir);
  if (name === undefined || name === "default") return [];
  // Loaded on demand: it is slow, and the engine is not asked before.
  const { createHash } = process.getBuiltinModule("node:crypto");
  const id = createHash("sha256").update(name).digest("hex");
  const address = contextAddress(join(configDir, "contexts", "meta", id, "meta.json"), name);
  const tlsDir = join(configDir, "contexts", "tls", id, "docker");
  const endpoint = await parseEndpoint(address, { tlsDir: existsSync(tlsDir) ? tlsDir : undefined });
  return [{ endpoint, origin: `the Docker context ${name}`, isChosen: true }];
}

/** Read at once: then the first request to the engine is sent before anything else is loaded. */
function readOrEmpty(path: string): string {
  return readTextNow(path) ?? "";
}

function currentContext(configDir: string): string | undefined {
  const config = parseJson(readOrEmpty(join(configDir, "config.json")));
  return readOrNull(clientConfig, config)?.currentContext ?? undefined;
}

function contextAddress(file: string, name: string): string {
  const meta = readOrNull(contextMeta, parseJson(readOrEmpty(file)));
  if (meta !== null) return meta.Endpoints.docker.Host;
  throw new BrigError(`the Docker context ${JSON.stringify(name)} is selected but cannot be read`, {
    code: "config.invalid",
    hint: "try: docker context ls, or: docker context use default",
  });
}

async function systemSocket(): Promise<Candidate[]> {
  return [usualSocket("/var/run/docker.sock", "Docker")];
}

async function rootlessDocker(env: Environment): Promise<Candidate[]> {
  return env.runtimeDir === undefined
    ? []
    : [usualSocket(join(env.runtimeDir, "docker.sock"), "rootless Docker")];
}

/** The first path is for macOS, the second for Linux. */
async function dockerDesktop(env: Environment): Promise<Candidate[]> {
  const paths = [".docker/run/docker.sock", ".docker/desktop/docker.sock"];
  return paths.map((path) => usualSocket(join(env.home, path), "Docker Desktop"));
}

/** The user's own socket, then the system's. */
async function podman(env: Environment): Promise<Candidate[]> {
  const dirs = env.runtimeDir === undefined ? ["/run"] : [env.runtimeDir, "/run"];
  return dirs.map((dir) => usualSocket(join(dir, "podman", "podman.sock"), "Podman"));
}

function usualSocket(path: string, origin: string): Candidate {
  return { endpoint: unixEndpoint(path), origin, isChosen: false };
}
