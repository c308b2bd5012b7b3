import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import {
  decodeBytePath,
  fromBytePath,
  isHardLinked,
  listNames,
  lstatOrNull,
  quoteBytePath,
  readSmallFile,
  stepsTo,
  toBytePath,
} from "../../../../src/sandbox/git/byte-paths.js";
import { parseGitConfig } from "../../../../src/sandbox/git/repository-config.js";

let folder = "";

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "brig-bytes-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

const at = (name: string) => `${toBytePath(folder)}/${name}`;

describe("a path in bytes", () => {
  it("stands for one in text, where it is UTF-8", () => {
    expect(toBytePath("/ü")).toBe("/\xc3\xbc");
    expect(fromBytePath("/\xc3\xbc")).toBe("/ü");
    expect(fromBytePath("/\xff")).toBeNull();
    expect(decodeBytePath("/\xff")).toBe("/\ufffd");
    expect(quoteBytePath('/"\xc3\xbc')).toBe('"/\\"ü"');
  });

  it("has a state, or none where nothing is, also below a file", () => {
    writeFileSync(join(folder, "file"), "x");
    symlinkSync("file", join(folder, "link"));
    expect(lstatOrNull(at("file"))?.ino).toBe(statSync(join(folder, "file"), { bigint: true }).ino);
    expect(lstatOrNull(at("link"))?.isSymbolicLink()).toBe(true);
    expect(lstatOrNull(at("none"))).toBeNull();
    expect(lstatOrNull(at("file/below"))).toBeNull();
    expect(() => lstatOrNull(at("n".repeat(300)))).toThrow(expect.objectContaining({ code: "ENAMETOOLONG" }));
  });

  it("has several names where it is hard linked", () => {
    writeFileSync(join(folder, "one"), "");
    writeFileSync(join(folder, "two"), "");
    linkSync(join(folder, "two"), join(folder, "other"));
    expect(["one", "two", "other", "none"].map((name) => isHardLinked(at(name)))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it("has names in it, in bytes", () => {
    mkdirSync(join(folder, "d"));
    writeFileSync(Buffer.from(`${at("d/")}\xff`, "latin1"), "");
    expect(listNames(at("d")).map(({ name }) => name)).toEqual(["\xff"]);
  });

  it("is read up to a limit", () => {
    writeFileSync(join(folder, "file"), "12345");
    symlinkSync("file", join(folder, "link"));
    expect(readSmallFile(at("file"), 5)?.toString()).toBe("12345");
    expect(readSmallFile(at("file"), 4)).toBe("too-long");
    expect(readSmallFile(at("none"), 4)).toBeNull();
    expect(readSmallFile(at("file/below"), 4)).toBeNull();
    expect(readSmallFile(toBytePath(folder), 4)).toBe("irregular");
  });

  it("is reached by steps, through links", () => {
    mkdirSync(join(folder, "d"));
    symlinkSync("d", join(folder, "link"));
    const steps = stepsTo(at("link/x"));
    expect(steps.length).toBeGreaterThan(1);
    expect(steps.some(({ path }) => path === at("link"))).toBe(true);
  });
});

it.each([
  ["a line that goes on", 'x = "a\\\nb"', "ab"],
  ["one with a carriage return", 'x = "a\\\r\nb"', "ab"],
  ["a backslash before a carriage return alone", "x = a\\\rb", "a\rb"],
  ["escapes", 'x = "\\t\\"\\\\"', '\t"\\'],
  ["a comment", "x = a ; b", "a"],
  ["a quoted comment sign", 'x = "a ; b"#c', "a ; b"],
  ["spaces", "x =  a  b  ", "a  b"],
])("a setting of git's may have %s", (_name, line, expected) => {
  expect(parseGitConfig(`[s]\n${line}\n`).map(({ value }) => value)).toEqual([expected]);
});
