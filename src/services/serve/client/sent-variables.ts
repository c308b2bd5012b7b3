import type { CommandOptions } from "../../../sandbox/index.js";

/** JSON has no undefined, which removes a variable as null does. */
export function sentVariables(env: CommandOptions["env"]): Record<string, string | null> | undefined {
  return env && Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value ?? null]));
}
