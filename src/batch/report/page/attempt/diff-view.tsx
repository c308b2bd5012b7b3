import type { ShownText } from "../../view/view-model.js";
import { Block, Cut } from "./text-view.js";

type LineKind = "file" | "hunk" | "added" | "removed" | "context";

/** A unified diff. Added and removed lines also have their signs, so the colours are not needed to read it. */
export function DiffView({ diff, file }: { diff: ShownText; file: string }) {
  return (
    <>
      <Block label="Changes">
        <Lines text={diff.head} />
      </Block>
      <Cut text={diff} file={file} />
      {diff.tail !== "" && (
        <Block label="Changes, their end">
          <Lines text={diff.tail} />
        </Block>
      )}
    </>
  );
}

function Lines({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map(({ kind, lines }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a diff does not change
        <span key={at} class={`diff-${kind}`}>
          {lines.join("\n")}
          {"\n"}
        </span>
      ))}
    </>
  );
}

/** Lines of the same kind that follow each other are one element, because a diff can have ten thousand lines. */
function pieces(text: string): { kind: LineKind; lines: string[] }[] {
  const found: { kind: LineKind; lines: string[] }[] = [];
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const kind = kindOf(line);
    const last = found.at(-1);
    if (last?.kind === kind) last.lines.push(line);
    else found.push({ kind, lines: [line] });
  }
  return found;
}

function kindOf(line: string): LineKind {
  if (
    /^(?:diff |index |--- |\+\+\+ |new file |deleted file |rename |similarity |old mode |new mode )/.test(
      line,
    )
  )
    return "file";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "context";
}
