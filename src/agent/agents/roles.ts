import { clipped } from "../../sandbox/index.js";
import type { AgentRoleName } from "../../tools/index.js";
import type { AgentRole } from "./agents-options.js";
import { refused } from "./refused.js";

const SHOWN_NAME_CHARS = 100;

/** The roles that models know from Codex. A configured role of the same name replaces one. */
const builtIn: Readonly<Record<string, AgentRole>> = {
  explorer: {
    description: "Answers a question about the files, and changes none.",
    instructions: "You were started to answer a question. Read what you need, change no files, and answer.",
  },
  worker: {
    description: "Makes a change, such as one part of a feature or a fix.",
    instructions:
      "You were started to make one change. Other agents may be working in the same directory: change only what your task is about, leave alone what they do, and name the files that you have changed in your answer.",
  },
};

/** The name that models use for an agent without a role. */
const ORDINARY = "default";

export function allRoles(configured: Readonly<Record<string, AgentRole>> | undefined) {
  return { ...builtIn, ...configured };
}

/** The roles that the model is told about. */
export function agentRoles(
  configured: Readonly<Record<string, AgentRole>> | undefined,
): readonly AgentRoleName[] {
  return Object.entries(allRoles(configured)).map(([name, { description }]) => ({ name, description }));
}

/** Returns null for an agent without a role. Error: `tool.failed` for a role that does not exist. */
export function roleOf(
  name: string | null,
  configured: Readonly<Record<string, AgentRole>> | undefined,
): { name: string; role: AgentRole } | null {
  const roles = allRoles(configured);
  if (name === null || (name === ORDINARY && !Object.hasOwn(roles, ORDINARY))) return null;
  const role = Object.hasOwn(roles, name) ? roles[name] : undefined;
  if (role !== undefined) return { name, role };
  throw refused(
    `unknown agent_type '${clipped(name, SHOWN_NAME_CHARS)}'; the types are ${[ORDINARY, ...Object.keys(roles)].join(", ")}`,
  );
}
