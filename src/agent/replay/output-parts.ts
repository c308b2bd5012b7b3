/** What stands before it brig says of a call, what stands after it the command printed. */
const BODY_START = "\nOutput:\n";

/** Both, so that what a command printed cannot pass for what brig says; null for an output that is not made of them. */
export function outputParts(output: string): { head: string; body: string } | null {
  const at = output.indexOf(BODY_START);
  return at === -1 ? null : { head: output.slice(0, at), body: output.slice(at + BODY_START.length) };
}

export function joinOutput(head: string, body: string): string {
  return head + BODY_START + body;
}
