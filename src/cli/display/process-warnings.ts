import type { Writable } from "node:stream";
import { BrigError } from "../../errors.js";
import { describeError } from "./error-text.js";

type Warned = Pick<NodeJS.Process, "listeners" | "removeAllListeners" | "on"> & {
  stderr: Pick<Writable, "write">;
};

/**
 * Says in brig's own words what no call can report, such as a container that could not be removed. Node would show a
 * BrigError as a fault of the program, and what came out of a container as it is.
 */
export function showWarnings(host: Warned): void {
  const usual = host.listeners("warning");
  host.removeAllListeners("warning");
  host.on("warning", (warning) => {
    if (warning instanceof BrigError) host.stderr.write(describeError(warning, { showsCauses: false }));
    else for (const listener of usual) listener.call(host, warning);
  });
}
