import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { textMessage } from "../../../src/agent/model/items.js";
import { type SessionSetting, sentContext } from "../../../src/agent/session/setting.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";
import { callDone, created, messageDone, type Reply, respond } from "../../support/responses-server.js";
import { openWireConversation, wireSetting } from "../../support/wire-conversation.js";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "brig-context-")));

afterAll(() => {
  rmSync(folder, { recursive: true });
});

const setting: SessionSetting = { ...wireSetting, cwd: folder };

function open(replies: readonly Reply[], options: Parameters<typeof openWireConversation>[1] = {}) {
  return openWireConversation(replies, { setting, ...options });
}

const ok = respond(messageDone("ok"));

describe("the second turn's request", () => {
  it("begins with what the first one held, word for word, so that the endpoint's cache serves it", async () => {
    await using opened = await open([ok]);
    await opened.conversation.runTurn({ prompt: "one" });
    await opened.conversation.runTurn({ prompt: "two" });
    const [first, second] = opened.requests;
    expect(second?.body.input.slice(0, 3)).toEqual(first?.body.input);
    expect(second?.body.instructions).toBe(first?.body.instructions);
    expect(opened.said(1, 3)).toEqual(["assistant: ok", "user: two"]);
  });

  it("tells what is different, and the third one nothing more", async () => {
    await using opened = await open([ok]);
    await opened.conversation.runTurn({ prompt: "one" });
    opened.clock.now = new Date("2026-11-06T10:00:00Z");
    await opened.conversation.changeSetting({ setting: { ...setting, sandboxMode: "read-only" } });
    await opened.conversation.runTurn({ prompt: "two" });
    await opened.conversation.runTurn({ prompt: "three" });
    expect(opened.said(2, 4)).toEqual([
      expect.stringMatching(/^developer: <permissions instructions>\n`sandbox_mode` is `read-only`/),
      "user: <environment_context>\n  <current_date>2026-11-06</current_date>\n" +
        "  <sandbox_mode>read-only</sandbox_mode>\n  <writable_roots />\n</environment_context>",
      "user: two",
      "assistant: ok",
      "user: three",
    ]);
  });
});

describe("a resumed conversation", () => {
  const initialItems = [textMessage("user", "earlier")];

  it("tells only what is different from what its items tell", async () => {
    const context = sentContext({ ...setting, network: { kind: "full" } }, new Date("2026-11-05T09:00:00Z"));
    await using opened = await open([ok], { initialItems, sentContext: context });
    await opened.conversation.runTurn({ prompt: "go on" });
    expect(opened.said(0)).toEqual([
      "user: earlier",
      expect.stringMatching(/^developer: <permissions instructions>[\s\S]*Network access is restricted/),
      'user: <environment_context>\n  <network enabled="false" />\n</environment_context>',
      "user: go on",
    ]);
  });

  it("tells everything where nobody knows what its items tell", async () => {
    await using opened = await open([ok], { initialItems });
    await opened.conversation.runTurn({ prompt: "go on" });
    expect(opened.said(0)).toEqual([
      "user: earlier",
      expect.stringMatching(/^developer: <permissions instructions>/),
      expect.stringMatching(/^user: <environment_context>\n {2}<cwd>/),
      "user: go on",
    ]);
  });
});

describe("what the user's files say", () => {
  function directory(name: string, text: string): string {
    const path = join(folder, name);
    mkdirSync(path);
    writeFileSync(join(path, "AGENTS.md"), text);
    return path;
  }

  const context = { projectDocs: { homes: [], isOnHost: true } };

  it("comes with the first request, and of another directory with the turn that moved there", async () => {
    const one = directory("one", "Use tabs.");
    const two = directory("two", "Use spaces.");
    await using opened = await open([ok], { setting: { ...setting, cwd: one }, context });
    await opened.conversation.runTurn({ prompt: "one" });
    expect(opened.said(0, 1)?.[0]).toContain(`# AGENTS.md instructions for ${one}\n`);
    await opened.conversation.changeSetting({ setting: { ...setting, cwd: two } });
    await opened.conversation.runTurn({ prompt: "two" });
    await opened.conversation.runTurn({ prompt: "three" });
    expect(opened.said(1, 5)?.[0]).toMatch(/^user: # AGENTS.md instructions for .*\/two\n[\s\S]*Use spaces/);
    expect(JSON.stringify(opened.said(2)).split("AGENTS.md")).toHaveLength(3);
  });

  it("comes after what the user wants of every session", async () => {
    const six = directory("six", "Use tabs.");
    const options = { context: { ...context, userInstructions: "Be brief." } };
    await using opened = await open([ok], { setting: { ...setting, cwd: six }, ...options });
    await opened.conversation.runTurn({ prompt: "one" });
    expect(opened.said(0, 1)[0]).toContain("<INSTRUCTIONS>\nBe brief.\n\nUse tabs.\n</INSTRUCTIONS>");
  });

  it("is told of as a warning where it cannot be used, after the turn has begun", async () => {
    const three = join(folder, "three");
    mkdirSync(join(three, "AGENTS.md"), { recursive: true });
    await using opened = await open([ok], { setting: { ...setting, cwd: three }, context });
    const result = await opened.conversation.runTurn({ prompt: "one" });
    expect(result.status).toBe("completed");
    const kinds = opened.events.map(({ kind }) => kind);
    expect(kinds.indexOf("warning")).toBeGreaterThan(kinds.indexOf("turn-started"));
    expect(opened.events.find((event) => event.kind === "warning")?.message).toContain(
      "AGENTS.md is not used",
    );
  });

  it("is no reason to wait for the sandbox where there is none", async () => {
    let hasAsked = () => false;
    const cwd = join(folder, "four");
    mkdirSync(cwd);
    await using opened = await open([ok], {
      setting: { ...setting, cwd },
      context,
      sandbox: async () => {
        while (!hasAsked()) await sleep(5);
        return new MemorySandbox();
      },
    });
    hasAsked = () => opened.requests.length > 0;
    const result = await opened.conversation.runTurn({ prompt: "one" });
    expect(result.status).toBe("completed");
  });

  it("does not keep an interruption waiting for a sandbox that does not come", async () => {
    const five = directory("five", "Use tabs.");
    await using opened = await open([ok], {
      setting: { ...setting, cwd: five },
      context,
      sandbox: new Promise(() => undefined),
    });
    const result = await opened.conversation.runTurn({ prompt: "one", signal: AbortSignal.timeout(50) });
    expect(result.status).toBe("interrupted");
    expect(opened.requests).toEqual([]);
    expect(JSON.stringify(opened.records)).toContain('"type":"user_message","message":"one"');
  });
});

describe("after an interruption", () => {
  const hang: Reply = {
    kind: "stream",
    events: [created(), callDone("c1", "shell", { command: ["sleep", "60"] }), messageDone("and then")],
    ending: "hang",
  };

  it("the next turn goes on with the output of the call and a word about what happened", async () => {
    const stop = new AbortController();
    await using opened = await open([hang, ok]);
    const turn = opened.conversation.runTurn({ prompt: "one", signal: stop.signal });
    while (!opened.events.some(({ kind }) => kind === "command-started")) await sleep(5);
    stop.abort();
    expect((await turn).status).toBe("interrupted");
    expect((await opened.conversation.runTurn({ prompt: "two" })).status).toBe("completed");
    expect(opened.said(1, 2)).toEqual([
      "user: one",
      "function_call",
      "assistant: and then",
      "function_call_output",
      expect.stringMatching(/^user: <turn_aborted>\n.*\n<\/turn_aborted>$/),
      "user: two",
    ]);
    expect(opened.requests[1]?.body.input[5]).toMatchObject({
      call_id: "c1",
      output: expect.stringMatching(/^Wall time: .*\naborted by user$/),
    });
  });

  it("of a turn in which nothing had begun the next one works as well", async () => {
    await using opened = await open([ok]);
    const stopped = await opened.conversation.runTurn({ prompt: "one", signal: AbortSignal.abort() });
    expect(stopped.status).toBe("interrupted");
    expect((await opened.conversation.runTurn({ prompt: "two" })).status).toBe("completed");
    expect(opened.said(0)?.filter((text) => text.includes("environment_context"))).toHaveLength(1);
    expect(opened.said(0)?.at(-1)).toBe("user: two");
  });
});
