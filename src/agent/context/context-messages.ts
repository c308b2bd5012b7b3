import { type MessageItem, textMessage } from "../model/items.js";
import { type SentContext, type SessionSetting, sentContext } from "../session/setting.js";
import { environmentBlock, permissionsBlock, projectDocsBlock } from "./context-blocks.js";
import { type ProjectDocsOptions, type ProjectFiles, readProjectDocs } from "./project-docs.js";

/** Options for the messages that tell the model about the session. */
export interface ContextOptions {
  /** Added to the developer message. Default: none. */
  developerInstructions?: string | undefined;
  /** Whether the `<environment_context>` block is sent. Default: true. */
  includesEnvironment?: boolean | undefined;
  /** Whether the `<permissions instructions>` block is sent. Default: true. */
  includesPermissions?: boolean | undefined;
  /** The user's instructions for every session; they precede what AGENTS.md files say. Default: none. */
  userInstructions?: string | undefined;
  /** Places to search for AGENTS.md files. Default: none. */
  projectDocs?: ProjectDocsOptions | undefined;
}

/** The session that the messages describe. */
export interface ContextSource {
  setting: SessionSetting;
  now: Date;
  files: () => Promise<ProjectFiles>;
  signal: AbortSignal;
  onWarning(text: string): void;
}

/**
 * Writes the messages that say where and how the model works: all of them at first, later what has changed.
 */
export class ContextMessages {
  readonly #options: ContextOptions;
  /** Context that the conversation already contains; null if it contains none. */
  #sent: SentContext | null;
  #docs: { cwd: string; text: string | null } | null = null;

  constructor(options: ContextOptions, sent: SentContext | null) {
    this.#options = options;
    this.#sent = sent;
  }

  /** The messages to put before the user's next one. */
  async next(source: ContextSource): Promise<MessageItem[]> {
    const before = this.#sent;
    if (before === null) return await this.everything(source);
    const docs = source.setting.cwd === before.setting.cwd ? null : await this.#changedDocs(source);
    this.#sent = sentContext(source.setting, source.now);
    return contextMessages(this.#sent, before, { ...this.#options, docs });
  }

  async everything(source: ContextSource): Promise<MessageItem[]> {
    const docs = await this.#docsOf(source);
    this.#sent = sentContext(source.setting, source.now);
    return contextMessages(this.#sent, null, { ...this.#options, docs });
  }

  /** The conversation no longer contains what was sent, so the next messages are all of them again. */
  forget(): void {
    this.#sent = null;
  }

  /** Null if the new directory's documents say what the old one's said. */
  async #changedDocs(source: ContextSource): Promise<string | null> {
    const before = this.#docs?.text;
    const text = await this.#docsOf(source);
    return text === before ? null : text;
  }

  /** Reads each directory's documents once: if the model changes them itself, it need not be told. */
  async #docsOf(source: ContextSource): Promise<string | null> {
    const { cwd } = source.setting;
    if (this.#docs?.cwd === cwd) return this.#docs.text;
    const { userInstructions = "" } = this.#options;
    const parts = [userInstructions.trim() === "" ? null : userInstructions, await this.#filesOf(source)];
    const texts = parts.filter((part) => part !== null);
    const text = texts.length === 0 ? null : texts.join("\n\n");
    this.#docs = { cwd, text };
    return text;
  }

  async #filesOf({ setting: { cwd }, files, signal, onWarning }: ContextSource): Promise<string | null> {
    const { projectDocs } = this.#options;
    if (projectDocs === undefined) return null;
    const { text, warnings } = await readProjectDocs({ ...projectDocs, cwd, files, signal });
    for (const warning of warnings) onWarning(warning);
    return text;
  }
}

/** Everything the model needs to know, or only what differs from `before`. */
export function contextMessages(
  now: SentContext,
  before: SentContext | null,
  options: ContextOptions & { docs?: string | null } = {},
): MessageItem[] {
  const { developerInstructions = "", docs = null } = options;
  const { includesEnvironment = true, includesPermissions = true } = options;
  const permissions = permissionsBlock(now.setting);
  const isNew = before === null || permissions !== permissionsBlock(before.setting);
  return [
    ...message("developer", [
      includesPermissions && isNew ? permissions : null,
      before === null && developerInstructions.trim() !== "" ? developerInstructions : null,
    ]),
    ...message("user", [
      docs === null ? null : projectDocsBlock(docs, now.setting),
      includesEnvironment ? environmentBlock(now, before) : null,
    ]),
  ];
}

function message(role: "user" | "developer", sections: readonly (string | null)[]): MessageItem[] {
  const texts = sections.filter((section) => section !== null);
  return texts.length === 0 ? [] : [textMessage(role, ...texts)];
}
