import { Readable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { progressLines } from "../../../../../src/sandbox/docker/calls/progress-lines.js";

async function read(bytes: Uint8Array[]) {
  const lines = [];
  for await (const line of progressLines(Readable.from(bytes))) lines.push(line);
  return lines;
}

const bytes = (...messages: object[]) =>
  Buffer.from(messages.map((message) => `${JSON.stringify(message)}\r\n`).join(""));

describe("progressLines", () => {
  it("joins a build's text that comes in pieces of a line", async () => {
    const source = bytes(
      { stream: "Step 1" },
      { stream: "/2 : FROM x\n" },
      { stream: "\n" },
      { stream: "end" },
    );
    expect(await read([source])).toEqual([
      { kind: "progress", text: "Step 1/2 : FROM x" },
      { kind: "progress", text: "end" },
    ]);
  });

  it("shows a line as a terminal would leave it", async () => {
    const source = bytes({ stream: "\u001b[91mReading 5%\rReading 100%\u001b[0m\n" });
    expect(await read([source])).toEqual([{ kind: "progress", text: "Reading 100%" }]);
  });

  it("names the layer a pull speaks of", async () => {
    const source = bytes({ status: "Downloading", id: "ab12", progress: "[=>  ]" });
    const [line] = await read([source]);
    expect(line).toMatchObject({ kind: "progress", text: "ab12: Downloading [=>  ]" });
  });

  it("adds up what a pull has of its layers, once the engine has said how long each is", async () => {
    const at = (id: string, status: string, current?: unknown, total?: unknown) => ({
      ...{ id, status, progressDetail: current === undefined ? {} : { current, total } },
    });
    const source = bytes(
      at("bookworm", "Pulling from library/debian"),
      at("a", "Already exists"),
      at("b", "Pulling fs layer"),
      at("c", "Pulling fs layer"),
      at("b", "Downloading", 30, 100),
      at("c", "Downloading", 5, 50),
      at("b", "Verifying Checksum"),
      at("c", "Download complete"),
      at("b", "Extracting", 40, 100),
      at("b", "Pull complete"),
      at("c", "Extracting", 3, undefined),
      at("c", "Pull complete"),
      { status: "Digest: sha256:1" },
    );
    const pulled = (await read([source])).map((line) => line.pulled);
    const of = (downloaded: number, unpacked: number, total: number | null) => ({
      downloaded,
      unpacked,
      total,
    });
    expect(pulled).toEqual([
      ...[undefined, undefined, of(0, 0, null), of(0, 0, null), of(30, 0, null)],
      ...[of(35, 0, 150), of(105, 0, 150), of(150, 0, 150), of(150, 40, 150), of(150, 100, 150)],
      ...[of(150, 103, 150), of(150, 150, 150), undefined],
    ]);
  });

  it("believes no impossible size of a layer, and keeps no endless list of them", async () => {
    const sizes = [-1, 1.5, "7", null, Number.MAX_SAFE_INTEGER * 4];
    const source = bytes(
      ...sizes.map((size) => ({
        id: "a",
        status: "Downloading",
        progressDetail: { current: size, total: size },
      })),
    );
    for (const { pulled } of await read([source]))
      expect(pulled).toEqual({ downloaded: 0, unpacked: 0, total: null });
    const many = Array.from({ length: 1500 }, (_, at) => ({ id: `${at}`, status: "Pulling fs layer" }));
    expect((await read([bytes(...many)])).filter(({ pulled }) => pulled !== undefined)).toHaveLength(1000);
  });

  it("ends with the error", async () => {
    const source = bytes({ stream: "a\n" }, { error: "no space left\n", errorDetail: {} }, { stream: "b\n" });
    expect(await read([source])).toEqual([
      { kind: "progress", text: "a" },
      { kind: "error", text: "no space left" },
    ]);
  });

  it("gives the same lines however the bytes are cut", async () => {
    const source = bytes({ stream: "größe ✓\n" }, { status: "fertig – ja" }, { stream: "x\ny\n" });
    const whole = await read([source]);
    expect(whole).toHaveLength(4);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(source.length), { maxLength: 8 }), async (cuts) => {
        const edges = [0, ...cuts.toSorted((a, b) => a - b), source.length];
        const pieces = edges.slice(1).map((end, at) => source.subarray(edges[at], end));
        expect(await read(pieces.filter((piece) => piece.length > 0))).toEqual(whole);
      }),
    );
  });
});
