import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { terminalApprover } from "../../../../src/cli/questions/ask-approval.js";
import { askInTurn } from "../../../../src/cli/questions/ask-in-turn.js";
import { terminalUser } from "../../../../src/cli/questions/ask-user.js";
import { approvalRequest } from "../../../support/approval-request.js";

const request = approvalRequest({ argv: ["curl", "evil"] });
const questions = [
  { id: "tea", header: "Tea", question: "Type y for tea.", options: [{ label: "y", description: "tea" }] },
];

function openTerminal() {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 80, rows: 24 });
  let shown = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    shown += text;
  });
  const streams = { stdin, stderr, suspend: () => undefined };
  const askers = askInTurn({
    user: terminalUser(streams),
    approver: terminalApprover(streams, { usesColour: false, settleMs: 20 }),
  });
  const shows = async (text: string) => {
    while (!shown.includes(text)) await sleep(2);
  };
  return { ...askers, stdin, shows, shown: () => shown };
}

describe("a person whom a model asks while it waits for an approval", () => {
  it("approves nothing with the answer to the model's question", async () => {
    const { user, approver, stdin, shows, shown } = openTerminal();
    const answers = user.ask(questions, {});
    const approval = approver.ask(request, { signal: undefined });
    await shows("or your own answer: ");
    await sleep(60);
    expect(shown()).not.toContain("curl evil");
    stdin.write("y\n");
    expect(await answers).toEqual({ tea: ["y"] });
    await shows("Answer (Enter is no): ");
    stdin.write("n");
    expect(await approval).toBe("denied");
  });

  it("is not asked by the model before the approval is answered", async () => {
    const { user, approver, stdin, shows, shown } = openTerminal();
    const approval = approver.ask(request, { signal: undefined });
    await shows("Answer (Enter is no): ");
    const stop = new AbortController();
    const answers = user.ask(questions, { signal: stop.signal });
    await sleep(60);
    expect(shown()).not.toContain("tea");
    stop.abort(new Error("enough"));
    await expect(answers).rejects.toThrow("enough");
    stdin.write("n");
    expect(await approval).toBe("denied");
  });
});
