import { z } from "zod";

/** Everything before this line comes from brig; the rest is the command's own output. */
const BODY_START = "\nOutput:\n";

/** Separates brig's lines from the command's output, which could imitate them. Null for other outputs. */
export function outputParts(output: string): { head: string; body: string } | null {
  const at = output.indexOf(BODY_START);
  return at === -1 ? null : { head: output.slice(0, at), body: output.slice(at + BODY_START.length) };
}

export function joinOutput(head: string, body: string): string {
  return head + BODY_START + body;
}

const shape = z.object({
  output: z.string(),
  metadata: z.object({ exit_code: z.number(), duration_seconds: z.number() }),
});

/** Reads the JSON that `shell` outputs; null for any other output. */
export function readStructuredOutput(output: string): { text: string; exitCode: number } | null {
  if (!output.startsWith('{"output":')) return null;
  try {
    const { output: text, metadata } = shape.parse(JSON.parse(output));
    return { text, exitCode: metadata.exit_code };
  } catch {
    return null;
  }
}
