import { displayWidth, fitWidth } from "../../../lib/terminal/display-width.js";
import { formatDuration } from "../../../lib/time/durations.js";
import { type AgentLine, inTreeOrder } from "../../display/agent-lines.js";
import { chooserRows } from "../chooser.js";
import { shownText } from "../input/draft.js";
import type { Choice, Menu } from "../input/menu.js";
import type { Question } from "../question.js";
import { messageBlocks } from "./block.js";
import { blockLines, foldedRows, isApart, type MarkdownLines, scriptRows } from "./block-lines.js";
import { lastPieces } from "./message-pieces.js";
import type { ScreenState } from "./screen-state.js";
import { fitLine, markedRows, plural, type StyledLine, span, type Tone } from "./styled-line.js";
import { layoutDraft, wrapText } from "./text-layout.js";
import { type RunningCall, SHOWN_LINES, type ViewState } from "./view-state.js";

/** The part of the screen that changes, and its cursor; null while nothing can be typed. */
export interface LiveRegion {
  lines: StyledLine[];
  cursor: { x: number; y: number } | null;
}

const blank: StyledLine = [span("")];

/** How many rows are always left for finished blocks. */
const SPARED_ROWS = 2;
export const FOLD_HINT = " · ctrl-O shows them";
const DRAFT_MARK = "› ";
const MENU_ROWS = 9;

/** Always lower than the screen, because a terminal cannot change rows that have scrolled away. */
export function liveRegion(state: ScreenState, markdownLines?: MarkdownLines): LiveRegion {
  const columns = Math.max(1, state.size.columns - 1);
  const { lines, cursor } = regionOf(state, { columns, markdownLines });
  return { lines: lines.map((line) => fitLine(line, columns)), cursor };
}

function regionOf(
  state: ScreenState,
  { columns, markdownLines }: { columns: number; markdownLines: MarkdownLines | undefined },
): LiveRegion {
  const maxRows = Math.max(1, state.size.rows - SPARED_ROWS);
  if (state.stage === "left" || state.isSuspended) return { lines: [], cursor: null };
  if (state.stage === "choosing" && state.question !== null)
    return { lines: questionRows(state.question, { columns, maxRows }), cursor: null };
  if (state.stage === "leaving") {
    const closing = `closing the sandbox${state.copied === null ? " …" : `, ${state.copied}`}`;
    return { lines: [[span(closing, "quiet")]], cursor: null };
  }
  const draft = draftRows(state, { columns, maxRows: Math.max(1, Math.floor(maxRows / 2)) });
  const footer = footerRow(state, columns);
  const menu = menuRows(state.composer.menu, {
    columns,
    maxRows: Math.min(MENU_ROWS, maxRows - draft.lines.length - 2),
  });
  const room = maxRows - draft.lines.length - menu.length - 2;
  const above = lastRows(
    [
      ...workRows(state, { columns, maxRows: room, markdownLines }),
      ...pendingRows(state, { columns, maxRows: room }),
    ],
    room,
  );
  const lines = [...above, blank, ...draft.lines, ...menu, footer];
  const y = above.length + 1 + draft.cursor.row;
  // On a screen of two or three rows there is room for the draft only.
  if (lines.length > maxRows)
    return { lines: draft.lines, cursor: { x: draft.cursor.column, y: draft.cursor.row } };
  return { lines, cursor: { x: draft.cursor.column, y } };
}

interface Room {
  columns: number;
  maxRows: number;
}

function lastRows(rows: StyledLine[], count: number): StyledLine[] {
  return count <= 0 ? [] : rows.slice(-count);
}

function workRows(
  state: ScreenState,
  { columns, maxRows, markdownLines }: Room & { markdownLines: MarkdownLines | undefined },
): StyledLine[] {
  const { view } = state;
  const above = view.finished.at(-1);
  const streaming = streamingRows(view, { columns, markdownLines });
  const calls = callsRows(state, { columns, maxRows });
  const background = backgroundRows(state, columns);
  const isContinued = view.streaming.message.hasPieces;
  return [
    ...(streaming.length > 0 && !isContinued && isApart("model", above) ? [blank] : []),
    ...streaming,
    ...(calls.length > 0 && (streaming.length > 0 || isApart("work", above)) ? [blank] : []),
    ...calls,
    ...background,
    ...agentRows(view, { columns, now: state.now }),
    ...activityRows(view, {
      columns,
      now: state.now,
      isAsking: state.question !== null,
      interrupts: interruptingKey(state),
      work: state.work,
      copied: state.copied,
    }),
  ];
}

/** Esc closes a question, a list or a search first. */
function interruptingKey({ question, composer }: ScreenState): "esc" | "ctrl-C" {
  return question === null && composer.menu === null && composer.search === null ? "esc" : "ctrl-C";
}

/** What of the arriving message may still change, as if it ended here. */
function streamingRows(
  { streaming: { message } }: ViewState,
  room: { columns: number; markdownLines: MarkdownLines | undefined },
): StyledLine[] {
  // A line of backticks or tildes that is still too short for a fence would be seen for a moment only.
  const line = /^ {0,3}(?:`{1,2}|~{1,2})$/.test(message.line) ? "" : message.line;
  const blocks = messageBlocks(lastPieces({ ...message, line }), { isContinued: message.hasPieces });
  return blocks.flatMap((block) => blockLines(block, room));
}

function callsRows(state: ScreenState, { columns, maxRows }: Room): StyledLine[] {
  const count = state.isUnfolded ? maxRows : SHOWN_LINES;
  return runningRows(state.view, { columns, maxRows, count, now: state.now, foldHint: FOLD_HINT });
}

export interface RunningRoom extends Room {
  /** How many lines of each output to show if there is room. */
  count: number;
  /** Milliseconds since the epoch. */
  now: number;
  foldHint?: string | undefined;
}

export function runningRows({ calls }: ViewState, { maxRows, count, ...room }: RunningRoom): StyledLine[] {
  const perCall = Math.floor(maxRows / Math.max(1, calls.length)) - 3;
  return calls.flatMap((call) => callRows(call, { ...room, count: Math.max(0, Math.min(count, perCall)) }));
}

function callRows(
  { command, title, progress, changes, startedAt }: RunningCall,
  { columns, count, now, foldHint }: Omit<RunningRoom, "maxRows">,
): StyledLine[] {
  if (command === null) {
    const what = changes === null ? title : `patching ${plural(changes.length, "file")}`;
    const report = progress === "" ? [] : [[span(`  … ${progress}`, "quiet")]];
    return [[span("• ", "accent"), span(what, "strong")], ...report];
  }
  const time = span(`  … ${seconds(now - startedAt)}`, "quiet");
  return [
    ...scriptRows(command.script, columns),
    ...foldedRows(command.output, { columns, foldHint, shownLines: count }),
    ...(command.end.kind === "running" ? [[time]] : []),
  ];
}

function backgroundRows({ view: { background } }: ScreenState, columns: number): StyledLine[] {
  if (background.size === 0) return [];
  const scripts = [...background.values()].map(({ script }) => script.split("\n", 1)[0]).join(" · ");
  return [
    [
      span(
        fitWidth(`  ${plural(background.size, "command")} in the background: ${scripts}`, columns),
        "quiet",
      ),
    ],
  ];
}

const agentMarks: Readonly<Record<AgentLine["state"], readonly [string, Tone]>> = {
  starting: ["◦", "accent"],
  running: ["◦", "accent"],
  interrupted: ["‖", "warning"],
  completed: ["✓", "good"],
  failed: ["✗", "bad"],
  closed: [" ", "quiet"],
  unknown: [" ", "quiet"],
};

/** A row for each agent, below the one that has started it. */
export function agentRows(
  { agents }: ViewState,
  { columns, now }: { columns: number; now: number },
): StyledLine[] {
  return inTreeOrder([...agents.values()]).map(({ name, depth, state, activity, since }): StyledLine => {
    const [mark, tone] = agentMarks[state];
    const time = state === "running" ? ` ${seconds(now - since)}` : "";
    const indent = "  ".repeat(Math.min(depth, 8));
    const room = Math.max(0, columns - displayWidth(`${indent}${mark} ${name}${time} `));
    return [
      span(`${indent}${mark} `, tone),
      span(name, "strong"),
      span(`${time} ${fitWidth(activity, room)}`, "quiet"),
    ];
  });
}

export function activityRows(
  { turn, isCompacting }: ViewState,
  {
    columns,
    now,
    isAsking,
    interrupts,
    work = null,
    copied = null,
  }: { columns: number; now: number; isAsking: boolean; interrupts: "esc" | "ctrl-C" } & Partial<
    Pick<ScreenState, "work" | "copied">
  >,
): StyledLine[] {
  const busy = turn ?? work;
  if (busy === null) return [];
  const what = busy.isStopping
    ? "stopping"
    : isAsking
      ? "waiting for you"
      : isCompacting
        ? "summarising"
        : (work?.what ?? "working");
  const amount = copied === null ? "" : ` · ${copied}`;
  const hint = busy.isStopping ? "" : `${amount} · ${interrupts} interrupts`;
  const text = `${what} ${seconds(now - busy.startedAt)}${hint}`;
  return [blank, [span("◦ ", "accent"), span(fitWidth(text, columns - 2), "quiet")]];
}

/** Whole seconds, so that the display does not flicker. */
function seconds(ms: number): string {
  const whole = Math.max(0, Math.floor(ms / 1000));
  return whole < 60 ? `${whole} s` : formatDuration(whole * 1000);
}

function pendingRows({ queued, question }: ScreenState, room: Room): StyledLine[] {
  const { columns } = room;
  return [
    ...queued.map(
      (draft): StyledLine => [
        span(fitWidth(`  next: ${shownText(draft).split("\n", 1)[0] ?? ""}`, columns), "quiet"),
      ],
    ),
    ...(question === null ? [] : questionRows(question, room)),
  ];
}

function questionRows(
  { lines, choices, takesText, dismissal, list }: Question,
  { columns, maxRows }: Room,
): StyledLine[] {
  if (list !== undefined) {
    const title = lines.map(({ text, tone }): StyledLine => [span(text, tone)]);
    const rows = chooserRows(list, { columns, maxRows: maxRows - title.length - 1, dismissal });
    return [blank, ...title, ...rows];
  }
  const keys = choices.map(({ key, label }) => [`  ${key}    `, label] as const);
  return [
    blank,
    ...lines.flatMap(({ text, tone }) => wrapText(text, columns).map((row): StyledLine => [span(row, tone)])),
    ...keys.flatMap(([key, label]) => markedRows(span(key, "accent"), label, { columns })),
    ...(takesText ? [[span("       or type an answer and press Enter", "quiet")]] : []),
    [span("  esc  ", "accent"), span(dismissal)],
  ];
}

function draftRows(
  { composer: { draft, search } }: ScreenState,
  { columns, maxRows }: Room,
): { lines: StyledLine[]; cursor: { row: number; column: number } } {
  const indent = DRAFT_MARK.length;
  const layout = layoutDraft(draft, { columns: columns - indent, maxRows });
  const lines = layout.rows.map((row, index): StyledLine => {
    const isCut =
      (index === 0 && layout.hasMoreAbove) || (index === layout.rows.length - 1 && layout.hasMoreBelow);
    const mark = isCut ? "⋮ " : index === 0 ? DRAFT_MARK : "  ";
    return [span(mark, "prompt"), span(row)];
  });
  if (search !== null) return withSearch(lines, search, columns);
  return { lines, cursor: { row: layout.cursor.row, column: layout.cursor.column + indent } };
}

function withSearch(
  lines: StyledLine[],
  { query, index }: { query: string; index: number | null },
  columns: number,
): { lines: StyledLine[]; cursor: { row: number; column: number } } {
  const found = index === null && query !== "" ? "nothing found" : "earlier messages";
  const text = fitWidth(`${found}: ${wrapText(query, columns).at(-1) ?? ""}`, columns - 1);
  return {
    lines: [...lines, [span(text, "accent")]],
    cursor: { row: lines.length, column: displayWidth(text) },
  };
}

/** The choices around the selected one. */
function menuRows(menu: Menu | null, { columns, maxRows }: Room): StyledLine[] {
  if (menu === null || maxRows <= 0) return [];
  const { choices, selected, note } = menu;
  const room = Math.max(1, maxRows - (note === null ? 0 : 1));
  const count = choices.length > room ? Math.max(1, room - 1) : room;
  const middle = (selected ?? 0) - Math.floor(count / 2);
  const first = Math.max(0, Math.min(middle, choices.length - count));
  const shown = choices.slice(first, first + count);
  const width = Math.max(0, ...shown.map(({ label }) => displayWidth(label)));
  const rows = shown.map((choice, index) =>
    choiceRow(choice, { width: Math.min(width, columns - 2), isSelected: first + index === selected }),
  );
  const hidden = choices.length - shown.length;
  const more: StyledLine[] = hidden > 0 ? [[span(`  and ${hidden} more`, "quiet")]] : [];
  const notes: StyledLine[] = note === null ? [] : [[span(fitWidth(`  ${note}`, columns), "quiet")]];
  return [...rows, ...more, ...notes].slice(0, maxRows);
}

function choiceRow(
  { label, summary }: Choice,
  { width, isSelected }: { width: number; isSelected: boolean },
): StyledLine {
  const name = fitWidth(label, width);
  const gap = " ".repeat(Math.max(0, width - displayWidth(name)) + 2);
  return [
    span(isSelected ? "▸ " : "  ", "accent"),
    span(name, isSelected ? "strong" : "plain"),
    ...(summary === "" ? [] : [span(`${gap}${summary}`, "quiet")]),
  ];
}

function footerRow({ hint, footer, stage }: ScreenState, columns: number): StyledLine {
  if (hint !== null) return [span(fitWidth(hint, columns), "warning")];
  const parts = stage === "starting" ? [...footer, "starting the sandbox"] : footer;
  return [span(fitWidth(parts.join(" · "), columns), "quiet")];
}
