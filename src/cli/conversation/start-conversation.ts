import { Keyboard } from "./input/keyboard.js";
import type { ConversationUse } from "./run-conversation.js";

/** Holds a conversation. The keyboard is taken before what draws is loaded, so that nothing is lost that is typed meanwhile. */
export async function startConversation(use: Omit<ConversationUse, "keyboard">): Promise<void> {
  const keyboard = await Keyboard.open(use.context);
  try {
    const { runConversation } = await import("./run-conversation.js");
    await runConversation({ ...use, keyboard });
  } finally {
    keyboard.release();
  }
}
