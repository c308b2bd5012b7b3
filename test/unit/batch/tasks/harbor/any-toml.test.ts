import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { stringify } from "smol-toml";
import { expect, it } from "vitest";
import { readHarborTask } from "../../../../../src/batch/tasks/harbor/read-task.js";
import { faultsError } from "../../../../../src/batch/tasks/notes.js";
import { runs } from "../../../../support/fuzz.js";
import { harborDirectory } from "./harbor-files.js";

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("2G", "shared", "/a", "../x", "$\u007bA}"),
);
const leaf = fc.oneof(text, fc.integer(), fc.double(), fc.boolean(), fc.array(text, { maxLength: 3 }));
/** Any of the keys, mostly with a value that is right. */
const table = (right: Readonly<Record<string, unknown>>) =>
  fc.record(
    Object.fromEntries(
      Object.entries(right).map(([key, value]) => [
        key,
        fc.oneof({ weight: 12, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: leaf }),
      ]),
    ),
    { requiredKeys: [] },
  );

const environment = table({
  build_timeout_sec: 60,
  docker_image: "debian:12",
  os: "Linux",
  cpus: 1.5,
  memory_mb: 512,
  storage: "2G",
  gpus: 0,
  network_mode: "allowlist",
  allowed_hosts: ["a.example", "10.0.0.0/8"],
  env: { A: "a" },
  workdir: "/app",
  healthcheck: { command: "true" },
  surprise: "s",
});
const toml = fc.record(
  {
    schema_version: fc.constantFrom("1.0", "1.4"),
    artifacts: fc.oneof(
      { weight: 4, arbitrary: fc.constant(["/a", { source: "b", destination: "c" }]) },
      { weight: 1, arbitrary: leaf },
    ),
    task: table({ name: "a/b", version: "1", keywords: ["k"], authors: [{ name: "n" }] }),
    metadata: fc.dictionary(text, leaf, { maxKeys: 3 }),
    environment,
    verifier: fc.oneof(
      table({ timeout_sec: 5, env: {}, user: "u", environment_mode: "separate" }),
      fc.record({ environment }),
    ),
    agent: table({ timeout_sec: 1, user: 7, network_mode: "public" }),
  },
  { requiredKeys: [] },
);

it("whatever a task.toml says, the task is read or its faults are named, in text that can be shown", {
  timeout: 60_000,
}, async () => {
  const directory = await harborDirectory("");
  let readable = 0;
  const numRuns = runs({ short: 100, deep: 5000 });
  await fc.assert(
    fc.asyncProperty(toml, async (value) => {
      await writeFile(join(directory, "task.toml"), stringify(value));
      const read = await readHarborTask(directory, { variables: { A: "a" } });
      if (read.kind === "task") {
        readable += 1;
        expect(JSON.parse(JSON.stringify(read.task))).toEqual(read.task);
      } else {
        expect(read.faults).not.toEqual([]);
        for (const fault of read.faults) {
          const [title, ...shown] = faultsError([fault]).message.split("\n");
          expect(title).toBe("a task cannot be used:");
          expect(shown).toHaveLength(1);
          expect(shown[0]).not.toMatch(/\p{Cc}/u);
        }
      }
    }),
    { numRuns },
  );
  // Else the property would say little.
  expect(readable).toBeGreaterThan(numRuns / 30);
});
