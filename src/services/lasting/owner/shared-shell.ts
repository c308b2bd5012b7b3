import type { PtySize } from "../../../sandbox/index.js";
import type { ProcessTable } from "../../serve/processes/process-table.js";
import type { ServedProcess } from "../../serve/processes/served-process.js";

/** Bash if the image has it, else sh. */
const SHELL = ["/bin/sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi"];

const PURPOSE = "shared shell";

interface ShellOptions {
  env: Readonly<Record<string, string | null>>;
  pty: PtySize;
}

/** The one shell of a sandbox that all who attach share. */
export class SharedShell {
  #shell: Promise<ServedProcess> | null = null;

  /** Goes on with the shell that the sandbox had when its owner was killed. */
  resume(processes: ProcessTable): void {
    const shell = processes.list().find(({ purpose }) => purpose === PURPOSE);
    if (shell !== undefined) this.#shell = Promise.resolve(shell);
  }

  /** The shell that runs; a new one with these variables and this terminal if there is none, or it has ended. */
  async join(processes: ProcessTable, options: ShellOptions): Promise<ServedProcess> {
    // Whoever comes at the same moment waits for this one.
    this.#shell = runningShell(this.#shell, processes, options);
    return await this.#shell;
  }
}

async function runningShell(
  before: Promise<ServedProcess> | null,
  processes: ProcessTable,
  { env, pty }: ShellOptions,
): Promise<ServedProcess> {
  const shell = await before?.catch(() => null);
  if (shell?.isRunning !== true)
    return await processes.start({ argv: SHELL, env, pty }, { purpose: PURPOSE });
  shell.resize(pty);
  return shell;
}
