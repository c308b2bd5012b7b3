import type { FullDisk } from "../../../errors.js";
import type { CallCause } from "../../../sandbox/index.js";

/** Writes a full disk as in session files and in `--json`. */
export function wireDisk(disk: FullDisk | undefined): Readonly<Record<string, unknown>> | undefined {
  if (disk === undefined) return undefined;
  const { owner, path, freeBytes, freeFiles } = disk;
  return { owner, path, free_bytes: freeBytes, free_files: freeFiles };
}

/** Writes causes as in session files and in `--json`. Undefined, and so left out, if there are none. */
export function wireCauses(
  causes: readonly CallCause[] | undefined,
): readonly Readonly<Record<string, unknown>>[] | undefined {
  return causes === undefined || causes.length === 0 ? undefined : causes.map(wireCause);
}

function wireCause(cause: CallCause): Readonly<Record<string, unknown>> {
  const { kind } = cause;
  switch (kind) {
    case "memory-limit":
      return { kind, limit_bytes: cause.limitBytes };
    case "full-directory":
    case "disk-full": {
      const { path, lacks, limit, wasFull } = cause;
      return { kind, path, lacks, limit, was_full: wasFull };
    }
    case "machine-memory":
    case "process-limit":
    case "cpu-limit":
    case "network-rule":
      return cause;
    default:
      return kind satisfies never;
  }
}
