import type { InspectionOptions } from "../../egress/inspection.js";

/**
 * What brig enforces outside of a sandbox with an allow-list, by name: no value, and no placeholder, of a secret or a
 * canary is in it.
 */
export interface EgressInForce {
  /** The hosts that rules for requests name. */
  ruledHosts: readonly string[];
  /** With the hosts that they are for, as entries of an allow-list. */
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
