import { isBrigError } from "../../errors.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { argumentOffer, commandOffer, type Offer, type Word } from "./input/menu.js";
import type { ArgumentChoice, CompletionSession, SlashCommand } from "./input/slash-commands.js";
import { WorkspaceFiles } from "./workspace-files.js";

type Show = (offer: Offer) => void;

/** Looks up what a person can choose for the word that is being typed. */
export class Completer implements Disposable {
  readonly #session: CompletionSession;
  readonly #files: WorkspaceFiles;
  /** What was found for arguments of commands since the last turn. */
  readonly #arguments = new Map<SlashCommand, readonly ArgumentChoice[]>();

  constructor(session: CompletionSession) {
    this.#session = session;
    // Read for each list, since the sandbox and the setting may be others by then.
    this.#files = new WorkspaceFiles(() => {
      const { sandbox, setting } = session.conversation;
      return { sandbox, cwd: setting.cwd };
    });
  }

  /** Calls `show` at once if what there is for the word is known, and again when there is more. */
  complete(word: Word, show: Show): void {
    switch (word.kind) {
      case "command":
        show(commandOffer(word.typed));
        break;
      case "file":
        this.#files.find(word.typed, show);
        break;
      case "argument":
        this.#completeArgument(word, show);
        break;
      default:
        word satisfies never;
    }
  }

  /** Forgets what a turn or a command may have changed. */
  refresh(): void {
    this.#arguments.clear();
    this.#files.refresh();
  }

  [Symbol.dispose](): void {
    this.#files.close();
  }

  #completeArgument({ command, typed }: Word & { kind: "argument" }, show: Show): void {
    const keep = (choices: readonly ArgumentChoice[]) => {
      this.#arguments.set(command, choices);
      show(argumentOffer(typed, choices));
    };
    const found = this.#arguments.get(command) ?? command.completions?.(this.#session) ?? [];
    if (!(found instanceof Promise)) keep(found);
    else
      found.then(keep, (error: unknown) => {
        const reason = isBrigError(error) ? error.message : String(error);
        show({ choices: [], note: neutraliseLine(reason) });
      });
  }
}
