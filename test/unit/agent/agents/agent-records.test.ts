import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { ResponseItem } from "../../../../src/agent/model/items.js";
import { findLastSession, findSessionFiles } from "../../../../src/agent/session/read/session-index.js";
import { openSessionFile } from "../../../../src/agent/session/write/session-file.js";
import {
  inOrder,
  lastOutputs,
  openPlayed,
  playing,
  spawnedId,
  userTexts,
  waitForIt,
} from "../../../support/played-agents.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

const threadId = "01a20000-0000-7000-8000-000000000001";

async function recorded(home: string) {
  return {
    threadId,
    session: await openSessionFile({ home, threadId, now: () => new Date() }),
    agents: { home },
  };
}

describe("the session file of an agent", () => {
  it("names its parent, and a session is continued with --last, not one of its agents", async () => {
    await using directory = await temporaryDirectory();
    const { conversation } = openPlayed(
      inOrder({ calls: [["spawn_agent", { message: "a", agent_type: "explorer" }]] }, waitForIt, {
        text: "done",
      }),
      [inOrder({ text: "found" })],
      await recorded(directory.path),
    );
    await conversation.runTurn({ prompt: "go" });
    await conversation.close();
    const files = await findSessionFiles(directory.path);
    expect(files).toHaveLength(2);
    const child = files.find(({ id }) => id !== threadId);
    const [first = ""] = (await readFile(child?.path ?? "", "utf8")).split("\n");
    expect(JSON.parse(first).payload).toMatchObject({
      parent_thread_id: threadId,
      agent_nickname: "Ada",
      agent_role: "explorer",
      source: { subagent: { thread_spawn: { parent_thread_id: threadId, depth: 1, agent_path: null } } },
    });
    expect((await findLastSession(directory.path, { cwd: null }))?.id).toBe(threadId);
  });

  it("is what resume_agent opens a closed agent from, with all that it knew", async () => {
    await using directory = await temporaryDirectory();
    const { conversation, model, children } = openPlayed(
      inOrder(
        { calls: [["spawn_agent", { message: "remember 42" }]] },
        waitForIt,
        (request) => ({ calls: [["close_agent", { target: spawnedId(request) }]] }),
        (request) => ({ calls: [["resume_agent", { id: spawnedId(request) }]] }),
        (request) => ({ calls: [["send_input", { target: spawnedId(request), message: "which number?" }]] }),
        waitForIt,
        { text: "done" },
      ),
      [inOrder({ text: "noted" }), inOrder({ text: "42" })],
      await recorded(directory.path),
    );
    await conversation.runTurn({ prompt: "go" });
    await conversation.close();
    const outputs = lastOutputs(model);
    expect(outputs[3]).toBe('{"status":"pending_init"}');
    expect(outputs.at(-1)).toContain('{"completed":"42"}');
    const texts = userTexts(children[1]?.requests[0]);
    expect(texts).toEqual(expect.arrayContaining(["remember 42", "which number?"]));
    const files = await findSessionFiles(directory.path);
    expect(files).toHaveLength(2);
  });

  it.each([
    ["that is still allowed, with its reasoning", ["small"], "small", 1],
    ["that is allowed no more, as the session's own one without its reasoning", [], "scripted", 0],
  ])("is continued with the model %s", async (_, modelsLater, name, reasoning) => {
    await using directory = await temporaryDirectory();
    const thought: ResponseItem = { type: "reasoning", summary: [], encrypted_content: "secret" };
    const opened: ReturnType<typeof playing>[] = [];
    const agents = {
      home: directory.path,
      models: ["small"],
      openModel: ({ model }: { model: string }) => {
        opened.push(playing(inOrder({ text: "said" }), model, [thought]));
        return Promise.resolve(opened.at(-1)!);
      },
    };
    const first = openPlayed(
      inOrder({ calls: [["spawn_agent", { message: "a", model: "small" }]] }, waitForIt, { text: "done" }),
      [],
      { ...(await recorded(directory.path)), agents },
    );
    await first.conversation.runTurn({ prompt: "go" });
    await first.conversation.close();
    const id = spawnedId(first.model.requests.at(-1)!);
    const wait = { calls: [["wait_agent", { targets: [id] }]] as [string, object][] };
    const second = openPlayed(
      inOrder(
        { calls: [["resume_agent", { id }]] },
        { calls: [["send_input", { target: id, message: "b" }]] },
        wait,
        { text: "done" },
      ),
      [],
      { threadId, agents: { ...agents, models: modelsLater } },
    );
    await second.conversation.runTurn({ prompt: "go on" });
    await second.conversation.close();
    expect(opened.map(({ model }) => model)).toEqual(["small", name]);
    const sent = opened[1]?.requests[0]?.input ?? [];
    expect(sent.filter(({ type }) => type === "reasoning")).toHaveLength(reasoning);
  });

  it("is not opened for another session", async () => {
    await using directory = await temporaryDirectory();
    const first = openPlayed(
      inOrder({ calls: [["spawn_agent", { message: "a" }]] }, waitForIt, { text: "done" }),
      [inOrder({ text: "secret" })],
      await recorded(directory.path),
    );
    await first.conversation.runTurn({ prompt: "go" });
    await first.conversation.close();
    const id = spawnedId(first.model.requests.at(-1)!);
    const other = openPlayed(
      inOrder(
        {
          calls: [
            ["resume_agent", { id }],
            ["resume_agent", { id: threadId }],
          ],
        },
        { text: "done" },
      ),
      [],
      { agents: { home: directory.path } },
    );
    await other.conversation.runTurn({ prompt: "go" });
    await other.conversation.close();
    expect(lastOutputs(other.model)).toEqual([
      `agent with id ${id} not found`,
      `agent with id ${threadId} not found`,
    ]);
  });
});
