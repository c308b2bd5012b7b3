import { describe, expect, it } from "vitest";
import {
  listDirectory,
  readLink,
  readReport,
  sandboxFiles,
  statFile,
} from "../../../../src/sandbox/files/files.js";
import type { DirectoryEntry } from "../../../../src/sandbox/sandbox-types.js";
import { uint32 } from "../channel/fake-runner.js";
import {
  listEntry,
  type PlayedAnswer,
  type PlayedRequest,
  playedFiles,
  readResult,
  statResult,
} from "../channel/played-files.js";

async function answers(...given: PlayedAnswer[]) {
  return await playedFiles(() => given.shift() ?? {});
}

const described = ({ operation, path, second, flags, mode }: PlayedRequest) =>
  `${operation} ${path} ${second} flags ${flags} mode ${mode.toString(8)}`;

type Files = ReturnType<typeof sandboxFiles>;

describe("the files of a sandbox", () => {
  it.each<[string, (files: Files) => Promise<unknown>, string]>([
    ["mkdir", (files) => files.mkdir("/a"), "mkdir /a  flags 0 mode 777"],
    [
      "mkdir with parents",
      (files) => files.mkdir("/a", { recursive: true, mode: 0o700, refuseSymlinks: true }),
      "mkdir /a  flags 129 mode 700",
    ],
    ["rename", (files) => files.rename("/a", "/b"), "rename /a /b flags 0 mode 0"],
    [
      "rename without links",
      (files) => files.rename("/a", "/b", { refuseSymlinks: true }),
      "rename /a /b flags 128 mode 0",
    ],
    ["remove", (files) => files.remove("/a"), "remove /a  flags 0 mode 0"],
    ["remove of a tree", (files) => files.remove("/a", { recursive: true }), "remove /a  flags 1 mode 0"],
    [
      "remove of what may be missing",
      (files) => files.remove("/a", { force: true }),
      "remove /a  flags 2 mode 0",
    ],
    [
      "remove of both",
      (files) => files.remove("/a", { recursive: true, force: true, refuseSymlinks: true }),
      "remove /a  flags 131 mode 0",
    ],
    ["write", (files) => files.write("/a", "x", { mode: 0o600 }), "write /a x flags 2 mode 600"],
  ])("%s is one request", async (_name, call, expected) => {
    const { context, requests } = await answers();
    await call(sandboxFiles(context));
    expect(requests.map(described)).toEqual([expected]);
  });

  it("read, and skip holes", async () => {
    const { context } = await answers(
      { result: readResult(1, Buffer.from("abc")) },
      { result: readResult(5, Buffer.from("d")) },
    );
    const files = sandboxFiles(context);
    expect((await files.read("/a", { offsetBytes: 1 })).toString()).toBe("abc");
    expect(await files.readPastHole("/a", { offsetBytes: 2, lengthBytes: 9 })).toEqual({
      holeBytes: 3,
      data: Buffer.from("d"),
    });
  });

  it("write several at once", async () => {
    const { context, requests } = await answers({ result: uint32(2) });
    const files = ["/a", "/b"].map((path) => ({ path, data: "x" }));
    expect(await sandboxFiles(context).writeEach(files)).toEqual({ written: 2, failure: null });
    expect(requests.map(({ operation }) => operation)).toEqual(["sequence"]);
  });

  it("are not moved to a path that is not absolute", async () => {
    const { context, requests } = await answers();
    await expect(sandboxFiles(context).rename("/a", "b")).rejects.toMatchObject({ code: "file.not-found" });
    expect(requests).toEqual([]);
  });

  it.each<[string, (files: Files, options: object) => Promise<unknown>]>([
    ["read", (files, options) => files.read("/a", options)],
    [
      "readPastHole",
      (files, options) => files.readPastHole("/a", { offsetBytes: 0, lengthBytes: 1, ...options }),
    ],
    ["write", (files, options) => files.write("/a", "", options)],
    ["writeEach", (files, options) => files.writeEach([], options)],
    ["stat", (files, options) => files.stat("/a", options)],
    ["list", (files, options) => files.list("/a", options)],
    ["mkdir", (files, options) => files.mkdir("/a", options)],
    ["rename", (files, options) => files.rename("/a", "/b", options)],
    ["remove", (files, options) => files.remove("/a", options)],
  ])("%s takes no option that it does not know, and stops with its signal", async (name, call) => {
    const { context, requests } = await answers();
    const files = sandboxFiles(context);
    await expect(call(files, { refuseSymlink: true })).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.stringContaining(`files.${name}`),
    });
    const signal = AbortSignal.abort(new Error("stop"));
    if (name !== "writeEach") await expect(call(files, { signal })).rejects.toThrow("stop");
    expect(requests).toEqual([]);
  });

  it.each<[string, (files: Files) => Promise<unknown>]>([
    ["mkdir", (files) => files.mkdir("/a")],
    ["rename", (files) => files.rename("/a", "/b")],
    ["remove", (files) => files.remove("/a")],
    ["stat", (files) => files.stat("/a")],
    ["list", (files) => files.list("/a")],
  ])("%s fails with the path in the message", async (name, call) => {
    const { context } = await answers({ errno: 30 });
    await expect(call(sandboxFiles(context))).rejects.toMatchObject({
      code: "file.read-only",
      message: `cannot ${name} /a: read-only file system`,
    });
  });
});

describe("the state of a file", () => {
  const link = { type: 3, mode: 0o777, uid: 5, gid: 6, size: 7n, modifiedNs: 1_500_000n, dev: 8n, ino: 9n };

  it("is what the runner says of it", async () => {
    const { context, requests } = await answers(
      { result: statResult({ ...link, target: Buffer.from("tö") }) },
      { result: statResult({ ...link, type: 1, modifiedNs: -500_000n, target: Buffer.from("none") }) },
    );
    const expected = { mode: 0o777, uid: 5, gid: 6, sizeBytes: 7, dev: 8n, ino: 9n };
    expect(await statFile(context, "/a", { followSymlinks: false, refuseSymlinks: true })).toEqual({
      ...{ type: "symlink", linkTarget: "tö", modifiedMs: 1.5 },
      ...expected,
    });
    expect(await statFile(context, "/a", { followSymlinks: true })).toEqual({
      ...{ type: "file", linkTarget: null, modifiedMs: -0.5 },
      ...expected,
    });
    expect(requests.map(({ flags }) => flags)).toEqual([129, 0]);
    const plain = await answers({ result: statResult({ type: 2 }) });
    expect(await statFile(plain.context, "/a", {})).toMatchObject({ type: "directory", linkTarget: null });
  });

  it.each([
    ["is cut off", statResult(link).subarray(0, 51)],
    ["has a shorter target than it says", statResult({ ...link, target: Buffer.from("to") }).subarray(0, -1)],
    ["has a longer target than it says", Buffer.concat([statResult(link), Buffer.from("x")])],
    ["is empty", Buffer.alloc(0)],
  ])("that %s is refused", async (_name, result) => {
    const { context } = await answers({ result });
    await expect(statFile(context, "/a", {})).rejects.toMatchObject({ code: "protocol.invalid" });
  });

  it("of a link has its target in bytes", async () => {
    const target = Buffer.from([0xff, 0xfe]);
    const { context, requests } = await answers(
      { result: statResult({ ...link, target }) },
      { result: statResult({ ...link, type: 1, target }) },
    );
    expect(await readLink(context, "/a", {})).toEqual(target);
    expect(await readLink(context, "/a", {})).toHaveLength(0);
    expect(requests.map(described)).toEqual(Array(2).fill("stat /a  flags 129 mode 0"));
    const signal = AbortSignal.abort(new Error("stop"));
    await expect(readLink(context, "/a", { signal })).rejects.toThrow("stop");
  });
});

describe("the entries of a directory", () => {
  const [a, b] = [listEntry(1, "a"), listEntry(2, Buffer.from([0xff]))];
  const expected = [
    { name: "a", nameBytes: Buffer.from("a"), type: "file" },
    { name: "\ufffd", nameBytes: Buffer.from([0xff]), type: "directory" },
  ];

  it("that are few come with the answer", async () => {
    const { context, requests } = await answers(
      { result: Buffer.concat([a, b]) },
      { result: Buffer.alloc(0) },
    );
    expect(await listDirectory(context, "/d", {})).toEqual(expected);
    expect(await listDirectory(context, "/d", {})).toEqual([]);
    expect(requests.map(described)).toEqual(Array(2).fill("list /d  flags 1 mode 0"));
  });

  it("that are many come as a stream, which may be cut anywhere", async () => {
    const all = Buffer.concat([a, b]);
    for (let at = 1; at < all.length; at++) {
      const output = [all.subarray(0, at), all.subarray(at)];
      const { context, requests } = await answers({ errno: 75 }, { output });
      expect(await listDirectory(context, "/d", {})).toEqual(expected);
      expect(requests.map(({ flags }) => flags)).toEqual([1, 0]);
    }
  });

  it("go to whoever asks for them as they come, and are then not returned", async () => {
    const taken: DirectoryEntry[][] = [];
    const onEntries = (entries: readonly DirectoryEntry[]) => void taken.push([...entries]);
    const { context } = await answers({ errno: 75 }, { output: [a, b] }, { result: a });
    expect(await listDirectory(context, "/d", { onEntries })).toEqual([]);
    expect(taken).toEqual([[expected[0]], [expected[1]]]);
    expect(await listDirectory(context, "/d", { onEntries })).toEqual([]);
    expect(taken).toHaveLength(3);
  });

  it.each<[string, PlayedAnswer[]]>([
    ["in the answer", [{ result: Buffer.concat([a, b.subarray(0, -1)]) }]],
    ["in the answer, within the head", [{ result: b.subarray(0, 3) }]],
    ["in the stream", [{ errno: 75 }, { output: [a, b.subarray(0, -1)] }]],
  ])("are refused if one is cut off %s", async (_name, given) => {
    const { context } = await answers(...given);
    await expect(listDirectory(context, "/d", {})).rejects.toMatchObject({ code: "protocol.invalid" });
  });

  it("cannot be had where the directory cannot be read", async () => {
    const { context, requests } = await answers({ errno: 13 }, { errno: 75 }, { errno: 20 });
    await expect(listDirectory(context, "/d", {})).rejects.toMatchObject({ code: "file.not-permitted" });
    await expect(listDirectory(context, "/d", {})).rejects.toMatchObject({ code: "file.not-directory" });
    expect(requests).toHaveLength(3);
  });
});

describe("a report", () => {
  const section = (name: string, content: string) => {
    const head = Buffer.alloc(6);
    head.writeUInt16LE(Buffer.byteLength(name), 0);
    head.writeUInt32LE(content.length, 2);
    return Buffer.concat([head, Buffer.from(name), Buffer.from(content)]);
  };
  const whole = Buffer.concat([section("uname", "Linux"), section("empty", ""), section("stat/ü", "x")]);

  it("has sections by their names", async () => {
    const { context, requests } = await answers({ output: [whole.subarray(0, 9), whole.subarray(9)] });
    const report = await readReport(context, ["/a", "/b"]);
    expect([...report].map(([name, content]) => [name, content.toString()])).toEqual([
      ["uname", "Linux"],
      ["empty", ""],
      ["stat/ü", "x"],
    ]);
    expect(requests.map(described)).toEqual(["report /a\n/b  flags 0 mode 0"]);
  });

  it("may have a section without a name or content", async () => {
    const { context } = await answers({ output: [section("", "")] });
    expect(await readReport(context, [])).toEqual(new Map([["", Buffer.alloc(0)]]));
  });

  it("may be empty, and fail", async () => {
    const { context } = await answers({}, { errno: 5 });
    expect(await readReport(context, [])).toEqual(new Map());
    await expect(readReport(context, [])).rejects.toMatchObject({ code: "file.failed" });
  });

  it("is refused wherever it is cut off", async () => {
    const ends = [0, section("uname", "Linux").length];
    ends.push((ends[1] ?? 0) + section("empty", "").length, whole.length);
    for (let length = 1; length <= whole.length; length++) {
      const { context } = await answers({ output: [whole.subarray(0, length)] });
      const read = readReport(context, []);
      if (ends.includes(length)) expect((await read).size).toBe(ends.indexOf(length));
      else await expect(read).rejects.toMatchObject({ code: "protocol.invalid" });
    }
  });
});
