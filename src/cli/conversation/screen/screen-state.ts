import { type Composer, emptyComposer } from "../input/composer.js";
import type { Question } from "../question.js";
import { initialView, type ViewState } from "./view-state.js";

/** Everything that decides what is on the screen. */
export interface ScreenState {
  view: ViewState;
  composer: Composer;
  /** Messages for the turns after this one. */
  queued: readonly string[];
  question: Question | null;
  /** The draft from before a question that takes text. */
  waiting: Composer | null;
  /** One line about the keys, until something happens. */
  hint: string | null;
  /** About the session, below the draft. */
  footer: readonly string[];
  size: ScreenSize;
  /** Finished blocks from this one on are drawn anew with each generation. */
  painted: { generation: number; from: number };
  /** Milliseconds since the epoch, as of the last tick. */
  now: number;
  /** What a running command prints is shown as far as there is room. */
  isUnfolded: boolean;
  stage: "starting" | "open" | "leaving" | "left";
  /** The terminal is the shell's for now. */
  isSuspended: boolean;
}

export interface ScreenSize {
  columns: number;
  rows: number;
}

export function initialScreen(size: ScreenSize, now: number): ScreenState {
  return {
    view: initialView,
    composer: emptyComposer,
    queued: [],
    question: null,
    waiting: null,
    hint: null,
    footer: [],
    size,
    painted: { generation: 0, from: 0 },
    now,
    isUnfolded: false,
    stage: "starting",
    isSuspended: false,
  };
}

/** Whether a new size means that everything is drawn anew: terminals break rows that no longer fit. */
export function breaksRows(from: ScreenSize, to: ScreenSize): boolean {
  return to.columns < from.columns;
}

/** Draws everything anew, with as much of the past as the screen can hold. */
export function repaint(state: ScreenState): ScreenState {
  const from = Math.max(0, state.view.finished.length - state.size.rows);
  return { ...state, painted: { generation: state.painted.generation + 1, from } };
}

/** A question that takes text has the draft to itself; what was there waits. */
export function showQuestion(state: ScreenState, question: Question | null): ScreenState {
  const waiting = state.waiting ?? state.composer;
  if (question?.takesText === true) return { ...state, question, waiting, composer: emptyComposer };
  const isBack = state.waiting !== null && state.composer.draft.text === "";
  return { ...state, question, waiting: null, composer: isBack ? waiting : state.composer };
}
