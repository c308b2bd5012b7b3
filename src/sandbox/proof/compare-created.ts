import type { ContainerBody, CreatedContainer } from "../../docker/engine-types.js";
import { BrigError } from "../../errors.js";
import { isOwnVariable } from "./compare-authority.js";

/**
 * Whether an engine made the container it was asked for, and mixed in nothing that the image says of itself.
 * Before the start, so that nothing but the runner ever runs in one that is refused. Errors:
 * `policy.not-enforced`.
 */
export function requireAsRequested(body: ContainerBody, imageId: string, created: CreatedContainer): void {
  const strange = compareCreated(body, imageId, created);
  if (strange.length === 0) return;
  throw new BrigError(
    `the engine did not make the container that was asked for from ${JSON.stringify(body.Image)}: ` +
      `${strange.join(", ")} came out otherwise`,
    {
      code: "policy.not-enforced",
      hint: "nothing was started; the image may have been replaced meanwhile, or the engine cannot override what it says",
    },
  );
}

/** What is not as it was asked for, in the words of a Dockerfile. */
export function compareCreated(body: ContainerBody, imageId: string, created: CreatedContainer): string[] {
  const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);
  const isAsAsked: Record<string, boolean> = {
    FROM: created.imageId === imageId,
    ENTRYPOINT: isSame(created.entrypoint, body.Entrypoint),
    CMD: isSame(created.cmd, body.Cmd),
    USER: created.user === body.User,
    WORKDIR: created.workingDir === body.WorkingDir,
    STOPSIGNAL: created.stopSignal === body.StopSignal,
    HEALTHCHECK: isSame(created.healthcheck, ["NONE"]),
    ENV: isEnvironment(body.Env, created.env),
    LABEL: isSame(sorted(created.labels), sorted(body.Labels)),
  };
  return Object.keys(isAsAsked).filter((name) => !isAsAsked[name]);
}

/** Every variable with its value, and beside them none but the engine's own. */
function isEnvironment(asked: readonly string[], created: readonly string[]): boolean {
  const own = new Set(asked);
  return (
    asked.filter((entry) => entry.includes("=")).every((entry) => created.includes(entry)) &&
    created.every((entry) => own.has(entry) || isOwnVariable(entry, {}))
  );
}

function sorted(labels: Record<string, string>): [string, string][] {
  return Object.entries(labels).toSorted(([one], [other]) => (one < other ? -1 : 1));
}
