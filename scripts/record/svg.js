// Draws the screen of a terminal as SVG.

const CELL = { width: 8.4, height: 18 };
const FONT_PX = 14;
const MARGIN = 16;
const TITLE_HEIGHT = 30;

const colours = {
  background: "#1b1e24",
  title: "#8b93a1",
  text: "#d7dae0",
  palette: [
    ["#3f4451", "#e0606c", "#8cc570", "#d9a85c", "#5fa8f0", "#c678dd", "#4cb8c4", "#d7dae0"],
    ["#6b7280", "#ff7b86", "#a5e075", "#f0c674", "#7cc0ff", "#de93f0", "#6cd3de", "#ffffff"],
  ].flat(),
};

/** Draws all rows except empty ones at the end. Matches of `hide` are left blank, for text that is different each time. */
export function renderSvg(terminal, { title, hide = [] }) {
  const rows = readRows(terminal, hide);
  const width = terminal.cols * CELL.width + 2 * MARGIN;
  const height = rows.length * CELL.height + TITLE_HEIGHT + MARGIN;
  const text = rows.flatMap((runs, row) => runs.map((run) => renderRun(run, row)));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${round(width)} ${round(height)}" width="${round(width)}" height="${round(height)}" role="img" aria-label="${escapeXml(title)}">`,
    `<rect width="100%" height="100%" rx="8" fill="${colours.background}"/>`,
    ...["#ff5f57", "#febc2e", "#28c840"].map(
      (fill, index) => `<circle cx="${MARGIN + 6 + index * 20}" cy="16" r="6" fill="${fill}"/>`,
    ),
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${FONT_PX}" xml:space="preserve">`,
    `<text x="${round(width / 2)}" y="20" text-anchor="middle" fill="${colours.title}">${escapeXml(title)}</text>`,
    ...text,
    "</g>",
    "</svg>",
    "",
  ].join("\n");
}

/** The pieces of each row that have the same style. */
function readRows(terminal, hide) {
  const { active } = terminal.buffer;
  const rows = Array.from({ length: terminal.rows }, (_, row) =>
    readRuns(active.getLine(active.viewportY + row), hide),
  );
  while (rows.at(-1)?.length === 0) rows.pop();
  return rows;
}

function readRuns(line, hide) {
  const cells = Array.from({ length: line.length }, (_, column) => line.getCell(column));
  for (const column of hiddenColumns(line, hide)) cells[column] = undefined;
  const runs = [];
  let open = null;
  for (const [column, cell] of cells.entries()) {
    if (cell?.getWidth() === 0) continue;
    const text = cell?.getChars() || " ";
    const style = cell === undefined ? "" : JSON.stringify(styleOf(cell));
    if (open?.style !== style) {
      open = { column, style, text: "", columns: 0, look: cell === undefined ? {} : styleOf(cell) };
      runs.push(open);
    }
    open.text += text;
    open.columns += cell?.getWidth() ?? 1;
  }
  return runs.flatMap(withoutBlankEnds);
}

/** For the patterns, each column of the row is one character. */
function hiddenColumns(line, hide) {
  const text = line.translateToString(true);
  return hide.flatMap((pattern) =>
    [...text.matchAll(pattern)].flatMap(({ index, 0: match }) =>
      Array.from({ length: match.length }, (_, at) => index + at),
    ),
  );
}

function withoutBlankEnds(run) {
  const before = run.text.length - run.text.trimStart().length;
  const text = run.text.trim();
  if (text === "") return [];
  const after = run.text.length - before - text.length;
  return [{ ...run, text, column: run.column + before, columns: run.columns - before - after }];
}

function styleOf(cell) {
  return {
    fill: cell.isFgPalette() ? colours.palette[cell.getFgColor()] : colours.text,
    isBold: cell.isBold() !== 0,
    isDim: cell.isDim() !== 0,
    isItalic: cell.isItalic() !== 0,
  };
}

function renderRun({ column, columns, text, look }, row) {
  const x = MARGIN + column * CELL.width;
  const y = TITLE_HEIGHT + row * CELL.height + FONT_PX;
  const attributes = [
    `x="${round(x)}"`,
    `y="${round(y)}"`,
    `textLength="${round(columns * CELL.width)}"`,
    'lengthAdjust="spacingAndGlyphs"',
    `fill="${look.fill}"`,
    ...(look.isBold ? ['font-weight="bold"'] : []),
    ...(look.isDim ? ['opacity="0.6"'] : []),
    ...(look.isItalic ? ['font-style="italic"'] : []),
  ];
  return `<text ${attributes.join(" ")}>${escapeXml(text)}</text>`;
}

function round(number) {
  return Math.round(number * 10) / 10;
}

function escapeXml(text) {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
