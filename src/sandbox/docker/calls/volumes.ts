import { array, nullish, object, read, record, type Shaped, string } from "../../../lib/json/json-shape.js";
import { type Client, nullIfMissing } from "../client.js";
import type { Engine, VolumeSummary } from "../engine-types.js";

export function volumeCalls({ call }: Client) {
  return {
    async createVolume(name, labels, options = {}) {
      const body = { Name: name, Driver: "local", Labels: labels, DriverOpts: options };
      return await call(`create the volume ${name}`, async (api, limit) => {
        const reply = await api.json({ method: "POST", path: "/volumes/create", body }, limit);
        return asSummary(read(volume, reply));
      });
    },

    async inspectVolume(name) {
      return await call(`inspect the volume ${name}`, async (api, limit) => {
        const reply = await nullIfMissing(api.json({ method: "GET", path: pathOf(name) }, limit));
        return reply === null ? null : asSummary(read(volume, reply));
      });
    },

    async listVolumes(labels) {
      const query = { filters: { label: labels } };
      return await call("list volumes", async (api, limit) => {
        const reply = await api.json({ method: "GET", path: "/volumes", query }, limit);
        const volumes = (read(volumeList, reply).Volumes ?? []).map(asSummary);
        // Podman lists those that have one of the labels.
        return volumes.filter((one) => labels.every((label) => hasLabel(one, label)));
      });
    },

    async removeVolume(name) {
      await call(`remove the volume ${name}`, (api, limit) =>
        nullIfMissing(api.json({ method: "DELETE", path: pathOf(name) }, limit)),
      );
    },
  } satisfies Partial<Engine>;
}

function pathOf(name: string): string {
  return `/volumes/${encodeURIComponent(name)}`;
}

function hasLabel({ labels }: VolumeSummary, label: string): boolean {
  const [name = "", ...value] = label.split("=");
  return Object.hasOwn(labels, name) && (value.length === 0 || labels[name] === value.join("="));
}

const volume = object({
  Name: string,
  Labels: nullish(record(string)),
  Mountpoint: string,
  CreatedAt: nullish(string),
});
const volumeList = object({ Volumes: nullish(array(volume)) });

function asSummary({ Name, Labels, Mountpoint, CreatedAt }: Shaped<typeof volume>): VolumeSummary {
  const createdMs = Date.parse(CreatedAt ?? "");
  const createdAt = Number.isNaN(createdMs) ? null : new Date(createdMs);
  return { name: Name, labels: Labels ?? {}, mountpoint: Mountpoint, createdAt };
}
