import type { SandboxFiles } from "../../sandbox/index.js";
import { isFileError } from "../../tools/index.js";
import { readVersion } from "../../version.js";
import { toFileUri } from "./wire/file-uri.js";
import { invalidRequest } from "./wire/messages.js";

const HOME = "/home/brig";

/** The shell in which a client runs commands by default. */
export interface Shell {
  name: "bash" | "sh";
  path: string;
}

/** The shell of brig's own images, and of most others. */
export const USUAL_SHELL: Shell = { name: "bash", path: "/bin/bash" };
const SHELLS: readonly Shell[] = [
  USUAL_SHELL,
  { name: "bash", path: "/usr/bin/bash" },
  { name: "bash", path: "/usr/local/bin/bash" },
  { name: "sh", path: "/bin/sh" },
];

/** Finds the shell of a sandbox's image. Error: the image has none. */
export async function shellOf(files: Pick<SandboxFiles, "stat">): Promise<Shell> {
  for (const shell of SHELLS) {
    const stat = await files.stat(shell.path).catch((error: unknown) => {
      if (isFileError(error)) return null;
      throw error;
    });
    if (stat?.type === "file" && (stat.mode & 0o111) !== 0) return shell;
  }
  throw invalidRequest(
    `the image has no shell: neither ${SHELLS.map(({ path }) => path).join(" nor ")}. Codex runs every command in one: ` +
      "choose another image with --container-image",
  );
}

/**
 * Describes the environment to a client. Each capability that brig lacks is false, and Codex then uses the
 * plain methods. A capability that only a later Codex knows is missing here, which to Codex means the same as
 * false.
 */
export function environmentInfo({ directory, shell }: { directory: string; shell: Shell }): object {
  return {
    shell,
    executorVersion: readVersion(),
    providerId: "brig",
    cwd: toFileUri(directory),
    userHomeDir: toFileUri(HOME),
    platformOs: "linux",
    prependPathDirs: [],
    temporaryDirectories: [],
    tempDir: toFileUri("/tmp"),
    capabilities: {
      networkProxyLaunch: false,
      networkProxyReviewDomains: false,
      credentialMasking: false,
      credentialMaskingCustomProviders: false,
      capabilityDiscoverySandbox: false,
      fsWatchMissing: false,
      capabilityDiscoveryV2: false,
      environmentConfigRead: true,
      httpHeaderEnvVars: false,
      sandboxedFileStreaming: true,
      fileWriteStreaming: true,
      shellSnapshotV2: false,
      windowsMxc: false,
      linuxRootWritePreservesDevices: false,
      linuxApprovedRootWritePreservesRestrictions: false,
    },
  };
}

/** A sandbox has no configuration of Codex: neither the user's nor an administrator's is visible in it. */
export function environmentConfig(): object {
  const none = { layers: [], cloudInsertionIndex: 0 };
  return {
    userHomeDir: toFileUri(HOME),
    codexHomeDir: toFileUri(`${HOME}/.codex`),
    hostname: "brig",
    config: none,
    requirements: none,
  };
}
