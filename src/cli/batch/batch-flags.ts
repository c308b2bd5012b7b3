import { type Command, InvalidArgumentError } from "commander";
import { DEFAULT_MODEL } from "../../agent/index.js";
import type { RetryPolicy } from "../../batch/index.js";
import { infrastructureClasses } from "../../batch/index.js";
import {
  addConfigOptions,
  addLimitOptions,
  type ConfigFlags,
  collect,
  durationArgument,
  type LimitFlags,
  sizeArgument,
} from "../../command/index.js";
import { MAX_TIMEOUT_MS } from "../../sandbox/index.js";
import { addQueueOptions, type QueueFlags } from "../queue/queue-flags.js";

const LONGEST_RUN_MS = 30 * 24 * 3_600_000;

/** How often an attempt that the infrastructure ends is tried again. */
interface RetryFlags {
  all?: number | undefined;
  byClass?: Partial<RetryPolicy>;
}

export interface BatchFlags extends ConfigFlags, LimitFlags, Partial<QueueFlags> {
  output?: string;
  concurrency?: number;
  attempts: number;
  agent: string;
  model?: string;
  runtime?: string;
  timeout?: number;
  timeoutMultiplier?: number;
  timeoutExtension?: number;
  keepServices?: boolean;
  maxTurns?: number;
  maxTokens?: number;
  maxCost?: number;
  maxTotalCost?: number;
  maxTotalTokens?: number;
  maxTime?: number;
  retries?: RetryFlags;
  failFast?: boolean;
  task?: string[];
  exclude?: string[];
  tag?: string[];
  skipUnusable?: boolean;
  sample?: number;
  seed: number;
  shuffle?: boolean;
  offline?: boolean;
  prebuild?: boolean;
  prebuildOnly?: boolean;
  imageBudget?: number;
  dryRun?: boolean;
  minReward?: number;
  retryInfrastructure?: boolean;
  scoreUnscored?: boolean;
  allowChanged?: boolean;
  github?: boolean;
  json?: boolean;
}

export function addBatchOptions(command: Command): Command {
  const duration = (atMostMs: number) => durationArgument({ atMostMs });
  return addQueueOptions(addLimitOptions(addConfigOptions(command), "what the task asks for"), queueTexts)
    .option(
      "-o, --output <dir>",
      "the folder of the run; a run that it contains goes on (default: brig-runs/TIME)",
    )
    .option(
      "-n, --concurrency <number>",
      "at most so many attempts at a time; fewer while the machine has no room (default: one for each processor)",
      atLeastOne,
    )
    .option("-k, --attempts <number>", "attempts at each task", atLeastOne, 1)
    .option(
      "--agent <agent>",
      "what works on the tasks: model, oracle, nop, cheat:ATTACK, scripted:FILE or command:COMMAND",
      "model",
    )
    .option("-m, --model <name>", `the model (default: the configuration's, else ${DEFAULT_MODEL})`)
    .option("--runtime <name>", "the OCI runtime of the containers (default: the engine's)")
    .option(
      "--task <pattern>",
      "run only tasks of this name, which may contain * and ?; may be repeated",
      collect,
    )
    .option("--exclude <pattern>", "leave out tasks of this name; may be repeated", collect)
    .option("--tag <tag>", "run only tasks with this tag; may be repeated", collect)
    .option("--skip-unusable", "leave out tasks that cannot be used, instead of running none")
    .option("--sample <number>", "run so many of the tasks, chosen by the seed", atLeastOne)
    .option("--seed <number>", "for --sample and --shuffle", wholeNumber, 0)
    .option("--shuffle", "start the attempts in an order that the seed decides")
    .option(
      "--timeout <time>",
      "time for the agent in place of the task's own: 90, 30s, 2m",
      duration(MAX_TIMEOUT_MS),
    )
    .option("--timeout-multiplier <number>", "multiplies the times that tasks give", positive)
    .option(
      "--timeout-extension <share>",
      "extend a time limit by at most this share of it while others hold the processors (default: 0)",
      notNegative,
    )
    .option(
      "--keep-services",
      "let what an agent left running go on while tests in its container run; such a program can write the reward",
    )
    .option("--max-turns <number>", "requests to the model in an attempt", atLeastOne)
    .option("--max-tokens <number>", "tokens in an attempt, input and output", atLeastOne)
    .option("--max-cost <usd>", "cost of an attempt in US dollars", positive)
    .option("--max-total-cost <usd>", "start no more attempts once the run has cost so much", positive)
    .option("--max-total-tokens <number>", "the same for tokens", atLeastOne)
    .option("--max-time <time>", "the same for time", duration(LONGEST_RUN_MS))
    .option(
      "--retries <number>",
      "further tries after failures of the infrastructure; CLASS=NUMBER for one class; may be repeated (default: 2, image-failed=1)",
      retries,
    )
    .option("--fail-fast", "start no more attempts after the first that does not pass")
    .option("--min-reward <number>", "exit with 1 if the mean reward is lower", finite)
    .option("--retry-infrastructure", "run attempts again that the infrastructure has ended for good")
    .option("--score-unscored", "grade attempts again whose agent was done but that have no score")
    .option("--allow-changed", "run anew what other tasks or settings have given, and set that aside")
    .option("--offline", "pull nothing; fail at once if any image is missing, with the names of all")
    .option("--prebuild", "make all images ready before the first attempt")
    .option("--prebuild-only", "make all images ready, and run nothing")
    .option(
      "--image-budget <size>",
      "the disk space that images built for tasks may take, such as 50GB (default: images.budget of the configuration)",
      sizeArgument,
    )
    .option("--dry-run", "only print which attempts would run")
    .option("--github", "annotations and a job summary for GitHub Actions (default: if it runs there)")
    .option("--no-github", "neither of them")
    .option("--json", "print only events on stdout, one JSON object per line");
}

const queueTexts = {
  queue: "run the attempts on the workers of this queue: redis://HOST, or rediss://HOST with TLS",
  results:
    "with --queue: where workers put results, a directory that all machines share or s3://BUCKET/PREFIX",
};

export function atLeastOne(text: string): number {
  if (!/^[0-9]+$/.test(text) || Number(text) < 1 || !Number.isSafeInteger(Number(text)))
    throw new InvalidArgumentError("It must be a whole number of at least 1.");
  return Number(text);
}

function wholeNumber(text: string): number {
  if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(Number(text)))
    throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}

function positive(text: string): number {
  if (!/^[0-9]*\.?[0-9]+$/.test(text) || Number(text) <= 0)
    throw new InvalidArgumentError("It must be a number above 0.");
  return Number(text);
}

function notNegative(text: string): number {
  if (!/^[0-9]*\.?[0-9]+$/.test(text)) throw new InvalidArgumentError("It must be a number of at least 0.");
  return Number(text);
}

function finite(text: string): number {
  if (!/^-?[0-9]*\.?[0-9]+$/.test(text)) throw new InvalidArgumentError("It must be a number.");
  return Number(text);
}

function retries(text: string, before: RetryFlags = {}): RetryFlags {
  const [, name, number] = /^(?:([a-z-]+)=)?([0-9]+)$/.exec(text) ?? [];
  if (number === undefined || Number(number) > 100)
    throw new InvalidArgumentError("It must be a number up to 100, or CLASS=NUMBER.");
  if (name === undefined) return { ...before, all: Number(number) };
  const known = infrastructureClasses.find((one) => one === name);
  if (known === undefined)
    throw new InvalidArgumentError(
      `There is no class ${name}; the classes are ${infrastructureClasses.join(", ")}.`,
    );
  return { ...before, byClass: { ...before.byClass, [known]: Number(number) } };
}
