import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import * as brig from "../../src/index.js";
import { exportsOf, forgottenTypes } from "../support/public-types.js";

it("the package exports these names and no others", () => {
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
});

it("a sandbox has these members and no others: what only tests need is not among them", () => {
  const members = (of: object) => Object.getOwnPropertyNames(of).sort();
  const { Sandbox } = brig;
  expect(members(Sandbox)).toEqual(["create", "length", "name", "prototype"]);
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
    "setNetwork",
    "snapshot",
    "snapshotId",
    "spawn",
    "undo",
    "watchEgress",
  ]);
});

it("each of them, and each type, has a sentence above it", () => {
  const source = (path: string) => readFileSync(new URL(`../../src/${path}`, import.meta.url), "utf8");
  const exported = [...source("index.ts").matchAll(/\{([^}]*)\} from "\.\/(.*)\.js"/g)].flatMap(
    ([, names = "", file]) => [...names.matchAll(/\w+/g)].map(([name]) => ({ name, file: `${file}.ts` })),
  );
  expect(exported.length).toBeGreaterThan(50);
  const bare = exported.filter(({ name, file }) => {
    const declaration = `export (?:async )?(?:class|interface|type|function|const) ${name}\\b`;
    return !new RegExp(`\\*/\\n${declaration}`).test(source(file));
  });
  expect(bare).toEqual([]);
});

/** Types that are computed from the tools themselves; `ToolName` and `ToolOf` are how to name what comes out. */
const computed = ["Aliases", "Factories"];

it("every type that one of them mentions is exported, too", () => {
  const forgotten = forgottenTypes(exportsOf(fileURLToPath(new URL("../../src/index.ts", import.meta.url))));
  expect(forgotten.filter(({ name }) => !computed.includes(name))).toEqual([]);
});
