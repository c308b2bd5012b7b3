import type { LineFold } from "../../../sandbox/index.js";
import type { FileChange, PlanStep } from "../../../tools/index.js";
import type { MessagePiece } from "./message-pieces.js";
import type { Picture } from "./picture.js";
import type { Tone } from "./styled-line.js";
import type { NoticeTone } from "./view-event.js";

/** Something finished, which stays on the screen above the live part. Its texts are safe for a terminal. */
export type Block =
  | { kind: "heading"; lines: readonly string[] }
  | { kind: "prompt"; text: string }
  /** A piece of a message of the model. If `isFirst` is false, it continues the message in the block above. */
  | { kind: "message"; piece: MessagePiece; isFirst: boolean }
  | { kind: "picture"; picture: Picture }
  | { kind: "reasoning"; text: string }
  | { kind: "command"; script: string; output: LineFold; end: CommandEnd }
  | { kind: "call"; title: string; output: LineFold; success: boolean }
  /** `edits` has the added and removed lines; it is empty if the patch failed. */
  | { kind: "patch"; changes: readonly FileChange[]; edits: LineFold; success: boolean; failure: string }
  | { kind: "plan"; explanation: string | null; steps: readonly PlanStep[] }
  | { kind: "notice"; tone: NoticeTone; text: string; hint?: string | undefined }
  | { kind: "report"; title: string; rows: readonly (readonly [string, string])[] }
  | { kind: "listing"; title: string; lines: readonly ListingLine[] }
  /** An output that was folded away before, as far as it was kept. */
  | { kind: "unfolded"; title: string; output: LineFold }
  | { kind: "question"; lines: readonly { text: string; tone: Tone }[] }
  | { kind: "answer"; text: string };

/** `isContinued`: whether the pieces continue the message in the block above. Default: false. */
export function messageBlocks(
  pieces: readonly MessagePiece[],
  { isContinued = false }: { isContinued?: boolean } = {},
): (Block & { kind: "message" })[] {
  return pieces.map((piece, index) => ({ kind: "message", piece, isFirst: index === 0 && !isContinued }));
}

/** Says quietly what has happened. */
export function notice(text: string): Block {
  return { kind: "notice", tone: "quiet", text };
}

export function warning(text: string, hint?: string): Block {
  return { kind: "notice", tone: "warning", text, hint };
}

export type CommandEnd =
  | { kind: "exited"; exitCode: number; durationMs: number }
  /** The command may go on after its call has ended. */
  | { kind: "running" }
  /** The command was ended together with its turn. */
  | { kind: "stopped" };

export interface ListingLine {
  text: string;
  tone: "plain" | "added" | "removed" | "hunk" | "quiet";
}
