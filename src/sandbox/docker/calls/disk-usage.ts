import {
  array,
  nullish,
  number,
  object,
  read,
  record,
  type Shape,
  type Shaped,
  string,
} from "../../../lib/json/json-shape.js";
import type { Client } from "../client.js";
import type { DiskUsage, Engine } from "../engine-types.js";

/** The engine adds up the files of all volumes for it: on a large machine that takes seconds. */
export function diskUsageCalls({ call }: Client) {
  return {
    async diskUsage() {
      return await call("ask the container engine what is on its disk", async (api, limit) =>
        asUsage(read(usage, await api.json({ method: "GET", path: "/system/df" }, limit))),
      );
    },
  } satisfies Partial<Engine>;
}

const labels = nullish(record(string));

/** Engines report -1 for numbers that they have not counted. */
const counted: Shape<number | null> = (value, path) => {
  const given = number(value, path);
  return given < 0 ? null : given;
};

const image = object({
  Id: string,
  RepoTags: nullish(array(string)),
  Labels: labels,
  Size: number,
  SharedSize: counted,
  Containers: counted,
});

const volume = object({
  Name: string,
  Labels: labels,
  UsageData: nullish(object({ Size: counted, RefCount: counted })),
});

const usage = object({ Images: nullish(array(image)), Volumes: nullish(array(volume)) });

function asUsage({ Images, Volumes }: Shaped<typeof usage>): DiskUsage {
  return {
    images: (Images ?? []).map((one) => ({
      id: one.Id,
      tags: (one.RepoTags ?? []).filter((tag) => tag !== "<none>:<none>"),
      labels: one.Labels ?? {},
      ownBytes: Math.max(0, one.Size - (one.SharedSize ?? 0)),
      containers: one.Containers,
    })),
    volumes: (Volumes ?? []).map((one) => ({
      name: one.Name,
      labels: one.Labels ?? {},
      ownBytes: one.UsageData?.Size ?? 0,
      containers: one.UsageData?.RefCount ?? null,
    })),
  };
}
