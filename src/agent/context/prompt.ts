import { type MessageItem, textMessage } from "../model/items.js";

export const defaultInstructions = `You are a coding agent. You work in a sandbox: a container that holds the user's project, reached only through your tools.

- Do what was asked, completely, and nothing else. Read the code before you change it; keep to its style.
- Before a group of related calls say in one short sentence what you are about to do and why; say nothing before a single look at a file.
- Search with rg and rg --files, which are much faster than grep and find. Start narrow and widen only when that finds nothing.
- Group related calls into one command or one turn instead of many small ones.
- Read files with the tools for that, or with sed -n and the like; do not write Python scripts to print large parts of files.
- After an edit do not read the file again to see whether it took effect: a failed edit says so.
- Run tests before you call a change done, and look at their output: first the most specific ones that cover the code you changed, then
  broader ones as you gain confidence.
- A command that fails because the sandbox forbids it will fail again: find another way, or say what is needed.
- End with a short summary for the user: what was wrong, what you changed, how you checked it.`;

/** `images`: data URLs. */
export function userMessage(prompt: string, images: readonly string[]): MessageItem {
  const shown = images.flatMap((url, index): MessageItem["content"] => [
    { type: "input_text", text: `<image name=[Image #${index + 1}]>` },
    { type: "input_image", image_url: url },
    { type: "input_text", text: "</image>" },
  ]);
  return { type: "message", role: "user", content: [...shown, { type: "input_text", text: prompt }] };
}

/** Tells the model, in the next turn, that this turn was stopped. */
export function abortedTurnMessage(): MessageItem {
  return textMessage(
    "user",
    "<turn_aborted>\nThe user stopped this turn. Calls that were running were ended, with or without a part of their work done: look before " +
      "you repeat them. Commands that earlier calls left running may still run.\n</turn_aborted>",
  );
}
