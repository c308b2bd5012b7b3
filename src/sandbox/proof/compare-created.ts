import { BrigError } from "../../errors.js";
import type { ContainerBody, CreatedContainer } from "../docker/engine-types.js";
import { isOwnVariable } from "./compare-authority.js";

/**
 * Refuses a container that differs from the request, or has settings of the image. Before the start, so that
 * nothing runs in it. Error: `policy.not-enforced`.
 */
export function requireAsRequested(body: ContainerBody, imageId: string, created: CreatedContainer): void {
  const different = compareCreated(body, imageId, created);
  if (different.length === 0) return;
  throw new BrigError(
    `the engine did not create the requested container from ${JSON.stringify(body.Image)}: ` +
      `${different.join(", ")} differs`,
    {
      code: "policy.not-enforced",
      hint: "nothing was started; the image may have been replaced meanwhile, or the engine cannot override its settings",
    },
  );
}

/** Names what differs from the request, as Dockerfile instructions. */
export function compareCreated(body: ContainerBody, imageId: string, created: CreatedContainer): string[] {
  const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);
  const isAsRequested: Record<string, boolean> = {
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
  return Object.keys(isAsRequested).filter((name) => !isAsRequested[name]);
}

function isEnvironment(requested: readonly string[], created: readonly string[]): boolean {
  return (
    requested.filter((entry) => entry.includes("=")).every((entry) => created.includes(entry)) &&
    created.every((entry) => requested.includes(entry) || isOwnVariable(entry, {}))
  );
}

function sorted(labels: Record<string, string>): [string, string | undefined][] {
  return Object.keys(labels)
    .toSorted()
    .map((name) => [name, labels[name]]);
}
