import { PassThrough } from "node:stream";
import fc from "fast-check";
import { expect, it } from "vitest";
import { LiveRows } from "../../../../src/cli/display/live-rows.js";
import { Screen } from "../../../support/screen.js";

const size = { rows: 10, cols: 20 };

function open() {
  const target = new PassThrough();
  const screen = new Screen(size);
  const show = async () => await screen.write(String(target.read() ?? "").replaceAll("\n", "\r\n"));
  return { live: new LiveRows(target), screen, show, written: () => String(target.read() ?? "") };
}

const row = fc.stringMatching(/^[a-z]{0,19}$/);
const drawing = fc
  .record({ lines: fc.array(row, { maxLength: 4 }), rows: fc.array(row, { minLength: 1, maxLength: 8 }) })
  .chain(({ lines, rows }) =>
    fc.record({
      lines: fc.constant(lines),
      rows: fc.constant(rows),
      cursor: fc.option(fc.record({ x: fc.nat(size.cols - 1), y: fc.nat(rows.length - 1) }), { freq: 3 }),
    }),
  );

it("shows all lines, then only the last rows, and the cursor in its place", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(drawing, { minLength: 1, maxLength: 6 }), async (drawings) => {
      const { live, screen, show } = open();
      for (const { lines, rows, cursor } of drawings) live.draw(lines, rows, cursor);
      await show();
      const { rows, cursor } = drawings.at(-1) ?? { rows: [], cursor: null };
      const shown = [...drawings.flatMap(({ lines }) => lines), ...rows];
      const seen = screen.history.map((each) => each.trimEnd());
      expect(seen.slice(0, shown.length)).toEqual(shown);
      expect(seen.slice(shown.length).join("")).toBe("");
      if (cursor === null) return;
      const scrolledAway = screen.terminal.buffer.active.baseY;
      expect(screen.cursor).toEqual({
        row: shown.length - rows.length + cursor.y - scrolledAway,
        column: cursor.x,
      });
    }),
  );
});

it("writes nothing where nothing changes, and moves the cursor alone", async () => {
  const { live, screen, show, written } = open();
  live.draw([], ["one", "two"], { x: 0, y: 0 });
  await show();
  live.draw([], ["one", "two"], { x: 0, y: 0 });
  expect(written()).toBe("");
  live.draw([], ["one", "two"], { x: 2, y: 1 });
  await show();
  expect(screen.cursor).toEqual({ row: 1, column: 2 });
});

it("begins at the top of a terminal that was cleared", async () => {
  const { live, screen, show } = open();
  live.draw(["above"], ["one", "two"], { x: 0, y: 0 });
  live.clear();
  live.draw(["again"], ["three"], null);
  await show();
  expect(screen.rows.map((each) => each.trimEnd()).filter((each) => each !== "")).toEqual(["again", "three"]);
});
