import { matchesWildcards } from "../../lib/wildcards.js";
import type { Config } from "./config-schema.js";
import { type SettingTree, sourceAt } from "./settings/setting-tree.js";
import { describeSource } from "./settings/sources.js";

/**
 * The variables of every command. Codex starts with the machine's variables and removes some; a sandbox
 * starts with its image's variables and none of the machine's, so only those in `set` are added.
 */
export function commandVariables({
  shell_environment_policy: { set, include_only },
}: Pick<Config, "shell_environment_policy">): Record<string, string> {
  const isIncluded = (name: string) =>
    include_only.length === 0 || include_only.some((pattern) => matches(name, pattern));
  return Object.fromEntries(Object.entries(set).filter(([name]) => isIncluded(name)));
}

export function shellEnvironmentWarnings(
  { shell_environment_policy: { inherit } }: Pick<Config, "shell_environment_policy">,
  tree: SettingTree,
): string[] {
  if (inherit === "none") return [];
  const where = describeSource(sourceAt(tree, ["shell_environment_policy", "inherit"]));
  return [
    `${where}: shell_environment_policy.inherit = "${inherit}" has no effect: no variable of this machine enters a sandbox; ` +
      "name what commands need in shell_environment_policy.set",
  ];
}

/** Ignores case, like Codex. */
function matches(name: string, pattern: string): boolean {
  return matchesWildcards(name.toLowerCase(), pattern.toLowerCase());
}
