import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { parse as parseToml } from "smol-toml";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse as parseYaml } from "yaml";
import { loadConfig } from "../../src/agent/config/settings/load-config.js";
import { parseScript } from "../../src/agent/model/script/script.js";
import { commands } from "../../src/cli/command-list.js";
import { slashCommands } from "../../src/cli/conversation/input/slash-commands.js";
import { exitStatusOf } from "../../src/cli/exit-status.js";
import { BrigError, type ErrorCode } from "../../src/errors.js";
import { CommandSafety } from "../../src/tools/command/command-safety.js";
import { testContext } from "../support/cli-context.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const documents = [
  ...["README.md", "AGENTS.md", "CONTRIBUTING.md", "SECURITY.md"],
  ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`),
]
  .filter((name) => name.endsWith(".md"))
  .map((name) => ({ name, text: readFileSync(join(root, name), "utf8") }));

const readme = documents[0]?.text ?? "";
const repository: string = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).homepage;

function blocksOf(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, "gm"))].map(
    ([, block = ""]) => block,
  );
}

/** Every call of brig in examples and in running text, without what is optional in it. */
function callsIn(text: string): string[][] {
  const blocks = [...blocksOf(text, "sh"), ...blocksOf(text, "yml").map(stepsIn)];
  const lines = blocks.flatMap((block) => block.split("\n"));
  const spans = [...text.matchAll(/`([^`\n]*\bbrig\b[^`\n]*)`/g)].map(([, span = ""]) =>
    span.replace("\\|", "|"),
  );
  return [...lines, ...spans].flatMap((line) => {
    const call = /(?:^|\| )(?:npx brigbox|brig)(?: (?<rest>.*))?$/.exec(withoutTail(line));
    return call === null ? [] : [words(call.groups?.rest ?? "")];
  });
}

/** The commands that a pipeline runs: GitHub's `run` of each step, or GitLab's `script`. */
function stepsIn(pipeline: string): string {
  const jobs = Object.values<{ steps?: { run?: string }[]; script?: string[] }>(
    parseYaml(pipeline).jobs ?? parseYaml(pipeline),
  );
  return jobs
    .flatMap(({ steps = [], script = [] }) => [...steps.map(({ run = "" }) => run), ...script])
    .join("\n");
}

/** Without a comment and without where the output goes. */
function withoutTail(line: string): string {
  return line
    .replace(/\s+#.*$/, "")
    .replace(/\s+> \S+$/, "")
    .trim();
}

function words(text: string): string[] {
  const found = text.replace(/\[[^\]]*\]/g, "").matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g);
  return [...found].map(([, double, single, plain]) => double ?? single ?? plain ?? "");
}

/** Reads the call as the program does, and does nothing. */
async function parse(argv: string[]): Promise<void> {
  const [first] = argv;
  if (argv.includes("--help") || argv.includes("--version")) return;
  const name = first === undefined || first.startsWith("-") ? "run" : first;
  const entry = commands.find((command) => command.name === name);
  if (entry === undefined) throw new Error(`there is no command ${name}`);
  // The name alone speaks of the command.
  if (argv.length < 2) return;
  const command = new Command(name).exitOverride().configureOutput({ writeErr: () => undefined });
  (await entry.load())(command, testContext());
  for (const each of [command, ...command.commands]) each.exitOverride().action(() => undefined);
  await command.parseAsync(name === first ? argv.slice(1) : argv, { from: "user" });
}

describe.each(documents)("$name", ({ name, text }) => {
  it("has no call that brig does not understand", async () => {
    for (const call of callsIn(text)) await expect(parse(call), call.join(" ")).resolves.toBeUndefined();
  });

  it("has configuration that is read without a warning", async () => {
    for (const block of blocksOf(text, "toml")) {
      const home = await mkdtemp(join(tmpdir(), "brig-test-"));
      onTestFinished(() => rm(home, { recursive: true }));
      await writeFile(join(home, "config.toml"), block);
      const { warnings } = await loadConfig({ brigHome: home, codexHome: home });
      expect(warnings, block).toEqual([]);
    }
  });

  it("has scripts of a model that can be played", () => {
    for (const block of blocksOf(text, "yaml")) expect(() => parseScript(block, name)).not.toThrow();
  });

  it("leads nowhere that is not there", () => {
    const targets = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, target = ""]) => target);
    const missing = targets.filter((target) => !existsSync(join(root, dirname(name), target)));
    expect(missing).toEqual([]);
  });
});

/** The programs of all documents, by the name of the copy that `npm run check` compiles with the tests. */
const programs = documents.flatMap(({ name, text }) =>
  blocksOf(text, "ts").map((program, at) => ({
    copy: `${basename(name, ".md").toLowerCase()}-${at + 1}.ts`,
    program,
  })),
);

describe("the programs in all documents", () => {
  const copies = fileURLToPath(new URL("../fixtures/document-programs/", import.meta.url));
  const control = "no-such-mode.ts";

  it.each(programs)("are those that TypeScript looks at: $copy", async ({ copy, program }) => {
    await expect(program).toMatchFileSnapshot(join(copies, copy));
  });

  it("are all there, with one that would not compile if the compiler did not know brig's types", () => {
    expect(programs.length).toBeGreaterThan(5);
    const names = programs.map(({ copy }) => copy);
    expect(readdirSync(copies).toSorted()).toEqual([...names, control].toSorted());
    expect(readFileSync(join(copies, control), "utf8")).toContain("// @ts-expect-error");
    // A program that is no module shares its names with the others.
    expect(programs.filter(({ program }) => !/^(?:import|export) /m.test(program))).toEqual([]);
  });
});

describe("the README", () => {
  const page = documents.find(({ name }) => name === "docs/commands.md")?.text ?? "";
  const calls = [...callsIn(readme), ...callsIn(page)];

  it("says what it is, how it looks, how to install it and three commands, before what it promises and where more is", () => {
    const parts = [
      "# brig",
      "(docs/interactive.svg)",
      "npm run demo",
      "npm test",
      "## Install",
      "npm install --global .",
      "brig exec -- npm test",
      `brig run "make`,
      "## Modes",
      "## What is promised",
      "## More",
    ];
    const places = parts.map((part) => readme.indexOf(part));
    expect(places[0]).toBe(0);
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });

  it("is read in a few minutes", () => {
    expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(130);
  });

  it("has calls to look at", () => {
    expect(callsIn(readme).length).toBeGreaterThan(15);
    expect(calls.length).toBeGreaterThan(40);
  });

  it("shows, with the page of all commands, the loop with OpenAI, with a model of this machine, in CI, and interactively", () => {
    expect(page).toMatch(/^export OPENAI_API_KEY=/m);
    expect(calls).toContainEqual(["run", expect.stringMatching(/^\w/)]);
    expect(calls).toContainEqual(expect.arrayContaining(["run", "model_provider=ollama"]));
    expect(calls).toContainEqual(expect.arrayContaining(["run", "--json", "-o"]));
    expect(calls).toContainEqual([]);
  });

  it("has a picture of a conversation: a call, a question and its answer, and the end", () => {
    expect(readme).toContain("(docs/interactive.svg)");
    const picture = readFileSync(join(root, "docs/interactive.svg"), "utf8");
    const shown = [...picture.matchAll(/<text[^>]*>([^<]*)</g)].map(([, piece]) => piece).join("\n");
    expect(shown).toMatch(/^› |^›$/m);
    expect(shown).toMatch(/exit 0/);
    expect(shown).toMatch(/yes/);
  });

  it("names every document", () => {
    const others = documents.map(({ name }) => name).filter((name) => name !== "README.md");
    const isNamed = (name: string) =>
      [name, `${repository}/blob/main/${name}`].some((to) => readme.includes(`(${to})`));
    expect(others.filter((name) => !isNamed(name))).toEqual([]);
  });
});

describe("a page about the network", () => {
  const entrance = documents.find(({ name }) => name === "docs/network.md")?.text ?? "";
  const [, list = ""] = /^\| page \| what is in it \|\n((?:\|.*\n)+)/m.exec(entrance) ?? [];
  const pages = [...list.matchAll(/\]\(([a-z-]+\.md)\)/g)].map(([, name]) => `docs/${name}`);

  it.each(["docs/network.md", ...pages])("begins with an example: %s", (page) => {
    expect(documents.find(({ name }) => name === page)?.text).toMatch(/^# .+\n\n```(?:sh|toml)\n/);
  });

  it("is found from the entrance", () => {
    expect(pages.length).toBe(9);
  });
});

it("docs/approvals.md names every program that is known to be read-only, and no other", () => {
  const text = readFileSync(join(root, "docs/approvals.md"), "utf8");
  const named = /## Commands known to be read-only\n\n`([^`]+)`/.exec(text)?.[1]?.split(" ") ?? [];
  expect(named.filter((name) => new CommandSafety([name, "x"]).risk !== "safe")).toEqual([]);
  const source = readFileSync(join(root, "src/tools/command/command-safety.ts"), "utf8");
  const all = [...(/const readOnlyPrograms[\s\S]*?\.split/.exec(source)?.[0] ?? "").matchAll(/"([a-z ]+)"/g)];
  expect(named).toEqual(all.flatMap(([, names = ""]) => names.trim().split(" ")));
});

it("docs/from-codex.md and docs/commands.md name slash commands that there are", () => {
  const names = new Set(slashCommands.map(({ name }) => `/${name}`));
  for (const [file, column] of [
    ["docs/from-codex.md", 1],
    ["docs/commands.md", 0],
  ] as const) {
    const { text = "" } = documents.find(({ name }) => name === file) ?? {};
    const cells = [...text.matchAll(/^\| `\/[a-z].*$/gm)].map(([row]) => row.split(" | ")[column] ?? "");
    const calls = cells.map((cell) => /`(\/[a-z]+)[^`]*`/.exec(cell)?.[1] ?? cell);
    expect(calls.length, file).toBeGreaterThan(5);
    expect(calls.filter((call) => !names.has(call))).toEqual([]);
  }
});

it("docs/errors.md has every code with the status that it ends with", () => {
  const source = readFileSync(join(root, "src/errors.ts"), "utf8");
  const union = /export type ErrorCode =([^;]*);/.exec(source)?.[1] ?? "";
  const codes = [...union.matchAll(/"([^"]+)"/g)].map(([, code]) => code as ErrorCode);
  expect(codes.length).toBeGreaterThan(30);
  const text = readFileSync(join(root, "docs/errors.md"), "utf8");
  const rows = [...text.matchAll(/^\| `([^`]+)` \| (\d+) \| ./gm)].map(([, code, status]) => [
    code,
    Number(status),
  ]);
  expect(rows).toEqual(codes.map((code) => [code, exitStatusOf(new BrigError("", { code }))]));
});

describe("the map of the code", () => {
  const map = readFileSync(join(root, "docs/architecture.md"), "utf8");

  it("names files that exist", () => {
    const named = [...map.matchAll(/`((?:src|images|test|sandbox-policies)\/[^`]+\.[a-z]+)`/gi)].map(
      ([, path = ""]) => path,
    );
    expect(named.length).toBeGreaterThan(30);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("is short, and follows a call through twenty files at most", () => {
    expect(map.trimEnd().split("\n").length).toBeLessThanOrEqual(150);
    const [, way = ""] = /## The walk of a call\n([\s\S]*?)\n## /.exec(map) ?? [];
    const files = new Set([...way.matchAll(/`((?:src|images)\/[^`]+)`/g)].map(([, path]) => path));
    expect(files.size).toBeGreaterThan(10);
    expect(files.size).toBeLessThanOrEqual(20);
  });

  it.each(["cli", "services", "command", "batch", "agent", "tools", "sandbox"])(
    "is continued in the page of src/%s, which says in which files to begin",
    (part) => {
      const folder = join(root, "src", part);
      const page = readFileSync(join(folder, "README.md"), "utf8");
      const rows = page.match(/^\| (?!To …|---).*\|$/gm) ?? [];
      expect(rows.length).toBeGreaterThanOrEqual(4);
      const inside = readdirSync(folder, { recursive: true, encoding: "utf8" });
      const isThere = (path: string) =>
        existsSync(join(root, path)) || inside.some((one) => one === path || one.endsWith(`/${path}`));
      const named = [...page.matchAll(/`([\w./-]+\.(?:tsx?|c|cjs|mjs|toml))`/g)].map(([, path = ""]) => path);
      expect(named.length).toBeGreaterThanOrEqual(rows.length);
      expect(named.filter((path) => !isThere(path) && path !== "config.toml")).toEqual([]);
    },
  );

  it("keeps the page for agents short", () => {
    expect(readFileSync(join(root, "AGENTS.md"), "utf8").trimEnd().split("\n").length).toBeLessThanOrEqual(
      40,
    );
  });
});

describe("what clients are told to start", () => {
  const page = documents.find(({ name }) => name === "docs/mcp-server.md")?.text ?? "";
  const snippets = [
    ...blocksOf(page, "json").map((text): unknown => JSON.parse(text)),
    ...blocksOf(page, "toml").map((text): unknown => parseToml(text)),
  ];

  it("is a call of brig, in the format of each client", async () => {
    const servers = snippets.flatMap((snippet) =>
      Object.values(snippet as Record<string, Record<string, { command: string; args: string[] }>>).flatMap(
        (named) => Object.values(named),
      ),
    );
    expect(servers.length).toBeGreaterThan(5);
    for (const { command, args } of servers) {
      expect(command).toBe("brig");
      await parse(args);
    }
  });
});
