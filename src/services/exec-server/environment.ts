import { z } from "zod";

/** Codex's policy for the environment of a process, as it comes with `process/start`. */
export const environmentPolicy = z.looseObject({
  inherit: z.enum(["all", "core", "none"]),
  ignoreDefaultExcludes: z.boolean(),
  exclude: z.array(z.string()).readonly(),
  set: z.record(z.string(), z.string()),
  includeOnly: z.array(z.string()).readonly(),
});

type EnvironmentPolicy = z.infer<typeof environmentPolicy>;

/** Variables that `inherit = "core"` leaves, as in Codex. */
const CORE = ["HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"];
const DEFAULT_EXCLUDES = ["*KEY*", "*SECRET*", "*TOKEN*"];

/**
 * The environment of a process as changes to the sandbox's own: `undefined` removes a name. What is inherited comes from the sandbox;
 * nothing of the host's environment reaches it but what the client sends.
 */
export function processEnvironment(
  inherited: Readonly<Record<string, string>>,
  { policy, env }: { policy: EnvironmentPolicy | null | undefined; env: Readonly<Record<string, string>> },
): Record<string, string | undefined> {
  const wanted = policy ? fromPolicy(inherited, policy) : {};
  const removed = Object.keys(inherited).map((name) => [name, undefined] as const);
  return { ...Object.fromEntries(removed), ...wanted, ...env };
}

function fromPolicy(
  inherited: Readonly<Record<string, string>>,
  { inherit, ignoreDefaultExcludes, exclude, set, includeOnly }: EnvironmentPolicy,
): Record<string, string> {
  const excludes = [...(ignoreDefaultExcludes ? [] : DEFAULT_EXCLUDES), ...exclude];
  const first = Object.entries(inherited)
    .filter(([name]) => inherit === "all" || (inherit === "core" && CORE.includes(name.toUpperCase())))
    .filter(([name]) => !excludes.some((pattern) => matches(name, pattern)));
  const all = Object.entries({ ...Object.fromEntries(first), ...set });
  const isIncluded = (name: string) =>
    includeOnly.length === 0 || includeOnly.some((pattern) => matches(name, pattern));
  return Object.fromEntries(all.filter(([name]) => isIncluded(name)));
}

/** `*` stands for any characters, `?` for one; case does not matter. Takes time in proportion to both lengths. */
function matches(name: string, pattern: string): boolean {
  const [text, wild] = [name.toUpperCase(), pattern.toUpperCase()];
  let at = 0;
  let star = -1;
  let retry = 0;
  let index = 0;
  while (index < text.length) {
    if (wild[at] === "*") {
      star = at;
      at += 1;
      retry = index;
    } else if (at < wild.length && (wild[at] === "?" || wild[at] === text[index])) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      at = star + 1;
      retry += 1;
      index = retry;
    } else return false;
  }
  return /^\**$/.test(wild.slice(at));
}
