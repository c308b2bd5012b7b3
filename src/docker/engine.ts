import * as z from "zod";
import { containerCalls } from "./calls/containers.js";
import { diskUsageCalls } from "./calls/disk-usage.js";
import { imageCalls } from "./calls/images.js";
import { volumeCalls } from "./calls/volumes.js";
import type { Client } from "./client.js";
import type { Engine, EngineHealth, EngineInfo, EngineRuntime } from "./engine-types.js";

export function openEngine(client: Client): Engine {
  let asked: Promise<EngineInfo> | undefined;
  return {
    endpoint: client.address,
    arch: client.version.Arch,
    async info() {
      asked ??= askInfo(client);
      try {
        return await asked;
      } catch (error) {
        asked = undefined;
        throw error;
      }
    },
    health: async () => asHealth(await askEngine(client)),
    ...containerCalls(client),
    ...volumeCalls(client),
    ...imageCalls(client),
    ...diskUsageCalls(client),
  };
}

const runtimeReply = z.object({
  path: z.string().nullish(),
  runtimeArgs: z.array(z.string()).nullish(),
  runtimeType: z.string().nullish(),
});

const infoReply = z.object({
  CgroupVersion: z.enum(["1", "2"]).nullish(),
  CgroupDriver: z.string().nullish(),
  Runtimes: z.record(z.string(), runtimeReply.nullish()).nullish(),
  DefaultRuntime: z.string().nullish(),
  SecurityOptions: z.array(z.string()).nullish(),
  Driver: z.string(),
  DockerRootDir: z.string().nullish(),
  NCPU: z.number(),
  MemTotal: z.number(),
  MemoryLimit: z.boolean().nullish(),
  SwapLimit: z.boolean().nullish(),
  CpuCfsQuota: z.boolean().nullish(),
  PidsLimit: z.boolean().nullish(),
  SystemTime: z.string().nullish(),
  Plugins: z.object({ Authorization: z.array(z.string()).nullish() }).nullish(),
});
type InfoReply = z.infer<typeof infoReply>;

async function askEngine({ call }: Client): Promise<InfoReply> {
  const reply = await call("ask the container engine about itself", (api, limit) =>
    api.json({ method: "GET", path: "/info" }, limit),
  );
  return infoReply.parse(reply);
}

async function askInfo(client: Client): Promise<EngineInfo> {
  const { version, apiVersion } = client;
  const info = await askEngine(client);
  const components = version.Components ?? [];
  return {
    product: components.some(({ Name }) => /podman/i.test(Name)) ? "podman" : "docker",
    version: version.Version,
    apiVersion,
    arch: version.Arch,
    os: version.Os,
    kernel: version.KernelVersion ?? "",
    cgroupVersion: info.CgroupVersion ?? "1",
    cgroupDriver: info.CgroupDriver ?? "",
    runtimes: Object.entries(info.Runtimes ?? {}).map(([name, runtime]) => asRuntime(name, runtime ?? {})),
    defaultRuntime: info.DefaultRuntime ?? "",
    securityOptions: info.SecurityOptions ?? [],
    components: Object.fromEntries(components.map((part) => [part.Name, exactVersion(part)])),
    storageDriver: info.Driver,
    dockerRootDir: info.DockerRootDir ?? "",
    cpus: info.NCPU,
    memoryBytes: info.MemTotal,
  };
}

/** A shim that is given by type reads its arguments from its own file, so they are unknown. */
function asRuntime(
  name: string,
  { path, runtimeArgs, runtimeType }: z.infer<typeof runtimeReply>,
): EngineRuntime {
  const program = path || runtimeType || null;
  return { name, program, args: path ? (runtimeArgs ?? []) : null };
}

function asHealth(info: InfoReply): EngineHealth {
  const engineTime = Date.parse(info.SystemTime ?? "");
  return {
    limits: {
      memory: info.MemoryLimit ?? false,
      swap: info.SwapLimit ?? false,
      cpu: info.CpuCfsQuota ?? false,
      pids: info.PidsLimit ?? false,
    },
    clockSkewMs: Number.isNaN(engineTime) ? 0 : engineTime - Date.now(),
    authorizationPlugins: info.Plugins?.Authorization ?? [],
  };
}

type Component = NonNullable<Client["version"]["Components"]>[number];

/** Distributions put their package version into the commit field; it shows whether a fix was backported. */
function exactVersion({ Version, Details }: Component): string {
  const commit = Details?.GitCommit ?? "";
  return commit.startsWith(Version) ? commit : Version;
}
