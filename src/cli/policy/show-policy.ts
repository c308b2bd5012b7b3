import { resolve } from "node:path";
import { stringify } from "smol-toml";
import type { CliContext } from "../../command/index.js";
import { write } from "../../command/index.js";
import { parsePolicy, readPolicy, readPolicyText } from "../../sandbox/index.js";

/** Prints a policy in full, with everything that it extends. Error: `policy.invalid`. */
export async function showPolicy(policy: string, { stdout, cwd }: CliContext): Promise<void> {
  const isFile = policy.includes("/") || policy.endsWith(".toml");
  const { toml, file } = await readPolicyText(isFile ? resolve(cwd, policy) : policy);
  const reading = readPolicy(toml);
  // Throws an error that describes the faults.
  if (reading.kind !== "valid") parsePolicy(toml, file);
  else if (reading.base === null) await write(stdout, toml);
  else await write(stdout, stringify(reading.document));
}
