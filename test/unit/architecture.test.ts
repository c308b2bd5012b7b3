import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const source = fileURLToPath(new URL("../../src", import.meta.url));

/** Which folders a folder of src may import from, besides itself. A new folder needs a line here. */
const layers: Record<string, readonly string[]> = {
  cli: [
    "batch",
    "report",
    "serve",
    "queue",
    "runs",
    "tasks",
    "acp",
    "mcp",
    "exec-server",
    "service",
    "agent",
    "session",
    "model",
    "tools",
    "sandbox",
    "images",
    "docker",
    "egress",
    "policy",
    "config",
    "output",
    "lib",
  ],
  batch: ["report", "runs", "tasks", "model", "docker", "config", "lib"],
  report: ["runs", "tasks", "session", "service", "output", "lib"],
  serve: ["runs", "tasks", "service", "sandbox", "docker", "policy", "config", "output", "lib"],
  queue: ["runs", "tasks", "docker", "lib"],
  runs: [
    "tasks",
    "agent",
    "session",
    "model",
    "tools",
    "sandbox",
    "egress",
    "images",
    "docker",
    "egress",
    "policy",
    "config",
    "output",
    "lib",
  ],
  tasks: ["lib"],
  acp: ["mcp", "agent", "session", "model", "tools", "sandbox", "policy", "config", "output", "lib"],
  mcp: ["service", "agent", "session", "model", "tools", "sandbox", "policy", "config", "output", "lib"],
  "exec-server": ["service", "tools", "sandbox", "policy", "lib"],
  service: ["lib"],
  agent: ["session", "model", "tools", "egress", "policy", "output", "lib"],
  session: ["model", "tools", "egress", "policy", "output", "lib"],
  model: ["config", "lib"],
  tools: ["policy", "output", "lib"],
  sandbox: ["images", "docker", "egress", "policy", "config", "output", "lib"],
  images: ["docker", "config", "lib"],
  docker: ["config", "lib"],
  egress: ["policy", "lib"],
  config: ["policy", "lib"],
  policy: ["lib"],
  output: ["lib"],
  lib: [],
};

/** Packages that only one folder may import, or the folders that are named. */
const doors: Record<string, string> = {
  "tar-stream": "docker",
  "openid-client": "model",
  commander: "cli",
  ink: "cli",
  react: "cli",
  preact: "report",
  ws: "exec-server",
  bullmq: "queue",
  ioredis: "queue",
  aws4fetch: "queue and egress",
  "@agentclientprotocol/sdk": "acp",
  minisearch: "tools",
  diff: "sandbox",
  "dns-packet": "egress",
  "@modelcontextprotocol/server": "mcp",
  "@modelcontextprotocol/client": "mcp",
};

/** The files directly in src that every folder but lib may import. */
const common = ["errors.ts", "known-options.ts", "package-root.ts", "version.ts"];

interface SourceFile {
  /** Relative to src, e.g. "cli/main.ts". */
  path: string;
  folder: string;
  code: string;
  imports: string[];
}

const files: SourceFile[] = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((path) => /\.tsx?$/.test(path))
  .map((path) => {
    const code = withoutComments(readFileSync(join(source, path), "utf8"));
    return {
      path,
      folder: path.includes("/") ? (path.split("/")[0] ?? "") : "",
      code,
      imports: importsOf(code),
    };
  });

describe("imports point one way only", () => {
  it("every folder of src has its place", () => {
    const folders = new Set(files.map(({ folder }) => folder).filter((folder) => folder !== ""));
    expect(Object.keys(layers)).toEqual(expect.arrayContaining([...folders]));
  });

  it.each(Object.entries(layers))("%s imports only from: %s", (folder, allowed) => {
    const known = new Set([folder, ...allowed, ...(folder === "lib" ? [] : common)]);
    const wrong = filesOf(folder).flatMap((file) =>
      file.imports
        .filter((name) => name.startsWith("."))
        .map((name) => join(dirname(file.path), name.replace(/\.js$/, ".ts")))
        .filter((target) => !known.has(target.split("/")[0] ?? ""))
        .map((target) => `${file.path} → ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it("the layers have no cycle", () => {
    const order = Object.keys(layers);
    for (const [folder, allowed] of Object.entries(layers)) {
      for (const other of allowed)
        expect(order.indexOf(other), `${folder} → ${other}`).toBeGreaterThan(order.indexOf(folder));
    }
  });

  it("no files import each other in a circle, not even for their types", () => {
    expect(cyclesIn(importGraph(files))).toEqual([]);
  });

  it("a circle is found, whatever else its files import", () => {
    const circle = new Map([
      ["a", ["b", "e"]],
      ["b", ["c"]],
      ["c", ["d", "a"]],
      ["d", ["e"]],
      ["e", []],
      ["self", ["self"]],
    ]);
    expect(cyclesIn(circle)).toEqual([["a", "b", "c"], ["self"]]);
  });

  it("nothing imports the public door or the composition root", () => {
    const importers = files.filter((file) =>
      file.imports.some((name) => /^\.{1,2}\/(index|cli\/.*|main)\.js$/.test(name)),
    );
    expect(importers.map(({ path }) => path)).toEqual([]);
  });
});

describe("one door each", () => {
  it.each(Object.entries(doors))("only src has %s behind src/%s", (name, folder) => {
    const importers = files.filter(({ imports }) =>
      imports.some((one) => one === name || one.startsWith(`${name}/`)),
    );
    expect(
      importers.filter((file) => !folder.split(" and ").includes(file.folder)).map(({ path }) => path),
    ).toEqual([]);
    expect(importers).not.toEqual([]);
  });

  it("only src/lib/env.ts reads the environment", () => {
    const readers = files.filter(({ code }) =>
      /\bprocess\s*\.\s*env\b|\{[^}]*\benv\b[^}]*\}\s*from "node:process"/.test(code),
    );
    expect(readers.map(({ path }) => path)).toEqual(["config/env.ts"]);
  });

  it("only the command line's host and the library's door ask where the process works and in which environment", () => {
    const readers = files.filter(
      ({ code, imports }) =>
        /\bprocess\s*\.\s*cwd\b|\bcwd\b[^;]*"node:process"/.test(code) ||
        (/\b(?:readEnvironment|currentDirectory)\b/.test(code) &&
          imports.some((name) => /\/(?:env|current-directory)\.js$/.test(name))),
    );
    expect(readers.map(({ path }) => path).toSorted()).toEqual([
      "batch/open-batch.ts",
      "cli/host.ts",
      "config/current-directory.ts",
      // The defaults of `readEnvironment` itself.
      "config/env.ts",
      "sandbox/create-sandbox.ts",
      // A program for the sandbox, as text.
      "tools/repl/kernel-source.ts",
    ]);
  });

  it("on the command line only the main file of each program touches the process", () => {
    const users = filesOf("cli").filter(({ code }) =>
      /\bprocess\s*[.[]|"node:process"|\bconsole\b/.test(code),
    );
    expect(users.map(({ path }) => path)).toEqual(["cli/main.ts", "cli/codex/codex-main.ts"]);
  });
});

describe("a limit that is held weakly", () => {
  const test = fileURLToPath(new URL("..", import.meta.url));
  const tests = readdirSync(test, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path) && !path.startsWith("unit/architecture"))
    .map((path) => ({ path, code: withoutComments(readFileSync(join(test, path), "utf8")) }));

  it("is made nowhere: a wait is limited with TimeLimit", () => {
    const users = files.filter(({ code }) => /\bAbortSignal\s*\.\s*timeout\b/.test(code));
    expect(users.map(({ path }) => path)).toEqual([]);
  });

  it("is combined with no other signal but by AnySignal", () => {
    const users = [...files, ...tests].filter(({ code }) => /\bAbortSignal\s*\.\s*any\b/.test(code));
    expect(users.map(({ path }) => path)).toEqual([]);
  });
});

function filesOf(folder: string): SourceFile[] {
  return files.filter((file) => file.folder === folder);
}

/** Which files of src each file imports. */
function importGraph(all: readonly SourceFile[]): Map<string, string[]> {
  const paths = new Set(all.map(({ path }) => path));
  const existing = (path: string) => [path, `${path}x`].filter((one) => paths.has(one));
  return new Map(
    all.map(({ path, imports }) => [
      path,
      imports
        .filter((name) => name.startsWith("."))
        .flatMap((name) => existing(join(dirname(path), name.replace(/\.js$/, ".ts")))),
    ]),
  );
}

/** The sets of files in which each is reached from each: two that reach each other are in one. */
function cyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const reached = new Map([...graph.keys()].map((path) => [path, reachedFrom(path, graph)]));
  const isWith = (path: string, other: string) =>
    reached.get(path)?.has(other) && reached.get(other)?.has(path);
  const circles = [...graph.keys()]
    .filter((path) => isWith(path, path))
    .map((path) => [...graph.keys()].filter((other) => isWith(path, other)).toSorted());
  return [...new Map(circles.map((circle) => [circle.join(), circle])).values()];
}

function reachedFrom(start: string, graph: ReadonlyMap<string, readonly string[]>): Set<string> {
  const reached = new Set<string>();
  const waiting = [...(graph.get(start) ?? [])];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    waiting.push(...(graph.get(path) ?? []));
  }
  return reached;
}

/** Static, dynamic and type-only imports and re-exports. */
function importsOf(code: string): string[] {
  return [...code.matchAll(/(?:\bfrom|\bimport\s*\(|\bimport)\s*"([^"]+)"/g)].map(([, name]) => name ?? "");
}

function withoutComments(code: string): string {
  return code.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "");
}

it("the check sees the files it is about", () => {
  expect(files.length).toBeGreaterThan(50);
  expect(
    importsOf(
      'import type { A } from "./a.js";\nawait import("b");\nimport "c";\nexport { D } from "../d.js";',
    ),
  ).toEqual(["./a.js", "b", "c", "../d.js"]);
  const graph = importGraph(files);
  expect(graph.get("cli/main.ts")).not.toEqual([]);
  expect([...graph.values()].flat().length).toBeGreaterThan(1000);
  expect([...graph.values()].flat().filter((path) => path.endsWith(".tsx"))).not.toEqual([]);
  expect(relative(source, join(source, "cli/main.ts"))).toBe("cli/main.ts");
});

describe("rooms that can be overlooked", () => {
  const rooms = new Map<string, string[]>();
  for (const { path } of files) rooms.set(dirname(path), [...(rooms.get(dirname(path)) ?? []), path]);

  it("no folder has more than fifteen files", () => {
    const full = [...rooms].filter(([, inside]) => inside.length > 15);
    expect(full.map(([folder, { length }]) => `${folder}: ${length}`)).toEqual([]);
  });

  it("every folder says what it is for, in a few lines", () => {
    const readmes = [...rooms.keys()]
      .filter((folder) => folder !== ".")
      .map((folder) => ({ folder, file: join(source, folder, "README.md") }));
    expect(readmes.filter(({ file }) => !existsSync(file)).map(({ folder }) => folder)).toEqual([]);
    for (const { folder, file } of readmes) {
      const [title = "", ...rest] = readFileSync(file, "utf8").trim().split("\n");
      expect(title, folder).toMatch(/^# /);
      expect(rest.join("").length, folder).toBeGreaterThan(40);
    }
  });
});

describe("scripts that use what was compiled", () => {
  it("import only what is compiled from a file there is", () => {
    const root = join(source, "..");
    const scripts = readdirSync(join(root, "scripts"), { recursive: true, encoding: "utf8" }).filter((path) =>
      /\.m?js$/.test(path),
    );
    const used = scripts.flatMap((path) =>
      [...readFileSync(join(root, "scripts", path), "utf8").matchAll(/"(?:\.\.\/)+dist\/([^"]+)\.js"/g)].map(
        ([, name = ""]) => name,
      ),
    );
    expect(used.length).toBeGreaterThan(5);
    expect(used.filter((name) => !existsSync(join(source, `${name}.ts`)))).toEqual([]);
  });
});
