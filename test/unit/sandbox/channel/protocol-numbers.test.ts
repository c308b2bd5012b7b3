import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as protocol from "../../../../src/sandbox/channel/protocol.js";

type Group = Record<string, number>;
type Numbers = Record<string, number | Group>;

const headers = ["common/protocol.h", "runner-files/file-protocol.h"]
  .map((path) => readFileSync(new URL(`../../../../images/toolbox/${path}`, import.meta.url), "utf8"))
  .join("\n");

/** Every #define with a value and every enum of a header. Throws when a line is none of the forms it knows. */
function numbersOf(source: string): Numbers {
  const code = source
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/^#((ifndef|define) BRIG_(FILE_)?PROTOCOL_H|include "protocol\.h"|endif)$/gm, "");
  const numbers: Numbers = {};
  const rest = code
    .replace(/^#define (\w+) (.+)$/gm, (_, name: string, value: string) => {
      expect(numbers).not.toHaveProperty(name);
      numbers[name] = numberOf(value);
      return "";
    })
    .replace(/enum (\w+) \{(.*?)\};/gs, (_, name: string, members: string) => {
      expect(numbers).not.toHaveProperty(pascalCase(name));
      numbers[pascalCase(name)] = groupOf(name, members);
      return "";
    });
  expect(rest.trim()).toBe("");
  return numbers;
}

/** The members of `enum frame_type` are called FRAME_…; without this prefix they are the keys of FrameType. */
function groupOf(enumName: string, members: string): Group {
  const prefix = `${enumName.split("_")[0]?.toUpperCase()}_`;
  const lines = members.split(",").map((line) => line.trim());
  return Object.fromEntries(
    lines
      .filter((line) => line !== "")
      .map((line) => {
        const [name = "", value = ""] = line.split(" = ");
        expect(name.startsWith(prefix), name).toBe(true);
        return [name.slice(prefix.length), numberOf(value)];
      }),
  );
}

function numberOf(text: string): number {
  const match = /^\(?(0x[0-9a-f]+|[0-9]+)u?(?: << ([0-9]+)\))?$/.exec(text);
  if (!match) throw new Error(`${JSON.stringify(text)} is not a number this test can read`);
  return Number(match[1]) * 2 ** Number(match[2] ?? 0);
}

const pascalCase = (name: string) =>
  name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** "endsTree" and "ends-tree" are ENDS_TREE in C. */
const constantCase = (name: string) =>
  name
    .replace(/([A-Z])/g, "_$1")
    .replaceAll("-", "_")
    .toUpperCase();

function withConstantCase(value: number | Group): number | Group {
  if (typeof value === "number") return value;
  return Object.fromEntries(Object.entries(value).map(([name, number]) => [constantCase(name), number]));
}

const ofTheHost: Numbers = Object.fromEntries(
  Object.entries(protocol).map(([name, value]) => [name, withConstantCase(value)]),
);

describe("the numbers of the runner's protocol", () => {
  it("are the same, under the same names, for the runner and for the host", () => {
    expect(numbersOf(headers)).toEqual(ofTheHost);
  });

  it.for([
    ["a size", "#define HEADER_BYTES 12u", "#define HEADER_BYTES 13u"],
    ["a frame type", "FRAME_PONG = 0x83", "FRAME_PONG = 0x84"],
    ["a flag that is new", "SPAWN_MERGE = 4,", "SPAWN_MERGE = 4,\n    SPAWN_LATER = 16,"],
    ["a flag that is gone", "    EXIT_PIPE_HELD = 8,\n", ""],
    ["a size that is new", "#define TOKEN_BYTES 32u", "#define TOKEN_BYTES 32u\n#define SALT_BYTES 8u"],
    [
      "a group that is new",
      "enum list_flag {",
      "enum copy_flag {\n    COPY_DEEP = 1,\n};\n\nenum list_flag {",
    ],
  ] as const)("would differ with %s in the runner", ([, from, to]) => {
    const changed = headers.replace(from, to);
    expect(changed).not.toBe(headers);
    expect(numbersOf(changed)).not.toEqual(ofTheHost);
  });

  it("are those of the tables in PROTOCOL.md", () => {
    const tables = readFileSync(
      new URL("../../../../images/toolbox/runner/PROTOCOL.md", import.meta.url),
      "utf8",
    );
    const frameTypes = [...tables.matchAll(/^\| (0x[0-9a-f]{2})(?: \/ (0x[0-9a-f]{2}))? +\|/gm)]
      .flatMap(([, ...types]) => types)
      .filter((type) => type !== undefined);
    expect(frameTypes.map(Number).sort()).toEqual(Object.values(protocol.FrameType).sort());
    const operations = [...tables.matchAll(/^\| ([0-9]+) +\| ([a-z]+) +\|/gm)];
    expect(Object.fromEntries(operations.map(([, number, name]) => [name, Number(number)]))).toEqual(
      protocol.FileOperation,
    );
  });

  it("are each used once: no two members of a group are the same number", () => {
    for (const [name, group] of Object.entries(ofTheHost))
      if (typeof group !== "number")
        expect(new Set(Object.values(group)).size, name).toBe(Object.keys(group).length);
  });
});
