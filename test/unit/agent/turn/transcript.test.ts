import { expect, it } from "vitest";
import type { SessionRecord } from "../../../../src/agent/session/write/session-file.js";
import type { AgentEvent } from "../../../../src/agent/turn/events.js";
import { Transcript } from "../../../../src/agent/turn/transcript.js";

it("hides the secrets of all sandboxes in records, events and what the model reads of outputs", () => {
  const records: SessionRecord[] = [];
  const events: AgentEvent[] = [];
  const transcript = new Transcript({
    log: { path: null, trouble: null, append: (record) => void records.push(record), close: () => undefined },
    onEvent: (event) => void events.push(event),
    truncation: { mode: "tokens", limit: 1000 },
    fixedTokens: 0,
  });
  transcript.maskWith((text) => text.replaceAll("first", "*****"));
  transcript.maskWith((text) => text.replaceAll("second", "******"));
  transcript.recordItem({ type: "function_call", name: "f", arguments: "{}", call_id: "1" });
  transcript.recordItem({ type: "function_call_output", call_id: "1", output: "first, second" });
  transcript.keep({ type: "brig.call", payload: { text: ["first"] } });
  transcript.emit({ kind: "warning", message: "second" });
  expect(transcript.toInput().at(-1)).toMatchObject({ output: "*****, ******" });
  expect(JSON.stringify(records)).toContain("*****, ******");
  expect(JSON.stringify([records, events])).not.toMatch(/first|second/);
});
