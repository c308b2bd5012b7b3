import { Redis } from "ioredis";
import { BrigError } from "../../../errors.js";
import { pause } from "../../../lib/time/pause.js";
import { type RedisAddress, shownAddress } from "./redis-address.js";

const CONNECT_TIMEOUT_MS = 10_000;
const LONGEST_WAIT_MS = 2000;
/** Most failures of a connection that breaks again and again are the same. */
const REPORT_EVERY_MS = 30_000;

export type RedisConnection = Redis;

export interface ConnectOptions {
  signal?: AbortSignal | undefined;
  /** Called when a connection that was there has broken; it is tried again meanwhile. */
  onTrouble?: ((reason: string) => void) | undefined;
}

/**
 * Connects once; after that, a connection that breaks is made again for as long as it takes, and commands wait for it. Error:
 * `queue.unreachable`.
 */
export async function connectRedis(
  address: RedisAddress,
  options: ConnectOptions = {},
): Promise<RedisConnection> {
  const { signal, onTrouble } = options;
  let wasConnected = false;
  const client = new Redis({
    host: address.host,
    port: address.port,
    db: address.database,
    ...(address.username === undefined ? {} : { username: address.username }),
    ...(address.password === undefined ? {} : { password: address.password }),
    ...(address.usesTls ? { tls: address.ca === undefined ? {} : { ca: address.ca } } : {}),
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: null,
    // The first failure is reported; later ones are waited out.
    retryStrategy: (times) => (wasConnected ? Math.min(LONGEST_WAIT_MS, times * 100) : null),
  });
  let failure: Error | null = null;
  let reportedAt = Number.NEGATIVE_INFINITY;
  client.on("error", (error: Error) => {
    failure ??= error;
    if (!wasConnected || performance.now() - reportedAt < REPORT_EVERY_MS) return;
    reportedAt = performance.now();
    onTrouble?.(reasonOf(error));
  });
  try {
    await client.connect();
    await client.ping();
  } catch (error) {
    client.disconnect();
    signal?.throwIfAborted();
    throw unreachable(address, failure ?? (error as Error));
  }
  wasConnected = true;
  return client;
}

/** Ends a connection, at once if the server does not answer. */
export async function disconnectRedis(client: RedisConnection): Promise<void> {
  const quit = client.quit().catch(() => undefined);
  await Promise.race([quit, pause(1000)]);
  client.disconnect();
}

function unreachable(address: RedisAddress, error: Error): BrigError {
  const { usesTls, password } = address;
  const isRefused = isReply(error);
  return new BrigError(`cannot use the Redis server at ${shownAddress(address)}: ${reasonOf(error)}`, {
    code: "queue.unreachable",
    hint: isRefused
      ? "give the user and the password in the URL, or the password in BRIG_REDIS_PASSWORD"
      : usesTls
        ? "is it running, and does --redis-ca name the certificate that signed its own?"
        : `is it running?${password === undefined ? "" : " If it wants TLS, use rediss://"}`,
    // The client's own error is not used, since it has the password among its fields.
    cause: new Error(reasonOf(error)),
  });
}

/** An answer of the server, such as one to a wrong password. */
function isReply(error: Error): boolean {
  return error.name === "ReplyError";
}

/** A name that resolves to several addresses gives several failures without a message. */
function reasonOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return error.message || code || error.name;
}
