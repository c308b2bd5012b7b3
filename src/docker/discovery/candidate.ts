import type { Environment } from "../../config/env.js";
import type { Endpoint } from "../endpoint.js";

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
