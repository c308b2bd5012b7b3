import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import type { Environment } from "../config/env.js";
import { BrigError } from "../errors.js";
import { parseJson } from "../lib/parse-json.js";
import { type Endpoint, parseEndpoint, unixEndpoint } from "./endpoint.js";

/** An address where an engine may listen. */
export interface Candidate {
  endpoint: Endpoint;
  /** What names the address, for messages, e.g. `DOCKER_HOST`. */
  origin: string;
  /** The user chose this engine: if it does not answer, no other one is tried. */
  isChosen: boolean;
}

/** One way to find engines; it returns the best candidates first. */
export type EngineSource = (env: Environment) => Promise<Candidate[]>;

/** In the order in which they are tried. */
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

const clientConfig = z.object({ currentContext: z.string().nullish() });
const contextMeta = z.object({ Endpoints: z.object({ docker: z.object({ Host: z.string() }) }) });

/** The Docker client's current context (`docker context use`), unless it is the default one. */
export async function dockerContext(env: Environment): Promise<Candidate[]> {
  const configDir = env.variables.DOCKER_CONFIG ?? join(env.home, ".docker");
  const name = env.variables.DOCKER_CONTEXT ?? (await currentContext(configDir));
  if (name === undefined || name === "default") return [];
  const id = createHash("sha256").update(name).digest("hex");
  const address = await contextAddress(join(configDir, "contexts", "meta", id, "meta.json"), name);
  const tlsDir = join(configDir, "contexts", "tls", id, "docker");
  const endpoint = await parseEndpoint(address, { tlsDir: existsSync(tlsDir) ? tlsDir : undefined });
  return [{ endpoint, origin: `the Docker context ${name}`, isChosen: true }];
}

async function currentContext(configDir: string): Promise<string | undefined> {
  const source = await readFile(join(configDir, "config.json"), "utf8").catch(() => null);
  if (source === null) return undefined;
  return clientConfig.safeParse(parseJson(source)).data?.currentContext ?? undefined;
}

async function contextAddress(file: string, name: string): Promise<string> {
  const source = await readFile(file, "utf8").catch(() => null);
  const meta = contextMeta.safeParse(parseJson(source ?? ""));
  if (meta.success) return meta.data.Endpoints.docker.Host;
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
