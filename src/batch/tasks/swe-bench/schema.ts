import { z } from "zod";

const text = z.string();
const optionalText = z.string().nullish();

/** Unquoted versions in YAML are numbers. */
const version = z.union([z.string(), z.number().transform(String)]);

const testList = z.union([z.array(z.string()), z.string()]).transform((value, context): string[] => {
  if (typeof value !== "string") return value;
  const list = z.array(z.string()).safeParse(jsonOf(value));
  if (list.success) return list.data;
  context.addIssue({ code: "custom", message: "it must be a list of tests, or JSON of one" });
  return z.NEVER;
});

const asset = z.looseObject({ path: z.string() });
const assets = z.looseObject({ patch: z.array(asset).nullish(), test_patch: z.array(asset).nullish() });

/** In the data sets it is a text with JSON, which may be empty. */
const imageAssets = z.union([assets, z.string()]).transform((value, context): z.output<typeof assets> => {
  if (typeof value !== "string") return value;
  const parsed = value === "" ? { success: true as const, data: {} } : assets.safeParse(jsonOf(value));
  if (parsed.success) return parsed.data;
  context.addIssue({ code: "custom", message: "it must be a table of files, or JSON of one" });
  return z.NEVER;
});

function jsonOf(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

/** Columns of an instance that brig uses. Data sets have further ones. */
export const instanceSchema = z.looseObject({
  instance_id: text,
  repo: text,
  base_commit: z.string().regex(/^[0-9a-f]{7,64}$/, "it must be the hash of a commit"),
  patch: text,
  problem_statement: text.refine((value) => value.trim() !== "", "it must not be empty"),
  version: version.nullish(),
  FAIL_TO_PASS: testList,
  PASS_TO_PASS: testList,
  image: z.string().min(1).nullish(),
  eval_script: text,
  log_parser: text,
  eval_type: z.enum(["pass_and_fail", "fail_only"]),
  image_assets: imageAssets.nullish(),
  difficulty: optionalText,
  created_at: z.union([z.string(), z.date().transform((date) => date.toISOString())]).nullish(),
  split: optionalText,
  datasets: z.array(z.string()).nullish(),
});
export type Instance = z.output<typeof instanceSchema>;

/** A task repository's own description. Tasks of other splits were withdrawn. */
export const repositorySchema = z.looseObject({ splits: z.array(z.string()).default(["test"]) });
