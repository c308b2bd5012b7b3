import { z } from "zod";
import type { SessionLine } from "./session-lines.js";

const text = z.string().max(2000);
const found = z.looseObject({ assertion: text, promised: text, kernel: text });

const keys = z.array(z.looseObject({ name: text, hosts: z.array(text).max(1000) })).max(1000);

/** A session file may come from anywhere, so each field is checked. */
const wire = z
  .looseObject({
    id: text,
    image: text.nullish(),
    escalated: z.boolean().nullish(),
    start_ms: z.number().nonnegative().nullish(),
    proof: z.looseObject({
      policy: text,
      differences: z.array(found).max(100),
      notProvable: z.array(found.extend({ reason: text })).max(100),
      summary: z.record(text, text),
      engine: z.looseObject({ product: text, version: text, kernel: text }),
      runtime: text,
      imageId: text,
      egress: z
        .looseObject({
          ruledHosts: z.array(text).max(1000),
          secrets: keys,
          awsKeys: keys,
          canaries: z.array(text).max(1000),
        })
        .optional()
        .catch(undefined),
    }),
  })
  .transform(({ id, image, escalated, start_ms, proof }) => ({
    sandbox: id,
    image: image ?? null,
    /** Whether it is the container for commands that were allowed to run with full access. */
    isEscalated: escalated ?? false,
    startMs: start_ms ?? null,
    proof,
  }));

/** Statements of the kernel about the policy of a session's sandbox, from before the first command ran in it. */
export type SessionProof = z.infer<typeof wire>;

/** One of each sandbox of the session, in the order in which they were opened. A record that cannot be read is left out. */
export async function* proofsOf(lines: AsyncIterable<SessionLine>): AsyncIterable<SessionProof> {
  for await (const line of lines) {
    if (line.kind !== "record" || line.record.type !== "brig") continue;
    if (line.record.name !== "sandbox") continue;
    const read = wire.safeParse(line.record.payload);
    if (read.success) yield read.data;
  }
}
