import { join } from "node:path";
import type { Environment } from "../../config/env.js";
import { unixEndpoint } from "../endpoint.js";
import type { Candidate } from "./candidate.js";

/** Podman's Docker-compatible socket: the user's own, then the machine's. */
export async function podman(env: Environment): Promise<Candidate[]> {
  const dirs = env.runtimeDir === undefined ? ["/run"] : [env.runtimeDir, "/run"];
  return dirs.map((dir) => ({
    endpoint: unixEndpoint(join(dir, "podman", "podman.sock")),
    origin: "Podman",
    isChosen: false,
  }));
}
