import { type ComposeService, readComposeService } from "../compose.js";
import type { TaskTree } from "../files.js";
import { networkOf } from "../network.js";
import { shown, type TaskNotes } from "../notes.js";
import type { TaskEnvironment, TaskHealthcheck, TaskImage, TaskPart } from "../task.js";
import { filledVariables, sizeInMb, type Variables } from "../values.js";
import type { EnvironmentToml, HealthcheckToml } from "./schema.js";

export interface HarborEnvironment {
  environment: TaskEnvironment;
  /** User named in a Compose file; null where it gives none. */
  user: string | null;
}

/** Variables that Harbor's own runner sets for a Compose file. Directories of logs are brig's to provide. */
const logDirectories: Readonly<Record<string, string>> = {
  ENV_VERIFIER_LOGS_PATH: "/logs/verifier",
  ENV_AGENT_LOGS_PATH: "/logs/agent",
  ENV_ARTIFACTS_PATH: "/logs/artifacts",
};
const providedDirectories = ["/logs", ...Object.values(logDirectories), "/tests", "/solution"];

/** Names of images and containers mean nothing to brig. */
const COMPOSE_PROJECT = "hb";

const olderLimits = { cpus: 1, memoryMb: 2048, storageMb: 10_240 };
const noLimits = { cpus: null, memoryMb: null, storageMb: null };

/**
 * The environment that a table of task.toml describes together with a directory, which has a Dockerfile, a Compose
 * file, or files for the working directory. `table` is the name of the table, for messages.
 */
export function readEnvironment(
  toml: EnvironmentToml,
  { directory, table }: { directory: string; table: string },
  reading: HarborReading,
): HarborEnvironment | null {
  const { notes, variables, hasOlderDefaults } = reading;
  refuseUnsupported(toml, table, reading);
  const asked = limitsOf(toml, table, reading);
  const compose = readCompose(directory, asked, reading);
  const image = imageOf(toml, { directory, table, compose }, reading);
  const network = networkOf(toml, notes, { file: TASK_FILE, field: table });
  const env = filledVariables(toml.env, variables, {
    notes,
    place: { file: TASK_FILE, field: `${table}.env` },
  });
  if (image === null) return null;
  const fallback = hasOlderDefaults ? olderLimits : noLimits;
  return {
    environment: {
      image,
      files: filesOf(toml, directory, reading),
      ...(compose === null || compose.copies.length === 0 ? {} : { copies: compose.copies }),
      workdir: compose?.workdir ?? toml.workdir ?? null,
      env: { ...env, ...compose?.env },
      network: compose?.network ?? network ?? { mode: "public", allowedHosts: [] },
      limits: {
        cpus: compose?.limits.cpus ?? asked.cpus ?? fallback.cpus,
        memoryMb: compose?.limits.memoryMb ?? asked.memoryMb ?? fallback.memoryMb,
        storageMb: asked.storageMb ?? fallback.storageMb,
      },
      healthcheck: healthcheckOf(toml.healthcheck),
    },
    user: compose?.user ?? null,
  };
}

export function healthcheckOf(toml: HealthcheckToml | undefined): TaskHealthcheck | null {
  if (toml === undefined) return null;
  return {
    command: toml.command,
    intervalSec: toml.interval_sec,
    timeoutSec: toml.timeout_sec,
    startPeriodSec: toml.start_period_sec,
    startIntervalSec: toml.start_interval_sec,
    retries: toml.retries,
  };
}

/** Whether a directory has what an image can be made of. */
export function definesImage(directory: string, { tree }: HarborReading): boolean {
  return tree.hasFile(`${directory}/Dockerfile`) || composeFile(directory, { tree }) !== null;
}

/** Refuses settings that brig does not support and without which the outcome would not be that of the task. */
function refuseUnsupported(toml: EnvironmentToml, table: string, { notes }: HarborReading): void {
  const refuse = (key: string, problem: string) =>
    notes.refuse(problem, { file: TASK_FILE, field: `${table}.${key}` });
  if (toml.os.toLowerCase() !== "linux")
    refuse("os", `is ${shown(toml.os)}, and brig runs Linux containers only`);
  if ((toml.gpus ?? 0) > 0) refuse("gpus", `is ${toml.gpus}, and brig gives no GPU to a container`);
  if (toml.tpu !== undefined) refuse("tpu", "is not supported");
  if (toml.mcp_servers.length > 0)
    refuse("mcp_servers", "is not supported: the agent would lack their tools");
  if (toml.skills_dir !== undefined)
    refuse("skills_dir", "is not supported: the agent would lack the skills");
}

function limitsOf(toml: EnvironmentToml, table: string, { notes }: HarborReading) {
  const megabytes = (key: "memory" | "storage") => {
    const text = toml[key];
    const exact = toml[`${key}_mb`] ?? null;
    if (text === undefined) return exact;
    const size = /^[\d.]+\s*[kmg]$/i.test(text.trim()) ? sizeInMb(text) : null;
    const place = { file: TASK_FILE, field: `${table}.${key}` };
    if (size === null || size === 0)
      notes.refuse(`is ${shown(text)} and must be a size such as 2G or 512M`, place);
    else if (exact !== null && exact !== size)
      notes.refuse(`is ${shown(text)}, which is ${size} MB and contradicts ${key}_mb = ${exact}`, place);
    return size;
  };
  return { cpus: toml.cpus ?? null, memoryMb: megabytes("memory"), storageMb: megabytes("storage") };
}

function readCompose(
  directory: string,
  { cpus, memoryMb }: { cpus: number | null; memoryMb: number | null },
  { tree, notes, variables }: HarborReading,
): ComposeService | null {
  const file = composeFile(directory, { tree });
  if (file === null) return null;
  const given = {
    ...variables,
    ...logDirectories,
    COMPOSE_PROJECT_NAME: COMPOSE_PROJECT,
    CONTEXT_DIR: ".",
    MAIN_IMAGE_NAME: "",
    PREBUILT_IMAGE_NAME: "",
    MAIN_CONTAINER_NAME: "main",
    TEST_DIR: "/tests",
    HOST_VERIFIER_LOGS_PATH: ".",
    HOST_AGENT_LOGS_PATH: ".",
    HOST_ARTIFACTS_PATH: ".",
    CPUS: cpus === null ? "" : String(cpus),
    MEMORY: memoryMb === null ? "" : `${memoryMb}M`,
  };
  return readComposeService(file, {
    ...{ tree, notes, service: "main", variables: given, providedDirectories },
    // The container of the tests may have what the agent must not see.
    isOfGrader: directory === "environment" ? isOfGrader : () => false,
  });
}

/** Harbor knows no other name for it. */
function composeFile(directory: string, { tree }: Pick<HarborReading, "tree">): string | null {
  const file = `${directory}/docker-compose.yaml`;
  return tree.hasFile(file) ? file : null;
}

function isOfGrader(path: string): boolean {
  const part = partOf(path);
  return part === "tests" || part === "solution";
}

/** The Compose file comes last, as in Harbor: where it says something, that counts. */
function imageOf(
  { docker_image: reference, build_timeout_sec: timeoutSec }: EnvironmentToml,
  { directory, table, compose }: { directory: string; table: string; compose: ComposeService | null },
  { tree, notes }: HarborReading,
): TaskImage | null {
  const hasDockerfile = tree.hasFile(`${directory}/Dockerfile`);
  const build = compose?.build ?? null;
  if (build !== null) return { kind: "build", ...build, context: tree.absolute(build.context), timeoutSec };
  // The name of an image that is built is only the name that it is given.
  const named = compose?.image ?? null;
  if (named !== null && (reference !== undefined || !hasDockerfile))
    return { kind: "reference", reference: named };
  if (reference !== undefined) return { kind: "reference", reference };
  if (hasDockerfile) {
    const context = tree.absolute(directory);
    return { kind: "build", context, dockerfile: "Dockerfile", buildArgs: {}, timeoutSec };
  }
  if (compose !== null || composeFile(directory, { tree }) === null)
    notes.refuse("has no image", {
      hint: `give it ${table}.docker_image in ${TASK_FILE}, or ${directory}/Dockerfile`,
    });
  return null;
}

/** Files beside an image that is not built from them belong into the working directory. */
function filesOf(
  { docker_image: reference }: EnvironmentToml,
  directory: string,
  reading: HarborReading,
): string | null {
  const { tree } = reading;
  if (reference === undefined || definesImage(directory, reading)) return null;
  return tree.below(directory).length === 0 ? null : tree.absolute(directory);
}

/** The part of a task that a file belongs to. */
export function partOf(path: string): TaskPart {
  const inner = path.replace(/^steps\/[^/]+\//, "");
  if (inner === "instruction.md") return "instruction";
  const [first] = inner.split("/");
  if (first === "tests" || first === "solution" || first === "environment") return first;
  return first === "workdir" ? "environment" : "settings";
}

/** Shared by all parts of the reader. */
export interface HarborReading {
  tree: TaskTree;
  notes: TaskNotes;
  variables: Variables;
  /** Before schema 1.4, an environment had limits of its own where the file gave none. */
  hasOlderDefaults: boolean;
}

export const TASK_FILE = "task.toml";
