import type { ControlRecord } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";

export type RunningSandbox = ControlRecord & { pid: number };

/**
 * Finds a running sandbox by its id, its session, or the start of either; without a name, the only one. Errors:
 * `session.unknown`, `usage.invalid` if several match.
 */
export function findSandbox(running: readonly RunningSandbox[], wanted: string | undefined): RunningSandbox {
  const exact = running.filter(({ sandbox, session }) => sandbox === wanted || session === wanted);
  const starting = running.filter(
    ({ sandbox, session }) =>
      wanted === undefined || sandbox.startsWith(wanted) || session?.startsWith(wanted) === true,
  );
  const found = exact.length > 0 ? exact : starting;
  const [first] = found;
  if (first === undefined)
    throw new BrigError(
      wanted === undefined ? "no sandbox is running" : `no running sandbox is ${JSON.stringify(wanted)}`,
      { code: "session.unknown", hint: "brig port --all lists the running sandboxes" },
    );
  if (found.length === 1) return first;
  throw invalidUsage(
    wanted === undefined
      ? `${found.length} sandboxes are running`
      : `${found.length} running sandboxes are ${JSON.stringify(wanted)}`,
    `name one: ${found
      .slice(0, 10)
      .map(({ sandbox }) => sandbox.slice(0, 8))
      .join(", ")}; brig port --all says what runs in each`,
  );
}
