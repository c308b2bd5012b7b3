import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const COLUMNS = 40;

let folder: TemporaryDirectory;
let workspace = "";
let env: Record<string, string> = {};
let sessionId = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  const home = join(folder.path, "home");
  workspace = join(folder.path, "project");
  await mkdir(home);
  await mkdir(workspace);
  env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", OPENAI_BASE_URL: "", NO_COLOR: "1" };
  const script = join(folder.path, "script.yaml");
  const words = "Everything that was to be looked at has been looked at, and nothing remarkable came up.";
  await writeFile(script, JSON.stringify({ steps: [{ text: words }] }));
  const prompt = "Look at everything there is in this directory, remark on it, and change nothing.";
  const done = await brigHere(["run", "--script", script, prompt], { cwd: workspace, env });
  sessionId = /rollout-.{19}-(.*)\.jsonl$/m.exec(done.stderr)?.[1] ?? "";
});

afterAll(() => folder[Symbol.asyncDispose]());

/** Numbers may differ from one call to the next. */
const wordsOf = (text: string) =>
  text
    .replace(/\d+/g, "0")
    .split(/\s+/)
    .filter((word) => word !== "");

describe("on a terminal of 40 columns no word is broken that fits on a line", () => {
  it.each([
    ["the tools", ["tools"]],
    ["the sessions", ["sessions"]],
    ["a session", ["sessions", "show", "ID"]],
    ["what is wrong with this machine", ["doctor"]],
    ["an error and its hint", ["run", "--sandbox", "nonsense", "go"]],
    ["an unknown command's error", ["image", "nonsense"]],
  ])("%s", async (_what, words) => {
    const args = words.map((word) => (word === "ID" ? sessionId : word));
    const wide = await brigHere(args, { cwd: workspace, env });
    const known = new Set(wordsOf(`${wide.stdout}\n${wide.stderr}`));
    await using terminal = await Terminal.open(args, { cwd: workspace, env, columns: COLUMNS });
    await terminal.end();
    const shown = terminal.screen.history;
    expect(shown.join("").length).toBeGreaterThan(20);
    // A word that is longer than a line goes on in the next one.
    const long = [...known].filter((word) => word.length > COLUMNS - 4).join(" ");
    const broken = shown.flatMap(wordsOf).filter((word) => !known.has(word) && !long.includes(word));
    expect(broken).toEqual([]);
  });
});
