import type { LineFold } from "../../../output/line-fold.js";
import type { FileChange } from "../../../tools/review/action.js";
import type { PlanStep } from "../../../tools/tool.js";
import type { Tone } from "./styled-line.js";
import type { NoticeTone } from "./view-event.js";

/** Something that is finished and stays on the screen above what still runs. Its texts are safe for a terminal. */
export type Block =
  | { kind: "heading"; lines: readonly string[] }
  | { kind: "asked"; text: string }
  /** Lines of a message; it continues the block before where it is not the first. */
  | { kind: "said"; lines: readonly string[]; isFirst: boolean }
  | { kind: "thought"; text: string }
  | { kind: "command"; script: string; output: LineFold; end: CommandEnd }
  | { kind: "call"; title: string; output: LineFold; success: boolean }
  /** `edits`: the lines that it takes and gives; none of a patch that failed. */
  | { kind: "patch"; changes: readonly FileChange[]; edits: LineFold; success: boolean; failure: string }
  | { kind: "plan"; explanation: string | null; steps: readonly PlanStep[] }
  | { kind: "notice"; tone: NoticeTone; text: string; hint?: string }
  /** What a slash command answered. */
  | { kind: "report"; title: string; rows: readonly (readonly [string, string])[] }
  | { kind: "listing"; title: string; lines: readonly ListingLine[] }
  /** A folded output in full, as far as it was kept. */
  | { kind: "unfolded"; title: string; output: LineFold }
  /** What a person was asked, and what they said. */
  | { kind: "question"; lines: readonly { text: string; tone: Tone }[] }
  | { kind: "answer"; text: string };

export type CommandEnd =
  | { kind: "exited"; exitCode: number; durationMs: number }
  /** Goes on, perhaps after its call. */
  | { kind: "running" }
  /** Ended together with its turn. */
  | { kind: "stopped" };

export interface ListingLine {
  text: string;
  tone: "plain" | "added" | "removed" | "hunk" | "quiet";
}
