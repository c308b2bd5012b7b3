import type { Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import { formatBytes } from "../../../../lib/bytes.js";
import { isTooDeep } from "../../../../lib/json/nesting.js";
import { LONGEST_TIMER_MS } from "../../../../lib/time/pause.js";
import { cutText } from "../../../../sandbox/index.js";
import type { JsonSchema, McpToolAnnotations } from "../../../../tools/index.js";
import { modelSchema } from "./tool-schema.js";

const MAX_PAGES = 100;
/** The cursors of all pages are kept, to notice one that repeats. */
const MAX_CURSOR_CHARS = 64 * 1024;
const MAX_TOOLS = 1000;
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_TOOL_BYTES = 512 * 1024;
const MAX_NAME_CHARS = 256;
const MAX_DESCRIPTION_BYTES = 16 * 1024;
const MAX_TITLE_BYTES = 256;

/** A tool as its server describes it, checked. */
export interface ListedTool {
  name: string;
  title: string | null;
  description: string;
  inputSchema: JsonSchema;
  rawInputSchema: Readonly<Record<string, unknown>>;
  annotations: McpToolAnnotations;
}

const pageSchema = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().nullish() });
const hint = z.boolean().nullish().catch(null);
const toolSchema = z.looseObject({
  name: z.string().min(1).max(MAX_NAME_CHARS),
  title: z.string().nullish().catch(null),
  description: z.string().nullish().catch(null),
  inputSchema: z.looseObject({}).catch({}),
  annotations: z
    .looseObject({
      title: z.string().nullish().catch(null),
      readOnlyHint: hint,
      destructiveHint: hint,
      idempotentHint: hint,
      openWorldHint: hint,
    })
    .nullish()
    .catch(null),
});

/**
 * Asks a server for all pages of its list of tools, and returns those that brig can use. `onWarning` is
 * called if some are left out, with the end of a sentence that begins with the server's name.
 */
export async function listTools(
  client: Client,
  { signal, onWarning }: { signal: AbortSignal; onWarning: (text: string) => void },
): Promise<ListedTool[]> {
  const tools = new Map<string, ListedTool>();
  const cursors = new Set<string>();
  let bytes = 0;
  let unusable = 0;
  for (let cursor: string | undefined; ; ) {
    const params = cursor === undefined ? {} : { params: { cursor } };
    const page = await client.request({ method: "tools/list", ...params }, pageSchema, {
      signal,
      timeout: LONGEST_TIMER_MS,
    });
    for (const source of page.tools) {
      const size = isTooDeep(source) ? Number.POSITIVE_INFINITY : JSON.stringify(source).length;
      const tool = size > MAX_TOOL_BYTES ? null : usableTool(source);
      if (tool === null || tools.has(tool.name)) unusable += 1;
      else if (tools.size >= MAX_TOOLS || bytes + size > MAX_BYTES) {
        onWarning(
          `has more than ${MAX_TOOLS} tools or ${formatBytes(MAX_BYTES)} of them; the rest is left out`,
        );
        return [...tools.values()];
      } else {
        tools.set(tool.name, tool);
        bytes += size;
      }
    }
    cursor = page.nextCursor ?? undefined;
    if (cursor === undefined) break;
    if (cursors.has(cursor) || cursors.size >= MAX_PAGES || cursor.length > MAX_CURSOR_CHARS) {
      onWarning("has a list of tools that does not end; what came so far is used");
      break;
    }
    cursors.add(cursor);
  }
  if (unusable > 0)
    onWarning(`describes ${unusable} of its tools twice, wrongly or with too much text; they are left out`);
  return [...tools.values()];
}

function usableTool(source: unknown): ListedTool | null {
  const parsed = toolSchema.safeParse(source);
  if (!parsed.success) return null;
  const { name, title, description, inputSchema, annotations } = parsed.data;
  const shownTitle = title ?? annotations?.title ?? null;
  return {
    name,
    title: shownTitle === null ? null : cutText(shownTitle, MAX_TITLE_BYTES),
    description: cutText(description ?? "", MAX_DESCRIPTION_BYTES),
    inputSchema: modelSchema(inputSchema),
    rawInputSchema: inputSchema,
    annotations: {
      readOnly: annotations?.readOnlyHint ?? null,
      destructive: annotations?.destructiveHint ?? null,
      idempotent: annotations?.idempotentHint ?? null,
      openWorld: annotations?.openWorldHint ?? null,
    },
  };
}
