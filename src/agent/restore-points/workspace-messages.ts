import { type MessageItem, textMessage } from "../model/items.js";
import type { SessionRestorePoint } from "../session/restore-point.js";

/** More paths than this are not listed, because they would only fill the model's context. */
const SHOWN_CHARS = 4000;

/** Tells the model which paths an undo has changed, because it remembers their earlier content. */
export function undoneMessage({
  count,
  changes,
}: Pick<SessionRestorePoint, "count" | "changes">): MessageItem {
  const shown = firstThatFit(changes.map(({ path }) => JSON.stringify(path)));
  const left = count - shown.length;
  const more = left > 0 ? `, and ${left} more` : "";
  return workspaceMessage(
    "The user has undone what the last call that changed files did to the workspace. These paths are as they were " +
      // Names are untrusted. The escape keeps them from closing the XML element.
      `before that call: ${shown.join(", ").replaceAll("</", "<\\/")}${more}`,
  );
}

/** Tells the model that it must not rely on what it remembers of the files. */
export function changesMissingMessage(reason: string): MessageItem {
  return workspaceMessage(
    `${reason} What earlier calls changed in the workspace may not be there: look before you build on it.`,
  );
}

function workspaceMessage(text: string): MessageItem {
  return textMessage("user", `<workspace_state>\n${text}\n</workspace_state>`);
}

function firstThatFit(texts: readonly string[]): string[] {
  let chars = 0;
  const end = texts.findIndex((text) => {
    chars += text.length;
    return chars > SHOWN_CHARS;
  });
  return texts.slice(0, end === -1 ? undefined : end);
}
