import { BrigError } from "../../errors.js";
import type { KernelReport } from "./kernel-report.js";

/** Harmless: C libraries handle a kernel without statx. */
const ENOSYS = 38;

/** Refuses a kernel on which `ls` and `stat` of current distributions fail. Error: `engine.too-old`. */
export function requireStatx({ kernel, probes }: KernelReport, runtime: string): void {
  const errno = probes.get("statx");
  if (errno === undefined || errno === 0 || errno === ENOSYS) return;
  const what = `the system call statx with errno ${errno}, so that ls, stat and others fail`;
  if (kernel === "gvisor")
    throw new BrigError(
      `the runtime ${JSON.stringify(runtime)} is a release of gVisor that answers ${what}`,
      {
        code: "engine.too-old",
        hint: "nothing was run; install gVisor of 2024 or later, as in Debian 13's package runsc, and give its path to the engine",
      },
    );
  throw new BrigError(`in containers of the runtime ${JSON.stringify(runtime)} the kernel answers ${what}`, {
    code: "engine.too-old",
    hint: "nothing was run; a newer engine, libseccomp or kernel lets statx through",
  });
}
