import { basename } from "node:path";
import { z } from "zod";
import { parseJson } from "../../../lib/json/parse-json.js";
import { RunFiles } from "./run-file.js";
import { shownLine } from "./shown-text.js";
import type { RunHeader } from "./view-model.js";

const MAX_BATCH_BYTES = 64 * 1024 * 1024;
const MAX_SETTINGS = 100;
const MAX_TAGS = 20;

/** What the page uses of `batch.json`; a run of another version of brig may have more or less. */
const batchSchema = z.looseObject({
  brigVersion: z.string().nullish().catch(null),
  settings: z.record(z.string(), z.unknown()).nullish().catch(null),
  tasks: z
    .array(
      z.looseObject({
        name: z.string(),
        tags: z.array(z.string()).nullish().catch(null),
      }),
    )
    .nullish()
    .catch(null),
});

/** Reads `batch.json`. What it does not say is null or empty. */
export function readRunHeader(folder: string): RunHeader {
  const bytes = new RunFiles(folder).bytes(["batch.json"], { maxBytes: MAX_BATCH_BYTES });
  const value = bytes instanceof Buffer ? parseJson(bytes.toString("utf8")) : {};
  const { settings, tasks, brigVersion } = batchSchema.safeParse(value).data ?? {};
  const attempts = settings?.attempts;
  const perTask =
    typeof attempts === "number" && Number.isSafeInteger(attempts) && attempts > 0 ? attempts : null;
  return {
    name: shownLine(basename(folder)),
    plannedAttempts: tasks == null || perTask === null ? null : tasks.length * perTask,
    settings: [
      ...(brigVersion == null ? [] : [{ name: "brig", value: shownLine(brigVersion) }]),
      ...Object.entries(settings ?? {})
        .slice(0, MAX_SETTINGS)
        .flatMap(settingRow),
    ],
    tags: Object.fromEntries(
      (tasks ?? []).flatMap(({ name, tags }) =>
        tags == null || tags.length === 0 ? [] : [[shownLine(name), tags.slice(0, MAX_TAGS).map(shownLine)]],
      ),
    ),
  };
}

function settingRow([name, value]: [string, unknown]): RunHeader["settings"] {
  if (value === null || value === undefined) return [];
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return [{ name: shownLine(name), value: shownLine(text) }];
}
