import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
// @ts-expect-error -- a plain script without types
import { lookThrough } from "../../scripts/doors.js";
import * as brig from "../../src/index.js";
import * as agent from "../../src/public/agent.js";
import * as batch from "../../src/public/batch.js";
import * as client from "../../src/public/client.js";
import * as tools from "../../src/public/tools.js";

const source = fileURLToPath(new URL("../../src", import.meta.url));

/** What an entry of the package exports, values and types, and the file that declares each. */
function exportsOf(entry: string) {
  const text: string = lookThrough(readFileSync(join(source, entry), "utf8"), join(source, entry));
  return [...text.matchAll(/\bexport (type )?\{([^}]*)\} from "([^"]*)\.js"/g)].flatMap(
    ([, isType, names = "", file]) =>
      [...names.matchAll(/\w+/g)].map(([name]) => ({
        name,
        isType: isType !== undefined,
        file: resolve(source, entry, "..", `${file}.ts`),
      })),
  );
}

const entries = {
  brigbox: { path: "index.ts", values: brig },
  "brigbox/tools": { path: "public/tools.ts", values: tools },
  "brigbox/agent": { path: "public/agent.ts", values: agent },
  "brigbox/batch": { path: "public/batch.ts", values: batch },
  "brigbox/client": { path: "public/client.ts", values: client },
};

describe("the package", () => {
  it("exports these functions and classes from its root, and each sub-path those of its subject", () => {
    expect(Object.keys(brig).sort()).toEqual([
      "BrigClient",
      "BrigError",
      "Sandbox",
      "bearerKey",
      "createModelClient",
      "createPool",
      "createScriptedClient",
      "createToolRegistry",
      "isBrigError",
      "loadScript",
      "noCredentials",
      "openConversation",
      "openSessionFile",
      "runAgent",
      "runBatch",
    ]);
    expect(Object.keys(tools)).toEqual(["createToolRegistry"]);
    expect(Object.keys(agent).sort()).toEqual([
      "bearerKey",
      "createModelClient",
      "createScriptedClient",
      "loadScript",
      "noCredentials",
      "openConversation",
      "openSessionFile",
      "runAgent",
    ]);
    expect(Object.keys(batch)).toEqual(["runBatch"]);
    expect(Object.keys(client).sort()).toEqual(["BrigClient", "BrigError", "isBrigError"]);
    for (const { values } of Object.values(entries)) expect(brig).toMatchObject(values);
  });

  it("has each type in one place only, and not more in its root than somebody reads", () => {
    const types = Object.values(entries).flatMap(({ path }) =>
      exportsOf(path).filter(({ isType }) => isType),
    );
    const names = types.map(({ name }) => name);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
    expect(exportsOf("index.ts").length).toBeGreaterThan(50);
    expect(exportsOf("index.ts").length).toBeLessThanOrEqual(80);
  });

  it.each(Object.entries(entries))("has a sentence above everything in %s", (_, { path }) => {
    const bare = exportsOf(path).filter(({ name, file }) => {
      const declaration = `export (?:async )?(?:class|interface|type|function|const) ${name}\\b`;
      return !new RegExp(`\\*/\\n${declaration}`).test(readFileSync(file, "utf8"));
    });
    expect(bare).toEqual([]);
  });
});

it("a sandbox has these members and no others: what only tests need is not among them", () => {
  const members = (of: object) => Object.getOwnPropertyNames(of).sort();
  const { Sandbox } = brig;
  expect(members(Sandbox)).toEqual(["connect", "create", "length", "name", "prototype"]);
  expect(members(Sandbox.prototype)).toEqual([
    "apply",
    "applyTo",
    "changesSinceFork",
    "close",
    "constructor",
    "diff",
    "engine",
    "exec",
    "fork",
    "forward",
    "ping",
    "restore",
    "restorePoint",
    "restorePoints",
    "setNetwork",
    "snapshot",
    "snapshotId",
    "spawn",
    "undo",
    "watchEgress",
  ]);
});
