import { BrigError } from "../../errors.js";
import { suggest } from "../../lib/suggest.js";

/**
 * Error: `usage.invalid` for a runtime that the engine has not got. A newer engine also takes the name of a containerd shim or a path,
 * which it does not list.
 */
export function refuseUnknownRuntime(
  runtime: string | undefined,
  { runtimes }: { runtimes: readonly string[] },
): void {
  if (runtime === undefined || runtimes.length === 0 || runtimes.includes(runtime) || /[./]/.test(runtime))
    return;
  const meant = suggest(runtime, runtimes);
  throw new BrigError(`the engine has no runtime ${JSON.stringify(runtime)}`, {
    code: "usage.invalid",
    hint:
      meant === null
        ? `it has ${runtimes.join(", ")}`
        : `did you mean ${meant}? It has ${runtimes.join(", ")}`,
  });
}
