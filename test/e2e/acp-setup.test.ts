import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { AcpClient, type AcpClientOptions } from "../support/acp-client.js";
import { containersOf } from "../support/cli.js";
import { temporaryDirectory } from "../support/sandbox.js";

let [folder, work, home] = ["", "", ""];

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  folder = directory.path;
  [work, home] = [join(folder, "work"), join(folder, "home")];
  for (const one of [work, home]) mkdirSync(one);
});

/** A client of a conversation whose sandbox is set up, and whose only command makes a file. */
async function start(setup: string, options: Partial<AcpClientOptions> = {}) {
  writeFileSync(join(home, "config.toml"), `[setup]\ncommand = ["bash", "-c", ${JSON.stringify(setup)}]\n`);
  const steps = [{ calls: [{ exec_command: { cmd: "touch ran" } }] }, { text: "done" }];
  const script = join(folder, "script.json");
  writeFileSync(script, JSON.stringify({ steps }));
  const client = await AcpClient.start({ cwd: folder, home, args: ["--script", script], ...options });
  onTestFinished(() => client[Symbol.asyncDispose]());
  const session = await client.open(work);
  const call = () => client.of("tool_call").find(({ title }) => title.startsWith("Set up: "));
  const updates = () =>
    client.of("tool_call_update").filter(({ toolCallId }) => toolCallId === call()?.toolCallId);
  return { client, session, call, updates };
}

describe("the set-up of a conversation in an editor", () => {
  it("is shown as a call, with its output while it runs, before the calls of the model", async () => {
    const setup = "echo installing; until [ -e go ]; do sleep 0.05; done; echo installed";
    const { client, session, call, updates } = await start(setup);
    const prompt = client.prompt(session, "go");
    await client.until(() => JSON.stringify(updates()).includes("installing"));
    expect(call()).toMatchObject({ status: "in_progress", kind: "execute", title: `Set up: ${setup}` });
    expect(existsSync(join(work, "ran"))).toBe(false);
    writeFileSync(join(work, "go"), "");
    expect(await prompt).toBe("end_turn");
    expect(updates().at(-1)).toMatchObject({
      status: "completed",
      content: [{ content: { text: "```\ninstalling\ninstalled\n```" } }],
      rawOutput: { exit_code: 0 },
    });
    expect(existsSync(join(work, "ran"))).toBe(true);
    expect(client.of("tool_call").map(({ title }) => title.startsWith("Set up: "))).toContain(true);
  });

  it("shows its output in a terminal where the editor draws one", async () => {
    const { client, session, updates } = await start("echo installed", {
      capabilities: { _meta: { terminal_output: true } },
    });
    expect(await client.prompt(session, "go")).toBe("end_turn");
    const shown = updates().map(({ _meta }) => (_meta?.terminal_output as { data?: string })?.data ?? "");
    expect(shown.join("")).toBe("installed\n");
  });

  it("ends the turn if it fails, with its words", async () => {
    const { client, session, updates } = await start("echo no such package; exit 4");
    const prompt = [{ type: "text", text: "go" }];
    const refusal = await client.refusal("session/prompt", { sessionId: session, prompt });
    expect(refusal.message).toContain("the set-up failed with exit status 4:\nno such package");
    expect(refusal.message).toContain("nothing was run after it");
    expect(updates().at(-1)).toMatchObject({ status: "failed", rawOutput: { exit_code: 4 } });
    expect(existsSync(join(work, "ran"))).toBe(false);
  });

  it("ends when the prompt is cancelled, and is then a failed call", async () => {
    const { client, session, updates } = await start("echo waiting; sleep 1000");
    const prompt = client.prompt(session, "go");
    await client.until(() => JSON.stringify(updates()).includes("waiting"));
    await client.agent.notify("session/cancel", { sessionId: session });
    expect(await prompt).toBe("cancelled");
    await client.until(() => updates().at(-1)?.status === "failed");
    await expect.poll(async () => await containersOf(client.server.pid)).toEqual([]);
    expect(existsSync(join(work, "ran"))).toBe(false);
  });
});
