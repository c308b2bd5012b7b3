import { type CommandPrefix, canonicalCommand, isCovered } from "../policy/command-safety/command-prefix.js";
import type { ActionToReview, SandboxPlace } from "../tools/approval.js";
import type { ApprovalQuestion } from "../tools/tool.js";

/** How far an approval goes: what was approved for the sandbox is not approved for outside of it. */
interface Reach extends Pick<ApprovalQuestion, "place" | "mayEscalate"> {
  /** Whether the sandbox held commands back when it was given. */
  isRestricted: boolean;
}

type Grantable = Pick<ApprovalQuestion, "action"> & Reach;

/** What a person has approved for the rest of the session. */
export class Grants {
  readonly #keys = new Set<string>();
  readonly #prefixes: { prefix: CommandPrefix; reach: Reach }[] = [];

  /** Whether the question need not be asked any more. */
  has({ action, ...reach }: Grantable): boolean {
    const keys = keysOf(action, reach);
    if (keys.length > 0 && keys.every((key) => this.#keys.has(key))) return true;
    // What is typed into a command later is no part of what a prefix says.
    if (action.kind === "patch" || action.takesInput) return false;
    const prefixes = this.#prefixes.filter(({ reach: granted }) => goesAsFar(granted, reach));
    return isCovered(
      action.argv,
      prefixes.map(({ prefix }) => prefix),
      reach.place,
    );
  }

  /** This very command in this directory, or every file of the patch. */
  addAction({ action, ...reach }: Grantable): void {
    for (const key of keysOf(action, reach)) this.#keys.add(key);
  }

  addPrefix(prefix: CommandPrefix, { place, mayEscalate, isRestricted }: Reach): void {
    this.#prefixes.push({ prefix, reach: { place, mayEscalate, isRestricted } });
  }
}

function keysOf(action: ActionToReview, { place, mayEscalate, isRestricted }: Reach): string[] {
  const reach = [place, mayEscalate, isRestricted];
  if (action.kind === "patch") return action.changes.map(({ path }) => JSON.stringify([...reach, path]));
  const { argv, cwd, takesInput } = action;
  return [JSON.stringify([...reach, cwd, takesInput, canonicalCommand(argv)])];
}

const order: readonly SandboxPlace[] = ["sandbox", "escalated"];

function goesAsFar(granted: Reach, wanted: Reach): boolean {
  const isFarEnough = order.indexOf(granted.place) >= order.indexOf(wanted.place);
  if (granted.place === "sandbox" && granted.isRestricted && !wanted.isRestricted) return false;
  return isFarEnough && (granted.mayEscalate || granted.place === "escalated" || !wanted.mayEscalate);
}
