import type { CommandPrefix } from "../../sandbox/index.js";
import { canonicalCommand, isCovered } from "../../sandbox/index.js";
import type { ActionToReview, ApprovalQuestion, SandboxPlace } from "../../tools/index.js";

/** An approval in one place does not count in the other. */
type Grantable = Pick<ApprovalQuestion, "action" | "place">;

/** Approvals of a person for the rest of the session, or until its setting changes. */
export class Grants {
  readonly #keys = new Set<string>();
  readonly #prefixes: { prefix: CommandPrefix; place: SandboxPlace }[] = [];

  /** Whether the question is already answered. */
  has({ action, place }: Grantable): boolean {
    const keys = keysOf(action, place);
    if (keys.length > 0 && keys.every((key) => this.#keys.has(key))) return true;
    // Whoever approved a prefix did not approve the input that the agent may later write to the command.
    if (action.kind !== "command" || action.takesInput) return false;
    const granted = this.#prefixes.filter((grant) => order.indexOf(grant.place) >= order.indexOf(place));
    return isCovered(
      action.argv,
      granted.map(({ prefix }) => prefix),
      place,
    );
  }

  /**
   * Remembers an approval for the session. For a command, it covers the same command in the same directory;
   * for a patch, every patch of the same files; for a call of an MCP server, every call of the same tool.
   */
  addAction({ action, place }: Grantable): void {
    for (const key of keysOf(action, place)) this.#keys.add(key);
  }

  addPrefix(prefix: CommandPrefix, place: SandboxPlace): void {
    this.#prefixes.push({ prefix, place });
  }
}

const order: readonly SandboxPlace[] = ["sandbox", "escalated"];

function keysOf(action: ActionToReview, place: SandboxPlace): string[] {
  if (action.kind === "mcp-call") return [JSON.stringify([place, "mcp", action.server, action.name])];
  if (action.kind === "patch") return action.changes.map(({ path }) => JSON.stringify([place, path]));
  const { argv, cwd, takesInput } = action;
  return [JSON.stringify([place, cwd, takesInput, canonicalCommand(argv)])];
}
