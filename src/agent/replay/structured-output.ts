import { z } from "zod";

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
