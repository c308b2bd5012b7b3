import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import {
  type Composer,
  composerWith,
  emptyComposer,
  escapesEnter,
  recallAt,
  reduceComposer,
} from "./input/composer.js";
import {
  type Draft,
  type DraftElement,
  insertPicture,
  insertText,
  joinedDraft,
  picturePaths,
  sentText,
  shownText,
} from "./input/draft.js";
import type { Key, KeyName } from "./input/keys.js";
import {
  isSameWord,
  menuOf,
  moveSelection,
  type Offer,
  type Word,
  withChoice,
  wordAtCursor,
} from "./input/menu.js";
import { parseInput, type SlashCommand } from "./input/slash-commands.js";
import type { PendingQuestions } from "./question.js";
import { hasBusyAgents, repaint, type ScreenState } from "./screen/screen-state.js";
import type { ScreenStore } from "./screen/screen-store.js";
import { unfoldLast, withBlock } from "./screen/view-state.js";

const DOUBLE_PRESS_MS = 1000;

/** What a person sends to the model. */
interface SentMessage {
  text: string;
  /** Paths of files on the host. */
  pictures: readonly string[];
}

/** Actions that the driver starts. They reject only because of a bug in brig. */
export interface ConversationActions {
  runTurn(message: SentMessage, signal: AbortSignal): Promise<void>;
  runCommand(command: SlashCommand, options: { argument: string; signal: AbortSignal }): Promise<void>;
  /** Runs a command of the person in the sandbox. */
  runShell(script: string, signal: AbortSignal): Promise<void>;
  /** Stops agents that are still working although the turn that started them is over. */
  interruptAgents(): Promise<void>;
}

export interface DriverParts {
  store: ScreenStore;
  questions: PendingQuestions;
  history: { readonly drafts: readonly Draft[]; add(draft: Draft): void };
  actions: ConversationActions;
  /** Calls `show` with what there is for the word, at once if that is known, and again when there is more. */
  complete(word: Word, show: (offer: Offer) => void): void;
  /** The pictures that a pasted text names; null if it is any other text. */
  findPictures(text: string): (DraftElement & { kind: "picture" })[] | null;
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
  #lastPress: { situation: string; at: number } | null = null;
  /** The number of keys so far: what was looked up for the draft before the last key is not shown any more. */
  #keys = 0;

  constructor(parts: DriverParts) {
    this.#parts = parts;
    this.left = new Promise((resolve, reject) => {
      this.#leave = resolve;
      this.#fail = reject;
    });
  }

  press(key: Key): void {
    const { store, questions } = this.#parts;
    this.#keys++;
    store.update((state) => (state.hint === null ? state : { ...state, hint: null }));
    if (key.kind === "key" && this.#command(key.name)) return;
    const question = questions.current;
    if (question !== null && this.#answer(key)) return;
    if (key.kind === "key" && this.#chooses(key.name)) return;
    if (key.kind === "key" && key.name === "escape" && this.#escape()) return;
    if (key.kind === "key" && key.name === "enter" && this.#submit()) return;
    if (key.kind === "paste" && key.isCut) this.#hint("the paste was too long and has been cut off");
    this.#lastPress = null;
    this.#edit(this.#edited(store.read().composer, key), { offers: !isRecall(key) });
  }

  #edited(composer: Composer, key: Key): Composer {
    const { findPictures, history, questions } = this.#parts;
    // The path of a picture may also be what a command or an answer needs.
    const takesPictures =
      composer.search === null &&
      questions.current?.takesText !== true &&
      parseInput(sentText(composer.draft)).kind === "prompt";
    const pictures = key.kind === "paste" && takesPictures ? findPictures(key.text) : null;
    if (pictures === null) return reduceComposer(composer, key, history.drafts);
    const draft = pictures.reduce(
      (filled, picture, index) => insertPicture(index === 0 ? filled : insertText(filled, " "), picture),
      composer.draft,
    );
    return { ...composer, draft };
  }

  /** Changes the draft, and looks up what can be chosen for the word before the cursor. */
  #edit(composer: Composer, { offers }: { offers: boolean }): void {
    const { store, complete } = this.#parts;
    const word = offers && composer.search === null ? wordAtCursor(composer.draft) : null;
    const isClosed = word !== null && word.from === composer.closedAt;
    const closedAt = isClosed ? composer.closedAt : null;
    store.update((state) => ({ ...state, composer: { ...composer, menu: null, closedAt } }));
    const keys = this.#keys;
    if (word !== null && !isClosed) complete(word, (offer) => keys === this.#keys && this.#show(word, offer));
    store.flush();
  }

  #show(word: Word, offer: Offer): void {
    this.#change((state) => {
      const { composer, question } = state;
      const isCurrent = question === null && isSameWord(wordAtCursor(composer.draft), word);
      return isCurrent ? { ...state, composer: { ...composer, menu: menuOf(word, offer) } } : state;
    });
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

  /** Handles the keys of the menu. Returns whether the key was one of them. */
  #chooses(name: KeyName): boolean {
    const { composer } = this.#parts.store.read();
    const { menu, draft } = composer;
    if (menu === null) return false;
    const choice = menu.choices[menu.selected ?? 0];
    switch (name) {
      case "escape":
        this.#change((state) => ({
          ...state,
          composer: { ...composer, menu: null, closedAt: menu.word.from },
        }));
        return true;
      case "up":
      case "down": {
        if (choice === undefined) return false;
        const moved = moveSelection(menu, name === "up" ? -1 : 1);
        this.#change((state) => ({ ...state, composer: { ...composer, menu: moved } }));
        return true;
      }
      case "tab":
      case "enter": {
        const isSent = name === "enter" && choice?.isWhole === true;
        if (choice === undefined || (name === "enter" && (menu.selected === null || escapesEnter(draft))))
          return false;
        const filled = { ...composer, draft: withChoice(draft, menu.word, choice) };
        this.#edit(filled, { offers: !isSent });
        if (isSent) this.#submit();
        return true;
      }
      default:
        return false;
    }
  }

  /** Stops what is running, as ctrl-C does; pressed twice, clears the draft or brings the last message back. */
  #escape(): boolean {
    const { store, history, actions } = this.#parts;
    const { composer } = store.read();
    if (composer.search !== null) return false;
    if (this.#stop !== null) {
      if (!this.#interruptWork(this.#stop))
        this.#hint("stopping; ctrl-C ends the session if that takes too long");
      return true;
    }
    const isSecond = this.#isSecond("escape");
    const last = history.drafts.findLastIndex((draft) => parseInput(sentText(draft)).kind === "prompt");
    if (hasBusyAgents(store.read())) {
      actions.interruptAgents().catch(this.#fail);
      this.#hint("the agents are stopped");
    } else if (isSecond) {
      this.#lastPress = null;
      const isEmpty = composer.draft.text === "";
      this.#edit(isEmpty ? recallAt(composer, last, history.drafts) : emptyComposer, { offers: false });
    } else if (composer.draft.text !== "") this.#hint("press esc again to clear the draft");
    else if (last !== -1) this.#hint("press esc again to edit the last message");
    return true;
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
      return this.#answerWithText(sentText(draft));
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
    if (text === "!") {
      this.#hint("! runs what follows it as a command in the sandbox, for example: ! git status");
      return true;
    }
    this.#change((state) => ({ ...state, composer: emptyComposer }));
    this.submit({ ...draft, text, cursor: text.length });
    return true;
  }

  /** Runs a prompt or command, or queues it while a turn is running. */
  submit(draft: Draft): void {
    const input = parseInput(sentText(draft));
    this.#parts.history.add(draft);
    if (input.kind === "unknown-command") this.#hint(unknownCommand(input));
    else if (input.kind === "command" && input.command.name === "quit") this.leave();
    else if (this.#stop === null) this.#running = this.#runQueue(draft);
    else if (input.kind === "command" && !input.command.waitsForTurn) this.#runDuringTurn(input);
    else this.#change((state) => ({ ...state, queued: [...state.queued, draft] }));
  }

  #runDuringTurn({ command, argument }: { command: SlashCommand; argument: string }): void {
    const signal = this.#stop?.signal ?? AbortSignal.abort();
    this.#parts.actions.runCommand(command, { argument, signal }).catch(this.#fail);
  }

  /** Runs one input, and then those that were entered meanwhile. */
  async #runQueue(first: Draft): Promise<void> {
    try {
      for (let draft: Draft | undefined = first; draft !== undefined; draft = this.#next()) {
        const stop = new AbortController();
        this.#stop = stop;
        await this.#run(draft, stop.signal);
        if (stop.signal.aborted) this.#unqueue();
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#stop = null;
    }
  }

  async #run(draft: Draft, signal: AbortSignal): Promise<void> {
    const { actions } = this.#parts;
    const text = sentText(draft);
    const input = parseInput(text);
    if (input.kind === "command")
      return await actions.runCommand(input.command, { argument: input.argument, signal });
    this.#change((state) => ({
      ...state,
      view: withBlock(state.view, { kind: "prompt", text: neutralise(shownText(draft)) }),
    }));
    this.#isInTurn = true;
    try {
      if (input.kind === "shell") await actions.runShell(input.script, signal);
      else await actions.runTurn({ text, pictures: picturePaths(draft) }, signal);
    } finally {
      this.#isInTurn = false;
    }
  }

  #next(): Draft | undefined {
    if (this.#hasLeft) return undefined;
    const [next, ...queued] = this.#parts.store.read().queued;
    this.#change((state) => ({ ...state, queued }));
    return next;
  }

  /** Puts the queued messages back into the draft, since a person who interrupts may want to change them. */
  #unqueue(): void {
    this.#change((state) => {
      if (state.queued.length === 0) return state;
      const draft = joinedDraft([...state.queued, state.composer.draft]);
      return { ...state, queued: [], composer: composerWith(draft) };
    });
  }

  #interrupt(): void {
    if (this.#stop !== null) this.#interruptOrLeave(this.#stop);
    else if (this.#parts.store.read().composer.draft.text !== "")
      this.#change((state) => ({ ...state, composer: emptyComposer }));
    else if (this.#isSecond("idle")) this.leave();
    else if (hasBusyAgents(this.#parts.store.read())) {
      this.#parts.actions.interruptAgents().catch(this.#fail);
      this.#hint("the agents are stopped; press ctrl-C again to end the session");
    } else this.#hint("press ctrl-C again to end the session");
  }

  /** A second press ends the session, so that a turn that does not stop cannot block the person. */
  #interruptOrLeave(stop: AbortController): void {
    if (this.#interruptWork(stop)) return;
    if (this.#isSecond("stopping")) this.leave();
    else this.#hint("stopping; press ctrl-C again to end the session");
  }

  /** Returns false if that was done before. */
  #interruptWork(stop: AbortController): boolean {
    if (stop.signal.aborted) return false;
    stop.abort(new Error("interrupted"));
    this.#change(({ view, ...state }) => ({
      ...state,
      view: view.turn === null ? view : { ...view, turn: { ...view.turn, isStopping: true } },
    }));
    return true;
  }

  #isSecond(situation: "idle" | "stopping" | "escape"): boolean {
    const previous = this.#lastPress;
    this.#lastPress = { situation, at: this.#parts.now() };
    return previous?.situation === situation && this.#lastPress.at - previous.at <= DOUBLE_PRESS_MS;
  }

  #endOfInput(): void {
    if (this.#stop === null || !this.#isInTurn) this.leave();
    else this.#hint("something is still running; press ctrl-C to interrupt it");
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

/** Whether the key goes through earlier messages, in which nothing is completed. */
function isRecall(key: Key): boolean {
  return key.kind === "key" && (key.name === "up" || key.name === "down" || key.name === "search");
}

function unknownCommand({ name, meant }: { name: string; meant: string | null }): string {
  const hint = meant === null ? "list the commands with /help" : `did you mean /${meant}?`;
  return `there is no command /${neutraliseLine(name)}: ${hint}`;
}
