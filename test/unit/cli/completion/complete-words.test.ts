import { describe, expect, it } from "vitest";
import { commands } from "../../../../src/cli/command-list.js";
import { completeWords } from "../../../../src/cli/completion/complete-words.js";
import { programOf } from "../../../../src/cli/program.js";
import { testContext } from "../../../support/cli-context.js";

const known = {
  sandboxes: () => [{ word: "wise-owl", about: "running" }],
  sessions: async () => [{ word: "0199", about: "fix\u001b[2J\nthe tests" }],
};

async function wordsAfter(...typed: string[]) {
  const program = await programOf(typed.slice(0, 1), { context: testContext(), commands });
  const { words, others } = await completeWords(program, typed, known);
  return { words: words.map(({ word }) => word), others };
}

describe("completeWords", () => {
  it("knows commands, and no hidden ones", async () => {
    const { words } = await wordsAfter("");
    expect(words).toEqual(expect.arrayContaining(["run", "exec", "completion", "help"]));
    expect(words).not.toEqual(expect.arrayContaining(["owner"]));
    expect(await wordsAfter("help", "ex")).toEqual(await wordsAfter("ex"));
    expect((await wordsAfter("sessions", "sh")).words).toEqual(["show"]);
  });

  it("knows where values of options are", async () => {
    expect(await wordsAfter("exec", "-s", "read")).toEqual({ words: ["read-only"], others: "none" });
    expect(await wordsAfter("exec", "--in", "")).toEqual({ words: ["wise-owl"], others: "none" });
    expect(await wordsAfter("exec", "--in=w")).toEqual({ words: ["wise-owl"], others: "none" });
    expect(await wordsAfter("exec", "--env-file", "")).toEqual({ words: [], others: "files" });
    expect(await wordsAfter("exec", "--memory", "")).toEqual({ words: [], others: "none" });
    expect((await wordsAfter("exec", "--json", "--ti")).words).toEqual(["--timeout"]);
  });

  it("leaves the command line of another program alone", async () => {
    expect(await wordsAfter("exec", "--", "ls", "--j")).toEqual({ words: [], others: "files" });
    expect(await wordsAfter("exec", "ls", "--j")).toEqual({ words: [], others: "files" });
  });

  it("names sandboxes with a colon for a copy, and files", async () => {
    expect(await wordsAfter("cp", "w")).toEqual({ words: ["wise-owl:"], others: "files" });
    expect(await wordsAfter("cp", "-", "")).toEqual({ words: ["wise-owl:"], others: "files" });
  });

  it("passes on nothing that a terminal would obey", async () => {
    const program = await programOf(["resume"], { context: testContext(), commands });
    const { words } = await completeWords(program, ["resume", ""], known);
    expect(words.map(({ about }) => about).join("")).not.toMatch(/\p{Cc}/u);
  });
});
