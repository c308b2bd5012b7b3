import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { showWarnings } from "../../../../src/cli/display/process-warnings.js";
import { BrigError } from "../../../../src/errors.js";

it("a warning of brig is shown in its words, without control sequences, and any other as Node shows it", async () => {
  const stderr = new PassThrough();
  const host = Object.assign(new EventEmitter(), { stderr });
  const shownByNode: Error[] = [];
  host.on("warning", (warning) => shownByNode.push(warning));
  showWarnings(host as unknown as Parameters<typeof showWarnings>[0]);
  const other = new Error("deprecated");
  host.emit("warning", other);
  host.emit(
    "warning",
    new BrigError("not removed: \u001b[2J", { code: "engine.failed", hint: "run brig gc" }),
  );
  stderr.end();
  const shown = await text(stderr);
  expect(shown).toContain("brig: not removed:");
  expect(shown).toContain("\nhint: run brig gc\n");
  expect(shown).not.toContain("\u001b");
  expect(shownByNode).toEqual([other]);
});
