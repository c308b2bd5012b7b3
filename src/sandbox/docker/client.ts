import type { Readable } from "node:stream";
import { BrigError } from "../../errors.js";
import {
  array,
  nullish,
  number,
  object,
  read,
  record,
  type Shaped,
  string,
} from "../../lib/json/json-shape.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { agreeOnApi, oldestApi } from "./api-version.js";
import { asRefusal, engineFailure } from "./engine-failure.js";
import type { EngineInfo } from "./engine-types.js";
import type { Modem } from "./modem.js";
import { openTransport, type Transport } from "./transport.js";

/** A stuck engine must not block brig. On a loaded machine creating a container takes many seconds. */
const callLimitMs = 120_000;

const versionReply = object({
  Version: string,
  ApiVersion: string,
  MinAPIVersion: nullish(string),
  Arch: string,
  Os: string,
  KernelVersion: nullish(string),
  Components: nullish(
    array(object({ Name: string, Version: string, Details: nullish(record(nullish(string))) })),
  ),
});
type VersionReply = Shaped<typeof versionReply>;

interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Default: two minutes; null for calls that may take arbitrarily long, such as a build. */
  limitMs?: number | null | undefined;
  /** Whether a failure is looked into by asking the engine where its disk is. Default: true. */
  looksIntoFailure?: boolean | undefined;
}

/** A connection to one engine, with an agreed API version and the same error handling for all calls. */
export interface Client {
  readonly address: string;
  readonly version: VersionReply;
  readonly product: "docker" | "podman";
  readonly apiVersion: string;
  /**
   * The engine's answer about itself (`/info`), if it was requested at the same time as its version. The request names no API version, because the
   * engine's own is not known yet: each engine answers in its newest. It is not asked again, because Docker takes several milliseconds for each answer, and
   * Podman on Debian hundreds: it asks the package manager each time which packages its programs are from.
   */
  readonly earlyInfo: Promise<unknown> | null;
  /**
   * Makes one call. `doing` follows "cannot" in the error message. Rejects with a BrigError, or with the
   * signal's reason after an abort.
   */
  call<T>(doing: string, run: Call<T>, options?: CallOptions): Promise<T>;
}

type Call<T> = (transport: Transport, signal: AbortSignal) => Promise<T>;

/**
 * Connects and agrees on an API version. With `asksEarly`, the engine is asked about itself at the same time,
 * to save the time of a second request. Errors: `engine.unreachable`, `engine.too-old`.
 */
export async function openClient(
  modem: Modem,
  { asksEarly = false, ...options }: { limitMs: number; asksEarly?: boolean | undefined },
): Promise<Client> {
  const { address } = modem;
  const callUnversioned = caller(openTransport(modem), address);
  const earlyInfo = asksEarly ? askAboutItself(callUnversioned, options) : null;
  earlyInfo?.catch(() => undefined);
  const version = await callUnversioned(
    "ask the container engine for its version",
    async (transport, signal) =>
      read(versionReply, await transport.json({ method: "GET", path: "/version" }, signal)),
    options,
  );
  const apiVersion = agreeOnApi(version.ApiVersion, version.MinAPIVersion ?? undefined);
  if (apiVersion === null) throw tooOld(version, address);
  return {
    address,
    version,
    product: version.Components?.some(({ Name }) => /podman/i.test(Name)) ? "podman" : "docker",
    apiVersion,
    earlyInfo,
    call: caller(openTransport(modem, { apiVersion }), address),
  };
}

/** The reply is not checked. */
export async function askAboutItself(call: Client["call"], options?: CallOptions): Promise<unknown> {
  return await call(
    "ask the container engine about itself",
    (api, limit) => api.json({ method: "GET", path: "/info" }, limit),
    { ...options, looksIntoFailure: false },
  );
}

function caller(transport: Transport, address: string): Client["call"] {
  return async (doing, run, { signal, limitMs = callLimitMs, looksIntoFailure = true } = {}) => {
    signal?.throwIfAborted();
    using limit = new TimeLimit(limitMs, signal);
    try {
      return await run(transport, limit.signal);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      const failure = engineFailure(error, { doing, address });
      if (!looksIntoFailure) throw failure;
      const explanation = await explained(failure, { transport, address, signal });
      signal?.throwIfAborted();
      throw explanation;
    }
  };
}

/** Only a failure of the engine itself may come from its disk, not one of the request. */
async function explained(
  failure: BrigError,
  { transport, address, signal }: { transport: Transport; address: string; signal: AbortSignal | undefined },
): Promise<BrigError> {
  const isEngines =
    failure.code === "image.build-failed" ||
    (failure.code === "engine.failed" && (asRefusal(failure.cause)?.status ?? 500) >= 500);
  if (!isEngines) return failure;
  const { blameFullDisk } = await import("./disk/full-disk.js");
  const info = async (limit: AbortSignal) =>
    whereaboutsOf(await transport.json({ method: "GET", path: "/info" }, limit));
  return await blameFullDisk(failure, { endpoint: address, info }, signal);
}

const whereabouts = object({
  KernelVersion: nullish(string),
  MemTotal: number,
  DockerRootDir: nullish(string),
});

function whereaboutsOf(reply: unknown): Pick<EngineInfo, "kernel" | "memoryBytes" | "dockerRootDir"> {
  const { KernelVersion, MemTotal, DockerRootDir } = read(whereabouts, reply);
  return { kernel: KernelVersion ?? "", memoryBytes: MemTotal, dockerRootDir: DockerRootDir ?? "" };
}

function tooOld(version: VersionReply, address: string): BrigError {
  return new BrigError(
    `the container engine at ${address} is too old: version ${version.Version} has API ${version.ApiVersion}, ` +
      `and brig needs ${oldestApi}`,
    { code: "engine.too-old", hint: "upgrade to Docker 20.10 or newer, or to Podman 4 or newer" },
  );
}

/** Returns null for a 404. */
export async function nullIfMissing<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (asRefusal(error)?.status === 404) return null;
    throw error;
  }
}

/** Makes a call that uploads `source`, and closes it. Errors of the source are not blamed on the engine. */
export async function uploading<T>(source: Readable, send: () => Promise<T>): Promise<T> {
  let broken: Error | undefined;
  source.once("error", (error) => {
    broken = error;
  });
  try {
    return await send();
  } catch (error) {
    throw broken ?? error;
  } finally {
    source.destroy();
  }
}
