import { z } from "zod";

const pointSchema = z.object({
  snapshot: z.string(),
  number: z.int().describe("The first point is 1. 0 stands for the start"),
  count: z.int().describe("How many paths have changed since the point before"),
  changes: z
    .array(z.object({ path: z.string(), change: z.enum(["added", "modified", "deleted"]) }))
    .describe("The first 100 of them, relative to the workspace"),
});

export const pointListSchema = z.object({ points: z.array(pointSchema) });

export const takenPointSchema = z.object({
  point: pointSchema.nullable().describe("Null if nothing has changed"),
});

export const restoreSchema = z.strictObject({
  point: z.int().min(0).describe("The number of a restore point; 0 for the state at the start"),
});

export const undoneSchema = z.object({
  undone: z
    .object({
      undone: pointSchema.describe("The point whose changes were undone"),
      restores: z.int().describe("The point whose state the workspace has now; 0 for the start"),
      point: pointSchema.describe("The point that the undo has taken"),
    })
    .nullable()
    .describe("Null if there is nothing to undo"),
});
