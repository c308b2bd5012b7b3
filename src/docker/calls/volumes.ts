import * as z from "zod";
import { type Client, nullIfMissing } from "../client.js";
import type { Engine, VolumeSummary } from "../engine-types.js";

type VolumeCalls = Pick<Engine, "createVolume" | "inspectVolume" | "listVolumes" | "removeVolume">;

export function volumeCalls({ call }: Client): VolumeCalls {
  return {
    async createVolume(name, labels) {
      const body = { Name: name, Driver: "local", Labels: labels };
      await call(`create the volume ${name}`, (api, limit) =>
        api.json({ method: "POST", path: "/volumes/create", body }, limit),
      );
    },

    async inspectVolume(name) {
      return await call(`inspect the volume ${name}`, async (api, limit) => {
        const reply = await nullIfMissing(api.json({ method: "GET", path: pathOf(name) }, limit));
        return reply === null ? null : volume.parse(reply);
      });
    },

    async listVolumes(labels) {
      const query = { filters: { label: labels } };
      return await call("list volumes", async (api, limit) => {
        const reply = await api.json({ method: "GET", path: "/volumes", query }, limit);
        return volumeList.parse(reply).Volumes ?? [];
      });
    },

    async removeVolume(name) {
      await call(`remove the volume ${name}`, (api, limit) =>
        nullIfMissing(api.json({ method: "DELETE", path: pathOf(name) }, limit)),
      );
    },
  };
}

function pathOf(name: string): string {
  return `/volumes/${encodeURIComponent(name)}`;
}

const volume = z
  .object({ Name: z.string(), Labels: z.record(z.string(), z.string()).nullish(), Mountpoint: z.string() })
  .transform(
    (reply): VolumeSummary => ({
      name: reply.Name,
      labels: reply.Labels ?? {},
      mountpoint: reply.Mountpoint,
    }),
  );

const volumeList = z.object({ Volumes: z.array(volume).nullish() });
