import { type MessageItem, textMessage } from "../../model/items.js";
import type { ToldContext } from "../../session/setting.js";
import { environmentBlock, permissionsBlock, projectDocsBlock } from "./context-blocks.js";

/** What the model is told of besides the conversation itself. */
export interface ContextOptions {
  /** From the configuration, for the model alone. Default: none. */
  developerInstructions?: string | undefined;
  /** Default: true. */
  includesEnvironment?: boolean | undefined;
  /** Default: true. */
  includesPermissions?: boolean | undefined;
}

/** The messages that come before the user's first one, and after a compaction: everything that is to be known. */
export function initialContext(
  told: ToldContext,
  { docs = null, ...options }: ContextOptions & { docs?: string | null } = {},
): MessageItem[] {
  const { setting } = told;
  const { developerInstructions = "", includesEnvironment = true, includesPermissions = true } = options;
  return [
    ...message("developer", [
      includesPermissions ? permissionsBlock(setting) : null,
      developerInstructions.trim() === "" ? null : developerInstructions,
    ]),
    ...message("user", [
      docs === null ? null : projectDocsBlock(docs, setting),
      includesEnvironment ? environmentBlock(told, null) : null,
    ]),
  ];
}

/** What is different from what the model was told last; nothing where nothing is. `docs`: null where they are the same. */
export function contextUpdate(
  told: ToldContext,
  before: ToldContext,
  { docs = null, ...options }: ContextOptions & { docs?: string | null } = {},
): MessageItem[] {
  const { setting } = told;
  const { includesEnvironment = true, includesPermissions = true } = options;
  const permissions = permissionsBlock(setting);
  const hasOthers = permissions !== permissionsBlock(before.setting);
  return [
    ...message("developer", [includesPermissions && hasOthers ? permissions : null]),
    ...message("user", [
      docs === null ? null : projectDocsBlock(docs, setting),
      includesEnvironment ? environmentBlock(told, before) : null,
    ]),
  ];
}

function message(role: "user" | "developer", sections: readonly (string | null)[]): MessageItem[] {
  const texts = sections.filter((section) => section !== null);
  return texts.length === 0 ? [] : [textMessage(role, ...texts)];
}
