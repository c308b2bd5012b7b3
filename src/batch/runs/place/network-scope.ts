import { BrigError } from "../../../errors.js";
import type { NetworkScope, PatternParse } from "../../../sandbox/index.js";
import { normalPattern } from "../../../sandbox/index.js";
import type { TaskNetwork } from "../../tasks/task.js";

/** A task's network as a policy has it. Error: `usage.invalid` for a host that brig cannot tell for certain. */
export function networkScope({ mode, allowedHosts }: TaskNetwork): NetworkScope {
  if (mode === "public") return { kind: "full" };
  if (mode === "no-network") return { kind: "none" };
  return { kind: "allowlist", hosts: allowedHosts.map(allowedPattern) };
}

/** The hosts of a task have no ports, and its IPv6 addresses no brackets. */
export function taskPattern(host: string): PatternParse {
  return normalPattern(host.includes(":") ? `[${host}]` : host);
}

function allowedPattern(host: string): string {
  const pattern = taskPattern(host);
  if (pattern.kind === "parsed") return pattern.text;
  throw new BrigError(`the task's allowed host cannot be used: ${pattern.reason}`, {
    code: "usage.invalid",
    hint: "correct allowed_hosts of the task",
  });
}
