import { join } from "node:path";
import type { Environment } from "../../config/env.js";
import { parseEndpoint } from "../endpoint.js";
import type { Candidate } from "./candidate.js";

/** The engine that `DOCKER_HOST` names, with `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH` as the Docker client reads them. */
export async function dockerHost(env: Environment): Promise<Candidate[]> {
  if (env.dockerHost === undefined) return [];
  const tlsDir = env.verifiesDockerTls ? (env.dockerCertPath ?? join(env.home, ".docker")) : undefined;
  const endpoint = await parseEndpoint(env.dockerHost, { tlsDir });
  return [{ endpoint, origin: "DOCKER_HOST", isChosen: true }];
}
