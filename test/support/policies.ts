import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { policyDirectory } from "../../src/sandbox/policy/policy-directory.js";

/** Writes the policy of full access with all that the engine itself gives, and returns the file. */
export async function engineDefaultPolicy(directory: string): Promise<string> {
  const toml = await readFile(join(policyDirectory, "danger-full-access.toml"), "utf8");
  const file = join(directory, "engine-default.toml");
  await writeFile(file, toml.replaceAll('"full-access"', '"engine-default"'));
  return file;
}

/** Writes the policy of workspace-write with other values for some of its fields, and returns the file. */
export async function changedPolicy(
  directory: string,
  fields: Readonly<Record<string, number | string>>,
): Promise<string> {
  let toml = await readFile(join(policyDirectory, "workspace-write.toml"), "utf8");
  for (const [field, value] of Object.entries(fields)) {
    const line = new RegExp(`^${field} = .*$`, "gm");
    if (!line.test(toml)) throw new Error(`workspace-write.toml has no ${field}`);
    toml = toml.replace(line, `${field} = ${JSON.stringify(value)}`);
  }
  const file = join(directory, "policy.toml");
  await writeFile(file, toml);
  return file;
}
