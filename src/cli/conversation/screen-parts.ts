import type { CliContext } from "../../command/index.js";
import { PendingQuestions } from "./question.js";
import type { Block } from "./screen/block.js";
import { initialScreen, type ScreenState, showQuestion } from "./screen/screen-state.js";
import { ScreenStore } from "./screen/screen-store.js";
import { screenSize } from "./screen/terminal-screen.js";
import { withBlock } from "./screen/view-state.js";

/** What is on the screen, and the ways to change it. */
export interface ScreenParts {
  store: ScreenStore;
  questions: PendingQuestions;
  show(block: Block): void;
}

export function createScreen({ stdout }: CliContext, stage: ScreenState["stage"] = "starting"): ScreenParts {
  const store = new ScreenStore({ ...initialScreen(screenSize(stdout), Date.now()), stage });
  return {
    store,
    questions: new PendingQuestions(
      (question) => store.update((state) => showQuestion(state, question)),
      () => Date.now(),
    ),
    show: (block) => store.update((state) => ({ ...state, view: withBlock(state.view, block) })),
  };
}
