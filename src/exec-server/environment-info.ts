import { readVersion } from "../version.js";
import { toFileUri } from "./wire/file-uri.js";

const HOME = "/home/brig";

/**
 * What a client is told of the environment. Every capability that brig does not have is false: Codex then uses the plain methods. What a
 * later Codex may ask for is false as well, since a missing name means so.
 */
export function environmentInfo(directory: string): object {
  return {
    shell: { name: "bash", path: "/bin/bash" },
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
      sandboxedFileStreaming: false,
      fileWriteStreaming: false,
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
