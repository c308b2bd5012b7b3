import { z } from "zod";
import { parseBytes, SIZE_WORDS } from "../../lib/bytes.js";

export const imagesSchema = z.object({
  alias: z
    .record(z.string(), z.string().min(1))
    .default({})
    .describe("Images to use in place of those that tasks and their Dockerfiles name"),
  budget: z
    .string()
    .refine((text) => parseBytes(text) !== null, { error: `it must be ${SIZE_WORDS}` })
    .optional()
    .describe("The disk space that images built for tasks may take, such as `50GB`")
    .meta({ fallback: "no limit" }),
});
