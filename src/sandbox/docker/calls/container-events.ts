import { text } from "node:stream/consumers";
import { nullish, number, object, read, record, string } from "../../../lib/json/json-shape.js";
import type { Client } from "../client.js";
import type { ContainerEvent } from "../container-event.js";

const event = object({
  Action: string,
  Actor: nullish(object({ Attributes: nullish(record(string)) })),
  timeNano: nullish(number),
});

/** Covers what the clocks of this machine and the engine's differ by. */
const AHEAD_MS = 250;

/** Asked for events until a certain time, Docker ends its answer then. Otherwise it would go on, and wait for new events. */
function untilNow() {
  return { until: ((Date.now() + AHEAD_MS) / 1000).toFixed(3) };
}

/** Podman ends its answer after the last event of its log. With a time to end at, it would stop then even in the middle of the log. */
const wholeLog = { stream: false };

/** See `Engine.containerEvents`. */
export async function containerEvents(
  { call, product }: Client,
  id: string,
  { signal }: { signal?: AbortSignal } = {},
): Promise<ContainerEvent[]> {
  const reply = await call(
    "ask what happened to the container",
    async (api, limit) => {
      const filters = JSON.stringify({ type: ["container"], container: [id] });
      const query = { since: "1", filters, ...(product === "podman" ? wholeLog : untilNow()) };
      return await text(await api.stream({ method: "GET", path: "/events", query }, limit));
    },
    { signal, limitMs: 10_000 },
  );
  const lines = reply.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => {
    const { Action, Actor, timeNano } = read(event, JSON.parse(line));
    const exitCode = /^\d{1,3}$/.exec(Actor?.Attributes?.exitCode ?? "");
    return {
      action: Action,
      atMs: (timeNano ?? 0) / 1e6,
      exitCode: exitCode === null ? null : Number(exitCode[0]),
    };
  });
}
