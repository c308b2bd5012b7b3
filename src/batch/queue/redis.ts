import { Redis } from "ioredis";
import { BrigError } from "../../errors.js";
import { pause } from "../../lib/time/pause.js";

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

/** Address of a Redis server, and the credentials it asks for. */
interface RedisAddress {
  host: string;
  port: number;
  /** The number of its database. */
  database: number;
  username: string | undefined;
  password: string | undefined;
  usesTls: boolean;
  /** Certificates that are trusted in place of those of Node, in PEM; undefined for Node's. */
  ca: string | undefined;
}

const DEFAULT_PORT = 6379;
const LONGEST_DATABASE = 6;

/**
 * `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`, or `rediss://` for TLS. A password that is not in the URL may be given
 * apart. Error: `usage.invalid`, which does not quote the URL, since it may have a password.
 */
export function readRedisAddress(
  text: string,
  { password, ca }: { password?: string | undefined; ca?: string | undefined } = {},
): RedisAddress {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !["redis:", "rediss:"].includes(url.protocol) || url.hostname === "")
    throw invalid("it is not a URL that begins with redis:// or rediss:// and has a host");
  if (url.search !== "" || url.hash !== "") throw invalid("it has parameters, and brig knows none");
  const [, database = ""] = /^\/?([0-9]*)$/.exec(url.pathname) ?? [undefined, null];
  if (database === null || database.length > LONGEST_DATABASE)
    throw invalid("its path is not the number of a database");
  const usesTls = url.protocol === "rediss:";
  if (ca !== undefined && !usesTls)
    throw invalid("certificates are given, but it does not begin with rediss://");
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? DEFAULT_PORT : Number(url.port),
    database: Number(database),
    username: decoded(url.username) || undefined,
    password: decoded(url.password) || password,
    usesTls,
    ca,
  };
}

/** The address for messages, without user and password. */
export function shownAddress({ host, port, database, usesTls }: RedisAddress): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return `${usesTls ? "rediss" : "redis"}://${name}:${port}${database === 0 ? "" : `/${database}`}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw invalid("a % in its user or password is not followed by two hexadecimal digits", cause);
  }
}

function invalid(problem: string, cause?: unknown): BrigError {
  return new BrigError(`the address of the queue cannot be used: ${problem}`, {
    code: "usage.invalid",
    hint: "use redis://HOST:PORT, or rediss://HOST:PORT for TLS; BRIG_REDIS_PASSWORD may have the password",
    cause,
  });
}
