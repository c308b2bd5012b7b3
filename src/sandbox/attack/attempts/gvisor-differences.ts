/** An outcome of one attempt under gVisor that is no fault of the sandbox, because gVisor is made so. */
interface GvisorDifference {
  /** The whole outcome. Anything else is judged as everywhere. */
  outcome: RegExp;
  verdict: "allowed" | "untried";
  reason: string;
}

/** The differences by the name of the attempt; found with the release of July 2024. */
export const gvisorDifferences: Readonly<Record<string, GvisorDifference>> = {
  "processes-without-limit": {
    outcome: /^untried: /,
    verdict: "untried",
    reason: "the limit, which the host's kernel enforces, is that of gVisor as a whole: all of it would stop",
  },
  "device-nodes": {
    outcome: /^found(?: \/dev\/(?:net\/tun|fuse))+$/,
    verdict: "allowed",
    reason: "gVisor has these devices in every container; they are its own, and not the host's",
  },
  "writable-places": {
    outcome: /^found \/dev$/,
    verdict: "allowed",
    reason: "gVisor ignores read-only paths, so that root may write to /dev, which is in memory",
  },
  "files-without-limit": {
    outcome: /^found(?: \/\S*)+$/,
    verdict: "allowed",
    reason:
      "gVisor has no limits of files in memory; they use its memory, which is limited unless it runs with --ignore-cgroups",
  },
  "memory-without-size": {
    outcome: /^found [0-9]+ MiB$/,
    verdict: "allowed",
    reason:
      "gVisor's own /dev has no size; its files use gVisor's memory, which is limited unless it runs with --ignore-cgroups",
  },
  "container-log": {
    outcome: /^done$/,
    verdict: "allowed",
    reason:
      "gVisor lets a command open the descriptors of the first process: it can disturb its own session, and there is no log",
  },
};
