import type { ClientRequest } from "node:http";
import type { ExportResult } from "@opentelemetry/core";
import type { ISerializer } from "@opentelemetry/otlp-transformer";
import { requestOpener } from "../../lib/proxy/proxied-fetch.js";
import type { Proxies } from "../../lib/proxy/proxies.js";
import { pause } from "../../lib/time/pause.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import type { OtlpTarget } from "./telemetry-settings.js";

const REQUEST_MS = 10_000;
const RETRY_AFTER_MS = [500, 2000];
/** Answers after which the protocol has the same request sent again. */
const PASSING: ReadonlySet<number> = new Set([429, 502, 503, 504]);

interface ExporterOptions {
  proxies: Proxies;
  /** Aborted when what failed is not to be sent again. */
  closing: AbortSignal;
  /** Aborted when nothing more is to be sent. */
  signal: AbortSignal;
  /** Called with why a batch was not sent, in a sentence without its full stop. */
  onTrouble(why: string): void;
}

/** Posts batches of spans or measurements to a collector: OTLP over HTTP, through the proxy of the environment. */
export class OtlpExporter<Batch> {
  readonly #target: OtlpTarget;
  readonly #serializer: ISerializer<Batch, unknown>;
  readonly #options: ExporterOptions;
  readonly #running = new Set<Promise<void>>();

  constructor(target: OtlpTarget, serializer: ISerializer<Batch, unknown>, options: ExporterOptions) {
    this.#target = target;
    this.#serializer = serializer;
    this.#options = options;
  }

  export(batch: Batch, onResult: (result: ExportResult) => void): void {
    const running = this.#send(batch).then(
      () => onResult({ code: 0 }),
      (error: unknown) => {
        // The rest of a URL may be a password or a key.
        const { origin, pathname } = new URL(this.#target.url);
        this.#options.onTrouble(`${origin}${pathname}: ${reasonOf(error)}`);
        onResult({ code: 1 });
      },
    );
    this.#running.add(running);
    void running.finally(() => this.#running.delete(running));
  }

  async forceFlush(): Promise<void> {
    await Promise.all(this.#running);
  }

  async shutdown(): Promise<void> {
    await this.forceFlush();
  }

  async #send(batch: Batch): Promise<void> {
    const body = this.#serializer.serializeRequest(batch);
    if (body === undefined) return;
    for (const waitMs of [...RETRY_AFTER_MS, null]) {
      const failure = await this.#post(body);
      if (failure === null) return;
      const { closing } = this.#options;
      if (waitMs === null || !failure.mayPass || closing.aborted) throw failure.error;
      // One that waits at the end is tried once more.
      await pause(waitMs, closing).catch(() => undefined);
    }
  }

  async #post(body: Uint8Array): Promise<{ error: Error; mayPass: boolean } | null> {
    const { url, encoding, headers } = this.#target;
    const { proxies, signal } = this.#options;
    using limit = new TimeLimit(REQUEST_MS, signal);
    const type = encoding === "json" ? "application/json" : "application/x-protobuf";
    const sent = {
      "user-agent": "brig",
      ...headers,
      "content-type": type,
      "content-length": String(body.length),
    };
    try {
      const options = { method: "POST", headers: sent, proxies, signal: limit.signal };
      const status = await statusOf(await requestOpener(new URL(url), options), body);
      if (status >= 200 && status < 300) return null;
      return { error: new Error(`HTTP ${status}`), mayPass: PASSING.has(status) };
    } catch (error) {
      signal.throwIfAborted();
      return { error: error instanceof Error ? error : new Error(String(error)), mayPass: true };
    }
  }
}

/** Node's `fetch` is not used, since it takes long to load. Redirects are not followed: another server would be given the headers. */
async function statusOf(open: () => ClientRequest, body: Uint8Array): Promise<number> {
  return await new Promise((resolve, reject) => {
    const request = open();
    request.once("response", (answer) => {
      resolve(answer.statusCode ?? 0);
      // Nothing is read of what it says.
      answer.destroy();
    });
    request.on("error", reject);
    request.once("close", () => reject(new Error("the connection was closed without an answer")));
    request.end(body);
  });
}

/** That a time is over, or the program ends, is in the cause. */
function reasonOf(error: unknown): string {
  const { cause = error } = error as { cause?: unknown };
  return cause instanceof Error ? cause.message : String(cause);
}
