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
