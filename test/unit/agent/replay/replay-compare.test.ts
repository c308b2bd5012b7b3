import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { comparable, firstDifference, pathAdapter } from "../../../../src/agent/replay/replay-compare.js";

const same = (text: string) => text;
const compare = (one: string, other: string) => comparable(one, same).text === comparable(other, same).text;

function session({
  chunk = "0a1b2c",
  wall = "0.1234",
  id = "",
  code = "",
  tokens = 3,
  text = "hi",
} = {}): string {
  return [
    `Chunk ID: ${chunk}`,
    `Wall time: ${wall} seconds`,
    ...(code === "" ? [] : [`Process exited with code ${code}`]),
    ...(id === "" ? [] : [`Process running with session ID ${id}`]),
    `Original token count: ${tokens}`,
    "Output:",
    text,
  ].join("\n");
}

describe("comparing outputs", () => {
  it("leaves out what is random or a time in what brig itself says", () => {
    expect(compare(session({ chunk: "000000", wall: "1.0000", id: "1234" }), session({ id: "4321" }))).toBe(
      true,
    );
    expect(comparable(session({ id: "1" }), same).normalised).toEqual([
      "chunk ids",
      "wall times",
      "session ids",
    ]);
  });

  it("sees every other difference there", () => {
    for (const other of [{ code: "1" }, { tokens: 4 }, { text: "ho" }, { code: "0", id: "1" }])
      expect(compare(session({ code: "0" }), session({ code: "0", ...other })), JSON.stringify(other)).toBe(
        false,
      );
  });

  it("compares what a command printed as it is, whatever it looks like", () => {
    const printed = (seconds: string) =>
      session({ text: `Wall time: ${seconds} seconds\nOutput:\nChunk ID: aaaaaa` });
    expect(compare(printed("1.0"), printed("2.0"))).toBe(false);
    const plain = (id: string) => `Process running with session ID ${id}`;
    expect(compare(plain("1"), plain("2"))).toBe(false);
  });

  it("reads the JSON of shell, and leaves out its duration only", () => {
    const json = (output: string, code: number, seconds: string) =>
      `{"output":${JSON.stringify(output)},"metadata":{"exit_code":${code},"duration_seconds":${seconds}}}`;
    expect(compare(json("a\nb", 0, "0.1"), json("a\nb", 0, "9.9"))).toBe(true);
    expect(compare(json("a\nb", 0, "0.1"), json("a\nb", 1, "0.1"))).toBe(false);
    expect(compare(json("a\nb", 0, "0.1"), json("a\nc", 0, "0.1"))).toBe(false);
    expect(comparable(json("a\nb", 3, "0.1"), same)).toEqual({
      text: "Exit code: 3\nOutput:\na\nb",
      normalised: ["durations"],
    });
  });

  it("leaves out how long a command ran until its time was over, in its first line only", () => {
    const timedOut = (ms: number, rest = "") =>
      `Exit code: 124\nWall time: 1 seconds\nOutput:\ncommand timed out after ${ms} milliseconds\n${rest}`;
    expect(compare(timedOut(1001), timedOut(1003))).toBe(true);
    expect(compare(timedOut(1, "command timed out after 5 milliseconds"), timedOut(1))).toBe(false);
  });

  it("compares pictures by what they show", () => {
    const picture = (data: string) => [
      { type: "input_image" as const, image_url: `data:image/png;base64,${data}` },
    ];
    expect(comparable(picture("AA"), same).text).toBe(comparable(picture("AA"), same).text);
    expect(comparable(picture("AA"), same).text).not.toBe(comparable(picture("AB"), same).text);
  });

  it("never takes two texts for the same that differ below the head", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (one, other) => {
        fc.pre(!one.startsWith("command timed out") || !other.startsWith("command timed out"));
        expect(compare(session({ text: one }), session({ text: other }))).toBe(one === other);
      }),
    );
  });

  it("says where two texts start to differ, and of what is missing that it is", () => {
    expect(firstDifference("a\nb\nc", "a\nx")).toEqual({ line: 2, recorded: ["b", "c"], replayed: ["x"] });
    expect(firstDifference("a", "a\nb")).toEqual({ line: 2, recorded: [], replayed: ["b"] });
  });
});

describe("a path in the place of another", () => {
  const adapt = pathAdapter("/home/u/my.app", "/tmp/x/my.app");

  it.each([
    ["cd /home/u/my.app && ls", "cd /tmp/x/my.app && ls"],
    ['{"p":"/home/u/my.app/src/a.ts"}', '{"p":"/tmp/x/my.app/src/a.ts"}'],
    ["file:///home/u/my.app/a:1", "file:///tmp/x/my.app/a:1"],
    ["in /home/u/my.app.", "in /tmp/x/my.app."],
    [
      "/home/u/my.app2 /home/u/my.app-old /home/u/my.app.bak",
      "/home/u/my.app2 /home/u/my.app-old /home/u/my.app.bak",
    ],
    ["/home/u/my_app", "/home/u/my_app"],
    ["/backup/home/u/my.app", "/backup/home/u/my.app"],
  ])("%s becomes %s", (text, expected) => {
    expect(adapt(text)).toBe(expected);
  });

  it("comes back as it was", () => {
    const back = pathAdapter("/tmp/x/my.app", "/home/u/my.app");
    const text = 'see "/home/u/my.app/a", /home/u/my.app and $& $1';
    expect(back(adapt(text))).toBe(text);
  });

  it("changes nothing where the two are one, or the first is everything", () => {
    expect(pathAdapter("/a", "/a")("/a/b")).toBe("/a/b");
    expect(pathAdapter("/", "/tmp/x")("/a/b")).toBe("/a/b");
  });
});
