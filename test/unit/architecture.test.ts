import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const source = fileURLToPath(new URL("../../src", import.meta.url));

/** Which parts of src a part may import from, through their doors (`index.ts`). Everything may import from lib and from the files directly in src. */
const parts: Record<string, readonly string[]> = {
  public: ["services", "batch", "agent", "tools", "sandbox"],
  cli: ["services", "command", "batch", "agent", "tools", "sandbox"],
  services: ["command", "batch", "agent", "tools", "sandbox"],
  command: ["batch", "agent", "sandbox"],
  batch: ["agent", "sandbox"],
  agent: ["tools", "sandbox"],
  tools: ["sandbox"],
  sandbox: [],
  lib: [],
};

/** Which other rooms of its part a room may import from. The rooms of the sandbox that are not named here may import from all that are. */
const rooms: Record<string, readonly string[]> = {
  "sandbox/policy": [],
  "sandbox/output": [],
  "sandbox/egress": ["sandbox/policy"],
  "sandbox/docker": [],
  "sandbox/images": ["sandbox/docker"],
  "agent/model": [],
  "agent/session": ["agent/model"],
  "batch/tasks": [],
  "batch/runs": ["batch/tasks"],
  "batch/queue": ["batch/runs", "batch/tasks"],
  "batch/report": ["batch/runs", "batch/tasks"],
  "services/acp": [],
  "services/exec-server": [],
  "services/mcp-server": [],
  "services/serve": [],
  "services/lasting": ["services/serve"],
  "services/e2b": ["services/serve"],
  "services/wrap": [],
};

/** Packages that only one room may import, or the rooms that are named. */
const doors: Record<string, string> = {
  "tar-stream": "sandbox/docker",
  "openid-client": "agent/model",
  commander: "cli and command and services",
  "markdown-it": "cli/conversation",
  preact: "batch/report and lib/page and services/serve/page",
  ws: "services/exec-server and services/serve/http",
  bullmq: "batch/queue",
  ioredis: "batch/queue",
  aws4fetch: "batch/queue and sandbox/egress",
  "@agentclientprotocol/sdk": "services/acp",
  minisearch: "tools",
  diff: "sandbox",
  "dns-packet": "sandbox/egress",
  "@modelcontextprotocol/server": "services/mcp-server",
  "@modelcontextprotocol/client": "agent/mcp",
};

interface SourceFile {
  /** Relative to src, e.g. "cli/main.ts". */
  path: string;
  /** The part of src that it is in, or "". */
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
    expect(Object.keys(parts)).toEqual(expect.arrayContaining([...folders]));
  });

  it.each(Object.entries(parts))("%s imports only from the doors of: %s", (part, allowed) => {
    const wrong = targetsOf(filesOf(part)).filter(({ target }) => {
      const [other = "", ...rest] = target.split("/");
      if (other === part || other === "lib") return false;
      return rest.length === 0 ? false : !allowed.includes(other) || rest.join("/") !== "index.ts";
    });
    expect(wrong.map(({ path, target }) => `${path} → ${target}`)).toEqual([]);
  });

  it.each(Object.entries(rooms))("of its part %s imports only from: %s", (room, allowed) => {
    const part = `${room.split("/")[0]}/`;
    const inside = files.filter(({ path }) => path.startsWith(`${room}/`));
    expect(inside).not.toEqual([]);
    const wrong = targetsOf(inside).filter(
      ({ target }) =>
        target.startsWith(part) && ![room, ...allowed].some((one) => target.startsWith(`${one}/`)),
    );
    expect(wrong.map(({ path, target }) => `${path} → ${target}`)).toEqual([]);
  });

  it("no part and no room is below what it imports from", () => {
    const [order, below] = [Object.keys(parts), Object.keys(rooms)];
    for (const [part, allowed] of Object.entries(parts))
      for (const other of allowed)
        expect(order.indexOf(other), `${part} → ${other}`).toBeGreaterThan(order.indexOf(part));
    for (const [room, allowed] of Object.entries(rooms))
      for (const other of allowed)
        expect(below.indexOf(other), `${room} → ${other}`).toBeLessThan(below.indexOf(room));
  });

  it("a door only hands on what is in its part, and nothing in the part comes in by it", () => {
    for (const part of Object.keys(parts).filter((one) => !/^(?:lib|cli|public)$/.test(one))) {
      const door = files.find(({ path }) => path === `${part}/index.ts`);
      const left = door?.code.replace(/export (?:type )?\{[^{}]*\} from "\.\/[^".][^"]*";/g, "").trim();
      expect(left, part).toBe("");
      const users = targetsOf(filesOf(part)).filter(({ target }) => target === `${part}/index.ts`);
      expect(users).toEqual([]);
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
      file.imports.some((name) => /^\.{1,2}\/(index|(cli|public)\/.*|main)\.js$/.test(name)),
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
      importers
        .filter(({ path }) => !folder.split(" and ").some((room) => path.startsWith(`${room}/`)))
        .map(({ path }) => path),
    ).toEqual([]);
    expect(importers).not.toEqual([]);
  });

  it("only src/lib/env.ts reads the environment", () => {
    const readers = files.filter(({ code }) =>
      /\bprocess\s*\.\s*env\b|\{[^}]*\benv\b[^}]*\}\s*from "node:process"/.test(code),
    );
    expect(readers.map(({ path }) => path)).toEqual(["lib/env.ts"]);
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
      // What a client of the owner sends of itself.
      "cli/lasting/owner-command.ts",
      "lib/current-directory.ts",
      // The defaults of `readEnvironment` itself.
      "lib/env.ts",
      "sandbox/create-sandbox.ts",
      // A program for the sandbox, as text.
      "tools/repl/kernel-source.ts",
    ]);
  });

  it("on the command line only the main file of each program touches the process", () => {
    const commands = files.filter(
      ({ path, folder }) =>
        folder === "cli" || folder === "command" || /^services\/(?:wrap\/|.*-command\.ts$)/.test(path),
    );
    const users = commands.filter(({ code }) => /\bprocess\s*[.[]|"node:process"|\bconsole\b/.test(code));
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

/** What these files import of src. */
function targetsOf(some: readonly SourceFile[]): { path: string; target: string }[] {
  return some.flatMap(({ path, imports }) =>
    imports
      .filter((name) => name.startsWith("."))
      .map((name) => ({ path, target: join(dirname(path), name.replace(/\.js$/, ".ts")) })),
  );
}

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
