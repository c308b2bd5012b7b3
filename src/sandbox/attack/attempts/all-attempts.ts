import type { Attempt } from "./attempt.js";
import { authority } from "./authority.js";
import { files } from "./files.js";
import { kernel } from "./kernel.js";
import { network } from "./network.js";

/** The attempts by what they are about, in the order in which they are shown. */
export const attemptGroups: readonly { title: string; attempts: readonly Attempt[] }[] = [
  { title: "The host: processes, files, keys, sockets", attempts: authority },
  { title: "The kernel: settings and system calls", attempts: kernel },
  { title: "Files and limits", attempts: files },
  { title: "The network", attempts: network },
];

export const allAttempts: readonly Attempt[] = attemptGroups.flatMap(({ attempts }) => attempts);
