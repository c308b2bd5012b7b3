import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { composerWith, emptyComposer, escapesEnter, reduceComposer } from "./input/composer.js";
import type { Key, KeyName } from "./input/keys.js";
import { parseInput, type SlashCommand } from "./input/slash-commands.js";
import type { PendingQuestions } from "./question.js";
import { hasBusyAgents, repaint, type ScreenState } from "./screen/screen-state.js";
import type { ScreenStore } from "./screen/screen-store.js";
import { unfoldLast, withBlock } from "./screen/view-state.js";

const DOUBLE_PRESS_MS = 1000;

/** Actions that the driver starts. They reject only because of a bug in brig. */
export interface ConversationActions {
  runTurn(prompt: string, signal: AbortSignal): Promise<void>;
  runCommand(command: SlashCommand, options: { argument: string; signal: AbortSignal }): Promise<void>;
  /** Stops agents that are still working although the turn that started them is over. */
  interruptAgents(): Promise<void>;
}

export interface DriverParts {
  store: ScreenStore;
  questions: PendingQuestions;
  history: { readonly texts: readonly string[]; add(text: string): void };
  actions: ConversationActions;
  screen: {
    /** Returns to the shell, until the program is brought back to the foreground. */
    suspend(): void;
  };
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Turns keys into drafts, answers, turns and commands. Runs one turn at a time and queues other input. */
export class Driver {
  readonly #parts: DriverParts;
  /** Resolves when the person ends the session. Rejects because of a bug in brig. */
  readonly left: Promise<void>;
  #leave: () => void = () => undefined;
  #fail: (error: unknown) => void = () => undefined;
  /** Stops the running turn or command; null while none is running. */
  #stop: AbortController | null = null;
  #isInTurn = false;
  #hasLeft = false;
  #running: Promise<void> = Promise.resolve();
  #lastInterrupt: { situation: string; at: number } | null = null;

  constructor(parts: DriverParts) {
    this.#parts = parts;
    this.left = new Promise((resolve, reject) => {
      this.#leave = resolve;
      this.#fail = reject;
    });
  }

  press(key: Key): void {
    const { store, questions } = this.#parts;
    store.update((state) => (state.hint === null ? state : { ...state, hint: null }));
    if (key.kind === "key" && this.#command(key.name)) return;
    const question = questions.current;
    if (question !== null && this.#answer(key)) return;
    if (key.kind === "key" && key.name === "enter" && this.#submit()) return;
    if (key.kind === "paste" && key.isCut) this.#hint("the paste was too long and has been cut off");
    this.#change((state) => ({
      ...state,
      composer: reduceComposer(state.composer, key, this.#parts.history.texts),
    }));
  }

  /** Ends the session, also when the terminal is gone. */
  leave(): void {
    this.#hasLeft = true;
    this.#stop?.abort(new Error("the session ends"));
    this.#leave();
  }

  /** Resolves when the running turn or command has ended. */
  async settled(): Promise<void> {
    await this.#running;
  }

  /** Handles the keys that mean the same whatever is being typed. Returns whether the key was one of them. */
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
        this.#change(repaint);
        return true;
      case "suspend":
        this.#parts.screen.suspend();
        return true;
      default:
        return false;
    }
  }

  /** Returns whether the key answered the question, or belongs to its list. A paste never answers. */
  #answer(key: Key): boolean {
    const { questions, store } = this.#parts;
    const question = questions.current;
    if (question === null) return false;
    if (questions.press(key)) return true;
    if (key.kind === "key" && key.name === "escape") {
      questions.answer({ kind: "dismissed" });
      return true;
    }
    const { draft } = store.read().composer;
    if (key.kind === "key" && key.name === "enter" && question.takesText && !escapesEnter(draft))
      return this.#answerWithText(draft.text);
    if (key.kind !== "text" || (question.takesText && draft.text !== "")) return false;
    const choice = question.choices.find((each) => each.key === key.text.toLowerCase());
    if (!questions.takesKeys() || choice === undefined) return false;
    questions.answer({ kind: "choice", choice });
    return true;
  }

  #answerWithText(text: string): boolean {
    if (text.trim() === "") return true;
    this.#change((state) => ({ ...state, composer: emptyComposer }));
    this.#parts.questions.answer({ kind: "text", text: text.trim() });
    return true;
  }

  #submit(): boolean {
    const { draft, search } = this.#parts.store.read().composer;
    if (search !== null || escapesEnter(draft)) return false;
    const text = draft.text.trim();
    if (text === "") return true;
    this.#change((state) => ({ ...state, composer: emptyComposer }));
    this.submit(text);
    return true;
  }

  /** Runs a prompt or command, or queues it while a turn is running. */
  submit(text: string): void {
    const input = parseInput(text);
    this.#parts.history.add(text);
    if (input.kind === "unknown-command") this.#hint(unknownCommand(input));
    else if (input.kind === "command" && input.command.name === "quit") this.leave();
    else if (this.#stop === null) this.#running = this.#runQueue(text);
    else if (input.kind === "command" && !input.command.waitsForTurn) this.#runDuringTurn(input);
    else this.#change((state) => ({ ...state, queued: [...state.queued, text] }));
  }

  #runDuringTurn({ command, argument }: { command: SlashCommand; argument: string }): void {
    const signal = this.#stop?.signal ?? AbortSignal.abort();
    this.#parts.actions.runCommand(command, { argument, signal }).catch(this.#fail);
  }

  /** Runs one input, and then those that were entered meanwhile. */
  async #runQueue(first: string): Promise<void> {
    try {
      for (let text: string | undefined = first; text !== undefined; text = this.#next()) {
        const stop = new AbortController();
        this.#stop = stop;
        await this.#run(text, stop.signal);
        if (stop.signal.aborted) this.#unqueue();
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#stop = null;
    }
  }

  async #run(text: string, signal: AbortSignal): Promise<void> {
    const { actions } = this.#parts;
    const input = parseInput(text);
    if (input.kind === "command")
      return await actions.runCommand(input.command, { argument: input.argument, signal });
    this.#change((state) => ({
      ...state,
      view: withBlock(state.view, { kind: "prompt", text: neutralise(text) }),
    }));
    this.#isInTurn = true;
    try {
      await actions.runTurn(text, signal);
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

  /** Puts the queued messages back into the draft, since a person who interrupts may want to change them. */
  #unqueue(): void {
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
    else if (hasBusyAgents(this.#parts.store.read())) {
      this.#parts.actions.interruptAgents().catch(this.#fail);
      this.#hint("the agents are stopped; press ctrl-C again to end the session");
    } else this.#hint("press ctrl-C again to end the session");
  }

  /** A second press ends the session, so that a turn that does not stop cannot block the person. */
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
      this.#hint("stopping; press ctrl-C again to end the session");
    }
  }

  #isSecond(situation: "idle" | "stopping"): boolean {
    const previous = this.#lastInterrupt;
    this.#lastInterrupt = { situation, at: this.#parts.now() };
    return previous?.situation === situation && this.#lastInterrupt.at - previous.at <= DOUBLE_PRESS_MS;
  }

  #endOfInput(): void {
    if (this.#stop === null || !this.#isInTurn) this.leave();
    else this.#hint("a turn is running; press ctrl-C to interrupt it");
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
  const hint = meant === null ? "list the commands with /help" : `did you mean /${meant}?`;
  return `there is no command /${neutraliseLine(name)}: ${hint}`;
}
