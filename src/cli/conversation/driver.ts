import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { composerWith, emptyComposer, escapesEnter, reduceComposer } from "./input/composer.js";
import type { Key, KeyName } from "./input/keys.js";
import { parseInput, type SlashCommand } from "./input/slash-commands.js";
import type { QuestionDesk } from "./question.js";
import { repaint, type ScreenState } from "./screen/screen-state.js";
import type { ScreenStore } from "./screen/screen-store.js";
import { unfoldLast, withBlock } from "./screen/view-state.js";

/** A second ctrl-C counts as one that leaves for so long. */
const LEAVE_MS = 1000;

/** What is done with what a person enters. Neither rejects for anything but a fault of brig's own. */
export interface Work {
  runTurn(prompt: string, signal: AbortSignal): Promise<void>;
  runCommand(command: SlashCommand, options: { argument: string; signal: AbortSignal }): Promise<void>;
}

export interface DriverParts {
  store: ScreenStore;
  desk: QuestionDesk;
  history: { readonly texts: readonly string[]; add(text: string): void };
  work: Work;
  screen: {
    /** Clears the terminal, before everything is drawn anew. */
    clear(): void;
    /** Gives the terminal back to the shell, until that brings the program back to the foreground. */
    suspend(): Promise<void>;
  };
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Turns keys into drafts, answers, turns and commands; one turn at a time, and what is entered meanwhile waits. */
export class Driver {
  readonly #parts: DriverParts;
  /** Resolves when the person ends the session; rejects with a fault. */
  readonly left: Promise<void>;
  #leave: () => void = () => undefined;
  #fail: (error: unknown) => void = () => undefined;
  /** Stops what runs; null while nothing does. */
  #stop: AbortController | null = null;
  #isInTurn = false;
  #hasLeft = false;
  #working: Promise<void> = Promise.resolve();
  #lastInterrupt: { situation: string; at: number } | null = null;

  constructor(parts: DriverParts) {
    this.#parts = parts;
    this.left = new Promise((resolve, reject) => {
      this.#leave = resolve;
      this.#fail = reject;
    });
  }

  press(key: Key): void {
    const { store, desk } = this.#parts;
    store.update((state) => (state.hint === null ? state : { ...state, hint: null }));
    if (key.kind === "key" && this.#command(key.name)) return;
    const question = desk.current;
    if (question !== null && this.#answer(key)) return;
    if (key.kind === "key" && key.name === "enter" && this.#submit()) return;
    if (key.kind === "paste" && key.isCut) this.#hint("the paste was too long: its end is missing");
    this.#change((state) => ({
      ...state,
      composer: reduceComposer(state.composer, key, this.#parts.history.texts),
    }));
  }

  /** The terminal is gone, or the end of the input was reached. */
  leave(): void {
    this.#hasLeft = true;
    this.#stop?.abort(new Error("the session ends"));
    this.#leave();
  }

  /** Resolves when nothing runs any more. */
  async rest(): Promise<void> {
    await this.#working;
  }

  /** Keys that mean the same whatever is being typed. */
  #command(name: KeyName): boolean {
    const { composer } = this.#parts.store.read();
    const isSearching = composer.search !== null;
    switch (name) {
      case "interrupt":
        if (isSearching) return false;
        this.#interrupt();
        return true;
      case "end-of-input":
        if (isSearching || composer.draft.text !== "") return false;
        this.#endOfInput();
        return true;
      case "unfold":
        this.#unfold();
        return true;
      case "redraw":
        this.#parts.screen.clear();
        this.#change(repaint);
        return true;
      case "suspend":
        this.#parts.screen.suspend().catch(this.#fail);
        return true;
      default:
        return false;
    }
  }

  /** Whether the key was an answer to the question. A paste never is. */
  #answer(key: Key): boolean {
    const { desk, store } = this.#parts;
    const question = desk.current;
    if (question === null) return false;
    if (key.kind === "key" && key.name === "escape") {
      desk.answer({ kind: "dismissed" });
      return true;
    }
    const { draft } = store.read().composer;
    if (key.kind === "key" && key.name === "enter" && question.takesText && !escapesEnter(draft))
      return this.#answerWithText(draft.text);
    if (key.kind !== "text" || (question.takesText && draft.text !== "")) return false;
    const choice = question.choices.find((each) => each.key === key.text.toLowerCase());
    if (!desk.takesKeys() || choice === undefined) return false;
    desk.answer({ kind: "choice", choice });
    return true;
  }

  #answerWithText(text: string): boolean {
    if (text.trim() === "") return true;
    this.#change((state) => ({ ...state, composer: emptyComposer }));
    this.#parts.desk.answer({ kind: "text", text: text.trim() });
    return true;
  }

  /** Whether Enter sent the draft. */
  #submit(): boolean {
    const { draft, search } = this.#parts.store.read().composer;
    if (search !== null || escapesEnter(draft)) return false;
    const text = draft.text.trim();
    if (text === "") return true;
    this.#change((state) => ({ ...state, composer: emptyComposer }));
    this.submit(text);
    return true;
  }

  /** Does what was entered, or lets it wait for its turn. */
  submit(text: string): void {
    const input = parseInput(text);
    this.#parts.history.add(text);
    if (input.kind === "unknown-command") this.#hint(unknownCommand(input));
    else if (input.kind === "command" && input.command.name === "quit") this.leave();
    else if (this.#stop === null) this.#working = this.#workOff(text);
    else if (input.kind === "command" && !input.command.waitsForTurn) this.#besides(input);
    else this.#change((state) => ({ ...state, queued: [...state.queued, text] }));
  }

  /** A command that disturbs no turn. */
  #besides({ command, argument }: { command: SlashCommand; argument: string }): void {
    const signal = this.#stop?.signal ?? AbortSignal.abort();
    this.#parts.work.runCommand(command, { argument, signal }).catch(this.#fail);
  }

  /** Does one thing, and then what was entered meanwhile. */
  async #workOff(first: string): Promise<void> {
    try {
      for (let text: string | undefined = first; text !== undefined; text = this.#next()) {
        const stop = new AbortController();
        this.#stop = stop;
        await this.#do(text, stop.signal);
        if (stop.signal.aborted) this.#giveBackQueued();
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#stop = null;
    }
  }

  async #do(text: string, signal: AbortSignal): Promise<void> {
    const { work } = this.#parts;
    const input = parseInput(text);
    if (input.kind === "command")
      return await work.runCommand(input.command, { argument: input.argument, signal });
    this.#change((state) => ({
      ...state,
      view: withBlock(state.view, { kind: "asked", text: neutralise(text) }),
    }));
    this.#isInTurn = true;
    try {
      await work.runTurn(text, signal);
    } finally {
      this.#isInTurn = false;
    }
  }

  #next(): string | undefined {
    if (this.#hasLeft) return undefined;
    const [next, ...queued] = this.#parts.store.read().queued;
    this.#change((state) => ({ ...state, queued }));
    return next;
  }

  /** Who interrupts wants to think again: what was to come next is a draft again. */
  #giveBackQueued(): void {
    this.#change((state) => {
      if (state.queued.length === 0) return state;
      const texts = [...state.queued, state.composer.draft.text].filter((text) => text !== "");
      return { ...state, queued: [], composer: composerWith(texts.join("\n")) };
    });
  }

  #interrupt(): void {
    if (this.#stop !== null) this.#interruptWork(this.#stop);
    else if (this.#parts.store.read().composer.draft.text !== "")
      this.#change((state) => ({ ...state, composer: emptyComposer }));
    else if (this.#isSecond("idle")) this.leave();
    else this.#hint("ctrl-C again ends the session");
  }

  /** A turn that does not stop when it is told to must not hold a person up. */
  #interruptWork(stop: AbortController): void {
    if (!stop.signal.aborted) {
      stop.abort(new Error("interrupted"));
      this.#change(({ view, ...state }) => ({
        ...state,
        view: view.turn === null ? view : { ...view, turn: { ...view.turn, isStopping: true } },
      }));
    } else if (this.#isSecond("stopping")) {
      this.leave();
    } else {
      this.#hint("stopping; ctrl-C again ends the session");
    }
  }

  /** Whether ctrl-C was pressed in the same situation just before. */
  #isSecond(situation: "idle" | "stopping"): boolean {
    const previous = this.#lastInterrupt;
    this.#lastInterrupt = { situation, at: this.#parts.now() };
    return previous?.situation === situation && this.#lastInterrupt.at - previous.at <= LEAVE_MS;
  }

  #endOfInput(): void {
    if (this.#stop === null || !this.#isInTurn) this.leave();
    else this.#hint("a turn is running: ctrl-C interrupts it");
  }

  #unfold(): void {
    const { calls, folded } = this.#parts.store.read().view;
    if (calls.some(({ command }) => command !== null))
      this.#change((state) => ({ ...state, isUnfolded: !state.isUnfolded }));
    else if (folded.length === 0) this.#hint("there is nothing more to show");
    else this.#change((state) => ({ ...state, view: unfoldLast(state.view) }));
  }

  #hint(hint: string): void {
    this.#change((state) => ({ ...state, hint }));
  }

  #change(change: (state: ScreenState) => ScreenState): void {
    this.#parts.store.update(change, { isUrgent: true });
  }
}

function unknownCommand({ name, meant }: { name: string; meant: string | null }): string {
  const hint = meant === null ? "/help lists the commands" : `did you mean /${meant}?`;
  return `there is no command /${neutraliseLine(name)}: ${hint}`;
}
