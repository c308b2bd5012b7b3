import { realpathSync } from "node:fs";
import { access, cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cacheVolumeName } from "../../src/sandbox/volumes/cache-volume.js";
import { brig, containersOf } from "../support/cli.js";
import { testEngine } from "../support/engine.js";
import { type ReceivedRequest, startResponsesServer, turn } from "../support/responses-server.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";

const installed = {
  everything: await testProgram("server-everything"),
  filesystem: await testProgram("server-filesystem"),
};

let folder: TemporaryDirectory;
let cwd = "";
let home = "";
const names = ["demo", "files", "anywhere"];

/** The installed programs become files of the workspace, since a container without network has no others. */
async function prepare(program: keyof typeof installed): Promise<void> {
  folder = await temporaryDirectory();
  [cwd, home] = [join(folder.path, "work"), join(folder.path, "home")];
  await mkdir(home);
  await cp(realpathSync(installed[program].folder), join(cwd, program), { recursive: true });
}

async function clear(): Promise<void> {
  const engine = await testEngine();
  for (const name of names) await engine.removeVolume(cacheVolumeName([cwd, name]));
  await folder[Symbol.asyncDispose]();
}

function server(name: string, program: keyof typeof installed, args: readonly string[] = []): string {
  const main = `${program}/node_modules/@modelcontextprotocol/server-${program}/dist/index.js`;
  return `[mcp_servers.${name}]\ncommand = "node"\nargs = ${JSON.stringify([main, ...args])}\nstartup_timeout_sec = 60\n`;
}

async function run(config: string, args: readonly string[]) {
  await writeFile(join(home, "config.toml"), config);
  const env = { BRIG_HOME: home, CODEX_HOME: home, K: "key-0123456789", HOST_SECRET: "s3cret" };
  const running = brig(["run", ...args, "go"], { cwd, env });
  const { exitCode, stdout, stderr } = await running;
  return { exitCode, stdout, stderr, left: await containersOf(running.pid) };
}

const everythingTitle = withReason("server-everything in its own container", installed.everything.missing);
describe.skipIf(installed.everything.missing !== null)(everythingTitle, () => {
  beforeAll(() => prepare("everything"));
  afterAll(clear);

  it("gives the model texts, sums, pictures, structured content and resources", async () => {
    const calls = {
      echo: ["demo__echo", { message: "hi" }],
      sum: ["demo__get-sum", { a: 2, b: 40 }],
      picture: ["demo__get-tiny-image", {}],
      weather: ["demo__get-structured-content", { location: "Chicago" }],
      environment: ["demo__get-env", {}],
      resources: ["list_mcp_resources", { server: "demo" }],
      templates: ["list_mcp_resource_templates", {}],
      text: ["read_mcp_resource", { server: "demo", uri: "demo://resource/dynamic/text/7" }],
      unknown: ["read_mcp_resource", { server: "demo", uri: "demo://nothing" }],
    } as const;
    const asked = Object.entries(calls).map(([id, [name, args]]) => ({ id, name, args }));
    await using endpoint = await startResponsesServer([turn({ calls: asked }), turn({ text: "done" })]);
    const provider = `model_provider = "mine"\n[model_providers.mine]\nbase_url = "${endpoint.url}"\nwire_api = "responses"\nenv_key = "K"\n`;
    const result = await run(provider + server("demo", "everything"), ["-m", "gpt-5.2-codex"]);
    expect(result).toMatchObject({ exitCode: 0, stdout: "done\n", left: [] });

    const [first, second] = endpoint.requests;
    const offered = asked.map(({ name }) => expect.objectContaining({ name }));
    expect(first?.body.tools).toEqual(expect.arrayContaining(offered));
    const outputs = outputsIn(second);
    expect(outputs.echo).toContain("Echo: hi");
    expect(outputs.sum).toContain("The sum of 2 and 40 is 42.");
    expect(outputs.picture).toEqual([
      { type: "input_text", text: expect.stringMatching(/^Wall time: /) },
      { type: "input_text", text: "Here's the image you requested:" },
      expect.objectContaining({
        type: "input_image",
        image_url: expect.stringMatching(/^data:image\/png;base64,iVBORw0KGgo/),
      }),
      { type: "input_text", text: "The image above is the MCP logo." },
    ]);
    expect(JSON.parse(String(outputs.weather).split("\n").at(-1) ?? "")).toEqual({
      temperature: 36,
      conditions: "Light rain / drizzle",
      humidity: 82,
    });
    expect(outputs.environment).toContain("/brig-cache");
    expect(outputs.environment).not.toContain("s3cret");
    expect(outputs.resources).toContain('"uri":"demo://resource/static/document/architecture.md"');
    expect(outputs.templates).toContain("demo://resource/dynamic/text/{resourceId}");
    expect(outputs.text).toContain("Resource 7: This is a plaintext resource");
    expect(outputs.unknown).toMatch(/^resources\/read failed: .*demo:\/\/nothing/);
  });
});

function outputsIn(request: ReceivedRequest | undefined): Record<string, unknown> {
  const outputs = request?.body.input.filter(({ type }) => type === "function_call_output") ?? [];
  return Object.fromEntries(outputs.map(({ call_id: id, output }) => [id, output]));
}

const filesystemTitle = withReason("server-filesystem in its own container", installed.filesystem.missing);
describe.skipIf(installed.filesystem.missing !== null)(filesystemTitle, () => {
  beforeAll(async () => {
    await prepare("filesystem");
    await mkdir(join(cwd, "data"));
    await writeFile(join(cwd, "data/note.txt"), "of the workspace");
    await writeFile(join(cwd, "outside.txt"), "not allowed");
    await writeFile(join(folder.path, "secret.txt"), "of the host");
  });
  afterAll(clear);

  const play = async (steps: readonly object[], mode: string) => {
    const script = join(folder.path, "steps.json");
    await writeFile(script, JSON.stringify({ steps }));
    const config =
      server("files", "filesystem", ["data"]) + server("anywhere", "filesystem", ["/", "/does/not/exist"]);
    return await run(config, ["-s", mode, "--script", script]);
  };
  const write = () => ({ files__write_file: { path: join(cwd, "data/made.txt"), content: "made" } });

  it("reads the workspace, nothing outside of its directory, and nothing of the host", async () => {
    const result = await play(
      [
        {
          calls: [
            { files__read_text_file: { path: join(cwd, "data/note.txt") } },
            { files__read_text_file: { path: join(cwd, "outside.txt") } },
            { anywhere__read_text_file: { path: join(cwd, "outside.txt") } },
            { anywhere__read_text_file: { path: join(folder.path, "secret.txt") } },
            { anywhere__list_directory: { path: folder.path } },
            { anywhere__read_text_file: { path: "/var/run/docker.sock" } },
          ],
        },
        {
          expect: [
            { contains: "of the workspace" },
            { contains: "Access denied - path outside allowed directories", notContains: "not allowed" },
            { contains: "not allowed" },
            { contains: "ENOENT", notContains: "of the host" },
            { contains: "[DIR] work", notContains: ["secret.txt", "home"] },
            { contains: "ENOENT" },
          ],
          text: "done",
        },
      ],
      "workspace-write",
    );
    expect(result).toMatchObject({ exitCode: 0, stdout: "done\n", left: [] });
  });

  it("cannot write to a workspace that the session may only read", async () => {
    const steps = [{ calls: [write()] }, { expect: { contains: "EROFS" }, text: "done" }];
    expect(await play(steps, "read-only")).toMatchObject({ exitCode: 0, stdout: "done\n", left: [] });
    await expect(access(join(cwd, "data/made.txt"))).rejects.toThrow("ENOENT");
  });

  it("writes to a workspace that the session may change, except for its protected names", async () => {
    await mkdir(join(cwd, ".git"));
    const protectedFile = { path: join(cwd, ".git/config"), content: "[core]" };
    const steps = [
      { calls: [write(), { anywhere__write_file: protectedFile }] },
      { expect: [{ contains: "Successfully wrote" }, { contains: "EROFS" }], text: "done" },
    ];
    expect(await play(steps, "workspace-write")).toMatchObject({ exitCode: 0, stdout: "done\n", left: [] });
    expect(await readFile(join(cwd, "data/made.txt"), "utf8")).toBe("made");
    await expect(access(join(cwd, ".git/config"))).rejects.toThrow("ENOENT");
  });
});
