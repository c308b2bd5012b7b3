import { Keyboard } from "./input/keyboard.js";
import type { ConversationInput } from "./run-conversation.js";

/** Runs a conversation. Opens the keyboard before loading large modules, so that no typed key is lost. */
export async function startConversation(input: Omit<ConversationInput, "keyboard">): Promise<void> {
  const keyboard = await Keyboard.open(input.context);
  try {
    const { runConversation } = await import("./run-conversation.js");
    await runConversation({ ...input, keyboard });
  } finally {
    keyboard.release();
  }
}
