import type { InspectionOptions } from "../../egress/inspection.js";

/**
 * The settings that brig enforces outside of a sandbox with an allow-list, by name: no value, and no placeholder, of a secret or a
 * canary is in them.
 */
export interface EgressInForce {
  /** The hosts that rules for requests name. */
  ruledHosts: readonly string[];
  /** The names of the secrets, with the hosts that they are for, as entries of an allow-list. */
  secrets: readonly { name: string; hosts: readonly string[] }[];
  awsKeys: readonly { name: string; hosts: readonly string[] }[];
  canaries: readonly string[];
}

export function egressInForce({
  rules,
  secrets,
  awsSecrets = [],
  canaries = [],
}: InspectionOptions): EgressInForce {
  const keys = ({ name, hosts }: { name: string; hosts: readonly string[] }) => ({ name, hosts: [...hosts] });
  return {
    ruledHosts: [...new Set(rules.map(({ host }) => host))],
    secrets: secrets.map(keys),
    awsKeys: awsSecrets.map(keys),
    canaries: canaries.map(({ name }) => name),
  };
}
