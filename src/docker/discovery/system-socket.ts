import { unixEndpoint } from "../endpoint.js";
import type { Candidate } from "./candidate.js";

/** The socket of an engine that runs for the whole machine. */
export async function systemSocket(): Promise<Candidate[]> {
  return [{ endpoint: unixEndpoint("/var/run/docker.sock"), origin: "Docker", isChosen: false }];
}
