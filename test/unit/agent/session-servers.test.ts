import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SessionServers } from "../../../src/agent/session-servers.js";
import type { AgentEvent } from "../../../src/agent/turn/events.js";
import { openPlainServers, type PlainServer, plainServer } from "../../support/plain-mcp-servers.js";
import { temporaryDirectory } from "../../support/sandbox.js";

const broken: PlainServer = { stderr: "no licence found", exitCode: 3 };

function open(servers: Readonly<Record<string, PlainServer>>) {
  const opened = openPlainServers(servers);
  const session = new SessionServers(opened);
  const events: AgentEvent[] = [];
  const ready = async (signal = new AbortController().signal, onEvent = () => Promise.resolve()) => {
    const emit = (event: AgentEvent) => {
      events.push(event);
      void onEvent();
    };
    await session.ready({ signal, emit });
  };
  return { opened, ready, events };
}

/** Starts once the file exists. */
function waitingFor(file: string): PlainServer {
  const script = 'until [ -e "$1" ]; do sleep 0.02; done; exec "$2" "$3"';
  const args = ["-c", script, "sh", file, process.execPath, plainServer];
  return { settings: { kind: "stdio", command: { command: "sh", args, env: {}, cwd: null } } };
}

/** Never answers, and ends with its input. */
const silent: PlainServer = {
  settings: {
    kind: "stdio",
    command: { command: "sh", args: ["-c", "cat > /dev/null"], env: {}, cwd: null },
  },
};

describe("the MCP servers of a session", () => {
  it("are ready without a word if they have started", async () => {
    const { opened, ready, events } = open({ plain: {} });
    await opened.ready();
    await ready();
    await ready();
    expect(events).toEqual([]);
  });

  it("are named while the session waits for them", async () => {
    await using folder = await temporaryDirectory();
    const file = join(folder.path, "start");
    const { opened, ready, events } = open({ broken, slow: waitingFor(file) });
    await expect.poll(() => opened.servers[0]?.status, { timeout: 30_000 }).toBe("failed");
    await ready(undefined, () => writeFile(file, ""));
    expect(events[0]).toEqual({ kind: "mcp-servers-starting", servers: ["slow"] });
    expect(events.map(({ kind }) => kind)).toEqual(["mcp-servers-starting", "warning"]);
  });

  it("are warned about once if they fail", async () => {
    const { opened, ready, events } = open({ broken, plain: {}, other: broken });
    await opened.ready();
    await ready();
    await ready();
    expect(events).toEqual([
      {
        kind: "warning",
        message: expect.stringMatching(/"broken"[\s\S]*no licence found\nhint: check its command/),
      },
      { kind: "warning", message: expect.stringContaining('"other"') },
    ]);
  });

  it("fail with a required one", async () => {
    const { opened, ready, events } = open({
      plain: {},
      broken: { ...broken, settings: { required: true } },
    });
    await opened.ready().catch(() => undefined);
    await expect(ready()).rejects.toMatchObject({
      code: "mcp.start-failed",
      message: expect.stringContaining("no licence found"),
    });
    expect(events).toEqual([]);
  });

  it("are no longer waited for once the session is stopped", async () => {
    const { ready, events } = open({ slow: silent });
    const stop = new AbortController();
    const over = new Error("over");
    await expect(
      ready(stop.signal, () => {
        stop.abort(over);
        return Promise.resolve();
      }),
    ).rejects.toBe(over);
    expect(events).toEqual([{ kind: "mcp-servers-starting", servers: ["slow"] }]);
  });
});
