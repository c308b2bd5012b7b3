import { resolve } from "node:path";
import type { ObjectStore, RedisConnection } from "../../batch/index.js";
import {
  AttemptQueue,
  connectRedis,
  disconnectRedis,
  openStore,
  readRedisAddress,
} from "../../batch/index.js";
import type { CliContext } from "../../command/index.js";
import { say } from "../../command/index.js";
import { type BrigError, invalidUsage } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { QueueFlags } from "./queue-flags.js";

const MAX_CERTIFICATE_BYTES = 1024 * 1024;

export interface OpenQueue extends AsyncDisposable {
  redis: RedisConnection;
  queue: AttemptQueue;
}

/** Connects to the queue of the flags. Errors: `usage.invalid`, `queue.unreachable`. */
export async function openQueue(flags: Partial<QueueFlags>, context: CliContext): Promise<OpenQueue> {
  const { environment, signal, stderr } = context;
  if (flags.queue === undefined)
    throw missing("--queue", "the address of a Redis server, such as redis://HOST");
  const address = readRedisAddress(flags.queue, {
    password: environment.variables.BRIG_REDIS_PASSWORD,
    ca: flags.redisCa === undefined ? undefined : await certificates(resolve(context.cwd, flags.redisCa)),
  });
  const redis = await connectRedis(address, {
    signal,
    onTrouble: (reason) =>
      void say(
        stderr,
        `brig: the connection to Redis broke (${neutraliseLine(reason)}) and is being made again\n`,
      ),
  });
  const queue = new AttemptQueue(redis);
  return {
    redis,
    queue,
    [Symbol.asyncDispose]: async () => {
      await queue[Symbol.asyncDispose]();
      await disconnectRedis(redis);
    },
  };
}

/** The store of `--results`. Errors: `usage.invalid`, `store.failed`. */
export async function openResults(flags: Partial<QueueFlags>, context: CliContext): Promise<ObjectStore> {
  if (flags.results === undefined)
    throw missing("--results", "a directory that all machines share, or s3://BUCKET/PREFIX");
  return await openStore(flags.results, { cwd: context.cwd, variables: context.environment.variables });
}

async function certificates(file: string): Promise<string> {
  const read = await readTextFile(file, MAX_CERTIFICATE_BYTES);
  if (read.kind === "text" && read.text.includes("-----BEGIN CERTIFICATE-----")) return read.text;
  const problem =
    read.kind === "missing" ? "does not exist" : read.kind === "text" ? "has none" : read.reason;
  throw invalidUsage(
    `the certificates of --redis-ca cannot be used: ${file} ${problem}`,
    "name a file in PEM, which has lines with BEGIN CERTIFICATE",
  );
}

function missing(flag: string, what: string): BrigError {
  return invalidUsage(`${flag} is missing`, `give it ${what}`);
}
