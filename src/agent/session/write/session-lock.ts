import { basename } from "node:path";
import { BrigError } from "../../../errors.js";
import { acquireLock, type CurrentProcess, type FileLock, type LockHolder } from "../../../lib/file-lock.js";

/** Locks an existing session file for writing. Error: `session.busy`, which names the process that has it. */
export async function lockSessionFile(file: string, currentProcess: CurrentProcess): Promise<FileLock> {
  const outcome = await acquireLock(file, { currentProcess });
  if (outcome.kind === "held") return outcome.lock;
  throw busy(file, outcome.holder, currentProcess);
}

function busy(file: string, { owner, lockFile }: LockHolder, { processes }: CurrentProcess): BrigError {
  const isHere = owner.host === processes.host;
  return new BrigError(
    `the session ${basename(file)} is in use by process ${owner.pid}${isHere ? "" : ` on ${owner.host}`}`,
    {
      code: "session.busy",
      hint: isHere
        ? "wait for it to end, or go on in a copy: brig sessions fork"
        : `if that process is no more, remove ${lockFile}; or go on in a copy: brig sessions fork`,
    },
  );
}
