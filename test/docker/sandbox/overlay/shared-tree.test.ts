import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { startInOwnContainer } from "../../../../src/agent/mcp/launch/own-container.js";
import { readEnvironment } from "../../../../src/lib/env.js";
import { type OpenedSandbox, openSandbox } from "../../../../src/sandbox/open-sandbox.js";
import { type Sandbox, sandboxFrom } from "../../../../src/sandbox/sandbox.js";
import {
  holdTree,
  resolveSettings,
  withFullAccess,
} from "../../../../src/sandbox/settings/resolve-settings.js";
import type { SandboxSettings } from "../../../../src/sandbox/settings/sandbox-settings.js";
import { testEngine } from "../../../support/engine.js";
import { sandboxTest as it } from "../../../support/sandbox.js";

async function settingsFor(workspace: string, more: object = {}): Promise<SandboxSettings> {
  return await resolveSettings({
    workspace,
    workspaceKind: "overlay",
    environment: readEnvironment(),
    ...more,
  });
}

async function start(settings: SandboxSettings): Promise<Sandbox> {
  const opened: OpenedSandbox = await openSandbox(settings, { engine: testEngine() });
  return sandboxFrom(opened);
}

const volumesOf = async (workspace: string) =>
  await (await testEngine()).listVolumes([`brig.workspace=${workspace}`]);

it("is what the second container of an approved command writes to, not the host", async ({ directory }) => {
  writeFileSync(join(directory, "file"), "the host's\n");
  mkdirSync(join(directory, ".git"));
  const settings = await settingsFor(directory);
  await using sandbox = await start(settings);
  await sandbox.exec(["sh", "-c", "echo first > own"]);
  await using escalated = await start(await withFullAccess(settings));
  const script = "cat own; echo escalated > file; echo x > /etc/x; mkdir .git/x";
  const { output } = await escalated.exec(["sh", "-c", script]);
  expect(output).toContain("first\n");
  expect(output).toContain("Read-only file system");
  expect((await sandbox.exec(["cat", "file"])).stdout).toBe("escalated\n");
  expect(readFileSync(join(directory, "file"), "utf8")).toBe("the host's\n");
  expect(readdirSync(directory).toSorted()).toEqual([".git", "file"]);
});

it("is found by a later container even if commands have replaced everything at its top", async ({
  directory,
}) => {
  writeFileSync(join(directory, "file"), "the host's\n");
  const settings = await settingsFor(directory);
  await using sandbox = await start(settings);
  await sandbox.exec(["sh", "-c", "echo replaced > new && mv new file"]);
  await using later = await start(await withFullAccess(settings));
  expect((await later.exec(["cat", "file"])).stdout).toBe("replaced\n");
});

it("is read-only for the commands of a read-only session, but not for those that were approved", async ({
  directory,
}) => {
  const settings = await settingsFor(directory, { mode: "read-only" });
  await using sandbox = await start(settings);
  const refused = await sandbox.exec(["sh", "-c", "echo x > file"]);
  expect(refused.output).toContain("Read-only file system");
  await using escalated = await start(await withFullAccess(settings));
  expect((await escalated.exec(["sh", "-c", "echo approved > file"])).exitCode).toBe(0);
  expect((await sandbox.exec(["cat", "file"])).stdout).toBe("approved\n");
  expect(readdirSync(directory)).toEqual([]);
});

it("is what MCP servers in containers of their own see", async ({ directory }) => {
  const settings = await settingsFor(directory);
  await using sandbox = await start(settings);
  await sandbox.exec(["sh", "-c", "echo of the session > file"]);
  const server = await startInOwnContainer(
    "writer",
    { command: "sh", args: ["-c", "cat file; echo of the server > file"], env: {}, cwd: null },
    {
      place: { kind: "own", image: null, network: "none" },
      signal: new AbortController().signal,
      engine: async () => await testEngine(),
      settings: async () => settings,
    },
  );
  const output: Buffer[] = [];
  server.stdout.on("data", (data: Buffer) => output.push(data));
  await server.exited;
  await server.kill();
  expect(Buffer.concat(output).toString()).toBe("of the session\n");
  expect((await sandbox.exec(["cat", "file"])).stdout).toBe("of the server\n");
  expect(readdirSync(directory)).toEqual([]);
});

it("lasts while somebody holds it, so that the next sandbox goes on with it", async ({ directory }) => {
  const settings = await settingsFor(directory);
  const letGo = holdTree(settings);
  const first = await start(settings);
  await first.exec(["sh", "-c", "echo kept > file"]);
  await first.close();
  const second = await start({ ...settings, policy: (await withFullAccess(settings)).policy });
  expect((await second.exec(["cat", "file"])).stdout).toBe("kept\n");
  await second.close();
  expect(await volumesOf(directory)).toHaveLength(3);
  await letGo?.();
  expect(await volumesOf(directory)).toEqual([]);
});

it("is recognised by the next sandbox, whatever the first has made of its files", async ({ directory }) => {
  writeFileSync(join(directory, "only"), "the host's\n");
  const settings = await settingsFor(directory);
  await using first = await start(settings);
  await first.exec(["sh", "-c", "rm only; echo another > only"]);
  await using second = await start(settings);
  expect((await second.exec(["cat", "only"])).stdout).toBe("another\n");
});

it("has other writable directories as they are on the host", async ({ directory }) => {
  const data = join(directory, "deep/data");
  mkdirSync(data, { recursive: true });
  const settings = await settingsFor(directory, { addDirs: [data] });
  await using sandbox = await start(settings);
  const rename = `perl -e 'rename("deep", "moved") or print $!'`;
  const { output } = await sandbox.exec([
    "sh",
    "-c",
    `echo shared > deep/data/file; echo own > deep/file; ${rename}`,
  ]);
  expect(output).toBe("Invalid cross-device link");
  expect(readFileSync(join(data, "file"), "utf8")).toBe("shared\n");
  expect(readdirSync(join(directory, "deep"))).toEqual(["data"]);
});
