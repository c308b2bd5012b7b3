import { once } from "node:events";
import { createModelClient, noCredentials, openConversation, openSessionFile, Sandbox } from "brigbox";

/** What the parent sends: one session of so many turns. */
export interface LongSessionOrder {
  url: string;
  home: string;
  workspace: string;
  runtime: string | undefined;
  turns: number;
}

export interface LongSessionMeasures {
  /** Milliseconds of each turn. */
  turnsMs: number[];
  /** The most that was resident after any turn. */
  memoryMb: number;
}

const [order] = (await once(process, "message")) as [LongSessionOrder];
process.send?.(await runSession(order));
process.disconnect();

async function runSession({
  url,
  home,
  workspace,
  runtime,
  turns,
}: LongSessionOrder): Promise<LongSessionMeasures> {
  const threadId = "bench-long-session";
  const conversation = openConversation({
    model: createModelClient({
      provider: {
        id: "bench",
        wireApi: "responses",
        baseUrl: url,
        credentials: noCredentials,
        headers: {},
        query: {},
        maxRequestRetries: 0,
        maxStreamRetries: 0,
        streamIdleTimeoutMs: 60_000,
      },
      model: "gpt-5-codex",
      threadId,
    }),
    sandbox: () => Sandbox.create({ workspace, runtime }),
    setting: {
      cwd: workspace,
      sandboxMode: "workspace-write",
      network: { kind: "none" },
      writableRoots: [],
      shell: "bash",
      timezone: "UTC",
    },
    session: await openSessionFile({ home, threadId, now: () => new Date() }),
    threadId,
  });
  const measures: LongSessionMeasures = { turnsMs: [], memoryMb: 0 };
  try {
    for (let turn = 1; turn <= turns; turn++) {
      const startedAt = performance.now();
      const { status, error } = await conversation.runTurn({
        prompt: `This is turn ${turn}. Call true again.`,
      });
      if (status !== "completed") throw error ?? new Error(`turn ${turn} was ${status}`);
      measures.turnsMs.push(performance.now() - startedAt);
      measures.memoryMb = Math.max(measures.memoryMb, process.memoryUsage.rss() / 1e6);
    }
  } finally {
    await conversation.close();
  }
  return measures;
}
