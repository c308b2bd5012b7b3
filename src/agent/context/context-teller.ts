import type { MessageItem } from "../../model/items.js";
import { type SessionSetting, type ToldContext, toldContext } from "../../session/setting.js";
import { type ContextOptions, contextUpdate, initialContext } from "./context-messages.js";
import { type ProjectDocsOptions, type ProjectFiles, readProjectDocs } from "./project-docs.js";

export interface ContextTellerOptions extends ContextOptions {
  /** What the user wants of every session; it comes before the files. Default: nothing. */
  userInstructions?: string | undefined;
  /** Where AGENTS.md files are looked for. Default: nowhere. */
  projectDocs?: ProjectDocsOptions | undefined;
}

export interface TellingPlace {
  setting: SessionSetting;
  now: Date;
  files: () => Promise<ProjectFiles>;
  signal: AbortSignal;
  onWarning(text: string): void;
}

/** Tells the model where and how it works: everything at first, and from then on what has changed. */
export class ContextTeller {
  readonly #options: ContextTellerOptions;
  #told: ToldContext | null;
  /** What the files said of the directory they were read for. */
  #docs: { cwd: string; text: string | null } | null = null;

  /** `told`: what an earlier part of the conversation holds already. */
  constructor(options: ContextTellerOptions, told: ToldContext | null) {
    this.#options = options;
    this.#told = told;
  }

  /** The messages that go before the user's next one. */
  async next(place: TellingPlace): Promise<MessageItem[]> {
    if (this.#told === null) return await this.everything(place);
    const before = this.#told;
    const told = toldContext(place.setting, place.now);
    const docs = told.setting.cwd === before.setting.cwd ? null : await this.#otherDocs(place);
    this.#told = told;
    return contextUpdate(told, before, { ...this.#options, docs });
  }

  /** For a conversation that holds nothing of it, or no longer does. */
  async everything(place: TellingPlace): Promise<MessageItem[]> {
    const docs = await this.#docsOf(place);
    this.#told = toldContext(place.setting, place.now);
    return initialContext(this.#told, { ...this.#options, docs });
  }

  /** The conversation no longer holds what was told: it is told in full again. */
  forget(): void {
    this.#told = null;
  }

  /** What the files say of a new directory; null where the model knows that already. */
  async #otherDocs(place: TellingPlace): Promise<string | null> {
    const before = this.#docs?.text;
    const text = await this.#docsOf(place);
    return text === before ? null : text;
  }

  /** Read once for each directory: what the model itself writes there is nothing it has to be told. */
  async #docsOf(place: TellingPlace): Promise<string | null> {
    const { cwd } = place.setting;
    if (this.#docs?.cwd === cwd) return this.#docs.text;
    const { userInstructions = "" } = this.#options;
    const parts = [userInstructions.trim() === "" ? null : userInstructions, await this.#filesOf(place)];
    const texts = parts.filter((part) => part !== null);
    const text = texts.length === 0 ? null : texts.join("\n\n");
    this.#docs = { cwd, text };
    return text;
  }

  async #filesOf({ setting: { cwd }, files, signal, onWarning }: TellingPlace): Promise<string | null> {
    const { projectDocs } = this.#options;
    if (projectDocs === undefined) return null;
    const { text, warnings } = await readProjectDocs({ ...projectDocs, cwd, files, signal });
    for (const warning of warnings) onWarning(warning);
    return text;
  }
}
