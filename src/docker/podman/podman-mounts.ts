import type { Mount } from "../engine-types.js";

/** As the OCI runtime gets it. */
export interface PodmanMount {
  destination: string;
  type: Mount["Type"] | "devpts" | "mqueue";
  source: string;
  options: string[];
}

export interface PodmanVolume {
  Name: string;
  Dest: string;
  Options: string[];
}
