import { z } from "zod";

const variable = z.string().refine((text) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(text), {
  error: "must be the name of an environment variable",
});

/** A secret that is not real, and that is planted in each sandbox to see whether it leaves. */
export const canarySchema = z
  .strictObject({
    form: z
      .enum(["aws-access-key", "github-token", "token"])
      .default("token")
      .describe("What it looks like; each sandbox gets another one"),
    variable: variable
      .optional()
      .describe("The variable in which commands find it; with aws-access-key, how its two variables begin"),
    file: z
      .string()
      .refine((path) => /^\/[^\0]+$/.test(path), { error: "must be an absolute path" })
      .optional()
      .describe("The file of the sandbox that has it"),
  })
  .refine(({ variable: name, file }) => name !== undefined || file !== undefined, {
    error: "needs a variable, a file or both",
  });
