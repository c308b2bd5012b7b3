import { isAbsolute, relative } from "node:path";
import { z } from "zod";
import { MOST_ANNOTATIONS, workflowCommand } from "../../lib/workflow-command.js";

const confidence = z.number().min(0).max(1);
const line = z.int().min(1);

const findingSchema = z.strictObject({
  title: z.string().describe("One imperative line of at most 80 characters that begins with [P0] to [P3]"),
  body: z.string().describe("One paragraph of Markdown: what goes wrong, and when"),
  confidence_score: confidence,
  priority: z
    .int()
    .min(0)
    .max(3)
    .nullable()
    .describe("0 for what blocks a release, to 3 for what would be nice"),
  code_location: z.strictObject({
    absolute_file_path: z.string(),
    line_range: z.strictObject({ start: line, end: line }),
  }),
});

/** What a review finds, in the form that Codex asks its models for. */
const reviewSchema = z.strictObject({
  findings: z.array(findingSchema),
  overall_correctness: z.enum(["patch is correct", "patch is incorrect"]),
  overall_explanation: z.string().describe("One to three sentences"),
  overall_confidence_score: confidence,
});

export type Review = z.infer<typeof reviewSchema>;
type Finding = Review["findings"][number];

/** The JSON Schema for the model. */
export function reviewJsonSchema(): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(reviewSchema, { io: "input" });
  return schema;
}

/** Null for a message that is no review. Text around the JSON is ignored: not every provider keeps to a schema. */
export function readReview(message: string): Review | null {
  const [start, end] = [message.indexOf("{"), message.lastIndexOf("}")];
  if (start === -1 || end < start) return null;
  try {
    const parsed = reviewSchema.safeParse(JSON.parse(message.slice(start, end + 1)));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

/** The text that Codex prints for it. */
export function reviewText({ findings, overall_explanation: explanation }: Review): string {
  if (findings.length === 0) return explanation.trim() === "" ? "There are no findings." : explanation.trim();
  const heading = findings.length === 1 ? "Review comment:" : "Full review comments:";
  const items = findings.map(({ title, body, code_location: { absolute_file_path: path, line_range } }) => {
    const lines = body.split("\n").map((text) => `  ${text}`);
    return [`- ${oneLine(title)} — ${oneLine(path)}:${line_range.start}-${line_range.end}`, ...lines].join(
      "\n",
    );
  });
  return [...(explanation.trim() === "" ? [] : [explanation.trim()]), heading, ...items].join("\n\n");
}

/** A warning for each finding, the most urgent first, as many as GitHub shows. */
export function reviewAnnotations({ findings }: Review, root: string): string[] {
  const urgency = ({ priority }: Finding) => priority ?? 4;
  return findings
    .toSorted((one, other) => urgency(one) - urgency(other))
    .slice(0, MOST_ANNOTATIONS)
    .map((finding) =>
      workflowCommand("warning", { ...placeOf(finding, root), title: oneLine(finding.title) }, finding.body),
    );
}

/** Nothing for a file outside of the repository. */
function placeOf(
  { code_location: { absolute_file_path: path, line_range } }: Finding,
  root: string,
): Record<string, string | number> {
  const file = isAbsolute(path) ? relative(root, path) : path;
  if (file === "" || file === ".." || file.startsWith("../") || isAbsolute(file)) return {};
  const { start, end } = line_range;
  return { file, line: start, endLine: Math.max(start, end) };
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
