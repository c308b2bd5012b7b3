import { BrigError } from "../../errors.js";
import { suggest } from "../../lib/suggest.js";

/**
 * Error: `usage.invalid`. Accepts a name with a dot or slash: newer engines also take a containerd shim or a
 * path, and do not list these.
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
