import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { prepareAgent } from "../../../../../src/services/wrap/agents/prepare-agent.js";
import { trustingArguments, trustOf } from "../../../../../src/services/wrap/configuration/folder-trust.js";
import { testContext } from "../../../../support/cli-context.js";

async function openPlace() {
  const home = await realpath(await mkdtemp(join(tmpdir(), "brig-trust-")));
  onTestFinished(() => rm(home, { recursive: true }));
  const folders = ["one", "two"].map((name) => join(home, name));
  for (const folder of folders) await mkdir(folder);
  const variables = { HOME: home, BRIG_HOME: join(home, "brig"), CODEX_HOME: join(home, "codex") };
  /** What comes of it, and what was asked. Without an answer, nobody is to be asked. */
  const ask = async (
    argv: string[],
    workspace: string,
    { answer, isTerminal = true }: { answer?: string; isTerminal?: boolean } = {},
  ) => {
    const context = testContext({ variables, isTerminal });
    const { signal } = context;
    const request = { argv, agent: undefined, secrets: [], access: "copy", shown: {}, signal } as const;
    const prepared = await prepareAgent(request, context.environment);
    const trust = trustOf(prepared, { argv, workspace }, context);
    if (answer === undefined) context.stdin.end();
    else context.stdin.write(`${answer}\r`);
    return { trust: await trust, asked: context.written().stderr };
  };
  return { home, one: folders[0] ?? "", two: folders[1] ?? "", ask };
}

it("a folder is asked about once, and a no is not remembered", async () => {
  const { one, two, ask } = await openPlace();
  const first = await ask(["codex"], one, { answer: "" });
  expect(first.trust).toBeNull();
  expect(first.asked).toContain(`Do you trust what is in ${one}? codex obeys`);
  expect((await ask(["codex"], one, { answer: "no" })).trust).toBeNull();
  expect((await ask(["codex"], one, { answer: "y" })).trust).toEqual({ agent: "codex", folder: one });
  expect(await ask(["codex"], one)).toEqual({ trust: { agent: "codex", folder: one }, asked: "" });
  expect(await ask(["claude"], one)).toEqual({ trust: { agent: "claude", folder: one }, asked: "" });
  expect((await ask(["codex"], two, { answer: "n" })).asked).toContain(two);
});

it("a link is the folder that it leads to", async () => {
  const { home, one, two, ask } = await openPlace();
  await ask(["codex"], one, { answer: "yes" });
  await symlink(two, join(one, "link"));
  expect((await ask(["codex"], join(one, "link"), { answer: "n" })).asked).toContain(two);
  await symlink(one, join(home, "same"));
  expect(await ask(["codex"], join(home, "same"))).toMatchObject({ trust: { folder: one }, asked: "" });
});

it.each([
  [["codex", "exec", "go"], true],
  [["claude", "-p", "go"], true],
  [["gemini"], true],
  [["codex"], false],
])("nobody is asked for %j at a terminal: %j", async (argv, isTerminal) => {
  const { one, ask } = await openPlace();
  expect(await ask(argv, one, { isTerminal })).toEqual({ trust: null, asked: "" });
});

it("what the person's own Codex has decided about is not asked again", async () => {
  const { home, one, ask } = await openPlace();
  await mkdir(join(home, "codex"));
  await writeFile(
    join(home, "codex", "config.toml"),
    `[projects.${JSON.stringify(one)}]\ntrust_level = "untrusted"\n`,
  );
  expect(await ask(["codex"], one)).toEqual({ trust: null, asked: "" });
});

it("the list is brig's own file, and one that is none is not guessed at", async () => {
  const { home, one, ask } = await openPlace();
  await ask(["codex"], one, { answer: "y" });
  const file = join(home, "brig", "trusted-folders.json");
  expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ folders: [one] });
  await writeFile(file, '{"folders": "all"}');
  await expect(ask(["codex"], one, { answer: "y" })).rejects.toMatchObject({ code: "config.invalid" });
});

it("Codex gets it as a setting, with any name of a folder", () => {
  const folder = '/tmp/a "b"\\c\x7f';
  expect(trustingArguments(["codex", "resume"], { agent: "codex", folder })).toEqual([
    ...["codex", "-c", 'projects={"/tmp/a \\"b\\"\\\\c\\u007f"={trust_level="trusted"}}', "resume"],
  ]);
  expect(trustingArguments(["claude"], { agent: "claude", folder })).toEqual(["claude"]);
  expect(trustingArguments(["codex"], null)).toEqual(["codex"]);
});
