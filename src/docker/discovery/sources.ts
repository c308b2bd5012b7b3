import type { EngineSource } from "./candidate.js";
import { dockerContext } from "./docker-context.js";
import { dockerDesktop } from "./docker-desktop.js";
import { dockerHost } from "./docker-host.js";
import { podman } from "./podman.js";
import { rootlessDocker } from "./rootless-docker.js";
import { systemSocket } from "./system-socket.js";

/** Every way to find an engine, in the order they are tried. */
export const engineSources: readonly EngineSource[] = [
  dockerHost,
  dockerContext,
  systemSocket,
  rootlessDocker,
  dockerDesktop,
  podman,
];
