import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it } from "vitest";
import { brig, program } from "../support/cli.js";
import { temporaryDirectory } from "../support/sandbox.js";

const reportChunks = fileURLToPath(new URL("../fixtures/report-chunks.cjs", import.meta.url));

/** A chunk of the program, as it was loaded. */
interface Chunk {
  /** Its name in stack traces, e.g. `brig/chunk-main-Dx3b1.js`. */
  name: string;
  /** Whether V8 accepted the code that was compiled when brig was built. */
  isCompiled: boolean;
  /** How many bytes had been sent to the engine when the chunk was loaded. */
  bytesSentBefore: number;
  /** Node's own modules that had been loaded when the chunk was loaded. */
  modulesBefore: string[];
}

/** Runs brig, and returns the chunks of code that it loaded, and their source files, as the source maps name them. */
async function codeLoadedBy(
  args: string[],
  { script, status = 0 }: { script?: object; status?: number } = {},
): Promise<{ chunks: Chunk[]; sources: string[] }> {
  await using folder = await temporaryDirectory();
  const coverage = join(folder.path, "coverage");
  const report = join(folder.path, "chunks");
  const env = {
    BRIG_HOME: join(folder.path, "home"),
    NODE_V8_COVERAGE: coverage,
    NODE_OPTIONS: `--require ${JSON.stringify(reportChunks)}`,
    TEST_CHUNK_REPORT: report,
  };
  const workspace = join(folder.path, "workspace");
  await mkdir(workspace);
  const scriptFile = join(folder.path, "script.yaml");
  await writeFile(scriptFile, JSON.stringify(script ?? {}));
  const given = script === undefined ? args : [...args, "--script", scriptFile];
  const { exitCode, stderr } = await brig(given, { cwd: workspace, env });
  expect(exitCode, stderr).toBe(status);
  const lines = (await readFile(report, "utf8")).trim().split("\n");
  const chunks = lines.map((line): Chunk => JSON.parse(line));
  // V8 reports no coverage of code that was compiled before, and the launcher loads no ES modules.
  const reports = await readdir(coverage);
  const texts = await Promise.all(reports.map((name) => readFile(join(coverage, name), "utf8")));
  const urls = texts.flatMap((text) => JSON.parse(text).result.map(({ url }: { url: string }) => url));
  const covered = urls.filter((url) => url.startsWith("file:")).map((url) => fileURLToPath(url));
  const files = new Set([...covered, ...chunks.map(({ name }) => fileOf(name))]);
  return { chunks, sources: (await Promise.all([...files].map(sourcesOf))).flat() };
}

function fileOf(name: string): string {
  return join(dirname(program), basename(name));
}

async function sourcesOf(file: string): Promise<string[]> {
  const map = `${file}.map`;
  return existsSync(map) ? JSON.parse(await readFile(map, "utf8")).sources : [];
}

it("a command in a built-in mode loads neither zod nor a parser of TOML or certificates nor a server, which would delay it", async () => {
  const { sources } = await codeLoadedBy(["exec", "--", "true"]);
  expect(sources.join("\n")).toMatch(/src\/sandbox\/sandbox\.ts/);
  expect(
    sources.filter((source) =>
      /node_modules\/(?:zod|smol-toml|pkijs|asn1js|hono|@hono|@opentelemetry)\//.test(source),
    ),
  ).toEqual([]);
});

it("a run loads no code of servers, logins or conversations, which would delay its first request", async () => {
  const { sources } = await codeLoadedBy(["run", "go"], { script: { steps: [{ text: "done" }] } });
  expect(sources.join("\n")).toMatch(/src\/agent\/turn\/turn-loop\.ts/);
  const others =
    /src\/(?:services|batch\/queue|agent\/(?:mcp\/client|agents\/child|telemetry\/(?:conversation-spans|export|otlp)))|node_modules\/(?:ws|hono|@hono|bullmq|ioredis|react|markdown-it|openid-client|@modelcontextprotocol|@opentelemetry)\//;
  expect(sources.filter((source) => others.test(source))).toEqual([]);
});

/** A run that ends where it would send its first request: the engine does not have the image. */
async function codeLoadedBeforeRequest() {
  const model = 'model_providers.here={base_url="http://127.0.0.1:9/v1"}';
  const args = ["run", "-c", "model_provider=here", "-c", model, "--container-image", "no/such-image", "go"];
  return await codeLoadedBy(args, { status: 125 });
}

it("a run sends its first request before it loads what opens a sandbox or reads answers", async () => {
  const { sources } = await codeLoadedBeforeRequest();
  expect(sources.join("\n")).toMatch(/src\/agent\/turn\/turn-loop\.ts/);
  const later =
    /src\/(?:sandbox\/(?:open-sandbox|plan\/plan-sandbox|receipt\/|process\/process)|agent\/model\/(?:item-schemas|chat\/chat-reader|responses\/responses-reader))/;
  expect(sources.filter((source) => later.test(source))).toEqual([]);
});

it.each([
  [["sessions", "list"]],
  [["diff", "--help"]],
  [["port", "--help"]],
  [["gc", "--dry-run"]],
  [["exec-server", "--help"]],
  [["queue", "--help"]],
])("%j loads nothing of batches, queues and servers", async (args) => {
  const { sources } = await codeLoadedBy(args);
  expect(sources.join("\n")).toMatch(/src\/cli\//);
  const others =
    /src\/(?:services\/(?!.*-command\.ts)|agent\/mcp\/|batch\/(?:queue\/|runs\/(?!images\/)))|node_modules\/(?:ws|hono|@hono|bullmq|ioredis|react|markdown-it|openid-client|@modelcontextprotocol)\//;
  expect(sources.filter((source) => others.test(source))).toEqual([]);
});

it("a batch without a queue loads nothing of queues", async () => {
  const { sources } = await codeLoadedBy(["batch", "--help"]);
  expect(sources.join("\n")).toMatch(/src\/batch\/runs\//);
  expect(sources.filter((source) => /node_modules\/(?:bullmq|ioredis)\//.test(source))).toEqual([]);
});

it("a short command compiles nothing: the build did that for the version of Node it ran on", async () => {
  const { chunks } = await codeLoadedBy(["exec", "--", "true"]);
  expect(chunks.length).toBeGreaterThan(5);
  expect(chunks.filter(({ isCompiled }) => !isCompiled)).toEqual([]);
});

it("nor does a run until it sends its first request", async () => {
  const { chunks } = await codeLoadedBeforeRequest();
  expect(chunks.length).toBeGreaterThan(5);
  expect(chunks.filter(({ isCompiled }) => !isCompiled)).toEqual([]);
});

it("the engine is asked before anything is loaded that is slow to load and not needed for that", async () => {
  const { chunks } = await codeLoadedBy(["exec", "--", "true"]);
  const sources = await Promise.all(chunks.map(({ name }) => sourcesOf(fileOf(name))));
  const chunkWith = (source: string) => chunks[sources.findIndex((all) => all.join("\n").includes(source))];
  // The last one is what Node loads to open stdin, here /dev/null.
  const slow = ["crypto", "fs/promises", "https", "child_process", "internal/fs/streams"];
  const engine = chunkWith("src/sandbox/docker/client.ts");
  expect(slow.filter((module) => engine?.modulesBefore.includes(module))).toEqual([]);
  const sandbox = chunkWith("src/sandbox/plan/create-body.ts");
  expect(sandbox?.bytesSentBefore).toBeGreaterThan(0);
  expect(slow.filter((module) => sandbox?.modulesBefore.includes(module))).toEqual([]);
});

it("no chunk imports by itself, which code in a Script cannot: not even a module of Node", async () => {
  const folder = dirname(program);
  const names = (await readdir(folder)).filter((name) => /^chunk-.*\.js$/.test(name));
  expect(names.length).toBeGreaterThan(20);
  const importing = names.map(async (name) => {
    const code = await readFile(join(folder, name), "utf8");
    // An ellipsis instead of a name stands in a text for models.
    return /[^.\w$]import\((?!…)/.test(code) ? [name] : [];
  });
  expect((await Promise.all(importing)).flat()).toEqual([]);
});

it("a stack trace names the chunk, wherever brig was built", async () => {
  await using folder = await temporaryDirectory();
  const env = { BRIG_HOME: join(folder.path, "home"), BRIG_DEBUG: "1" };
  const { stderr } = await brig(["exec", "--container-image", "no/such-image", "--", "true"], { env });
  expect(stderr).toMatch(/\n {4}at .*\(brig\/chunk-[\w-]+\.js:\d+:\d+\)/);
  expect(stderr).not.toContain("evalmachine");
});

it("code that V8 refuses, such as that of another version, does not matter", async () => {
  await using folder = await temporaryDirectory();
  const built = dirname(program);
  const home = join(folder.path, "dist", "cli");
  await mkdir(home, { recursive: true });
  const names = (await readdir(built)).filter((name) => /^(?:main\.js|package\.json|chunk-.*)$/.test(name));
  for (const name of names) await copyFile(join(built, name), join(home, name));
  await mkdir(join(folder.path, "sandbox-policies"));
  await writeFile(join(folder.path, "package.json"), JSON.stringify({ version: "0.0.7" }));
  const compiled = names.filter((name) => name.endsWith(`.js.${process.version}-${process.arch}`));
  expect(compiled.length).toBeGreaterThan(5);
  const version = () => execa(process.execPath, [join(home, "main.js"), "--version"]);
  for (const damage of [Buffer.alloc(0), Buffer.alloc(100_000, 7)]) {
    for (const name of compiled) await writeFile(join(home, name), damage);
    expect((await version()).stdout).toBe("0.0.7");
  }
  for (const name of compiled) await rm(join(home, name));
  expect((await version()).stdout).toBe("0.0.7");
});
