import { chmod, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import {
  draftOf,
  insertPaste,
  insertPicture,
  insertText,
  sentText,
  shownText,
} from "../../../../../src/cli/conversation/input/draft.js";
import { PromptHistory } from "../../../../../src/cli/conversation/input/prompt-history.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

let file: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  file = join(directory.path, "home", "history.jsonl");
});

const open = () => PromptHistory.open(file, { threadId: "t1", now: () => new Date(5000) });

const textsOf = ({ drafts }: PromptHistory) => drafts.map(sentText);

describe("the history of prompts", () => {
  it("is there again in the next session, several lines and all", async () => {
    const first = await open();
    first.add(draftOf("one"));
    first.add(draftOf("two\nlines"));
    first.add(draftOf("two\nlines"));
    await first.close();
    expect(textsOf(await open())).toEqual(["one", "two\nlines"]);
    expect(await readFile(file, "utf8")).toBe(
      '{"session_id":"t1","ts":5,"text":"one"}\n{"session_id":"t1","ts":5,"text":"two\\nlines"}\n',
    );
  });

  it("can be read by its owner only, also where it was open before", async () => {
    const first = await open();
    first.add(draftOf("secret"));
    await first.close();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await chmod(file, 0o644);
    const second = await open();
    second.add(draftOf("another"));
    await second.close();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it("loses no more than the lines that are damaged", async () => {
    const first = await open();
    first.add(draftOf("one"));
    await first.close();
    await writeFile(
      file,
      `${await readFile(file, "utf8")}{"text":5}\nnonsense\n{"text":"two"}\n{"text":"tor`,
    );
    expect(textsOf(await open())).toEqual(["one", "two"]);
  });

  it("of two sessions is one, with no line mixed into another", async () => {
    const [first, second] = [await open(), await open()];
    for (let n = 0; n < 50; n++) {
      first.add(draftOf(`first ${n}`));
      second.add(draftOf(`second ${n}`));
    }
    await Promise.all([first.close(), second.close()]);
    const texts = textsOf(await open());
    expect(texts.filter((text) => text.startsWith("first"))).toHaveLength(50);
    expect(texts.filter((text) => text.startsWith("second"))).toHaveLength(50);
  });

  it("is bounded, and one that cannot be written stops nobody", async () => {
    const history = await PromptHistory.open("/dev/null/history.jsonl", {
      threadId: "t",
      now: () => new Date(),
    });
    for (let n = 0; n < 1500; n++) history.add(draftOf(`text ${n}`));
    await history.close();
    expect(textsOf(history)).toHaveLength(1000);
    expect(textsOf(history).at(-1)).toBe("text 1499");
  });

  it("keeps pastes in full and folds them again, and pictures as paths", async () => {
    const long = "line\n".repeat(300);
    const first = await open();
    first.add(insertText(insertPaste(draftOf("see "), long), " well"));
    first.add(draftOf("[300 lines pasted]"));
    const label = "[picture a b.png 1x1]";
    first.add(insertPicture(draftOf("look: "), { kind: "picture", path: "/tmp/a b.png", label }));
    expect(first.drafts.map(shownText)[2]).toBe(`look: ${label}`);
    await first.close();
    const [record] = (await readFile(file, "utf8")).split("\n");
    expect(JSON.parse(record ?? "")).toEqual({
      session_id: "t1",
      ts: 5,
      text: `see ${long} well`,
      pastes: [[4, 4 + long.length]],
    });
    const { drafts } = await open();
    expect(drafts.map(shownText)).toEqual([
      "see [300 lines pasted] well",
      "[300 lines pasted]",
      'look: "/tmp/a b.png"',
    ]);
    expect(drafts.map(sentText)).toEqual([`see ${long} well`, "[300 lines pasted]", 'look: "/tmp/a b.png"']);
  });

  it("folds nothing at places that are not in the text", async () => {
    await mkdir(dirname(file), { recursive: true });
    const long = "x".repeat(2000);
    const lines = [
      [[5, 4000]],
      [[1500, 20]],
      [[-1, 2]],
      "nonsense",
      [
        [0, 2000],
        [10, 2000],
      ],
    ].map((pastes) => JSON.stringify({ text: long, pastes }));
    await writeFile(file, lines.join("\n"));
    const { drafts } = await open();
    expect(drafts.map(sentText)).toEqual(Array(5).fill(long));
    expect(drafts.map(shownText)).toEqual([...Array(4).fill(long), "[2000 characters pasted]"]);
  });
});
