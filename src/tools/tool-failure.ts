import { isBrigError } from "../errors.js";
import type { ToolOutput } from "./tool.js";

/** What a tool that looks at something answers: a failure that the model can do something about is its answer too. */
export async function answer(look: () => Promise<ToolOutput>): Promise<ToolOutput> {
  try {
    return await look();
  } catch (error) {
    if (!isBrigError(error) || !/^(?:tool|file|exec)\./.test(error.code)) throw error;
    return { content: error.message, success: false };
  }
}
