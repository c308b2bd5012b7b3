import { join } from "node:path";
import type { Environment } from "../../config/env.js";
import { unixEndpoint } from "../endpoint.js";
import type { Candidate } from "./candidate.js";

/** Docker running as the user, without root. */
export async function rootlessDocker(env: Environment): Promise<Candidate[]> {
  if (env.runtimeDir === undefined) return [];
  return [
    {
      endpoint: unixEndpoint(join(env.runtimeDir, "docker.sock")),
      origin: "rootless Docker",
      isChosen: false,
    },
  ];
}
