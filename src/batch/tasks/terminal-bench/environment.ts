import { type ComposeOptions, type ComposeService, readComposeService } from "../compose/read-service.js";
import type { TaskTree } from "../files/task-tree.js";
import type { TaskNotes } from "../notes/task-notes.js";
import type { TaskEnvironment, TaskImage } from "../task.js";
import type { Variables } from "../values/variables.js";

export interface TerminalBenchEnvironment {
  environment: TaskEnvironment;
  user: string | null;
}

/** The only service that the format knows. */
const SERVICE = "client";

/** The format has no limit for builds; this is Harbor's. */
const BUILD_TIMEOUT_SEC = 600;

export function readEnvironment(
  tree: TaskTree,
  {
    notes,
    variables,
    name,
    isOfGrader,
  }: { notes: TaskNotes; variables: Variables; name: string } & Pick<ComposeOptions, "isOfGrader">,
): TerminalBenchEnvironment | null {
  // The format knows no other name for it.
  const file = tree.hasFile("docker-compose.yaml") ? "docker-compose.yaml" : undefined;
  const compose =
    file === undefined
      ? null
      : readComposeService(file, {
          ...{ tree, notes, service: SERVICE },
          variables: { ...variables, ...runnerVariables(name) },
          providedDirectories: ["/logs", "/agent-logs", "/tests"],
          isOfGrader,
        });
  if (file !== undefined && compose === null) return null;
  const image = imageOf(compose, tree, notes);
  if (image === null) return null;
  const noLimits = { cpus: null, memoryMb: null };
  return {
    environment: {
      image,
      files: null,
      ...(compose === null || compose.copies.length === 0 ? {} : { copies: compose.copies }),
      workdir: compose?.workdir ?? null,
      env: compose?.env ?? {},
      network: compose?.network ?? { mode: "public", allowedHosts: [] },
      limits: { ...(compose?.limits ?? noLimits), storageMb: null },
      healthcheck: null,
    },
    user: compose?.user ?? null,
  };
}

/** Variables that the format's own runner sets for the Compose file. The names of images and containers mean nothing to brig. */
function runnerVariables(name: string): Variables {
  const prefix = `tb__${name.replaceAll(".", "-")}`;
  return {
    COMPOSE_PROJECT_NAME: `${prefix}__client`,
    T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME: `${prefix}__client`,
    T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME: `${prefix}__client`,
    T_BENCH_TASK_DOCKER_NAME_PREFIX: prefix,
    T_BENCH_TEST_DIR: "/tests",
    T_BENCH_TASK_LOGS_PATH: "/logs",
    T_BENCH_CONTAINER_LOGS_PATH: "/logs",
    T_BENCH_TASK_AGENT_LOGS_PATH: "/agent-logs",
    T_BENCH_CONTAINER_AGENT_LOGS_PATH: "/agent-logs",
  };
}

function imageOf(compose: ComposeService | null, tree: TaskTree, notes: TaskNotes): TaskImage | null {
  if (compose?.build) {
    const { context, ...build } = compose.build;
    return { kind: "build", ...build, context: tree.absolute(context), timeoutSec: BUILD_TIMEOUT_SEC };
  }
  if (compose !== null && compose.image !== null) return { kind: "reference", reference: compose.image };
  if (tree.hasFile("Dockerfile"))
    return {
      ...{ kind: "build", context: tree.root, dockerfile: "Dockerfile" },
      ...{ buildArgs: {}, timeoutSec: BUILD_TIMEOUT_SEC },
    };
  notes.refuse("has no image", { hint: "give it a Dockerfile, and a docker-compose.yaml that builds it" });
  return null;
}
