import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commandAgent, nopAgent, oracleAgent } from "../../src/batch/runs/agents/command-agent.js";
import { openTaskImages } from "../../src/batch/runs/images/open-task-images.js";
import type { Task } from "../../src/batch/tasks/task.js";
import { readEnvironment } from "../../src/lib/env.js";
import { readPageAsset } from "../../src/lib/http/page-html.js";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import type { SandboxMode } from "../../src/sandbox/policy/modes.js";
import { createPool } from "../../src/sandbox/pool.js";
import { E2bService } from "../../src/services/e2b/e2b-service.js";
import { BrigClient } from "../../src/services/serve/client/brig-client.js";
import type { BrigClientOptions } from "../../src/services/serve/client/http-calls.js";
import { MemoryBudget } from "../../src/services/serve/http/memory-budget.js";
import { type HttpService, serveHttp } from "../../src/services/serve/http/serve-http.js";
import { clientOfToken, type ServedClient } from "../../src/services/serve/http/served-client.js";
import { OutputBudget } from "../../src/services/serve/processes/output-budget.js";
import type { MachineRoom } from "../../src/services/serve/sandboxes/machine-room.js";
import { openService, type ServiceOptions } from "../../src/services/serve/service-calls.js";
import { testEngine } from "./engine.js";
import { testRuntime } from "./runtime-differences.js";

export interface Served extends AsyncDisposable {
  url: string;
  port: number;
  /** Of the first and of the second client. */
  tokens: readonly [string, string];
  client: BrigClient;
  otherClient: BrigClient;
  /** What E2B's client is given, by the first and by the second client. */
  e2b: readonly [E2bAddresses, E2bAddresses];
  /** What the service said to its operator. */
  warnings: unknown[];
  /** In which its episodes keep their files. */
  directory: string;
  /** Lets what runs end, and resolves when the service has ended. */
  drain(): Promise<void>;
  /** Ends everything at once. */
  stop(): Promise<void>;
}

interface E2bAddresses {
  apiUrl: string;
  sandboxUrl: string;
  apiKey: string;
}

export interface ServedOptions {
  tasks?: readonly Task[];
  limits?: Partial<ServiceOptions["limits"]>;
  http?: HttpService["limits"];
  /** How the service is reached. Default: a free port of 127.0.0.1, without TLS. */
  access?: Pick<HttpService, "listen" | "tls" | "allowedHosts" | "audit">;
  /** How its clients get there. Default: as anybody. */
  clientOptions?: Partial<BrigClientOptions>;
  /** What the machine has. Default: it is not looked at. */
  room?: MachineRoom;
  /** What the first and the second client may, where that is not the usual. */
  clients?: readonly Partial<ServedClient>[];
  /** Whether the page at `/` is served, as it was built. Default: no. */
  hasPage?: boolean;
  /** What requests, outputs and answers may take together. Default: 1 GiB. */
  bufferedBytes?: number;
  allowsNetwork?: boolean;
  /** Sandboxes that are kept started. Default: none. */
  warm?: number;
  /** Default: "workspace-write". */
  mode?: SandboxMode;
  /** Files of authorities that servers outside may have certificates of. */
  caFiles?: string[];
  /** Images by the names that clients of E2B give. */
  templates?: Record<string, string>;
  /** Default: false. */
  endsAutoPaused?: boolean;
  /** Where the service keeps snapshots. Default: that of this process. */
  brigHome?: string;
  /** On which sandboxes run that are no task's, those that are kept started excepted. Default: the engine of the tests. */
  engine?: Engine;
}

/** A service in this process, on a port of its own, with two clients. */
export async function openServed(options: ServedOptions = {}): Promise<Served> {
  const engine = await testEngine();
  const read = readEnvironment();
  const environment = { ...read, brigHome: options.brigHome ?? read.brigHome };
  const directory = await mkdtemp(join(tmpdir(), "brig-served-"));
  const tokens = ["first-".padEnd(32, "1"), "second-".padEnd(32, "2")] as const;
  const [drain, end] = [new AbortController(), new AbortController()];
  const images = openTaskImages({ engine });
  const { warm = 0, mode = "workspace-write" } = options;
  const pool = warm === 0 ? null : createPool({ size: warm, mode, runtime: testRuntime, engine });
  const place = { engine, environment, runtime: testRuntime };
  const warnings: unknown[] = [];
  const onWarning = (error: unknown) => void warnings.push(error);
  const clients = () =>
    tokens.map((token, index) => ({ ...clientOfToken(`${index}`, token), ...options.clients?.[index] }));
  const outputs = new OutputBudget((options.bufferedBytes ?? 1024 ** 3) / 4);
  const memory = new MemoryBudget(options.bufferedBytes ?? 1024 ** 3, { outputs });
  const service = openService(
    {
      places: {
        ...place,
        ...{ image: "brig/base", mode, images: null, pool },
        engine: options.engine ?? engine,
        allowsNetwork: options.allowsNetwork ?? false,
        caFiles: options.caFiles,
      },
      attempts: { ...place, tasks: options.tasks ?? [], images, directory },
      openProtocols: (parts) => [new E2bService(parts)],
      templates: options.templates,
      endsAutoPaused: options.endsAutoPaused,
      openAgent: (wanted) =>
        wanted === "oracle"
          ? oracleAgent()
          : wanted === undefined || wanted === "nop"
            ? nopAgent()
            : commandAgent(wanted.command),
      limits: {
        ...{ maxPlaces: 4, maxPerClient: 4, maxWaiting: 2, idleMs: 600_000, maxLifeMs: 600_000 },
        ...options.limits,
      },
      onWarning,
      ...{ memory, outputs, room: options.room },
      quotaOf: (name) => clients().find((client) => client.name === name)?.quota ?? {},
    },
    drain.signal,
  );
  let listening: (url: string) => void = () => undefined;
  const address = new Promise<string>((resolve) => {
    listening = resolve;
  });
  const ended = (async () => {
    try {
      await serveHttp({
        clients,
        calls: service.calls,
        others: service.others,
        memory,
        drain: drain.signal,
        signal: end.signal,
        settled: service.settled,
        ownerOf: service.ownerOf,
        ...options.access,
        onListening: (url) => listening(url),
        onFault: onWarning,
        limits: options.http,
        page: options.hasPage === true ? await readPageAsset("serve-page") : undefined,
      });
    } catch (error) {
      if (!end.signal.aborted) throw error;
    } finally {
      await service.close();
      await pool?.close();
      await rm(directory, { recursive: true, force: true });
    }
  })();
  const url = await address;
  const [client, otherClient] = tokens.map(
    (token) => new BrigClient({ url, token, ...options.clientOptions }),
  ) as [BrigClient, BrigClient];
  const stop = async () => {
    end.abort(new Error("the test is over"));
    await ended;
    for (const one of [client, otherClient]) one.close();
  };
  return {
    e2b: [e2bOf(url, tokens[0]), e2bOf(url, tokens[1])],
    ...{
      url,
      port: Number(/:([0-9]+)$/.exec(url)?.[1]),
      tokens,
      client,
      otherClient,
      warnings,
      directory,
      stop,
    },
    async drain() {
      drain.abort();
      await ended;
    },
    [Symbol.asyncDispose]: stop,
  };
}

function e2bOf(url: string, token: string): E2bAddresses {
  return { apiUrl: `${url}/e2b`, sandboxUrl: url, apiKey: token };
}
