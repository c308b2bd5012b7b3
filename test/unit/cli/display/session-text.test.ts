import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { readSessionLines } from "../../../../src/agent/session/read/session-lines.js";
import { stepsOf } from "../../../../src/agent/session/read/session-steps.js";
import { shownStep } from "../../../../src/cli/display/session-text.js";

const rows = Array.from({ length: 6 }, (_, at) => `row ${at + 1}`).join("\n");
const said = `The conversation was compacted. ${rows}`;

/** The steps of a session that has one record besides its head. */
async function shown(type: string, payload: object): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), "brig-session-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const path = join(home, "session.jsonl");
  writeFileSync(path, `${JSON.stringify({ timestamp: "2026-01-01T00:00:00.000Z", type, payload })}\n`);
  let text = "";
  for await (const step of stepsOf(readSessionLines(path))) text += shownStep(step, { full: false });
  return text;
}

it("what a summary says is shown", async () => {
  expect(await shown("compacted", { message: rows })).toContain("    row 6\n");
});

it("instructions that begin as a summary does are shown by their first line", async () => {
  const content = [{ type: "input_text", text: said }];
  const text = await shown("response_item", { type: "message", role: "developer", content });
  expect(text).toContain("    The conversation was compacted. row 1 … ");
  expect(text).not.toContain("row 6");
});
