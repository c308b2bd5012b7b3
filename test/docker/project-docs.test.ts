import { execFileSync } from "node:child_process";
import { chmod, mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { readProjectDocs } from "../../src/agent/context/project-docs.js";
import { openConversation } from "../../src/agent/conversation.js";
import { createResponsesClient } from "../../src/agent/model/responses/responses-client.js";
import type { AgentEvent } from "../../src/agent/turn/events.js";
import type { SandboxMode } from "../../src/sandbox/policy/modes.js";
import type { Sandbox } from "../../src/sandbox/sandbox.js";
import { localProvider, messageDone, respond, startResponsesServer } from "../support/responses-server.js";
import { sandboxTest, temporaryDirectory } from "../support/sandbox.js";

interface Repository {
  root: string;
  cwd: string;
}

async function repository(directory: string): Promise<Repository> {
  const cwd = join(directory, "packages/one");
  await mkdir(cwd, { recursive: true });
  await mkdir(join(directory, ".git"));
  await writeFile(join(directory, ".git/HEAD"), "ref: refs/heads/main\n");
  return { root: directory, cwd };
}

function docsOf(sandbox: Sandbox, cwd: string) {
  return readProjectDocs({ homes: [], cwd, isOnHost: true, files: () => Promise.resolve(sandbox.files) });
}

describe("AGENTS.md files in a real container", () => {
  const modes: SandboxMode[] = ["read-only", "workspace-write", "danger-full-access"];

  for (const mode of modes)
    sandboxTest(`are read from the root down under ${mode}`, async ({ open, directory }) => {
      const { root, cwd } = await repository(directory);
      await writeFile(join(root, "AGENTS.md"), "root");
      await writeFile(join(cwd, "AGENTS.override.md"), "one");
      await writeFile(join(cwd, "AGENTS.md"), "not this");
      const sandbox = await open({ workspace: root, mode });
      expect(await docsOf(sandbox, cwd)).toEqual({ text: "root\n\none", warnings: [] });
    });

  sandboxTest("that are links are followed inside, never on the host", async ({ open, directory }) => {
    const { root, cwd } = await repository(directory);
    const secret = `${directory}-secret`;
    await writeFile(secret, "the host's own");
    await symlink(secret, join(root, "AGENTS.md"));
    await symlink("/etc/os-release", join(cwd, "AGENTS.md"));
    const sandbox = await open({ workspace: root });
    const { stdout } = await sandbox.exec(["cat", "/etc/os-release"]);
    const { text, warnings } = await docsOf(sandbox, cwd);
    execFileSync("rm", [secret]);
    expect(text).toBe(stdout);
    expect(warnings).toEqual([
      `${root}/AGENTS.md is not used: the sandbox, whose workspace is ${cwd}, does not have it`,
    ]);
  });

  sandboxTest("that are none to read are told of, and not waited for", async ({ open, directory }) => {
    const { root, cwd } = await repository(directory);
    const middle = join(root, "packages");
    await writeFile(join(root, "AGENTS.md"), "secret");
    await chmod(join(root, "AGENTS.md"), 0);
    execFileSync("mkfifo", [join(middle, "AGENTS.override.md")]);
    await mkdir(join(middle, "AGENTS.md"));
    await writeFile(join(cwd, "AGENTS.md"), Buffer.from("caf\xe9 ", "latin1"));
    await truncate(join(cwd, "AGENTS.md"), 2 ** 40);
    const sandbox = await open({ workspace: root });
    const { text, warnings } = await docsOf(sandbox, cwd);
    expect(text).toMatch(/^caf\ufffd \0+$/);
    expect(warnings).toEqual([
      expect.stringMatching(/^.*\/AGENTS\.md is not used: .*permission denied$/),
      expect.stringMatching(/packages\/AGENTS\.override\.md is not used: .*not a regular file/),
      expect.stringMatching(/packages\/AGENTS\.md is not used: /),
      expect.stringMatching(/one\/AGENTS\.md is cut after 32768 bytes/),
      expect.stringMatching(/one\/AGENTS\.md is not UTF-8 text/),
    ]);
  });

  sandboxTest("of no repository are the working directory's alone", async ({ open }) => {
    // In /tmp the real Codex, which other tests run, leaves a .git.
    await using outside = await temporaryDirectory("/var/tmp");
    const directory = outside.path;
    const cwd = join(directory, "a/b");
    await mkdir(cwd, { recursive: true });
    await writeFile(join(directory, "AGENTS.md"), "root");
    await writeFile(join(cwd, "AGENTS.md"), "b");
    // Under workspace-write there is an empty .git in the container.
    const sandbox = await open({ workspace: directory, mode: "workspace-write" });
    expect(await docsOf(sandbox, cwd)).toEqual({ text: "b", warnings: [] });
  });

  sandboxTest("reach the model with the first request", async ({ open, directory }) => {
    await writeFile(join(directory, "AGENTS.md"), "Use tabs.");
    await using server = await startResponsesServer([respond(messageDone("ok"))]);
    const events: AgentEvent[] = [];
    const conversation = openConversation({
      model: createResponsesClient({ provider: localProvider(server.url), model: "m", threadId: "t" }),
      sandbox: open({ workspace: directory }),
      setting: {
        cwd: directory,
        sandboxMode: "workspace-write",
        network: { kind: "none" },
        writableRoots: [],
        shell: "bash",
        timezone: "UTC",
      },
      context: { projectDocs: { homes: [], isOnHost: true } },
      onEvent: (event) => events.push(event),
    });
    await conversation.runTurn({ prompt: "hello" });
    await conversation.close();
    expect(server.requests[0]?.body.input[1]).toMatchObject({
      role: "user",
      content: [
        {
          type: "input_text",
          text: `# AGENTS.md instructions for ${directory}\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>`,
        },
        { type: "input_text", text: expect.stringMatching(/^<environment_context>/) },
      ],
    });
    expect(events.filter(({ kind }) => kind === "warning")).toEqual([]);
  });
});
