import { realpath } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { BrigError } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import type { EgressSettings } from "../../policy/egress-schema.js";

interface PolicyEgress {
  /** Absolute path of the policy's file. */
  file: string;
  egress: EgressSettings;
}

/**
 * Checks what a policy file says of secrets. Rules only restrict, so any file may have them. But secrets run programs of
 * this machine and send what they print to hosts, so that they are taken only from a directory that no sandbox can
 * write to, as is `config.toml`. Error: `policy.invalid`.
 */
export async function checkPolicyEgress(
  { file, egress: { secrets = {}, ca_files: caFiles = [] } }: PolicyEgress,
  {
    others,
    environment,
  }: {
    others: readonly (EgressSettings | undefined)[];
    environment: Pick<Environment, "brigHome" | "codexHome">;
  },
): Promise<void> {
  const names = Object.keys(secrets);
  if (names.length + caFiles.length > 0 && !(await isInOwnDirectory(file, environment)))
    throw new BrigError(
      `${file} has ${names.length > 0 ? "secrets" : "ca_files"} in [egress], which are not read from there`,
      {
        code: "policy.invalid",
        hint: `move the policy to ${environment.brigHome}, where no sandbox can write, or its secrets and ca_files to config.toml`,
      },
    );
  const taken = names.find((name) => others.some((other) => Object.hasOwn(other?.secrets ?? {}, name)));
  if (taken !== undefined)
    throw new BrigError(
      `the secret ${taken} is in the policy ${file}, and in your configuration or options as well`,
      {
        code: "policy.invalid",
        hint: "give one of them another name, or remove it",
      },
    );
}

/** Whether the file is in one of these homes, on a path without links below it: an agent could have written to a link's target. */
async function isInOwnDirectory(
  file: string,
  { brigHome, codexHome }: Pick<Environment, "brigHome" | "codexHome">,
): Promise<boolean> {
  const real = await realpath(file).catch(() => null);
  for (const directory of [brigHome, codexHome]) {
    const path = relative(directory, file);
    if (path === "" || path === ".." || path.startsWith(`..${sep}`)) continue;
    const home = await realpath(directory).catch(() => null);
    if (home !== null && real === join(home, path)) return true;
  }
  return false;
}
