import type { TestLogParser } from "./parsers/parse-test-log.js";

/** The formats that tasks are read from. */
export type TaskFormat = "harbor" | "terminal-bench" | "swe-bench" | "plain";

/** A task, in the form that every reader gives. All paths of the host are absolute. */
export interface Task {
  /** Unique among the tasks of a batch: letters, digits and `._-`, with at most one `/` as in "org/name". */
  name: string;
  format: TaskFormat;
  /** The directory, or `FILE:LINE`, that it was read from, for messages. */
  source: string;
  /** SHA-256 in hex of everything in the task that can change its outcome. */
  checksum: string;
  /** Checksum of each part, so that a change can be named. */
  parts: TaskParts;
  /** Information that the task gives about itself: difficulty, category, tags and the like. JSON values. */
  metadata: Readonly<Record<string, unknown>>;
  environment: TaskEnvironment;
  /** One, or several that run one after the other in the same container. */
  steps: readonly TaskStep[];
  /** How the rewards of several steps are combined. */
  rewardStrategy: "mean" | "final";
  /** Things that the reader noticed and ignored, one sentence each. */
  warnings: readonly string[];
}

/** SHA-256 in hex of the files, or of the text, that each part of a task consists of. */
export type TaskParts = Readonly<Record<TaskPart, string>>;

export const taskParts = ["instruction", "environment", "tests", "solution", "settings"] as const;

export type TaskPart = (typeof taskParts)[number];

export interface TaskEnvironment {
  image: TaskImage;
  /** A directory whose contents are copied to the working directory before the agent starts; null for none. */
  files: string | null;
  /** Directories and files copied to other places, in this order. Default: nothing. */
  copies?: readonly TaskCopy[] | undefined;
  /** Null for the image's own. */
  workdir: string | null;
  env: Readonly<Record<string, string>>;
  network: TaskNetwork;
  /** Null for a limit that the task does not set. */
  limits: { cpus: number | null; memoryMb: number | null; storageMb: number | null };
  /** The environment is ready when this succeeds; null for no check. */
  healthcheck: TaskHealthcheck | null;
}

/** A file or a directory of the task that is copied to a path in the container. */
export interface TaskCopy {
  source: string;
  target: string;
  /** Paths below the source that are left out, with all that is in them. */
  exclude: readonly string[];
  /** Whether it belongs to root, so that only root may change it. */
  isReadOnly: boolean;
}

/** An image to pull or to find, or one to build. */
export type TaskImage =
  | { kind: "reference"; reference: string }
  | {
      kind: "build";
      /** The directory that is sent to the engine. */
      context: string;
      /** Relative to the context. */
      dockerfile: string;
      buildArgs: Readonly<Record<string, string>>;
      timeoutSec: number;
    };

/** `allowedHosts` is empty unless the mode is "allowlist". */
export interface TaskNetwork {
  mode: "public" | "no-network" | "allowlist";
  allowedHosts: readonly string[];
}

export interface TaskHealthcheck {
  command: string;
  intervalSec: number;
  timeoutSec: number;
  startPeriodSec: number;
  startIntervalSec: number;
  retries: number;
}

/** Limits and user of the agent or the verifier. Null where the environment's value counts. */
export interface TaskPhase {
  /** Null for no limit. */
  timeoutSec: number | null;
  /** A name or number in the image's user database; null for the image's own user. */
  user: string | null;
  network: TaskNetwork | null;
}

export interface TaskStep {
  /** Null for the only step of a task. */
  name: string | null;
  instruction: string;
  agent: TaskPhase;
  /** A directory whose contents are copied to the working directory before this step; null for none. */
  files: string | null;
  /** A script among them that then prepares this step, relative to the working directory; null for none. */
  setupScript: string | null;
  /** Check that makes the step ready when it succeeds; runs after `setupScript`. Null for no check. */
  healthcheck: TaskHealthcheck | null;
  solution: TaskSolution | null;
  /** Files and directories that the verifier gets from the agent's container, and that are kept as results. */
  artifacts: readonly TaskArtifact[];
  verifier: TaskVerifier;
  /** The rewards that the next step requires, by key; null for none. */
  minRewards: Readonly<Record<string, number>> | null;
}

/** The only step of a task, in a format in which nothing but the environment prepares it. */
export function onlyStep(
  step: Pick<TaskStep, "instruction" | "agent" | "solution" | "artifacts" | "verifier">,
): TaskStep {
  return { name: null, ...step, files: null, setupScript: null, healthcheck: null, minRewards: null };
}

/** Work of the `oracle` agent. */
export type TaskSolution =
  | { kind: "script"; directory: string; script: string; env: Readonly<Record<string, string>> }
  | { kind: "commands"; commands: readonly string[] }
  /** A unified diff, applied in the working directory. Carriage returns are part of it. */
  | { kind: "patch"; patch: string };

export interface TaskArtifact {
  /** Absolute in the container, or relative to the working directory. */
  source: string;
  /** Relative to the folder of the attempt's artifacts; null for the source's own name. */
  destination: string | null;
  /** Patterns of paths below the source that are left out. */
  exclude: readonly string[];
}

export interface TaskVerifier extends TaskPhase {
  /**
   * "separate": a fresh container from the image gets the artifacts and the tests; "shared": the tests run in the
   * agent's container, where the agent may have changed whatever they use.
   */
  mode: "separate" | "shared";
  /**
   * Shared tests only: what the agent left running goes on while they run, among it what could write the reward itself. Default:
   * everything is ended before.
   */
  keepsServices?: boolean | undefined;
  env: Readonly<Record<string, string>>;
  /** Environment of the separate container; null for the task's own. */
  environment: TaskEnvironment | null;
  check: TaskCheck;
}

/** Way in which the outcome of the verifier becomes a reward. */
export type TaskCheck =
  /**
   * The tests are files in `directory`, which is copied to /tests; `script` is the one that is run, and writes the reward to
   * /logs/verifier. `directory` is null for a separate verifier whose image has its own /tests.
   */
  | {
      kind: "reward-files";
      directory: string | null;
      script: string;
      /** A directory whose files are copied there before. Those of `directory` replace them. Default: none. */
      base?: string | undefined;
    }
  /**
   * Bash runs `script`, a file of the host that is copied to /tests beside what `directory` contains. The parser of
   * this name reads its output.
   */
  | { kind: "parsed-output"; directory: string | null; script: string; parser: TestLogParser }
  | {
      kind: "swe-bench";
      /**
       * A git repository in the container, which has `baseCommit` checked out. The agent does not see commits that do
       * not lead there, and the verifier gets its files without those of git.
       */
      repository: string;
      baseCommit: string;
      /** Bash; its output contains the harness's markers. */
      evalScript: string;
      parser: TestLogParser;
      evalType: "pass_and_fail" | "fail_only";
      failToPass: readonly string[];
      passToPass: readonly string[];
    }
  /** A shell command: exit code 0 is reward 1, any other 0. */
  | { kind: "command"; command: string };
