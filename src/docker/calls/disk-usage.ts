import * as z from "zod";
import type { Client } from "../client.js";
import type { DiskUsage, Engine } from "../engine-types.js";

/** The engine adds up the files of all volumes for it: on a large machine that takes seconds. */
export function diskUsageCalls({ call }: Client): Pick<Engine, "diskUsage"> {
  return {
    async diskUsage() {
      return await call("ask the container engine what is on its disk", async (api, limit) =>
        usage.parse(await api.json({ method: "GET", path: "/system/df" }, limit)),
      );
    },
  };
}

const labels = z.record(z.string(), z.string()).nullish();
/** Engines report -1 for numbers that they have not counted. */
const counted = z.number().transform((number) => (number < 0 ? null : number));

const image = z
  .object({
    Id: z.string(),
    RepoTags: z.array(z.string()).nullish(),
    Labels: labels,
    Size: z.number(),
    SharedSize: counted,
    Containers: counted,
  })
  .transform((one) => ({
    id: one.Id,
    tags: (one.RepoTags ?? []).filter((tag) => tag !== "<none>:<none>"),
    labels: one.Labels ?? {},
    ownBytes: Math.max(0, one.Size - (one.SharedSize ?? 0)),
    containers: one.Containers,
  }));

const volume = z
  .object({
    Name: z.string(),
    Labels: labels,
    UsageData: z.object({ Size: counted, RefCount: counted }).nullish(),
  })
  .transform((one) => ({
    name: one.Name,
    labels: one.Labels ?? {},
    ownBytes: one.UsageData?.Size ?? 0,
    containers: one.UsageData?.RefCount ?? null,
  }));

const usage = z
  .object({ Images: z.array(image).nullish(), Volumes: z.array(volume).nullish() })
  .transform((reply): DiskUsage => ({ images: reply.Images ?? [], volumes: reply.Volumes ?? [] }));
