export interface BlockLine {
  /** A blank line has the indentation of the line before it. */
  indent: number;
  isBlank: boolean;
  isComment: boolean;
}

export interface BlockRules {
  /** Lines that are indented less end the block. */
  floor: number;
  maxLines: number;
  /** Includes every line at the floor, not just the first on each side. */
  includesSiblings: boolean;
  /** Includes comments at the floor above the block. */
  includesHeader: boolean;
}

/** Extends a block from its anchor, up and down in turn, and drops blank lines at its ends. */
export function blockAround<Line extends BlockLine>(
  lines: readonly Line[],
  anchor: number,
  rules: BlockRules,
): Line[] {
  const maxLines = Math.min(rules.maxLines, lines.length);
  const anchorLines = lines.slice(anchor, anchor + 1);
  if (maxLines === 1) return anchorLines;
  const above: Line[] = [];
  const below: Line[] = [];
  const isFull = () => above.length + 1 + below.length >= maxLines;
  const up = walk(lines.slice(0, anchor).toReversed(), rules, rules.includesHeader);
  const down = walk(lines.slice(anchor + 1), rules, false);
  while (!isFull()) {
    const tookAbove = take(up, above);
    if (isFull()) break;
    if (!take(down, below) && !tookAbove) break;
  }
  return withoutBlankEnds([...above.toReversed(), ...anchorLines, ...below]);
}

function* walk<Line extends BlockLine>(
  lines: readonly Line[],
  { floor, includesSiblings }: BlockRules,
  includesComments: boolean,
): Generator<Line, undefined> {
  let floorLines = 0;
  for (const line of lines) {
    if (line.indent < floor) return;
    if (line.indent === floor && !includesSiblings) {
      if (floorLines > 0 && !(includesComments && line.isComment)) return;
      floorLines++;
    }
    yield line;
  }
}

function take<Line>(side: Generator<Line, undefined>, taken: Line[]): boolean {
  const { value } = side.next();
  if (value === undefined) return false;
  taken.push(value);
  return true;
}

function withoutBlankEnds<Line extends BlockLine>(lines: readonly Line[]): Line[] {
  const first = lines.findIndex(({ isBlank }) => !isBlank);
  return first === -1 ? [] : lines.slice(first, lines.findLastIndex(({ isBlank }) => !isBlank) + 1);
}
