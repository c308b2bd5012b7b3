import { BrigError } from "../../../errors.js";

/** Address of a Redis server, and the credentials it asks for. */
export interface RedisAddress {
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
