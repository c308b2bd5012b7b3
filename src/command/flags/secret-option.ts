import { InvalidArgumentError, Option } from "commander";
import { invalidUsage } from "../../errors.js";
import type { EgressSettings, SandboxSettings, UnresolvedSettings } from "../../sandbox/index.js";
import type { CliContext } from "../context.js";

/** A variable of this machine, and the hosts that its value is for, as entries of an allow-list. */
export interface GivenSecret {
  variable: string;
  hosts: readonly string[];
}

export function secretOption(): Option {
  return new Option(
    "--secret <variable=host,…>",
    "a variable whose value stays outside, and is sent only to these hosts; may be repeated",
  ).argParser(collectSecret);
}

function collectSecret(text: string, earlier: readonly GivenSecret[] = []): GivenSecret[] {
  const [, variable, list = ""] = /^([A-Za-z_][A-Za-z0-9_]*)=(.+)$/.exec(text) ?? [];
  const hosts = list
    .split(",")
    .map((host) => host.trim())
    .filter((host) => host !== "");
  if (variable !== undefined && hosts.length > 0) return [...earlier, { variable, hosts }];
  throw new InvalidArgumentError("It must be VARIABLE=HOST, for example GITHUB_TOKEN=api.github.com.");
}

/** The `[egress]` table of the user's configuration, which is read only with an allow-list, and the secrets of `--secret`. */
export function egressChoice(
  secrets: readonly GivenSecret[] | undefined,
  { environment }: Pick<CliContext, "environment">,
): Pick<UnresolvedSettings, "egress"> & { configuredEgress(): Promise<EgressSettings | undefined> } {
  return {
    ...(secrets !== undefined && { egress: { secrets: asSettings(secrets) } }),
    async configuredEgress() {
      const { loadConfig } = await import("../../agent/index.js");
      return (await loadConfig(environment)).config.egress as EgressSettings | undefined;
    },
  };
}

function asSettings(secrets: readonly GivenSecret[]): NonNullable<EgressSettings["secrets"]> {
  return Object.fromEntries(
    secrets.map(({ variable, hosts }) => [variable, { hosts: [...hosts], env: variable }]),
  );
}

/** Error: `usage.invalid` for secrets that would not be used. */
export function requireUsed(
  secrets: readonly GivenSecret[] | undefined,
  { inspection }: SandboxSettings,
): void {
  if (secrets === undefined || (inspection ?? null) !== null) return;
  throw invalidUsage(
    "--secret has no effect without a list of allowed hosts",
    `add --network allowlist:${secrets[0]?.hosts.join(",")}`,
  );
}
