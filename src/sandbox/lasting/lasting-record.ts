import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { BrigError } from "../../errors.js";
import { makeDirectorySync } from "../../lib/files/make-directory.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { LinkJournal, type RecoveredJournal } from "../channel/link-journal.js";
import type { SandboxPlan } from "../plan/plan.js";
import type { DirectoryReport } from "../proof/kernel-report.js";
import type { SandboxRecord } from "../sandbox-records.js";
import type { Warn } from "../warnings.js";

/** What another process needs, besides the journal, to go on with a sandbox whose process was killed. */
export interface ResumeRecord {
  /**
   * Goes up when an earlier version of brig would read what this one writes otherwise than it is meant. With 2, the journal says what the runner has
   * acknowledged.
   */
  format: 1 | 2;
  plan: SandboxPlan;
  imageId: string;
  containerId: string;
  endpoint: string;
  /** The secret by which the runner knows its host, in hex. */
  token: string;
  placeholders: SandboxRecord["placeholders"];
  /** The top directory of a copy-on-write workspace; null for one of another kind. */
  tree: (Omit<DirectoryReport, "changedNs"> & { changedNs: string }) | null;
  /** The sockets and FIFOs of the host that were there at the start; null where none can come. */
  knownListeners: string[] | null;
  /** Whether there are rules, secrets or canaries, which are noted beside this. Earlier versions noted no such sandbox. */
  hasInspection?: boolean;
  /** The branch of the host's repository that gets the commits of the sandbox, without `refs/heads/`. Default: commands may not commit. */
  branch?: string | null;
}

const FILE = "sandbox.json";
const MAX_BYTES = 16 * 1024 * 1024;

/** Writes the file whole or not at all, readable only for this user. Throws the file system's own errors. */
export function writeResumeRecord(directory: string, record: ResumeRecord): void {
  makeDirectorySync(directory, { mode: 0o700 });
  const temporary = join(directory, `.${FILE}.tmp`);
  try {
    writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600 });
    renameSync(temporary, join(directory, FILE));
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Null if there is none that this version can read. */
export function readResumeRecord(directory: string): ResumeRecord | null {
  let file: number | undefined;
  try {
    file = openSync(join(directory, FILE), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    const stat = fstatSync(file);
    if (!stat.isFile() || stat.size > MAX_BYTES) return null;
    const record = parseJson(readFileSync(file, "utf8")) as ResumeRecord | undefined;
    return record?.format === 1 || record?.format === 2 ? record : null;
  } catch {
    return null;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** A journal in a directory that has none yet, or that goes on with a recovered one. */
export function newJournal(
  directory: string,
  { warn, recovered }: { warn: Warn; recovered?: RecoveredJournal | undefined },
): LinkJournal {
  const onFailure = (cause: unknown) =>
    warn(
      new BrigError("what the sandbox does can no longer be noted, so it would end with this process", {
        code: "engine.failed",
        hint: "is the disk of BRIG_HOME full?",
        cause,
      }),
    );
  return new LinkJournal(directory, { onFailure, recovered });
}
