import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { PromptHistory } from "../../../../../src/cli/conversation/input/prompt-history.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

let file: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  file = join(directory.path, "home", "history.jsonl");
});

const open = () => PromptHistory.open(file, { threadId: "t1", now: () => new Date(5000) });

describe("the history of prompts", () => {
  it("is there again in the next session, several lines and all", async () => {
    const first = await open();
    first.add("one");
    first.add("two\nlines");
    first.add("two\nlines");
    await first.close();
    expect((await open()).texts).toEqual(["one", "two\nlines"]);
    expect(await readFile(file, "utf8")).toBe(
      '{"session_id":"t1","ts":5,"text":"one"}\n{"session_id":"t1","ts":5,"text":"two\\nlines"}\n',
    );
  });

  it("can be read by its owner only, also where it was open before", async () => {
    const first = await open();
    first.add("secret");
    await first.close();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await chmod(file, 0o644);
    const second = await open();
    second.add("another");
    await second.close();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it("loses no more than the lines that are damaged", async () => {
    const first = await open();
    first.add("one");
    await first.close();
    await writeFile(
      file,
      `${await readFile(file, "utf8")}{"text":5}\nnonsense\n{"text":"two"}\n{"text":"tor`,
    );
    expect((await open()).texts).toEqual(["one", "two"]);
  });

  it("of two sessions is one, with no line mixed into another", async () => {
    const [first, second] = [await open(), await open()];
    for (let n = 0; n < 50; n++) {
      first.add(`first ${n}`);
      second.add(`second ${n}`);
    }
    await Promise.all([first.close(), second.close()]);
    const { texts } = await open();
    expect(texts.filter((text) => text.startsWith("first"))).toHaveLength(50);
    expect(texts.filter((text) => text.startsWith("second"))).toHaveLength(50);
  });

  it("is bounded, and one that cannot be written stops nobody", async () => {
    const history = await PromptHistory.open("/dev/null/history.jsonl", {
      threadId: "t",
      now: () => new Date(),
    });
    for (let n = 0; n < 1500; n++) history.add(`text ${n}`);
    await history.close();
    expect(history.texts).toHaveLength(1000);
    expect(history.texts.at(-1)).toBe("text 1499");
  });
});
