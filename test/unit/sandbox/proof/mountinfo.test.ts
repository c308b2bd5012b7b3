import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isReadOnly, type MountEntry, parseMountinfo } from "../../../../src/sandbox/proof/mountinfo.js";

const parse = (table: string) => parseMountinfo(Buffer.from(table));
const line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n";

describe("a mount table", () => {
  it("is read field by field, whatever the number of optional ones", () => {
    expect(parse(line)).toEqual([
      {
        device: "98:0",
        root: "/mnt1",
        path: "/mnt2",
        options: ["rw", "noatime"],
        fileSystem: "ext3",
        superOptions: ["rw", "errors=continue"],
      },
    ]);
    expect(parse(line.replace("master:1 shared:2 ", ""))[0]?.fileSystem).toBe("ext3");
  });

  it("of gVisor, with an empty optional field, is read too", () => {
    expect(parse("8 8 0:8 / / ro  - 9p none ro,trans=fd\n")[0]).toMatchObject({
      path: "/",
      fileSystem: "9p",
    });
  });

  it("may be empty", () => {
    expect(parse("")).toEqual([]);
  });

  it("has its octal escapes undone, once", () => {
    const path = parse(line.replace("/mnt2", "/a\\040b\\011c\\012d\\134040"))[0]?.path;
    expect(path).toBe("/a b\tc\nd\\040");
  });

  it("keeps names in UTF-8", () => {
    expect(parse(line.replace("/mnt2", "/größe/日本"))[0]?.path).toBe("/größe/日本");
  });

  it.each([
    ["a word", "nonsense\n"],
    ["an empty line", `${line}\n${line}`],
    ["no separator", line.replace(" - ", " ")],
    ["a field too many", line.replace("rw,errors", "rw more,errors").replace(",errors=continue", "")],
    ["a number that is none", line.replace("36 ", "x ")],
    ["a device that is none", line.replace("98:0", "98")],
    ["a relative path", line.replace("/mnt2", "mnt2")],
    ["a negative number", line.replace("36 ", "-1 ")],
  ])("with %s is refused", (_, table) => {
    expect(() => parse(table)).toThrow(expect.objectContaining({ code: "protocol.invalid" }));
  });

  it("without end is refused", () => {
    expect(() => parse(line.repeat(20_001))).toThrow("20001 lines");
    expect(() => parse("x".repeat(4 * 1024 * 1024 + 1))).toThrow("bytes");
  });

  it("is read-only where the mount is, and where its file system is", () => {
    const entry = parse(line)[0] as MountEntry;
    expect(isReadOnly(entry)).toBe(false);
    expect(isReadOnly({ ...entry, options: ["ro"] })).toBe(true);
    expect(isReadOnly({ ...entry, superOptions: ["ro"] })).toBe(true);
    expect(isReadOnly({ ...entry, options: ["rw"], superOptions: ["errors=remount-ro"] })).toBe(false);
  });

  it("written as the kernel does is read back exactly", () => {
    const name = fc
      .string({ unit: "binary", minLength: 1, maxLength: 12 })
      .map((text) => text.replace(/[\0/]/g, "_"));
    const path = fc.array(name, { maxLength: 4 }).map((names) => `/${names.join("/")}`);
    fc.assert(
      fc.property(fc.array(path), (paths) => {
        const escaped = (text: string) =>
          text.replace(/[ \t\n\\]/g, (c) => `\\${c.charCodeAt(0).toString(8).padStart(3, "0")}`);
        const table = paths.map((at, id) => `${id} 0 0:1 / ${escaped(at)} rw - tmpfs none rw\n`).join("");
        expect(parse(table).map((entry) => entry.path)).toEqual(paths);
      }),
    );
  });

  it("of arbitrary bytes never does more than be refused", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          expect(Array.isArray(parseMountinfo(bytes))).toBe(true);
        } catch (error) {
          expect(error).toMatchObject({ code: "protocol.invalid" });
        }
      }),
    );
  });

  it.runIf(process.platform === "linux")("of this machine has a root [needs Linux]", async () => {
    const table = parseMountinfo(await readFile("/proc/self/mountinfo"));
    expect(table.some(({ path }) => path === "/")).toBe(true);
  });
});
