import { join } from "node:path";
import type { Environment } from "../../config/env.js";
import { unixEndpoint } from "../endpoint.js";
import type { Candidate } from "./candidate.js";

/** Docker Desktop: the first path is macOS, the second Linux. */
export async function dockerDesktop(env: Environment): Promise<Candidate[]> {
  return [".docker/run/docker.sock", ".docker/desktop/docker.sock"].map((path) => ({
    endpoint: unixEndpoint(join(env.home, path)),
    origin: "Docker Desktop",
    isChosen: false,
  }));
}
