import * as z from "zod";
import type { Client } from "./client.js";
import { containerCalls } from "./containers.js";
import { imageCalls } from "./images.js";
import type { Engine, EngineInfo } from "./types.js";
import { volumeCalls } from "./volumes.js";

export function engineOn(client: Client): Engine {
  let asked: Promise<EngineInfo> | undefined;
  return {
    endpoint: client.address,
    async info() {
      asked ??= askInfo(client);
      try {
        return await asked;
      } catch (error) {
        asked = undefined;
        throw error;
      }
    },
    ...containerCalls(client),
    ...volumeCalls(client),
    ...imageCalls(client),
  };
}

const infoReply = z.object({
  CgroupVersion: z.enum(["1", "2"]).nullish(),
  CgroupDriver: z.string().nullish(),
  Runtimes: z.record(z.string(), z.unknown()).nullish(),
  DefaultRuntime: z.string().nullish(),
  SecurityOptions: z.array(z.string()).nullish(),
  Driver: z.string(),
  DockerRootDir: z.string().nullish(),
  NCPU: z.number(),
  MemTotal: z.number(),
  SystemTime: z.string().nullish(),
});

async function askInfo({ call, version, apiVersion }: Client): Promise<EngineInfo> {
  const reply = await call("ask the container engine about itself", (api, limit) =>
    api.json({ method: "GET", path: "/info" }, limit),
  );
  const info = infoReply.parse(reply);
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
    runtimes: Object.keys(info.Runtimes ?? {}),
    defaultRuntime: info.DefaultRuntime ?? "",
    securityOptions: info.SecurityOptions ?? [],
    components: Object.fromEntries(components.map((part) => [part.Name, exactVersion(part)])),
    storageDriver: info.Driver,
    dockerRootDir: info.DockerRootDir ?? "",
    cpus: info.NCPU,
    memoryBytes: info.MemTotal,
  };
}

type Component = NonNullable<Client["version"]["Components"]>[number];

/** Distributions put their full package version, which tells whether a fix was backported, into the commit field. */
function exactVersion({ Version, Details }: Component): string {
  const commit = Details?.GitCommit ?? "";
  return commit.startsWith(Version) ? commit : Version;
}
