import { createHash } from "node:crypto";
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import type { Environment } from "../config/env.js";
import { BrigError } from "../errors.js";
import { type Endpoint, parseEndpoint, unixEndpoint } from "./endpoint.js";

/** A place where an engine may listen. */
export interface Candidate {
  endpoint: Endpoint;
  /** Where the address comes from, for messages, e.g. `DOCKER_HOST`. */
  origin: string;
  /** The user named this engine: when it does not answer, that is an error and no other engine is tried. */
  isChosen: boolean;
}

/** One way to find engines: the places it knows, best first. */
export type EngineSource = (env: Environment) => Promise<Candidate[]>;

/** Every way to find an engine, in the order they are tried. */
export const engineSources: readonly EngineSource[] = [
  dockerHost,
  dockerContext,
  systemSocket,
  rootlessDocker,
  dockerDesktop,
  podman,
];

/** The engine that `DOCKER_HOST` names, with `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH` as the Docker client reads them. */
async function dockerHost(env: Environment): Promise<Candidate[]> {
  if (env.dockerHost === undefined) return [];
  const tlsDir = env.verifiesDockerTls ? (env.dockerCertPath ?? join(env.home, ".docker")) : undefined;
  const endpoint = await parseEndpoint(env.dockerHost, { tlsDir });
  return [{ endpoint, origin: "DOCKER_HOST", isChosen: true }];
}

const clientConfig = z.object({ currentContext: z.string().nullish() });
const contextMeta = z.object({ Endpoints: z.object({ docker: z.object({ Host: z.string() }) }) });

/** The Docker client's current context (`docker context use`), when it is not the default one. */
export async function dockerContext(env: Environment): Promise<Candidate[]> {
  const configDir = env.variables.DOCKER_CONFIG ?? join(env.home, ".docker");
  const name = env.variables.DOCKER_CONTEXT ?? (await currentContext(configDir));
  if (name === undefined || name === "default") return [];
  const id = createHash("sha256").update(name).digest("hex");
  const address = await contextAddress(join(configDir, "contexts", "meta", id, "meta.json"), name);
  const tlsDir = await existing(join(configDir, "contexts", "tls", id, "docker"));
  const endpoint = await parseEndpoint(address, { tlsDir });
  return [{ endpoint, origin: `the Docker context ${name}`, isChosen: true }];
}

async function currentContext(configDir: string): Promise<string | undefined> {
  const source = await readFile(join(configDir, "config.json"), "utf8").catch(() => null);
  if (source === null) return undefined;
  return parseJson(clientConfig, source)?.currentContext ?? undefined;
}

async function contextAddress(file: string, name: string): Promise<string> {
  const source = await readFile(file, "utf8").catch(() => null);
  const meta = source === null ? undefined : parseJson(contextMeta, source);
  if (meta !== undefined) return meta.Endpoints.docker.Host;
  throw new BrigError(`the Docker context ${JSON.stringify(name)} is selected but cannot be read`, {
    code: "config.invalid",
    hint: "try: docker context ls, or: docker context use default",
  });
}

function parseJson<T>(schema: z.ZodType<T>, source: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(source)).data;
  } catch {
    return undefined;
  }
}

async function existing(path: string): Promise<string | undefined> {
  return await access(path).then(
    () => path,
    () => undefined,
  );
}

/** The socket of an engine that runs for the whole machine. */
async function systemSocket(): Promise<Candidate[]> {
  return [{ endpoint: unixEndpoint("/var/run/docker.sock"), origin: "Docker", isChosen: false }];
}

/** Docker running as the user, without root. */
async function rootlessDocker(env: Environment): Promise<Candidate[]> {
  if (env.runtimeDir === undefined) return [];
  return [
    {
      endpoint: unixEndpoint(join(env.runtimeDir, "docker.sock")),
      origin: "rootless Docker",
      isChosen: false,
    },
  ];
}

/** Docker Desktop: the first path is macOS, the second Linux. */
async function dockerDesktop(env: Environment): Promise<Candidate[]> {
  return [".docker/run/docker.sock", ".docker/desktop/docker.sock"].map((path) => ({
    endpoint: unixEndpoint(join(env.home, path)),
    origin: "Docker Desktop",
    isChosen: false,
  }));
}

/** Podman's Docker-compatible socket: the user's own, then the machine's. */
async function podman(env: Environment): Promise<Candidate[]> {
  const dirs = env.runtimeDir === undefined ? ["/run"] : [env.runtimeDir, "/run"];
  return dirs.map((dir) => ({
    endpoint: unixEndpoint(join(dir, "podman", "podman.sock")),
    origin: "Podman",
    isChosen: false,
  }));
}
