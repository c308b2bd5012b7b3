import { hostname } from "node:os";
import { expect, it } from "vitest";
import { commands } from "../../../../src/cli/command-list.js";
import { runProgram } from "../../../../src/cli/program.js";
import { ownerOf, readHostProcesses } from "../../../../src/lib/owner.js";
import { writeRecord } from "../../../../src/sandbox/sandbox-records.js";
import { temporaryFolder } from "../../../support/batch-runs.js";
import { testContext } from "../../../support/cli-context.js";

async function ps(home: string, ...argv: string[]) {
  const context = testContext({ variables: { BRIG_HOME: home } });
  const status = await runProgram(["ps", ...argv], { context, commands });
  return { status, ...context.written() };
}

/** A sandbox of this process, on an engine that does not answer. */
async function homeWithOne(): Promise<string> {
  const home = await temporaryFolder();
  writeRecord(home, {
    sessionId: "00000000-0000-4000-8000-000000000001",
    owner: await ownerOf(process.pid, await readHostProcesses(hostname())),
    endpoint: "unix:///there/is/no.sock",
    containerId: "c",
    placeholders: [],
    about: {
      mode: "workspace-write",
      network: "none",
      image: "brig/base",
      workspace: "/work\u001b[2J",
      createdAt: "2026-01-02T03:04:05.000Z",
    },
  });
  return home;
}

it("brig ps without sandboxes says so, and prints an empty array as JSON", async () => {
  const home = await temporaryFolder();
  expect(await ps(home)).toEqual({ status: null, stdout: "", stderr: "no sandbox is running\n" });
  expect(await ps(home, "--json", "--all")).toEqual({ status: null, stdout: "[]\n", stderr: "" });
});

it("brig ps prints a table, in which a state that the engine has not confirmed has a question mark", async () => {
  const { stdout, stderr } = await ps(await homeWithOne());
  const [header = "", row = ""] = stdout.split("\n");
  expect(header.split(/ {2,}/)).toEqual([
    "NAME",
    "SANDBOX",
    "STATE",
    "MODE",
    "NETWORK",
    "IMAGE",
    "CREATED",
    "WORKSPACE",
    "COMMAND",
  ]);
  expect(row).toMatch(
    /^ *00000000 {2}running\? +workspace-write +none +brig\/base +2026-01-02 03:04 +\/work/,
  );
  expect(row).not.toContain("\u001b");
  expect(stderr).toContain("does not say of every sandbox");
});

it("brig ps --json has the fields that other programs rely on", async () => {
  const { stdout } = await ps(await homeWithOne(), "--json");
  expect(Object.keys(JSON.parse(stdout)[0])).toEqual([
    "name",
    "id",
    "state",
    "mode",
    "network",
    "image",
    "workspace",
    "createdAt",
    "confirmed",
  ]);
});
