import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox as E2bSandbox } from "e2b";
import { expect, it, onTestFinished } from "vitest";
import { BrigClient } from "../../src/services/serve/client/brig-client.js";
import { openApiDescription } from "../../src/services/serve/wire/openapi.js";
import { readVersion } from "../../src/version.js";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

interface Announced {
  url: string;
  token: string;
  /** What it has printed by this name. */
  named(name: string): string;
  program: ReturnType<typeof brig>;
}

async function start(directory: TemporaryDirectory, args: readonly string[]): Promise<Announced> {
  const program = brig(["serve", "--listen", "127.0.0.1:0", ...args], {
    cwd: directory.path,
    env: { BRIG_HOME: join(directory.path, "home") },
  });
  onTestFinished(async () => {
    program.kill("SIGKILL");
    await program;
  });
  let output = "";
  program.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const isAnnounced = args.includes("--token-file") ? /^url = ".*"$/m : /^token = ".*"$/m;
  await expect.poll(() => output, { timeout: 60_000 }).toMatch(isAnnounced);
  const announced = (name: string) => new RegExp(`^${name} = "(.*)"$`, "m").exec(output)?.[1] ?? "";
  return { url: announced("url"), token: announced("token"), named: announced, program };
}

it("a snapshot is the client's whose token it is, in the next service too", async () => {
  await using directory = await temporaryDirectory();
  const files = ["first", "second"].map((name) => join(directory.path, name));
  const tokens = ["1", "2"].map((digit) => digit.repeat(64));
  for (const [at, file] of files.entries()) await writeFile(file, `${tokens[at]}\n`, { mode: 0o600 });
  const serveTo = async (order: readonly string[]) => {
    const args = order.flatMap((file) => ["--token-file", file]);
    const { url, program } = await start(directory, args);
    const clients = tokens.map((token) => new BrigClient({ url, token })) as [BrigClient, BrigClient];
    onTestFinished(() => clients.forEach((client) => void client.close()));
    return { clients, program };
  };
  const earlier = await serveTo(files);
  const sandbox = await earlier.clients[0].createSandbox({ workspaceKind: "overlay" });
  await sandbox.files.write("/workspace/file", "kept");
  const { id } = await sandbox.snapshot({ name: "kept" });
  earlier.program.kill("SIGTERM");
  await earlier.program;
  const later = await serveTo(files.toReversed());
  const [first, second] = later.clients;
  expect(await second.listSnapshots()).toEqual([]);
  const again = await first.createSandbox({ snapshot: id });
  expect(String(await again.files.read("/workspace/file"))).toBe("kept");
  await first.deleteSnapshot(id);
  later.program.kill("SIGTERM");
  await later.program;
});

it("brig serve runs commands and episodes, and after SIGTERM nothing of it is left", async () => {
  await using directory = await temporaryDirectory();
  const rows = [{ name: "say-42", prompt: "write 42 to answer", check: "grep -qx 42 answer" }];
  await writeFile(join(directory.path, "tasks.jsonl"), rows.map((row) => JSON.stringify(row)).join("\n"));
  const { url, token, program } = await start(directory, ["tasks.jsonl", "--warm", "1"]);
  const client = new BrigClient({ url, token });
  onTestFinished(() => client.close());
  expect(await client.listTasks()).toEqual([{ name: "say-42", instruction: "write 42 to answer" }]);
  const sandbox = await client.createSandbox();
  expect((await sandbox.exec(["echo", "hello"])).stdout).toBe("hello\n");
  const task = await client.createSandbox({ task: "say-42" });
  await task.exec(["sh", "-c", "echo 42 > answer"]);
  expect(await task.grade()).toMatchObject({ status: "scored", reward: 1 });
  const episode = await client.runEpisode({ task: "say-42", agent: { command: "echo 41 > answer" } });
  expect(episode).toMatchObject({ status: "ended", result: { status: "scored", reward: 0 } });
  await expect(client.createEpisode({ task: "say-42" })).rejects.toMatchObject({ code: "usage.invalid" });
  expect(await containersOf(program.pid)).not.toEqual([]);
  const running = sandbox.exec(["sh", "-c", "touch /tmp/begun; while [ ! -e /tmp/go ]; do sleep 0.1; done"]);
  await expect
    .poll(async () => (await sandbox.files.list("/tmp")).entries.length, { timeout: 30_000 })
    .toBe(1);
  program.kill("SIGTERM");
  await expect.poll(async () => (await client.health()).status, { timeout: 30_000 }).toBe("draining");
  await expect(client.createSandbox()).rejects.toMatchObject({ code: "serve.busy" });
  await sandbox.files.write("/tmp/go", "");
  expect((await running).exitCode).toBe(0);
  const { exitCode, stderr } = await program;
  expect([exitCode, stderr]).toEqual([143, expect.stringContaining("may end")]);
  expect(await containersOf(program.pid)).toEqual([]);
});

it("a second signal ends what runs at once, and each token file is a client of its own", async () => {
  await using directory = await temporaryDirectory();
  const args = ["--warm", "0"];
  for (const name of ["one", "two"]) {
    const file = join(directory.path, name);
    await writeFile(file, `${name.repeat(10)}\n`);
    args.push("--token-file", file);
  }
  const { url, program } = await start(directory, args);
  const [one, two] = ["one", "two"].map((name) => new BrigClient({ url, token: name.repeat(10) }));
  const sandbox = await one?.createSandbox();
  expect(await two?.listSandboxes()).toEqual([]);
  let output = "";
  const running = sandbox?.stream(["sh", "-c", "echo begun; exec sleep 1000"], {
    onStdout: (chunk) => {
      output += Buffer.from(chunk).toString();
    },
  });
  running?.catch(() => undefined);
  await expect.poll(() => output, { timeout: 30_000 }).toBe("begun\n");
  program.kill("SIGTERM");
  await expect.poll(async () => (await two?.health())?.status, { timeout: 30_000 }).toBe("draining");
  program.kill("SIGTERM");
  await expect(running).rejects.toMatchObject({ name: "BrigError" });
  expect((await program).exitCode).toBe(143);
  expect(await containersOf(program.pid)).toEqual([]);
});

it("brig serve --openapi prints the description without an engine", async () => {
  const { stdout, exitCode } = await brig(["serve", "--openapi"], {
    env: { DOCKER_HOST: "unix:///proc/nowhere" },
  });
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toEqual(openApiDescription(readVersion()));
});

it.each([
  [["--listen", "0.0.0.0:80"], "0.0.0.0:80, and are served with TLS only"],
  [["--token-file", "none"], "does not exist"],
  [["no-such-tasks"], "no-such-tasks"],
  [["--max-sandboxes", "0"], "whole number"],
  [["--model", "x"], "--agent model"],
  [["--agent", "unknown"], "there is no agent"],
])("brig serve %j is refused", async (args, reason) => {
  await using directory = await temporaryDirectory();
  const { exitCode, stderr } = await brigHere(["serve", ...args], { cwd: directory.path });
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(reason)]);
});

it("it says how clients of E2B reach it, and serves them with templates of the configuration", async () => {
  await using directory = await temporaryDirectory();
  await mkdir(join(directory.path, "home"));
  await writeFile(join(directory.path, "home", "config.toml"), '[templates]\ntools = "brig/base"\n');
  const printed = await start(directory, ["--warm", "0"]);
  const file = join(directory.path, "token");
  await writeFile(file, "0123456789abcdef".repeat(4), { mode: 0o600 });
  const withFile = await start(directory, ["--warm", "0", "--token-file", file]);
  const program = brig(["serve", "--listen", "127.0.0.1:0", "--json", "--warm", "0"], {
    cwd: directory.path,
    env: { BRIG_HOME: join(directory.path, "home") },
  });
  onTestFinished(async () => {
    program.kill("SIGKILL");
    await program;
  });
  const [line] = await once(program.stdout, "data");
  const { url, token, e2b } = JSON.parse(String(line));
  expect(e2b).toEqual({ apiUrl: `${url}/e2b`, sandboxUrl: url, apiKey: `e2b_${token}` });
  for (const options of [
    e2b,
    {
      apiUrl: printed.named("E2B_API_URL"),
      sandboxUrl: printed.named("E2B_SANDBOX_URL"),
      apiKey: printed.named("E2B_API_KEY"),
    },
    {
      apiUrl: withFile.named("E2B_API_URL"),
      sandboxUrl: withFile.named("E2B_SANDBOX_URL"),
      apiKey: "0123456789abcdef".repeat(4),
    },
  ]) {
    const sandbox = await E2bSandbox.create("tools", options);
    expect((await sandbox.commands.run("echo $HOME")).stdout).toBe("/home/user\n");
    await sandbox.kill();
  }
  expect(withFile.named("E2B_API_KEY")).toBe("");
  for (const one of [printed.program, withFile.program, program]) {
    one.kill("SIGTERM");
    await one;
  }
});
