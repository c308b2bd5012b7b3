import type { Writable } from "node:stream";
import { describeError } from "../../command/index.js";
import { BrigError } from "../../errors.js";

type Warned = Pick<NodeJS.Process, "listeners" | "removeAllListeners" | "on"> & {
  stderr: Pick<Writable, "write">;
};

/**
 * Prints the warnings of brig as its errors are printed: `brig: …`, with the hint. They report problems that came up after the
 * call that could have reported them, such as a container that cannot be removed. Node would print its process id and a
 * remark for developers with them, and would leave control characters in them.
 */
export function showWarnings(host: Warned): void {
  const usual = host.listeners("warning");
  host.removeAllListeners("warning");
  host.on("warning", (warning) => {
    if (warning instanceof BrigError) host.stderr.write(describeError(warning, { showsCauses: false }));
    else for (const listener of usual) listener.call(host, warning);
  });
}
