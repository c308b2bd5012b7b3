import type { Mount } from "../engine-types.js";

/** A mount in the form that the OCI runtime receives. */
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
