import type { Sandbox } from "../../src/sandbox/sandbox.js";
import { program } from "./sandbox.js";

/** A verb of test/fixtures/attempts.py and its arguments. */
export type Attempt = [verb: string, ...paths: string[]];

/** What came of each attempt inside the sandbox, in order: "ok" or an errno's name. */
export async function attempt(sandbox: Sandbox, attempts: readonly Attempt[]): Promise<string[]> {
  const result = await sandbox.exec(program("attempts.py", JSON.stringify(attempts)));
  if (result.exitCode !== 0) throw new Error(`attempts.py failed: ${result.output}`);
  return JSON.parse(result.stdout) as string[];
}

/** The same as a table by path, for attempts that are all of one verb. */
export async function attemptEach(
  sandbox: Sandbox,
  verb: string,
  paths: readonly string[],
): Promise<Record<string, string>> {
  const outcomes = await attempt(
    sandbox,
    paths.map((path): Attempt => [verb, path]),
  );
  return Object.fromEntries(paths.map((path, index) => [path, outcomes[index] ?? "missing"]));
}
