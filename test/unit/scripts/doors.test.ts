import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
// @ts-expect-error -- a plain script without types
import { lookThrough, readDoor, throughDoors } from "../../../scripts/doors.js";

const file = fileURLToPath(new URL("../../../src/cli/any-command.ts", import.meta.url));

describe("what a door gives", () => {
  it("is known by the name that it is given under", () => {
    const door = readDoor(
      'export { a } from "./x/a.js";\nexport type {\n  B,\n  C as D,\n} from "./y.js";\nexport { type E } from "./z.js";',
    );
    expect([...door]).toEqual([
      ["a", "./x/a.js"],
      ["B", "./y.js"],
      ["D", "./y.js"],
      ["E", "./z.js"],
    ]);
  });
});

describe("through a door", () => {
  const seen: [string, string, string][] = [
    [
      "values and types come from their files",
      'import { createPool, Sandbox as Box } from "../sandbox/index.js";',
      'import { createPool } from "../sandbox/pool.js"; import { Sandbox as Box } from "../sandbox/sandbox.js";',
    ],
    [
      "types stay types",
      'export type { ToolSpec } from "../tools/index.js";',
      'export type { ToolSpec } from "../tools/tool.js";',
    ],
    [
      "what is loaded later is loaded from its file",
      'const { connectEngine: connect } = await import("../sandbox/index.js");',
      'const { connectEngine: connect } = await import("../sandbox/docker/connect.js");',
    ],
    [
      "what is loaded later from two files is loaded from both at once",
      'const { createPool, connectEngine } = await import("../sandbox/index.js");',
      'const [{ createPool }, { connectEngine }] = await Promise.all([import("../sandbox/pool.js"), import("../sandbox/docker/connect.js")]);',
    ],
    [
      "one of several that are loaded together may be behind a door",
      'const [{ createPool, connectEngine }, { render }] = await Promise.all([import("../sandbox/index.js"), import("./render.js")]);',
      'const [{ createPool }, { connectEngine }, { render }] = await Promise.all([import("../sandbox/pool.js"), import("../sandbox/docker/connect.js"), import("./render.js")]);',
    ],
    [
      "a member of what is loaded is loaded from its file",
      'return (await import("../sandbox/index.js")).createPool;',
      'return (await import("../sandbox/pool.js")).createPool;',
    ],
    [
      "a type as the compiler writes it is that of its file",
      'export declare const pool: import("../sandbox/index.js").SandboxPool;',
      'export declare const pool: import("../sandbox/pool.js").SandboxPool;',
    ],
    [
      "an index that is no door stays",
      'import { a } from "./index.js";\nimport { b } from "../other/index.js";',
      'import { a } from "./index.js";\nimport { b } from "../other/index.js";',
    ],
  ];
  it.each(seen)("%s", (_, code, expected) => {
    expect(lookThrough(code, file)).toBe(expected);
  });

  it("what is compiled has the same doors", () => {
    const compiled = file.replace("/src/", "/dist/").replace(/\.ts$/, ".d.ts");
    expect(lookThrough('export type { Sandbox } from "../sandbox/index.js";', compiled)).toBe(
      'export type { Sandbox } from "../sandbox/sandbox.js";',
    );
  });

  it("lines stay where they are", () => {
    const code = 'import {\n  createPool,\n  Sandbox,\n} from "../sandbox/index.js";\nlast();';
    expect(lookThrough(code, file).split("\n").indexOf("last();")).toBe(4);
  });

  it("a door that is loaded as a whole is refused, with what to write", () => {
    const { handler } = throughDoors().transform;
    expect(() => handler('const all = await import("../sandbox/index.js");', file)).toThrow(
      /any-command\.ts: a door is loaded as a whole\. Write: const \{ name \}/,
    );
  });
});
