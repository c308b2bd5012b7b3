import { expect, it } from "vitest";
import { openConversation } from "../../../../src/agent/conversation.js";
import { messageText } from "../../../../src/agent/model/items.js";
import type { ModelRequest } from "../../../../src/agent/model/model-client.js";
import { parseScript } from "../../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../../src/agent/model/script/scripted-client.js";
import type { AgentEvent } from "../../../../src/agent/turn/events.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

/** Real processes of this machine, in a directory that there is. */
function open({ cwd = "/", steps = "  - text: First.\n" } = {}) {
  const events: AgentEvent[] = [];
  const requests: ModelRequest[] = [];
  const client = createScriptedClient(parseScript(`steps:\n${steps}`, "play.yaml", { hasManyTurns: true }));
  const conversation = openConversation({
    model: {
      ...client,
      stream(request, signal) {
        requests.push(request);
        return client.stream(request, signal);
      },
    },
    sandbox: () => Promise.resolve(new MemorySandbox()),
    setting: {
      ...{ cwd, sandboxMode: "workspace-write", network: { kind: "none" as const } },
      ...{ writableRoots: [], shell: "bash", timezone: "UTC" },
    },
    truncation: { mode: "bytes", limit: 2000 },
    onEvent: (event) => void events.push(event),
  });
  const told = () =>
    (requests[0]?.input ?? [])
      .flatMap((item) => (item.type === "message" ? [messageText(item)] : []))
      .filter((text) => text.startsWith("<user_shell_command>"));
  return { conversation, events, told };
}

it("has the events of a call, runs with the variables of the model's commands, and is told with the next turn", async () => {
  const { conversation, events, told } = open();
  const script = `echo one; echo two >&2; echo $CODEX_SANDBOX_NETWORK_DISABLED $CODEX_THREAD_ID; exit 3`;
  expect(await conversation.runUserCommand(script)).toBe(3);
  const others = ["sandbox-ready", "command-output"];
  const kinds = events.map(({ kind }) => kind).filter((kind) => !others.includes(kind));
  expect(kinds).toEqual([
    "session-started",
    "call-started",
    "command-started",
    "command-ended",
    "call-ended",
  ]);
  expect(events.find(({ kind }) => kind === "call-started")).toMatchObject({ name: "user_shell_command" });
  expect(events.at(-1)).toMatchObject({ kind: "call-ended", success: false });
  await conversation.runTurn({ prompt: "well" });
  await conversation.close();
  expect(told()).toHaveLength(1);
  expect(told()[0]?.replace(/Duration: \d+\.\d{4} seconds/, "Duration: …")).toBe(
    `<user_shell_command>
<command>
${script}
</command>
<result>
Exit code: 3
Duration: …
Output:
one
two
1 ${conversation.threadId}

</result>
</user_shell_command>`,
  );
});

it("is told cut to what the model reads of an output, which cannot end its element", async () => {
  const { conversation, told } = open();
  await conversation.runUserCommand("echo '</result></USER_shell_command>'; seq 10000");
  await conversation.runTurn({ prompt: "well" });
  await conversation.close();
  const [text = ""] = told();
  expect(text.length).toBeLessThan(2500);
  expect(text).toMatch(/truncated[\s\S]*\n10000\n\n<\/result>\n<\/user_shell_command>$/);
  expect(text.match(/<\/result>/gi)).toHaveLength(1);
  expect(text.match(/<\/user_shell_command>/gi)).toHaveLength(1);
});

it("is stopped by its signal, and told with the output until then", async () => {
  const { conversation, events, told } = open();
  const stop = new AbortController();
  const running = conversation.runUserCommand("echo begun; sleep 600", { signal: stop.signal });
  await expect.poll(() => events.some(({ kind }) => kind === "command-output")).toBe(true);
  stop.abort(new Error("interrupted"));
  expect(await running).toBeNull();
  expect((await conversation.sandbox) as unknown as MemorySandbox).toMatchObject({ runningCount: 0 });
  expect(events.at(-1)).toMatchObject({ kind: "call-ended", success: false });
  expect(events.some(({ kind }) => kind === "command-ended")).toBe(false);
  await conversation.runTurn({ prompt: "well" });
  await conversation.close();
  expect(told()[0]).toContain(
    "Exit code: -1\nDuration: 0.0000 seconds\nOutput:\nbegun\ncommand aborted by user\n",
  );
});

it("says why it could not start", async () => {
  const { conversation, told } = open({ cwd: "/nothing/there" });
  expect(await conversation.runUserCommand("true")).toBe(127);
  await conversation.runTurn({ prompt: "well" });
  await conversation.close();
  expect(told()[0]).toMatch(/Exit code: 127\n[\s\S]*\/nothing\/there cannot be entered/);
});

it("is refused during a turn, and a turn while it runs", async () => {
  const { conversation } = open();
  const stop = new AbortController();
  const running = conversation.runUserCommand("sleep 600", { signal: stop.signal });
  await expect(conversation.runTurn({ prompt: "well" })).rejects.toThrow(TypeError);
  stop.abort();
  await running.catch(() => undefined);
  const turn = conversation.runTurn({ prompt: "well" });
  await expect(conversation.runUserCommand("true")).rejects.toThrow(TypeError);
  await turn;
  await conversation.close();
});
