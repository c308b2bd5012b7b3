import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseAllDocuments } from "yaml";
import { brig, onTestRuntime } from "../support/cli.js";
import { testEngine } from "../support/engine.js";
import { hasRedis, PASSWORD, RedisServer, whyNoRedis } from "../support/redis-server.js";
import { sandboxTest, temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

/** The calls of brig in the README, but for those that need a registry, a browser, or a model that is none of a script. */
const readmeCalls = [
  ...(await readFile(join(root, "README.md"), "utf8")).matchAll(/^brig (?<call>\S.*?) +#/gm),
]
  .map(({ groups: { call = "" } = {} }) => call)
  .filter((call) => !/^view|^image build| --agent model | -- npm ci$/.test(call))
  .map((call) => [...call.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? ""));

const libraryPage = await readFile(join(root, "docs/library.md"), "utf8");
const [, yamlBlock = ""] = /^```yaml\n([\s\S]*?)^```/m.exec(libraryPage) ?? [];
const [, taskRow = ""] = /`(\{"name".*\})`/.exec(libraryPage) ?? [];

const outputs: Record<string, RegExp> = {
  brigbox: /^0 total /,
  "brigbox/tools": /^true [\s\S]*\btasks\.jsonl\b/,
  "brigbox/agent": /^0\ncompleted 1 I have said hello\.$/,
  "brigbox/batch": /^say-42 1$[\s\S]*^1 2 all have ended$/m,
  "brigbox/client": /^0 42$/m,
};

/** The first program of each section of docs/library.md about a sub-path, and what it prints. */
const examples = [...libraryPage.matchAll(/^## (brigbox[\w/]*): [\s\S]*?^```ts\n([\s\S]*?)^```/gm)].map(
  ([, path = "", program = ""]) => [path, program, outputs[path] ?? /^$/] as const,
);

interface LockEntry {
  dev?: boolean;
  hasInstallScript?: boolean;
}
const lock: { packages: Record<string, LockEntry> } = JSON.parse(
  await readFile(join(root, "package-lock.json"), "utf8"),
);
/** What `npm install` brings besides the package itself, by its place below node_modules. */
const dependencies = Object.entries(lock.packages).filter(([path, { dev }]) => path !== "" && dev !== true);

/** The package as `npm install --omit=dev` puts it into an empty directory, without a registry: its archive and what it depends on. */
const installTest = sandboxTest
  // biome-ignore lint/correctness/noEmptyPattern: a fixture names what it needs, and this one needs nothing
  .extend("installed", { scope: "file" }, async ({}, { onCleanup }) => {
    const directory = await temporaryDirectory();
    onCleanup(() => directory[Symbol.asyncDispose]());
    const home = join(directory.path, "node_modules", manifest.name);
    await mkdir(home, { recursive: true });
    const pack = ["pack", "--silent", "--ignore-scripts", "--pack-destination", directory.path, root];
    const { stdout } = await execa("npm", pack, { cwd: directory.path });
    await execa("tar", ["-xzf", join(directory.path, stdout.trim()), "-C", home, "--strip-components=1"]);
    for (const [path] of dependencies)
      await cp(join(root, path), join(directory.path, path), { recursive: true });
    await writeFile(join(directory.path, "package.json"), "{}");
    return { directory: directory.path, home, program: join(home, manifest.bin.brig) };
  })
  .extend("files", { scope: "file" }, async ({ installed }) => await filesBelow(installed.home))
  .extend("libraryPrograms", { scope: "file" }, async ({ installed }, { onCleanup }) => {
    const { directory, program } = installed;
    const sources = examples.map(([path, source]) => ({ file: fileOf(directory, path), source }));
    for (const { file, source } of sources) await writeFile(file, source);
    const control = join(directory, "no-such-mode.mts");
    await cp(join(root, "test/fixtures/document-programs/no-such-mode.ts"), control);
    const tsc = async (...options: string[]) => {
      const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")];
      const language = ["--strict", "--target", "es2023", "--lib", "es2023,esnext.disposable", ...types];
      const files = [...sources.map(({ file }) => file), control];
      const argv = [join(root, "node_modules/typescript/bin/tsc"), ...language, ...options, ...files];
      await execa(process.execPath, argv, { cwd: directory });
    };
    await tsc("--module", "esnext", "--moduleResolution", "bundler", "--noEmit");
    await tsc("--module", "node16", "--noEmit");
    await tsc("--module", "nodenext");

    const cwd = join(directory, "workspace");
    await mkdir(cwd);
    await writeFile(join(cwd, "steps.yaml"), yamlBlock);
    await writeFile(join(cwd, "tasks.jsonl"), taskRow);
    const env = { BRIG_HOME: join(directory, "home") };
    const service = execa(program, ["serve", "--listen", "127.0.0.1:0", "--warm", "0", "--json"], { env });
    onCleanup(async () => {
      service.kill("SIGTERM");
      await service.catch(() => undefined);
    });
    const [line] = await once(service.stdout, "data");
    const { url, token } = JSON.parse(String(line));
    return {
      run: (path: string) =>
        execa(process.execPath, [fileOf(directory, path).replace(/mts$/, "mjs")], {
          ...{ cwd, env: { ...env, BRIG_URL: url, BRIG_TOKEN: token } },
        }),
    };
  });

function fileOf(directory: string, path: string): string {
  return join(directory, `${path.replace("/", "-")}.mts`);
}

async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
}

describe("the package that is published", () => {
  it("has a section with a program for everything that it exports", () => {
    const exported = Object.keys(manifest.exports).map((path) => path.replace(".", manifest.name));
    expect(examples.map(([path]) => path)).toEqual(exported);
    expect(Object.keys(outputs)).toEqual(exported);
  });

  installTest(
    "has its licence, those of others, the documents and what the images are made of",
    async ({ files }) => {
      const wanted = [
        "LICENSE",
        "README.md",
        "dist/serve-page.json",
        "dist/view-page.json",
        "docs/errors.md",
        "images/base/Dockerfile",
        "images/toolbox/runner/main.c",
      ];
      expect(files).toEqual(expect.arrayContaining([...wanted, ...Object.values<string>(manifest.bin)]));
      expect(
        files.filter((file) => /tsbuildinfo|fuzz|asan|^(src|test|scripts|docs\/api)\//.test(file)),
      ).toEqual([]);
      expect([manifest.name, manifest.license]).toEqual(["brigbox", "Apache-2.0"]);
    },
  );

  installTest("names the licence of every package that its bundles hold", async ({ installed }) => {
    const text = await readFile(join(installed.home, "dist/third-party-licences.txt"), "utf8");
    for (const name of ["commander", "hono", "openid-client", "preact", "tar-stream", "zod"])
      expect(text).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\([A-Za-z0-9.-]+\\)$`, "m"));
    expect(text).not.toContain("(undefined)");
  });

  installTest(
    "compiles nothing as it is installed, and takes less than 50 MB with all it depends on",
    async ({ installed }) => {
      expect(dependencies.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
      expect(
        Object.keys(manifest.scripts).filter((name) => /^(pre|post)?install$|^prepare$/.test(name)),
      ).toEqual([]);
      const modules = join(installed.directory, "node_modules");
      const sizes = (await filesBelow(modules)).map(async (file) => (await stat(join(modules, file))).size);
      const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
      expect(bytes).toBeLessThan(50e6);
    },
  );

  installTest("runs a command in a sandbox", async ({ installed, workspace }) => {
    expect((await execa(installed.program, ["--version"])).stdout).toBe(manifest.version);
    const argv = onTestRuntime(["exec", "-C", workspace, "--", "echo", "from the package"]);
    expect((await execa(installed.program, argv)).stdout).toBe("from the package");
  });

  installTest(
    "runs what the README tells a reader to run, in a directory with one small project",
    async ({ installed, workspace }) => {
      await using home = await temporaryDirectory();
      const project = (test: string) => JSON.stringify({ scripts: { test } });
      await writeFile(join(workspace, "package.json"), project("true"));
      const script = join(home.path, "breaks-the-tests.yaml");
      const call = `printf %s '${project("false")}' > package.json`;
      await writeFile(
        script,
        JSON.stringify({
          steps: [{ calls: [{ shell: { command: ["sh", "-c", call] } }] }, { text: "Done." }],
        }),
      );
      const env = { BRIG_HOME: home.path, CODEX_HOME: home.path };
      for (const argv of readmeCalls) {
        const scripted = argv[0] === "run" ? ["run", "--script", script, ...argv.slice(1)] : argv;
        const done = await execa(installed.program, onTestRuntime(scripted), {
          ...{ cwd: workspace, env, stdin: "ignore", reject: false },
        });
        expect([argv.join(" "), done.exitCode], done.stderr).toEqual([argv.join(" "), 0]);
        // The first session without copy-on-write has broken them for those that follow.
        if (argv.join(" ") === "run make the tests pass")
          await writeFile(join(workspace, "package.json"), project("true"));
      }
      expect(await readFile(join(workspace, "package.json"), "utf8")).toBe(project("false"));
      expect(readmeCalls.length).toBeGreaterThan(10);
    },
  );

  installTest("runs no program of the workspace on the host", async ({ installed, workspace }) => {
    await writeFile(join(workspace, ".env"), "NODE_OPTIONS=--require=./evil.cjs\n");
    await writeFile(join(workspace, "evil.cjs"), 'require("node:fs").writeFileSync("ran", "")');
    const argv = onTestRuntime(["exec", "-s", "read-only", "echo", "--env-file=.env"]);
    for (const name of ["brig", "brig-codex"]) {
      const program = join(installed.home, manifest.bin[name]);
      const { stdout } = await execa(program, argv, { cwd: workspace, reject: false, stdin: "ignore" });
      if (name === "brig") expect(stdout).toBe("--env-file=.env");
      expect(existsSync(join(workspace, "ran")), name).toBe(false);
    }
  });

  installTest(
    "has source maps for the library, which name files of brig but no directory of its builder",
    async ({ installed, files }) => {
      const maps = files.filter((file) => file.endsWith(".map"));
      expect(maps.length).toBeGreaterThan(20);
      for (const file of maps) {
        expect(file).toMatch(/^dist\/(?:index|(?:library|public)\/[^/]+)\.js\.map$/);
        const map = JSON.parse(await readFile(join(installed.home, file), "utf8"));
        expect(map.sourcesContent ?? []).toEqual([]);
        expect(
          map.sources.filter((source: string) => !/^(?:\.\.\/)+(?:src|node_modules)\//.test(source)),
        ).toEqual([]);
      }
      const program =
        'import { BrigClient } from "brigbox/client";\nnew BrigClient({ url: "nowhere", token: "" });\n';
      await writeFile(join(installed.directory, "throws.mjs"), program);
      const argv = ["--enable-source-maps", join(installed.directory, "throws.mjs")];
      const { stderr } = await execa(process.execPath, argv, { reject: false });
      expect(stderr).toMatch(/node_modules\/brigbox\/src\/[a-z/-]+\/http-calls\.ts:\d+:\d+/);
    },
  );

  installTest.for(examples)(
    "runs the first program of %s in the documentation",
    async ([path, , output], { libraryPrograms }) => {
      const { stdout } = await libraryPrograms.run(path);
      expect(stdout).toMatch(output);
    },
  );

  installTest("does not load the code of sandboxes for its client", async ({ installed }) => {
    await using folder = await temporaryDirectory();
    const env = { NODE_V8_COVERAGE: folder.path };
    const program = join(installed.directory, "imports.mjs");
    await writeFile(program, 'import "brigbox/client";\n');
    await execa(process.execPath, [program], { env });
    const [report = ""] = await readdir(folder.path);
    const { result } = JSON.parse(await readFile(join(folder.path, report), "utf8"));
    const urls: string[] = result.map(({ url }: { url: string }) => url);
    const loaded = urls.filter((url) => url.includes("/brigbox/dist/")).map((url) => fileURLToPath(url));
    expect(loaded).toContain(join(installed.home, "dist/public/client.js"));
    // A file that only exports from others has no map.
    const mapped = loaded.map((file) => `${file}.map`).filter((file) => existsSync(file));
    const maps = await Promise.all(mapped.map((file) => readFile(file, "utf8")));
    const sources: string[] = maps.flatMap((map) => JSON.parse(map).sources);
    expect(sources.filter((source) => source.endsWith("/brig-client.ts"))).toHaveLength(1);
    expect(
      sources.filter((source) =>
        /\/(?:docker|egress|agent|tools|model)\/|\/sandbox\.ts$|openai/.test(source),
      ),
    ).toEqual([]);
  });
});

describe("the files for workers in containers", () => {
  sandboxTest.each(["compose.yaml", "kubernetes.yaml"])(
    "%s starts brig worker with flags that it has",
    async (file) => {
      const documents = parseAllDocuments(await readFile(join(root, "deploy", file), "utf8"));
      expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
      const [args = [], ...others] = documents.flatMap((one) => workerArguments(one.toJS()));
      expect(others).toEqual([]);
      const { stdout } = await brig(["worker", "--help"]);
      const flags = args.filter((argument) => argument.startsWith("-"));
      expect(flags).toEqual(["--queue", "--results", "-n"]);
      for (const flag of flags) expect(stdout).toContain(flag);
    },
  );

  installTest.skipIf(!hasRedis)(
    withReason("the image runs attempts on the engine whose socket it has", whyNoRedis),
    async ({ installed }) => {
      await using redis = await RedisServer.start();
      await using folder = await temporaryDirectory();
      const { endpoint } = await testEngine();
      const docker = (args: string[], env = {}) =>
        execa("docker", args, { env: { DOCKER_HOST: endpoint, ...env } });
      const tag = `brig-test/worker:${process.pid}`;
      const context = join(folder.path, "context");
      await cp(join(root, "deploy"), context, { recursive: true, filter: (path) => !path.includes("app") });
      await cp(join(installed.directory, "node_modules"), join(context, "app/node_modules"), {
        recursive: true,
      });
      await docker(["build", "--quiet", "--build-arg", "BASE=brig/base", "--tag", tag, context]);
      onTestFinished(async () => void (await docker(["rmi", "--force", tag])));
      const results = join(folder.path, "results");
      await mkdir(results);
      const queue = ["--queue", redis.url, "--results", results];
      const name = `brig-test-worker-${process.pid}`;
      const socket = new URL(endpoint).pathname;
      const worker = docker(
        [
          ...["run", "--rm", "--name", name, "--network", "host", "--env", "BRIG_REDIS_PASSWORD"],
          ...["--volume", `${socket}:/var/run/docker.sock`, "--volume", `${results}:${results}`],
          ...[tag, "worker", ...queue, "-n", "1", "--json"],
        ],
        { BRIG_REDIS_PASSWORD: PASSWORD },
      );
      const tasks = join(folder.path, "task.jsonl");
      await writeFile(tasks, JSON.stringify({ prompt: "do it", check: "true" }));
      const output = join(folder.path, "run");
      const batch = await brig(["batch", tasks, "--agent", "nop", "-o", output, ...queue], {
        env: { BRIG_REDIS_PASSWORD: PASSWORD, BRIG_HOME: join(folder.path, "home") },
      });
      expect(batch.exitCode, batch.stderr).toBe(0);
      // SIGTERM, after which it ends by itself.
      await docker(["stop", "--time", "60", name]);
      const lines = (await worker).stdout.split("\n").map((line) => JSON.parse(line));
      expect(lines.at(-1)).toEqual({ type: "worker.ended", attempts: 1 });
    },
  );
});

/** What a Compose file or a manifest gives to workers. */
function workerArguments(value: unknown): string[][] {
  if (Array.isArray(value) && value[0] === "worker") return [value.map(String)];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(workerArguments);
}
