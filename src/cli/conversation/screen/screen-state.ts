import { type Composer, emptyComposer } from "../input/composer.js";
import type { Draft } from "../input/draft.js";
import type { Question } from "../question.js";
import { initialView, type ViewState } from "./view-state.js";

export interface ScreenState {
  view: ViewState;
  composer: Composer;
  /** Messages and commands to run after the current turn. */
  queued: readonly Draft[];
  question: Question | null;
  /** The draft to restore after a question that takes text. */
  waiting: Composer | null;
  /** A line about the keys, shown until the next key. */
  hint: string | null;
  footer: readonly string[];
  size: ScreenSize;
  /** Each new generation clears the screen and draws the finished blocks again, starting with the block at index `from`. */
  painted: { generation: number; from: number };
  /** Milliseconds since the epoch, as of the last tick. */
  now: number;
  /** Whether the output of running commands takes all the room there is. */
  isUnfolded: boolean;
  /** `choosing`: there is no session yet, only a question. */
  stage: "choosing" | "starting" | "open" | "leaving" | "left";
  /** What a command of the person does, once it takes a while. */
  work: { what: string; startedAt: number; isStopping: boolean } | null;
  /** How much of the changes is copied, during such work and while the session ends. */
  copied: string | null;
  /** Whether the program is suspended and the shell has the terminal. */
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
    work: null,
    copied: null,
    isSuspended: false,
  };
}

/** Whether everything must be drawn again, because a terminal that gets narrower breaks its rows. */
export function breaksRows(from: ScreenSize, to: ScreenSize): boolean {
  return to.columns < from.columns;
}

/** Draws everything again, with as many of the last blocks as may be visible. */
export function repaint(state: ScreenState): ScreenState {
  const from = Math.max(0, state.view.finished.length - state.size.rows);
  return { ...state, painted: { generation: state.painted.generation + 1, from } };
}

/** A question that takes text gets an empty draft. The earlier draft is restored after it. */
export function showQuestion(state: ScreenState, question: Question | null): ScreenState {
  const composer = { ...state.composer, menu: null };
  const waiting = state.waiting ?? composer;
  if (question?.takesText === true) return { ...state, question, waiting, composer: emptyComposer };
  const isBack = state.waiting !== null && composer.draft.text === "";
  return { ...state, question, waiting: null, composer: isBack ? waiting : composer };
}

export function hasBusyAgents({ view }: ScreenState): boolean {
  return [...view.agents.values()].some(({ state }) => state === "running");
}
