import {
  array,
  boolean,
  nullish,
  number,
  object,
  oneOf,
  read,
  record,
  type Shaped,
  string,
} from "../../lib/json/json-shape.js";
import { archiveCalls } from "./calls/archives.js";
import { containerCalls } from "./calls/containers.js";
import { diskUsageCalls } from "./calls/disk-usage.js";
import { imageCalls } from "./calls/images.js";
import { volumeCalls } from "./calls/volumes.js";
import { askAboutItself, type Client } from "./client.js";
import type { Engine, EngineHealth, EngineInfo, EngineRuntime } from "./engine-types.js";
import { isRootless, ROOTLESS } from "./rootless.js";

export async function openEngine(client: Client): Promise<Engine> {
  let asked: Promise<EngineInfo> | undefined;
  const containers = containerCalls(client);
  const volumes = volumeCalls(client);
  const images = imageCalls(client);
  // Loaded on demand: with Docker nothing of it is needed.
  const special =
    client.product === "podman"
      ? (await import("./podman/podman-containers.js")).podmanContainers(client, {
          ...containers,
          ...volumes,
          ...images,
        })
      : {};
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
    health: async () => asHealth(read(infoReply, await askAboutItself(client.call))),
    ...containers,
    ...special,
    ...archiveCalls(client),
    ...volumes,
    ...images,
    ...diskUsageCalls(client),
  };
}

const runtimeReply = object({
  path: nullish(string),
  runtimeArgs: nullish(array(string)),
  runtimeType: nullish(string),
});

const infoReply = object({
  OperatingSystem: nullish(string),
  CgroupVersion: nullish(oneOf("1", "2")),
  CgroupDriver: nullish(string),
  Runtimes: nullish(record(nullish(runtimeReply))),
  DefaultRuntime: nullish(string),
  SecurityOptions: nullish(array(string)),
  /** Podman says it here, and Docker in its security options. */
  Rootless: nullish(boolean),
  Driver: string,
  DockerRootDir: nullish(string),
  NCPU: number,
  MemTotal: number,
  LiveRestoreEnabled: nullish(boolean),
  MemoryLimit: nullish(boolean),
  SwapLimit: nullish(boolean),
  CpuCfsQuota: nullish(boolean),
  PidsLimit: nullish(boolean),
  SystemTime: nullish(string),
  Plugins: nullish(object({ Authorization: nullish(array(string)) })),
});
type InfoReply = Shaped<typeof infoReply>;

async function askInfo(client: Client): Promise<EngineInfo> {
  const { version, product, apiVersion, call, earlyInfo } = client;
  const reply = await (earlyInfo?.catch(() => askAboutItself(call)) ?? askAboutItself(call));
  const info = read(infoReply, reply);
  const components = version.Components ?? [];
  return {
    product,
    version: version.Version,
    apiVersion,
    arch: version.Arch,
    os: version.Os,
    operatingSystem: info.OperatingSystem ?? "",
    kernel: version.KernelVersion ?? "",
    cgroupVersion: info.CgroupVersion ?? "1",
    cgroupDriver: info.CgroupDriver ?? "",
    // Podman names every runtime that it knows of, and its API runs no container with one of them.
    runtimes: (product === "podman" ? [] : Object.entries(info.Runtimes ?? {})).map(([name, runtime]) =>
      asRuntime(name, runtime ?? {}),
    ),
    defaultRuntime: info.DefaultRuntime ?? "",
    securityOptions: securityOptionsOf(info),
    components: Object.fromEntries(components.map((part) => [part.Name, exactVersion(part)])),
    storageDriver: info.Driver,
    dockerRootDir: info.DockerRootDir ?? "",
    cpus: info.NCPU,
    memoryBytes: info.MemTotal,
    ...(info.LiveRestoreEnabled === true && { keepsContainers: true }),
  };
}

/** A shim that is given by type reads its arguments from its own file, so they are unknown. */
function asRuntime(
  name: string,
  { path, runtimeArgs, runtimeType }: Partial<Shaped<typeof runtimeReply>>,
): EngineRuntime {
  const program = path || runtimeType || null;
  return { name, program, args: path ? (runtimeArgs ?? []) : null };
}

function securityOptionsOf({ SecurityOptions, Rootless }: InfoReply): string[] {
  const options = SecurityOptions ?? [];
  return Rootless && !isRootless({ securityOptions: options }) ? [...options, ROOTLESS] : options;
}

function asHealth(info: InfoReply): EngineHealth {
  const engineTime = Date.parse(info.SystemTime ?? "");
  // Version 1 cannot be delegated to a user. Podman names what the kernel could do for root.
  const mayLimit = info.CgroupVersion === "2" || !isRootless({ securityOptions: securityOptionsOf(info) });
  return {
    limits: {
      memory: mayLimit && (info.MemoryLimit ?? false),
      swap: mayLimit && (info.SwapLimit ?? false),
      cpu: mayLimit && (info.CpuCfsQuota ?? false),
      pids: mayLimit && (info.PidsLimit ?? false),
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
